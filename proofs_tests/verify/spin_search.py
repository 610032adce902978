"""SPIN on the model of ``promela_model``: built once, run on each program and semantics.

A search ends with what it found, or where it would hold more than ``MEBIBYTES`` of states. SPIN and
a C compiler are needed by nothing else; where they are missing ``built`` says so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bubbleproof.theory.model.actions import Action
from proofs_tests.verify.promela_model import MODEL, numbers_of
from proofs_tests.verify.token_simulator import Wiring

MEBIBYTES, DEPTH = 20, 40_000
_FLAGS = ("-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", f"-DMEMLIM={MEBIBYTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search found; ``is_whole`` where it saw every state."""

    is_stuck: bool
    is_crossed: bool
    is_whole: bool
    states: int


def missing() -> str:
    """Why no search can be made here, or nothing."""
    lacking = [name for name in ("spin", "gcc") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not installed: nothing is searched" if lacking else ""


def built(folder: Path) -> Path:
    """The searching program, made in a folder. Precondition: nothing is ``missing``."""
    (folder / "ranks.pml").write_text(MODEL, encoding="utf-8")
    for command in (["spin", "-a", "ranks.pml"], ["gcc", *_FLAGS, "-o", "search", "pan.c"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]} refused the model: {done.stdout}{done.stderr}")
    return folder / "search"


def searched(search: Path, wiring: Wiring, orders: list[list[Action]], semantics: str) -> Searched:
    """Search one program whose messages stand once at each end."""
    numbers = search.with_name(f"numbers-{os.getpid()}")
    numbers.write_text(numbers_of(wiring, orders, semantics), encoding="ascii")
    done = subprocess.run(
        [str(search), f"-m{DEPTH}", "-w16"],
        cwd=search.parent,
        env={**os.environ, "PROGRAM_NUMBERS": str(numbers)},
        capture_output=True,
        text=True,
        check=False,
    )
    states = re.search(r"(\d+) states, stored", done.stdout)
    if states is None:
        raise RuntimeError(f"no answer of the search: {done.stdout}{done.stderr}")
    return Searched(
        is_stuck="invalid end state (" in done.stdout,
        is_crossed="assertion violated" in done.stdout,
        is_whole="Search not completed" not in done.stdout
        and "max search depth" not in done.stdout,
        states=int(states[1]),
    )
