"""What a mutated twin is: a theorem with one thing wrong, which must not be proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bubbleproof.papers.theorems.theorem import Theorem

Form = TypeVar("Form")
LATE = ("no task ends after the makespan", "the makespan is reached")
PEAK = ("live activations never exceed the peak", "the peak is reached")


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A theorem with one change, what was changed, and obligations that it breaks (others may)."""

    change: str
    theorem: Theorem
    breaks: frozenset[str]


def make_twin(change: str, theorem: Theorem, *breaks: str) -> Twin:
    """The twin with this change, and what it breaks at least."""
    return Twin(change=change, theorem=theorem, breaks=frozenset(breaks))


@dataclass(frozen=True, slots=True)
class TwinMaker(Generic[Form]):
    """Makes twins of a theorem from a change, the wrong form and what it breaks at least."""

    theorem: Callable[[Form], Theorem]

    def __call__(self, change: str, wrong: Form, *breaks: str) -> Twin:
        return make_twin(change, self.theorem(wrong), *breaks)
