"""What a search may spend, and what is left of it: seconds and, where they are limited, work.

How long a look takes to prepare is estimated, and the estimate corrected by what the looks before
it took (``Pace``): one that would end after the deadline is not begun. A nested search has a *part*
of the budget: a share of what is left, that never ends after the whole does. Work is counted in
units of about a second each. Where it is limited, shares are shares of work, and no decision of a
search hangs on the clock as long as the deadline is not met.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

INTERRUPTED = "interrupted: the best so far"
LEAST_WORK = 0.01  # for any look
MEASURED = 0.05  # seconds of an estimate that tells of the pace
Item = TypeVar("Item")


class LateError(Exception):
    """The time did not suffice, and what was begun is left."""


def timely(items: Iterable[Item], seconds: float, longest: float = 0.0) -> Iterator[Item]:
    """The items, as long as there is time for one that takes as long as the longest before it.

    Parameters
    ----------
    seconds
        For all of them; ``inf`` for no limit.
    longest
        Seconds that one took before.
    """
    ends = time.perf_counter() + seconds
    for one in items:
        if (began := time.perf_counter()) + longest > ends:
            return
        yield one
        longest = max(longest, time.perf_counter() - began)


@dataclass(kw_only=True, eq=False)
class Pace:
    """How much longer than estimated looks take here, by those that took some time.

    ``load`` are the seconds that pass for each that is computed: until there was a look, that is
    all that is known.
    """

    estimated: float = 0.0
    taken: float = 0.0
    load: float = 1.0

    def measure(self, estimated: float, taken: float) -> None:
        """Another look, in seconds.

        Parameters
        ----------
        estimated
            Seconds, before the look; few are passed over (``MEASURED``).
        taken
            Seconds.
        """
        if estimated >= MEASURED:
            self.estimated += estimated
            self.taken += taken

    @property
    def factor(self) -> float:
        """1 or more."""
        return max(1.0, self.taken / self.estimated if self.estimated else self.load)


@dataclass(kw_only=True, eq=False)
class SearchBudget:
    """``work`` units in all, None where they are not limited; ``done`` of them are spent.

    ``deadline`` is a moment of ``time.perf_counter``, ``worked`` are the seconds that this thread
    had computed when it ``began``. Setting ``stop`` leaves nothing.
    """

    deadline: float
    work: float | None
    stop: Event
    done: float = 0.0
    began: float = field(default_factory=lambda: time.perf_counter())
    worked: float = field(default_factory=lambda: time.thread_time())
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def of(cls, seconds: float, work: float | None, stop: Event) -> SearchBudget:
        """That many seconds from now, and units of work.

        Parameters
        ----------
        seconds
            Of the clock; ``inf`` for no deadline.
        work
            Units of work; None where they are not limited.
        """
        return cls(deadline=time.perf_counter() + seconds, work=work, stop=stop)

    @property
    def seconds(self) -> float:
        """What is left of them; below 0 beyond the deadline."""
        return self.deadline - time.perf_counter()

    @property
    def taken(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began

    def measure_load(self) -> None:
        """By the seconds since it began, in which this thread had nothing to wait for."""
        if (computed := time.thread_time() - self.worked) >= MEASURED:
            self.pace.load = max(1.0, self.taken / computed)

    @property
    def is_spent(self) -> bool:
        """Whether the deadline is past or a stop was asked for; work may be left."""
        return self.stop.is_set() or self.seconds <= 0

    @property
    def left(self) -> float:
        """Units of work where they are limited, else seconds; nothing after a stop."""
        if self.is_spent:
            return 0.0
        return self.seconds if self.work is None else self.work - self.done

    @property
    def preparable(self) -> float:
        """The estimate, in seconds, of the longest preparation that ends before the deadline.

        Where work is limited the pace is not asked: it differs from run to run.
        """
        return self.seconds if self.work is not None else self.seconds / self.pace.factor

    def reason(self, num_open: int, thing: str) -> str:
        """What ended the search while so many were open: the clock, or the limit of work.

        Nothing where all is closed, or there was nothing else to look for.

        Parameters
        ----------
        num_open
            How many candidates, or deployments, are open.
        thing
            What they are called, in the singular.
        """
        if self.stop.is_set():
            return INTERRUPTED
        if not num_open:
            return ""
        things = f"{num_open:,} {thing}{'s are' if num_open > 1 else ' is'}"
        if self.work is None or self.seconds <= 0:
            return f"the clock ended the search: {things} open; a limit of work repeats exactly"
        if self.done < self.work:
            return ""
        return f"the limit of work ended the search: {things} open; more work may find more"

    def spend(self, work: float) -> None:
        """Count what a look has done.

        Parameters
        ----------
        work
            Units; ``LEAST_WORK`` counts at least.
        """
        self.done += max(LEAST_WORK, work)

    def part(self, share: float, least_seconds: float) -> SearchBudget:
        """A part of what is left: ``share`` of it, in the units of ``left``.

        It has ``least_seconds`` of the clock, where so much is left.

        Parameters
        ----------
        share
            Units of work where they are limited, else seconds.
        least_seconds
            Of the clock.
        """
        if self.work is None:
            seconds, work = max(least_seconds, share), None
        else:
            seconds, work = max(least_seconds, self.seconds), max(LEAST_WORK, share)
        deadline = min(self.deadline, time.perf_counter() + seconds)
        return SearchBudget(deadline=deadline, work=work, stop=self.stop, pace=self.pace)
