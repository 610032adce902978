"""Timelines: what has happened before what, on the host and on a GPU's streams.

A *timeline* does one thing after another: the host, or a stream. Each keeps a vector clock
(Mattern, 1989; Fidge, 1988): for every timeline the number of its operations known to have ended
before the next operation here. An operation on a stream is issued by the host, so it also comes
after all that the host has waited for. It says nothing of when a stream gets to it: an operation
that no clock orders may run at any time.

    a stream waits for an event       its clock takes in the event's
    the host waits for a stream       the host's clock takes in the stream's
    A happened before B               B's clock, of A's timeline, is at least A's number
"""

from __future__ import annotations

from dataclasses import dataclass

Clock = dict["Timeline", int]


class Timeline:
    """The host or a stream; ``clock`` is what has ended before its next operation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock: Clock = {self: 0}

    def __repr__(self) -> str:
        return self.name

    def after(self, clock: Clock) -> None:
        """What comes next here comes after all of ``clock``."""
        own = self.clock
        for timeline, count in clock.items():
            if own.get(timeline, 0) < count:
                own[timeline] = count

    def step(self) -> int:
        """Begin the next operation; its number."""
        self.clock[self] += 1
        return self.clock[self]


@dataclass(frozen=True, slots=True)
class Access:
    """One operation that reads or writes memory: the number it has on its timeline."""

    timeline: Timeline
    number: int
    what: str

    def is_before(self, clock: Clock) -> bool:
        """Whether it has ended for whoever has that clock."""
        return clock.get(self.timeline, 0) >= self.number

    def __str__(self) -> str:
        return f"{self.what} [{self.timeline}]"
