"""Causes of idle time as values: a stretch of a rank's time, why it is idle, and a table of them.

A stretch is [from_tick, to_tick) on one rank. What it names depends on its cause
(docs/guide/design.md §2, "Why a rank is idle"):

========  =======================  ====================================  ==========================
cause     ``action``               ``of_action``                         ``link``
========  =======================  ====================================  ==========================
warm-up   the rank's first task    none                                  none
drain     the rank's last task     none                                  none
finished  the rank's last task     what ends last of all                 none
order     what could have run      what runs next on the rank            none
memory    what had no room         whose release makes room              the store that was full
link      what runs next           the message, or what holds the link   the link or engine
input     what runs next           what is computed still, elsewhere     what lies between, if known
========  =======================  ====================================  ==========================

``of_rank`` is the rank of ``of_action``; of what runs on no rank, that of the next task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from bubbleproof.facts import Fact, FactCells, FactSource
from bubbleproof.theory.idle.critical_path import PathStep, critical_path
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


class IdleCause(Enum):
    """Why a rank computes nothing; the value is the word in tables and files."""

    WARM_UP = "warm-up"
    DRAIN = "drain"
    FINISHED = "finished"
    ORDER = "order"
    MEMORY = "memory"
    LINK = "link"
    INPUT = "input"


CAUSES = tuple(IdleCause)
MEANINGS = {
    IdleCause.WARM_UP: "no schedule starts sooner on this rank",
    IdleCause.DRAIN: "no schedule runs longer on this rank",
    IdleCause.FINISHED: "all its tasks have run; others run still",
    IdleCause.ORDER: "something could have run: the order's own choice",
    IdleCause.MEMORY: "something could have run, had there been room for it",
    IdleCause.LINK: "what runs next waits for a message on its way, or for its link",
    IdleCause.INPUT: "what runs next waits for what another rank computes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleStretch:
    """One stretch of idle time, ticks ``from_tick`` to ``to_tick`` (exclusive), and its cause.

    ``action``, ``of_action``, ``of_rank`` and ``link`` are None where the cause names none; the
    table in the module's text says what they are.
    """

    rank: int
    from_tick: int
    to_tick: int
    cause: IdleCause
    action: str | None = None
    of_action: str | None = None
    of_rank: int | None = None
    link: str | None = None

    @property
    def ticks(self) -> int:
        """How long it is."""
        return self.to_tick - self.from_tick

    @property
    def sentence(self) -> str:
        """The cause in words, for a table or beside the pointer."""
        over = f" over {self.link}" if self.link else ""
        where = "" if self.of_rank is None else f" of rank {self.of_rank}"
        match self.cause:
            case IdleCause.WARM_UP:
                return "warm-up: no schedule starts sooner here"
            case IdleCause.DRAIN:
                return "drain: no schedule runs longer here"
            case IdleCause.FINISHED:
                return f"finished; {self.of_action}{where} ends last"
            case IdleCause.ORDER if self.action == self.of_action:
                return f"the order's own choice: {self.action} could have started"
            case IdleCause.ORDER:
                return f"the order's own choice: {self.action} could have run"
            case IdleCause.MEMORY:
                until = f" until {self.of_action} ends" if self.of_action else ""
                return f"{self.link} has no room for {self.action}{until}"
            case IdleCause.LINK:
                return f"{self.action} waits for {self.of_action}{where}, on its way{over}"
            case IdleCause.INPUT:
                return f"{self.action} waits for {self.of_action}{where}{over}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdleStretches(FactSource):
    """The idle stretches of a schedule as columns, by rank and time.

    Iterating gives each as an ``IdleStretch``, ``at`` the one under a pointer. ``cause`` numbers
    ``CAUSES``; ``action`` and ``of_action`` are tasks of ``problem``, ``NONE`` where there is none.
    ``place`` is a resource of the problem (of memory: a store) or ``NONE``; a pair of ranks without
    a resource of its own between them is ``source`` and ``rank``.
    """

    problem: Problem
    schedule: Schedule
    rank: Ints
    from_tick: Ints
    to_tick: Ints
    cause: Ints
    action: Ints
    of_action: Ints
    of_rank: Ints
    place: Ints
    source: Ints

    columns: ClassVar[FactCells] = ("rank", "to", "ticks", "why")

    def __len__(self) -> int:
        return len(self.rank)

    def facts(self) -> list[Fact]:
        """Ticks by rank and cause, every stretch, and the critical path."""
        ranks = range(self.problem.num_ranks)
        causes = [{c.value: t for c, t in self.ticks_by_cause(rank).items()} for rank in ranks]
        stretches = [
            {**asdict(each), "cause": each.cause.value, "sentence": each.sentence} for each in self
        ]
        path = [asdict(step) for step in self.critical_path]
        return [
            Fact(key="ticks_by_cause", value=causes),
            Fact(key="idle", value=stretches),
            Fact(key="critical_path", value=path),
            *(
                Fact(
                    label=f"rank {each.rank}",
                    value=each.ticks,
                    wanted=f"{each.from_tick} to {each.to_tick}",
                    verdict=each.sentence,
                )
                for each in self
            ),
        ]

    def __repr__(self) -> str:
        total = ", ".join(f"{c.value} {t}" for c, t in self.ticks_by_cause().items() if t)
        return f"<IdleStretches: {len(self)} on {self.problem.num_ranks} ranks; {total or 'none'}>"

    def __iter__(self) -> Iterator[IdleStretch]:
        return map(self.stretch, range(len(self)))

    def stretch(self, row: int) -> IdleStretch:
        """One row as a value.

        Parameters
        ----------
        row
            Which one, from 0 to ``len(self) - 1``.
        """
        cause = CAUSES[int(self.cause[row])]
        return IdleStretch(
            rank=int(self.rank[row]),
            from_tick=int(self.from_tick[row]),
            to_tick=int(self.to_tick[row]),
            cause=cause,
            action=self._label(int(self.action[row])),
            of_action=self._label(int(self.of_action[row])),
            of_rank=None if self.of_rank[row] == NONE else int(self.of_rank[row]),
            link=self._link(row, cause),
        )

    def at(self, rank: int, tick: int) -> IdleStretch | None:
        """The stretch in which a rank is idle at a tick; None where it computes then.

        Parameters
        ----------
        rank
            A rank of the problem, from 0 on.
        tick
            The instant; a stretch contains its first tick and not the one that it ends at.
        """
        first = int(np.searchsorted(self.rank, rank))
        last = int(np.searchsorted(self.rank, rank, side="right"))
        row = first + int(np.searchsorted(self.from_tick[first:last], tick, side="right")) - 1
        return self.stretch(row) if row >= first and tick < self.to_tick[row] else None

    def ticks_by_cause(self, rank: int | None = None) -> dict[IdleCause, int]:
        """The ticks of each cause, of one rank or of all together.

        Parameters
        ----------
        rank
            A rank of the problem; None for all together.

        Returns
        -------
        dict[IdleCause, int]
            Ticks of every cause, 0 included.
        """
        mine = np.ones(len(self), dtype=bool) if rank is None else self.rank == rank
        ticks = np.zeros(len(CAUSES), dtype=np.int64)
        np.add.at(ticks, self.cause[mine], (self.to_tick - self.from_tick)[mine])
        return dict(zip(CAUSES, ticks.tolist(), strict=True))

    def idle_ticks(self) -> tuple[int, ...]:
        """The sum of all causes on each rank: the ``idle_ticks`` of ``Measures``."""
        ticks = np.zeros(self.problem.num_ranks, dtype=np.int64)
        np.add.at(ticks, self.rank, self.to_tick - self.from_tick)
        return tuple(ticks.tolist())

    @property
    def critical_path(self) -> tuple[PathStep, ...]:
        """The chain of tasks that makes the schedule as long as it is, in order of time."""
        return critical_path(self.problem, self.schedule)

    def _label(self, task: int) -> str | None:
        return None if task == NONE else self.problem.label(task)

    def _link(self, row: int, cause: IdleCause) -> str | None:
        place = int(self.place[row])
        if cause is IdleCause.MEMORY:
            return None if place == NONE else self.problem.stores[place].name
        if place != NONE:
            return self.problem.resources[place].name
        source, rank = int(self.source[row]), int(self.rank[row])
        return None if source in (NONE, rank) else f"link {source}>{rank}"
