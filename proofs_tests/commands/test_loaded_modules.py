"""A command loads what its answer needs: so many of our modules, a figure that may only fall."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofs_tests.patience import PATIENCE
from proofs_tests.structure import ROOT

PROBLEM = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = 1\nbackward = 2\n"
MOST = {"verify": 122, "measure": 121, "show": 127, "solve": 201, "plan": 371}
# Readers of files, drawings, processes and what is installed: no part of a family's answer.
SPARED = {"importlib.metadata", "multiprocessing", "pydantic", "rich", "tempfile"}


def loaded_by(*words: str) -> set[str]:
    """The modules that a process has at the end of a command, whose output is no terminal."""
    code = (
        f"import sys; sys.argv = {['bubbleproof', *words]!r}\n"
        "from bubbleproof.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('', *sys.modules, sep=chr(10), file=sys.stderr)"
    )
    coloured = ("FORCE_COLOR", "TTY_COMPATIBLE")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in coloured},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return set(done.stderr.split())


def ours(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.startswith("bubbleproof.")}


@pytest.mark.parametrize("command", ["verify", "measure", "show"])
def test_a_familys_answer_loads_that_family_and_no_reader(command: str) -> None:
    loaded = loaded_by(command, "1f1b", "p=4", "m=8")
    assert not SPARED & loaded
    orders = {"adapipe", "chimera", "gpipe", "interleaved", "one_f_one_b", "svpp", "v_shape"}
    families = {name.rpartition(".")[2] for name in loaded if ".families." in name}
    assert families & orders == {"one_f_one_b"}
    assert not {name.split(".")[1] for name in ours(loaded)} & {"costs", "planners", "papers"}
    assert "bubbleproof.verify.certificates.certificate" not in loaded
    assert len(ours(loaded)) <= MOST[command]


@pytest.mark.parametrize("command", ["solve", "plan"])
def test_a_problem_loads_no_terminal_and_no_page(command: str, tmp_path: Path) -> None:
    problem = tmp_path / "small.toml"
    problem.write_text(PROBLEM + ("[plan]\nchunks = [1, 2]\n" if command == "plan" else ""))
    loaded = loaded_by(command, str(problem))
    assert not {"matplotlib", "rich", "torch"} & loaded
    assert len(ours(loaded)) <= MOST[command]
