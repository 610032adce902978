"""A part of a schedule to be arranged anew (``cpsat_window``), and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FOREVER = -1  # instead of a task: beyond the window
Occupied = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The tasks of a window, numbered from 0, in ticks.

    ``edges`` are (before, after, lag); ``groups`` the tasks of each resource; ``rooms`` what each
    store has left, with what is held there: from the start of a task (``FOREVER``: from before the
    window) to the end of another (``FOREVER``: beyond the window; -2 - t: until t ticks), units.
    ``either``: by the start of the first at least one of the others has ended. ``limit``: the
    makespan that is known.
    """

    head: Sequence[int]
    duration: Sequence[int]
    tail: Sequence[int]
    start: Sequence[int]
    edges: Sequence[tuple[int, int, int]]
    groups: Sequence[Sequence[int]]
    rooms: Sequence[tuple[int, Sequence[Occupied]]]
    either: Sequence[tuple[int, Sequence[int]]]
    limit: int
    least: int
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowResult:
    """New starts, or whether there are none for sure."""

    start: list[int] | None = None
    is_refuted: bool = False
