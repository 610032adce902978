"""25 problem files of all kinds, each solved or planned, and written as a theorem that Coq accepts.

By default a few; all of them with ``BUBBLEPROOF_SWEEP=full``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.coq import answer, needs_coq
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

SHAPE = """ranks = 2
microbatches = 4
"""
WHOLE = """[durations]
forward = [2, 4]
backward = [4, 6]
"""
HALVES = """[durations]
forward = [2, 4]
input = [2, 4]
weight = [2, 2]
"""
MEMORY = """[memory]
capacity = 4
activation = 2
"""
LINKED = MEMORY + "message = 2\n[links]\nlatency = 1\nbandwidth = 1\n"
RECOMPUTE = "[choices.recompute]\nstages = [0, 1]\n"
PLAN = "[plan]\nchunks = [1, 2]\n"
FOUR = "[durations]\nforward = [1, 2, 2, 1]\nbackward = [2, 3, 3, 2]\n"
SLICED = "[durations]\nforward = [[1, 2], [2, 3]]\nbackward = [[2, 3], [3, 4]]\n"
FILES = {
    "stages unlike each other": SHAPE + WHOLE,
    "a limit": SHAPE + WHOLE + MEMORY,
    "a limit by rank, and weights": SHAPE + WHOLE
    + "[memory]\ncapacity = [5, 4]\nstatic = [1, 2]\n",
    "latency": SHAPE + WHOLE + "[links]\nlatency = 3\n",
    "messages on one link": SHAPE + WHOLE + LINKED,
    "messages both ways": SHAPE + WHOLE + LINKED + 'duplex = "full"\n',
    "a link of its own": SHAPE + WHOLE + LINKED + "[[link]]\nranks = [0, 1]\nlatency = 5\n",
    "two chunks in a loop": SHAPE + "chunks = 2\n" + FOUR + MEMORY.replace("= 4", "= 8"),
    "two chunks in a V": SHAPE + 'chunks = 2\nplacement = "wave"\n' + FOUR,
    "a placement by stages": SHAPE + "chunks = 2\nplacement = [0, 1, 1, 0]\n" + FOUR,
    "split backwards": SHAPE + "split_backward = true\n" + HALVES + MEMORY,
    "what I gives back": SHAPE + "split_backward = true\n" + HALVES + MEMORY
    + "released_at_input = 1\n",
    "two slices": SHAPE + "slices = 2\n" + WHOLE,
    "slices unlike each other": SHAPE + "slices = 2\n" + SLICED,
    "one rank": "ranks = 1\nmicrobatches = 3\n[durations]\nforward = 1\nbackward = 2\n",
    "one microbatch": "ranks = 3\nmicrobatches = 1\n[durations]\nforward = 1\nbackward = 2\n",
    "a V of split backwards": SHAPE + 'chunks = 2\nplacement = "wave"\nsplit_backward = true\n'
    "[durations]\nforward = 1\ninput = 1\nweight = 1\n",
    "times with units": 'ranks = 2\nmicrobatches = 3\n[durations]\nforward = "10.5 ms"\n'
    'backward = "21 ms"\n[memory]\ncapacity = "24 GiB"\nactivation = "3.5 GiB"\n',
    "recompute": SHAPE + WHOLE + MEMORY + RECOMPUTE,
    "recompute by microbatch": SHAPE.replace("4", "3") + WHOLE + MEMORY + RECOMPUTE
    + "per_microbatch = true\n",
    "off-load": SHAPE.replace("4", "3") + WHOLE + MEMORY
    + "[choices.offload]\nstages = [0]\noffload = 1\nreload = 1\n",
    "a plan": SHAPE + WHOLE + MEMORY + PLAN,
    "a plan of all backwards": SHAPE + HALVES + PLAN + 'backward = ["whole", "split", "mixed"]\n',
    "a plan of slices": SHAPE + WHOLE + LINKED + PLAN + "slices = [1, 2]\n",
    "a plan that may recompute": SHAPE + WHOLE + MEMORY + RECOMPUTE + PLAN,
}  # fmt: skip
FEW = ("messages both ways", "recompute", "a plan of slices")


def theorem_of(folder: Path, command: Run, toml: str) -> str:
    """The theorem of a file that is solved or planned with a certificate."""
    (folder / "p.toml").write_text(toml)
    is_plan = "[plan]" in toml
    best = folder / ("best" if is_plan else "best.json")
    made = [folder / "p.toml", "-o", best, "--certificate", folder / "c.json"]
    kind = ["plan"] if is_plan else ["solve", "--certified"]
    found = command(*kind, *made, "--time-limit", PATIENCE)
    assert found.status == 0, found.err
    more = ("--certificate", folder / "c.json", "--coq", folder / "x.v")
    verified = command("verify", best, *more)
    assert verified.status == 0, verified.err
    return (folder / "x.v").read_text()


@needs_coq
@pytest.mark.parametrize("name", sized(list(FEW), full=list(FILES)))
def test_coq_accepts_the_theorem_of_a_file(
    tmp_path: Path, command: Run, coq_library: tuple[Path, dict[str, str]], name: str
) -> None:
    text = theorem_of(tmp_path, command, FILES[name])
    assert "Theorem problem_is_of_the_pipeline" in text
    done = answer(coq_library[0], "File", text)
    assert done.returncode == 0, done.stderr
    assert "Axioms" not in done.stdout


def test_there_are_25_files_each_another() -> None:
    assert len(FILES) == len({*FILES.values()}) == 25
    assert {*FEW} <= FILES.keys()
