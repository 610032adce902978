"""Coq, run on the proofs of ``proofs/`` and on texts that use them.

Coq is not needed for anything else: where ``coqc`` is missing, tests with ``needs_coq`` are skipped
with a sentence.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

PROOFS = Path(__file__).resolve().parents[1] / "proofs"
FILES = [word for word in (PROOFS / "_CoqProject").read_text("utf-8").split() if ".v" in word]
SECONDS = 300  # a text that takes longer is refused; the longest takes a few
THEOREM = re.compile(r"^Theorem (\w+)", re.MULTILINE)
NAMED = re.compile(
    r"^\s*(?:Theorem|Lemma|Definition|Fixpoint|Inductive|Record) (\w+)", re.MULTILINE
)

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None, reason="coqc is not installed, so the proofs are not checked"
)


def text_of(name: str) -> str:
    """A file of ``proofs/``."""
    return (PROOFS / name).read_text("utf-8")


@cache
def asked() -> tuple[str, ...]:
    """The theorems of which ``Assumptions.v`` has Coq name what they rest on."""
    listed = text_of("Assumptions.v").split("every_theorem := (")[1]
    return tuple(re.findall(r"^  (\w+)(?:,|\)\.)$", listed, re.MULTILINE))


def coqc(folder: Path, name: str, library: Path) -> subprocess.CompletedProcess[str]:
    """Coq's answer to a file of a folder, where the files that it requires are in the library."""
    return subprocess.run(
        ["coqc", "-q", "-Q", str(library), "Bubbleproof", name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def library(folder: Path) -> dict[str, str]:
    """Compile all proofs in the folder, unless that is done; what each file prints.

    Processes that share the folder wait for the one that compiles.
    """
    import fcntl  # not on Windows, where nothing else here needs it

    folder.mkdir(exist_ok=True)
    said = folder / "printed.json"
    with (folder / "compiling").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(json.dumps(_compiled(folder)), "utf-8")
    printed: dict[str, str] = json.loads(said.read_text("utf-8"))
    return printed


def _compiled(folder: Path) -> dict[str, str]:
    printed = {}
    for name in FILES:
        shutil.copy(PROOFS / name, folder)
        done = coqc(folder, name, folder)
        if done.returncode:
            raise AssertionError(f"coqc refuses {name}: {done.stderr}")
        printed[name] = done.stdout
    return printed


def answer(compiled_in: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    """Coq's answer to a text that may use the proofs; the file is called by ``name``."""
    with TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.v").write_text(text, "utf-8")
        return coqc(Path(folder), f"{name}.v", compiled_in)
