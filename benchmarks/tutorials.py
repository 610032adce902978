"""The tutorials from a built wheel, as a stranger follows them: a table of their times.

    python -m benchmarks.tutorials [--write records/tutorials.md]

The wheel is installed into an environment of its own, with what each tutorial says to install
(torch is lent from the environment that runs this). Each is followed from an empty folder: files
are saved, commands and lines of Python run in order, and what they print is compared with the page;
a difference ends the program. A person also reads and copies: counted at 200 words a minute and ten
seconds a block.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import typer

from benchmarks.journeys import Environment, built_wheel, environment
from benchmarks.markdown import markdown_table, put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from proofs_tests.followed_pages import FollowedStep, StepKind, as_shown, save, steps_of
from proofs_tests.shown import normal

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ("ci", "odd-cluster", "researcher", "model-owner")
ASKED_FOR = ("pytest", "matplotlib")  # beside the wheel, by the tutorials
WORDS_A_MINUTE, SECONDS_A_BLOCK, MOST_MINUTES = 200, 10, 10
_SESSION = """
import json, sys
sys.path[:0] = [".", sys.argv[1]]
from shown import session
names = {}
for line in sys.stdin:
    sys.stdout.write(json.dumps(session(json.loads(line), names)) + "\\n")
    sys.stdout.flush()
"""
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_IN = re.compile(r"in \d+\.\d+s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A tutorial that was followed: its steps, the seconds of its commands, and its words."""

    name: str
    steps: int
    seconds: float
    words: int

    @property
    def minutes(self) -> float:
        """What a person takes: commands, reading and copying."""
        return (self.seconds + SECONDS_A_BLOCK * self.steps) / 60 + self.words / WORDS_A_MINUTE

    @property
    def row(self) -> tuple[str, ...]:
        link = f"[{self.name}](../tutorials/{self.name}.md)"
        numbers = f"{self.seconds:.0f} s", f"{self.words}", f"{self.minutes:.0f} min"
        return link, f"{self.steps}", *numbers, f"{MOST_MINUTES} min"


def _variables() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "120", "PYTEST_ADDOPTS": ""}


@contextmanager
def _interpreter(at: Environment, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python that stays, as the reader's does: a block at a time, names kept."""
    process = subprocess.Popen(
        [str(at.python), "-c", _SESSION, str(ROOT / "proofs_tests")],
        cwd=folder, env=_variables(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _answer(process: subprocess.Popen[str], text: str) -> str:
    told, heard = process.stdin, process.stdout
    assert told is not None
    assert heard is not None
    told.write(json.dumps(text) + "\n")
    told.flush()
    return str(json.loads(_line(heard)))


def _line(heard: IO[str]) -> str:
    if not (line := heard.readline()):
        raise RuntimeError("the reader's Python has ended")
    return line


def _command(at: Environment, folder: Path, text: str) -> str:
    words = text.split()
    is_ours = words[0] == "bubbleproof"
    columns = "120" if is_ours else "80"  # a page shows pytest's own width
    called = ["-m", *words] if is_ours else [*words[1:], "--rootdir", ".", "-c", os.devnull]
    done = subprocess.run(
        [str(at.python), *called],
        cwd=folder, env={**_variables(), "COLUMNS": columns}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{text} ended with {done.returncode}: {done.stderr[-600:]}")
    return as_shown(done.stdout, done.stderr)


def followed(at: Environment, name: str, folder: Path) -> Followed:
    """Follow a tutorial in an empty folder. Raises ``RuntimeError`` where it shows another."""
    text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text("utf-8")
    steps = steps_of(text)
    began = time.perf_counter()
    with _interpreter(at, folder) as process:
        for step in steps:
            if step.kind is StepKind.FILE:
                save(step, folder)
            elif step.kind is StepKind.PYTHON:
                _compare(step, _answer(process, step.text))
            else:
                _compare(step, _command(at, folder, step.text))
    seconds = time.perf_counter() - began
    words = len(_FENCED.sub("", text).split())
    return Followed(name=name, steps=len(steps), seconds=seconds, words=words)


def _compare(step: FollowedStep, printed: str) -> None:
    now, shown = (_lines(normal(_IN.sub("", text))) for text in (printed, step.shown))
    if now != shown:
        raise RuntimeError(f"{step.text.splitlines()[0]} prints another thing:\n{printed}")


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def page_of(found: list[Followed], target: str) -> str:
    """The page as Markdown, for the file ``target``."""
    machine = this_machine()
    header = ("tutorial", "blocks", "commands and Python", "words", "a person takes", "asked")
    return (
        "# What the tutorials take\n\n"
        f"Generated by `python -m benchmarks.tutorials --write {target}`, bubbleproof "
        f"{machine.versions['bubbleproof']}\non {machine.cores} cores, {machine.memory_text}.\n\n"
        "Each tutorial was followed from an empty folder, on a wheel in an environment of its own, "
        "and printed what its page shows.\nA person takes the seconds of the commands, "
        f"{SECONDS_A_BLOCK} seconds for each block that is copied, and reads {WORDS_A_MINUTE} "
        "words a minute;\ninstalling is counted in [journeys](journeys.md).\n\n"
        f"{markdown_table(header, [each.row for each in found])}"
    )


def main(
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Build, install, follow, and print or write; see the module's text."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        wheel = built_wheel(home)
        clean, _ = environment(home, wheel, lends_torch=False)
        limits = ["-c", str(ROOT / "constraints.txt"), *ASKED_FOR]
        words = [str(clean.python), "-m", "pip", "install", "-q", *limits]
        subprocess.run(words, check=True, capture_output=True, env=_variables())
        lent, _ = environment(home, wheel, lends_torch=True)
        found = []
        for tutorial in TUTORIALS:
            folder = home / "empty" / tutorial
            folder.mkdir(parents=True)
            found.append(followed(lent if tutorial == "model-owner" else clean, tutorial, folder))
    put_out(page_of(found, str(write or "PAGE")), write)


if __name__ == "__main__":
    typer.run(main)
