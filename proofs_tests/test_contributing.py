"""CONTRIBUTING is true: a toy of each kind, added to just the files that its row names, works.

Each toy is laid into a copy of the package and asked for by the program that a user would write. A
row that named a file too many or too few would be seen here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofs_tests.patience import PATIENCE
from proofs_tests.structure import ROOT
from proofs_tests.test_tools_see import checkout

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ROW = re.compile(r"^\| (?:a|an) ([a-z ]+) \| (.+?) \|", re.MULTILINE)
MAP = {kind: re.findall(r"`([\w/.]+\.py)`", files) for kind, files in ROW.findall(TEXT)}
MOST_LINES = 40  # of the changelog, a release
MOST_BYTES = 100_000  # of a text that a command generates

Change = Callable[[str], str]  # of a file's text; a new file has none


def new(text: str) -> Change:
    """A file that is not there yet."""
    return lambda _: text.lstrip("\n")


def after(anchor: str, text: str) -> Change:
    """The text behind a line that the file has once."""

    return lambda file: once(file, anchor, f"{anchor}{text}")


def before(anchor: str, text: str) -> Change:
    """The text before such a line."""
    return lambda file: once(file, anchor, f"{text.lstrip()}{anchor}")


def once(file: str, anchor: str, text: str) -> str:
    """The file with another text in the place of one that it has once."""
    assert file.count(anchor) == 1, anchor
    return file.replace(anchor, text)


def each(*changes: Change) -> Change:
    """Several changes of one file."""

    def change(file: str) -> str:
        for one in changes:
            file = one(file)
        return file

    return change


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """What is laid into which files, by the names that the map has, and what then runs."""

    files: Mapping[str, Change]
    program: str


TOYS = {
    "family of schedules": Toy(
        files={
            "theory/families/NAME.py": new('''
from bubbleproof.theory.families.gpipe import GPipe


class Toy(GPipe):
    """GPipe under another name."""

    name = "toy"
    title = "Toy"
    source = "no paper"
'''),
            "theory/families/__init__.py": after(
                '    "pipemesh": "pipemesh.PipeMesh",\n', '    "toy": "toy.Toy",\n'
            ),
        },
        program="""
import bubbleproof as bp
assert bp.check(bp.family("toy")(p=2, m=3)).ok
assert bp.families()["toy"].title == "Toy"
command("measure", "toy", "p=2", "m=3")
""",
    ),
    "choice": Toy(
        files={
            "theory/pipelines/NAME.py": new('''
from dataclasses import replace
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind, ChoiceSetting
from bubbleproof.theory.pipelines.value_types import Expectation


def with_slow(problem: Problem, stages: tuple[int, ...], setting: ChoiceSetting) -> Problem:
    """The problem in which forwards of these stages take one tick more."""
    actions = problem.actions
    slow = actions.is_kind(Kind.F) & np.isin(actions.stage, stages)
    return replace(problem, duration=problem.duration + slow)


ToyChoice = Annotated[
    tuple[int, ...],
    Expectation("a tuple of stages"),
    ChoiceKind(turn=9, change=with_slow, is_of_stages=True),
]
'''),
            "theory/pipelines/choices.py": each(
                after(
                    "from bubbleproof.theory.pipelines.state_offload import StateOffloadChoice\n",
                    "from bubbleproof.theory.pipelines.toy import ToyChoice\n",
                ),
                after(
                    "    frozen_stages: FrozenChoice = ()\n", "    slow_stages: ToyChoice = ()\n"
                ),
            ),
            "verify/required_step.py": after(
                "        ticks = int(self.ticks.forward[stage, part])\n",
                "        ticks += stage in self.pipeline.choices.slow_stages\n",
            ),
        },
        program="""
import bubbleproof as bp
from pathlib import Path
plain = bp.Pipeline(num_ranks=2, num_microbatches=3)
slow = bp.Pipeline(num_ranks=2, num_microbatches=3, slow_stages=(1,))
assert bp.solve(slow).makespan > bp.solve(plain).makespan
assert bp.check(slow, bp.solve(slow)).ok
Path("slow.toml").write_text('''
ranks = 2
microbatches = 3
[durations]
forward = 1
backward = 2
[choices]
slow_stages = [1]
''')
assert bp.solve("slow.toml").makespan == bp.solve(slow).makespan
""",
    ),
    "file format": Toy(
        files={
            "bubbleproof/formats/NAME.py": new('''
from pathlib import Path

from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.families import member


def read_toy(path: str) -> ScheduleFile:
    """A family, ranks and microbatches in a line."""
    name, ranks, microbatches = Path(path).read_text().split()
    made = member(name, p=int(ranks), m=int(microbatches))
    return ScheduleFile.of(made.problem, made.schedule, pipeline=made.pipeline, name="toy")
'''),
            "bubbleproof/formats/format_table.py": after(
                "FORMATS: tuple[Format, ...] = (\n",
                """    Format(
        name="a toy",
        holds=Holds.SCHEDULE,
        endings=(".toy",),
        reader=_HERE + "toy.read_toy",
        is_whole=True,
    ),
""",
            ),
        },
        program="""
import bubbleproof as bp
from pathlib import Path
Path("x.toy").write_text("1f1b 2 3")
assert bp.measure("x.toy").makespan == 12
command("verify", "x.toy")
command("show", "x.toy")
""",
    ),
    "engine": Toy(
        files={
            "solvers/engines/NAME.py": new("""
from bubbleproof.solvers.engines.cpsat import search

__all__ = ["search"]
"""),
            "solvers/engines/__init__.py": after(
                '    "cpsat": ("cpsat", "search"),\n', '    "toy": ("toy", "search"),\n'
            ),
        },
        program="""
import bubbleproof as bp
found = bp.solve(bp.Pipeline(num_ranks=2, num_microbatches=3), engine="toy")
assert found.makespan == 12
command("bench", "--engine", "toy", "--time-limit", "5", "--help")
""",
    ),
    "command": Toy(
        files={
            "bubbleproof/commands/NAME.py": new('''
from bubbleproof.commands.output import HOLDS, print_text


def run_toy(times: int) -> int:
    """Say it so many times."""
    print_text("toy " * times)
    return HOLDS
'''),
            "bubbleproof/cli.py": before(
                '@app.command(epilog=examples("run"))\n',
                '''
@app.command()
@runs("commands.toy.run_toy")
def toy(times: int = 1) -> None:
    """Say toy."""


''',
            ),
        },
        program="""
command("toy", "--times", "2")
""",
    ),
}
RUN = """
import sys
from bubbleproof.cli import main

def command(*words):
    sys.argv = ["bubbleproof", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
"""


def test_the_map_has_a_toy_for_each_row() -> None:
    assert set(MAP) == set(TOYS)


@pytest.mark.parametrize("kind", TOYS)
def test_a_toy_touches_just_the_files_of_its_row_and_works(kind: str, tmp_path: Path) -> None:
    toy = TOYS[kind]
    assert sorted(toy.files) == sorted(MAP[kind])
    folder = checkout(tmp_path / "copy", links=True)
    for name, change in toy.files.items():
        path = folder / name.replace("NAME", "toy")
        assert path.exists() == ("NAME" not in name), path
        path.write_text(change(path.read_text("utf-8") if path.exists() else ""), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN + toy.program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_release_is_told_in_few_lines() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases
    assert all(len(each.splitlines()) <= MOST_LINES for each in releases)


def test_no_generated_text_is_large() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not a checkout of git")
    kinds = (".md", ".csv", ".txt", ".svg", ".json")
    files = [ROOT / name for name in tracked.stdout.split("\0") if name.endswith(kinds)]
    large = {
        str(path.relative_to(ROOT)): path.stat().st_size
        for path in files
        if path.is_file() and path.stat().st_size > MOST_BYTES
    }
    assert large == {}
