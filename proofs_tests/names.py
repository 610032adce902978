"""The names of the package's classes and aliases: what stands twice, and what is no noun."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from proofs_tests.structure import modules


def names_twice() -> dict[str, list[str]]:
    """Public classes of one name in the package, and aliases of one name in a room, with places.

    A room is a folder of the package; the files beside the rooms are one. An alias is what a module
    assigns to a capitalised name, type variables among them.
    """
    found: dict[str, list[str]] = {}
    for module, path in modules().items():
        room = module.partition(".")[0] if "." in module else "the door"
        for name, is_class in _public_names(path):
            key = name if is_class else f"{room}: {name}"
            found.setdefault(key, []).append(module)
            if is_class:
                found.setdefault(f"{room}: {name}", []).append(module)
    return {
        key: places
        for key, places in sorted(found.items())
        if len(places) > 1 and key.partition(": ")[2] not in found
    }


def participles() -> dict[str, list[str]]:
    """Public classes that are called by a bare participle, which names no thing."""
    found: dict[str, list[str]] = {}
    for module, path in modules().items():
        for name, is_class in _public_names(path):
            is_one_word = name[1:].islower()
            if is_class and is_one_word and (name.endswith("ed") or name in _IRREGULAR):
                found.setdefault(name, []).append(module)
    return found


_IRREGULAR = {
    "Built",
    "Cut",
    "Drawn",
    "Found",
    "Given",
    "Held",
    "Kept",
    "Known",
    "Look",
    "Made",
    "Met",
    "Run",
    "Seen",
    "Sent",
    "Set",
    "Shown",
    "Split",
    "Taken",
    "Told",
}


def _public_names(path: Path) -> Iterator[tuple[str, bool]]:
    """The capitalised public names that a module defines; True for classes."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, True
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[:1].isupper() and not name.isupper() and "_" not in name:
                yield name, False
