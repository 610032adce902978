"""Pages that a reader follows from an empty folder: files to save, commands and lines of Python.

A block below ``<!-- saved as NAME -->`` is a file that the reader saves; a page that has one is
followed in a folder of its own, block by block and in order (``test_followed_pages.py`` compares
what is shown, ``benchmarks.journeys`` runs it from a wheel). This file needs the standard library
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_MARK = "<!-- saved as "
_BLOCK = re.compile(
    r"(?:<!-- saved as (?P<name>[\w./-]+) -->\n)?(?P<fence>`{3,})(?P<language>[\w-]*)\n"
    r"(?P<text>.*?)(?P=fence)\n",
    re.DOTALL,
)
_COMMAND = re.compile(r"\$ ((?:bubbleproof|python -m pytest) [^\n]*)\n(.*)", re.DOTALL)


class StepKind(Enum):
    """What a reader does with a block."""

    FILE = "save a file"
    COMMAND = "type a command"
    PYTHON = "type lines of Python"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedStep:
    """A block: what is saved under ``name``, or typed, and what the page shows of it."""

    kind: StepKind
    text: str  # of a command: the line without its prompt
    name: str = ""
    shown: str = ""

    @property
    def typed(self) -> int:
        """Lines that a reader copies."""
        if self.kind is StepKind.PYTHON:
            return sum(line.startswith((">>> ", "... ")) for line in self.text.splitlines())
        return len(self.text.splitlines())


def is_followed(text: str) -> bool:
    """Whether a page has a file to save."""
    return _MARK in text


def steps_of(text: str) -> list[FollowedStep]:
    """The blocks of a page that a reader does something with, in order."""
    return [step for match in _BLOCK.finditer(text) if (step := _step(match)) is not None]


def _step(match: re.Match[str]) -> FollowedStep | None:
    text = match["text"]
    if match["name"]:
        return FollowedStep(kind=StepKind.FILE, text=text, name=match["name"])
    if match["language"] == "console" and (found := _COMMAND.fullmatch(text)):
        return FollowedStep(kind=StepKind.COMMAND, text=found[1], shown=found[2])
    if match["language"] == "python" and text.startswith(">>> "):
        return FollowedStep(kind=StepKind.PYTHON, text=text, shown=text)
    return None


def as_shown(out: str, err: str) -> str:
    """What a page shows of a command: its standard output, and below it what is not written."""
    lost = (line for line in err.splitlines() if line.startswith("not written: "))
    return "".join(f"{line.rstrip()}\n" for line in (*out.splitlines(), *lost))


def with_shown(text: str, now: Callable[[FollowedStep], str]) -> str:
    """The page with what each command and each line of Python shows now."""

    def again(match: re.Match[str]) -> str:
        step = _step(match)
        if step is None:
            return match[0]
        shown = now(step)
        if step.kind is StepKind.FILE:
            return match[0]
        inside = shown if step.kind is StepKind.PYTHON else f"$ {step.text}\n{shown}"
        return f"{match['fence']}{match['language']}\n{inside}{match['fence']}\n"

    return _BLOCK.sub(again, text)


def save(step: FollowedStep, folder: Path) -> None:
    """Save the file of a step."""
    path = folder / step.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text, "utf-8")
