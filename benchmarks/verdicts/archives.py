"""One module out of a wheel or a source archive, loaded without installing anything.

A module that says what a schedule is needs hardly more than Python, while its package may want
kernels built. What it imports from its own package must be given as stand-ins.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

NAME = re.compile(r"([A-Za-z0-9_]+?)-([0-9][0-9A-Za-z.]*?)(-.*\.whl|\.tar\.gz)")
PREFIX = "_verdicts_of_"


def named(path: Path) -> tuple[str, str]:
    """(package, version) by the archive's name. Raises ``ValueError`` for other names."""
    found = NAME.fullmatch(path.name)
    if found is None:
        raise ValueError(f"{path.name} is no archive such as deepspeed-0.19.8.tar.gz or a wheel")
    return found[1], found[2]


def text_of(path: Path, member: str) -> str:
    """The text of a file of the archive, below its top folder in a source archive.

    Raises ``ValueError`` where there is no such file.
    """
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return wheel.read(member).decode()
        top = path.name.removesuffix(".tar.gz")
        with tarfile.open(path) as archive:
            found = archive.extractfile(f"{top}/{member}")
            if found is None:
                raise KeyError(member)
            return found.read().decode()
    except KeyError:
        raise ValueError(f"{path.name} has no {member}") from None


def loaded(source: str, name: str, given: Mapping[str, ModuleType]) -> ModuleType:
    """The module of that source; ``given`` stand for what it imports, by their dotted names.

    ``name`` is its own dotted name, below which relative imports are looked up.
    """
    made = ModuleType(PREFIX + name)
    made.__package__ = (PREFIX + name).rpartition(".")[0]
    stand_ins = {PREFIX + each: module for each, module in given.items()}
    sys.modules |= stand_ins
    try:
        exec(compile(source, f"<{name}>", "exec"), made.__dict__)
    finally:
        for each in stand_ins:
            del sys.modules[each]
    return made
