"""What a target's own reader makes of the files written for it, where the target is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.frameworks import framework_named

SECONDS = 300  # until a framework's modules are imported and its model built, at most
_SCRIPTS = "bubbleproof.hand_over.launched"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReading:
    """What was ``loaded``, or why nothing was (``unloaded``)."""

    loaded: tuple[str, ...] = ()
    unloaded: str = ""


def read_by(
    target: str, package: str, script: str, written: Mapping[str, str], words: Sequence[str]
) -> OwnReading:
    """Load files by the reader of a target, if a package of its version is installed.

    Parameters
    ----------
    package
        What the target is installed as.
    script
        The module of ``hand_over.launched`` that asks the reader; it prints a line of JSON.
    written
        The files by name, which stand in the folder where it runs.
    words
        What the script is called with.

    Raises
    ------
    ValueError
        Where the reader refuses them.
    """
    wanted = framework_named(target, "--to").version
    try:
        found = version(package)
    except PackageNotFoundError:
        return OwnReading(unloaded=f"{package} is not installed here")
    if not f"{found}.".startswith(f"{wanted}."):
        return OwnReading(unloaded=f"{package} {found} is installed here, not {wanted}")
    answer = answer_of(script, written, words)
    if "refused" in answer:
        raise ValueError(
            f"hand-over to {target}: {package} {found} refuses it: {answer['refused']}"
        )
    if "told" not in answer:
        return OwnReading(unloaded=f"{package} {found} could not be asked: {answer['said']}")
    return OwnReading(loaded=(f"{package} {found} reads {' and '.join(written)}",))


def answer_of(
    script: str, written: Mapping[str, str], words: Sequence[str], *, python: str = sys.executable
) -> dict[str, object]:
    """What the script prints; ``said`` alone where that is no line of JSON."""
    with as_file(files(_SCRIPTS) / f"{script}.py") as path, TemporaryDirectory() as folder:
        for name, text in written.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [python, str(path), *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    last = (done.stdout.splitlines() or [""])[-1]
    if last.startswith("{"):
        found: dict[str, object] = json.loads(last)
        return found
    return {"said": (done.stderr.strip().splitlines() or ["nothing"])[-1][:200]}
