"""The token simulator's launches: what a rank's device may start before what it was given earlier.

A *launch* is one posted end of a message or of an EVICT or LOAD. Under ``launch-order`` it starts
when all that its rank launched before have started and it is first in its own stream; under
``rank-stream`` and ``one-queue`` it passes when all that its rank launched before have passed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

Launch = tuple[str, object]  # "message" and its number, or "link" and the EVICT or LOAD


@dataclass(slots=True, kw_only=True)
class Launches:
    """What each rank launched and has not started (``launch-order``) or passed (the others)."""

    semantics: str
    waiting: dict[int, deque[Launch]] = field(default_factory=lambda: defaultdict(deque))
    started: set[tuple[int, Launch]] = field(default_factory=set)

    @property
    def is_ordered(self) -> bool:
        return self.semantics in ("launch-order", "rank-stream", "one-queue")

    def add(self, rank: int, launch: Launch) -> None:
        if self.is_ordered:
            self.waiting[rank].append(launch)

    def may_pass(self, rank: int, launch: Launch) -> bool:
        if self.semantics == "launch-order":
            return (rank, launch) in self.started
        return not self.is_ordered or self.waiting[rank][0] == launch

    def passed(self, rank: int) -> None:
        if self.is_ordered and self.semantics != "launch-order":
            self.waiting[rank].popleft()

    def starts(self, is_first: Callable[[int, Launch], bool]) -> list[Callable[[], None]]:
        """The launches that can start now; ``is_first`` says whether one is first in its stream."""
        if self.semantics != "launch-order":
            return []
        return [
            partial(self.start, rank)
            for rank, queue in self.waiting.items()
            if queue and is_first(rank, queue[0])
        ]

    def start(self, rank: int) -> None:
        self.started.add((rank, self.waiting[rank].popleft()))
