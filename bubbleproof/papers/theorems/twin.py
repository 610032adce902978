"""A mutated twin: a theorem with one thing wrong, and obligations that must then fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

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


def twins_of(
    theorem: Callable[[Form], Theorem], *changes: tuple[str, Form, tuple[str, ...]]
) -> Iterator[Twin]:
    """A twin for each (change, wrong form, what it breaks at least)."""
    for change, wrong, breaks in changes:
        yield make_twin(change, theorem(wrong), *breaks)
