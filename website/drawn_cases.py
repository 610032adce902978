"""The schedule that a claim's measurement builds, drawn by ``bp.show``.

A claim's measured side is a function of the case that builds a schedule somewhere inside. It is run
once more and watched: what ``timing.left_shift`` gives is what is measured; where an order's
measures are timed anew by a template (``claims.retiming``), it is the family's member at the case.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import bubbleproof as bp
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import made, measures
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.claims.standing import without_memories
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import left_shift

MOST_TASKS = 400  # a larger schedule is no small counterexample to look at
Built = tuple[Problem, Schedule]


@dataclass(slots=True)
class _Watcher:
    """What a measurement times, and which members of families it asks for."""

    built: list[Built] = field(default_factory=list)
    asked: list[tuple[str, Params]] = field(default_factory=list)

    def note(self, frame: FrameType, event: str, given: object) -> None:
        """For ``sys.setprofile``."""
        if event == "return" and frame.f_code is left_shift.__code__:
            problem = frame.f_locals.get("problem")
            if isinstance(problem, Problem) and isinstance(given, Schedule):
                self.built.append((problem, given))
        elif event == "call" and frame.f_code is measures.__code__:
            self.asked.append((frame.f_locals["name"], dict(frame.f_locals["at"])))


def built_in(reading: Reading, params: Params) -> Built | None:
    """The last schedule that the measurement of a case builds; None where it builds none."""
    _forget()
    watcher, before = _Watcher(), sys.getprofile()
    with without_memories():
        sys.setprofile(watcher.note)
        try:
            reading.measured(params)
        finally:
            sys.setprofile(before)
    if watcher.asked:
        member = made(*watcher.asked[-1])
        return member.problem, member.schedule
    return watcher.built[-1] if watcher.built else None


def _forget() -> None:
    """Empty what the papers' modules remember: a result that is remembered builds nothing."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bubbleproof.papers."):
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


def drawn_case(reading: Reading, params: Params) -> str | None:
    """The SVG of a counterexample's schedule; None where there is none, or it is too large."""
    found = built_in(reading, params)
    if found is None or not 0 < found[0].num_tasks <= MOST_TASKS:
        return None
    at = " ".join(f"{name}={value}" for name, value in params.items())
    with TemporaryDirectory() as name:
        path = Path(name) / "case.svg"
        bp.show(*found, title=at).save(path)
        return path.read_text("utf-8")
