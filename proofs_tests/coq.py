"""Coq, run on the proofs of ``proofs/`` and on texts that use them.

Coq is not needed for anything else: where ``coqc`` is missing, tests with ``needs_coq`` are skipped
with a sentence.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROOFS = Path(__file__).resolve().parents[1] / "proofs"
FILES = [word for word in (PROOFS / "_CoqProject").read_text("utf-8").split() if ".v" in word]
LIBRARY = ("-Q", ".", "Bubbleproof")
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


def coqc(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Coq's answer to a file of a folder where the files that it requires are compiled."""
    return subprocess.run(
        ["coqc", "-q", *LIBRARY, name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def compiled(folder: Path) -> dict[str, str]:
    """Compile all proofs in the folder; what each file prints."""
    printed = {}
    for name in FILES:
        shutil.copy(PROOFS / name, folder)
        done = coqc(folder, name)
        if done.returncode:
            raise AssertionError(f"coqc refuses {name}: {done.stderr}")
        printed[name] = done.stdout
    return printed


def answer(compiled_in: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    """Coq's answer to a text that may use the proofs; the file is called by ``name``."""
    (compiled_in / f"{name}.v").write_text(text, "utf-8")
    return coqc(compiled_in, f"{name}.v")
