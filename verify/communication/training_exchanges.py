"""Rule 6 for what the ranks of a training do together: exchanges of gradients, and a barrier.

A REDUCE_GRAD that is no task of the problem brings the ranks of its stage together, where they are
several; ``0REDUCE_GRAD.1`` those of the stages that share a parameter, as the first and the last do
where embedding and head are tied, where they are not the same. With a barrier the first STEPs of
all ranks are one exchange more. STEPs that are tasks of the problem are the host's. A rank sends to
the others and receives from them, and goes on when all of it has arrived: under every semantics an
exchange is one step of all its ranks at once. Its messages stand in the channels of SENDs and
RECVs, in both directions; those of a barrier between its lowest rank and each other one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bubbleproof.theory.model.actions import FORWARD_KINDS, NONE, Action, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.explain.programs import ProgramFault

Joint = tuple[bool, Sequence[int]]  # whether there is a barrier, and the stages that are tied


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The row of each rank that takes part, and the pairs of ranks, lower first, that talk."""

    rows: dict[int, int]
    pairs: tuple[tuple[int, int], ...]


class Exchanges:
    """The exchanges among the rows of a program."""

    def __init__(self, problem: Problem, program: Program, tasks: Ints, joint: Joint) -> None:
        """``tasks``: the task of each row, ``NONE`` where it is none."""
        self._holders = _holders(problem)
        self._has_barrier, self._tied = joint[0], joint[1] or (0, max(self._holders))
        self._hosted = set(problem.actions.stage[problem.actions.is_kind(Kind.STEP)].tolist())
        self._rows: dict[Action, dict[int, list[int]]] = {}
        self._steps: dict[int, int] = {}  # the first of each rank
        is_one = program.actions.is_kind(Kind.REDUCE_GRAD, Kind.STEP) & (tasks == NONE)
        for row in np.flatnonzero(is_one).tolist():
            action, rank = program.actions[row], program.resource.item(row)
            if action.kind is Kind.REDUCE_GRAD:
                self._rows.setdefault(action, {}).setdefault(rank, []).append(row)
            else:
                self._steps.setdefault(rank, row)
        self.all: list[Exchange] = []

    def faults(self) -> list[ProgramFault]:
        """Exchanges that do not stand once on each of their ranks, ranks without a barrier."""
        found = [fault for action in self._rows for fault in self._of_exchange(action)]
        return [*found, *self._of_barrier()]

    def merged(self) -> dict[int, int]:
        """Each row of an exchange -> the row that stands for it."""
        return {row: min(each.rows.values()) for each in self.all for row in each.rows.values()}

    def ends(self) -> Iterator[tuple[int, int, int, int]]:
        """(rank, its row, peer, the peer's row) for each direction of each exchange."""
        for exchange in self.all:
            for low, high in exchange.pairs:
                yield low, exchange.rows[low], high, exchange.rows[high]
                yield high, exchange.rows[high], low, exchange.rows[low]

    def _of_exchange(self, action: Action) -> Iterator[ProgramFault]:
        found, wanted = self._rows[action], self._parties(action)
        everywhere = [row for rows in found.values() for row in rows]
        if {r: len(rows) for r, rows in found.items()} != dict.fromkeys(wanted, 1):
            where = " and ".join(f"{len(rows)} times on rank {r}" for r, rows in found.items())
            needed = " and ".join(map(str, sorted(wanted))) or "no rank"
            yield f"{action} stands {where}, must stand once on {needed}", everywhere
        elif self._is_tie(action) and self._is_local():
            return
        else:
            pairs = tuple(combinations(sorted(wanted), 2))
            rows = {r: rows[0] for r, rows in found.items()}
            self.all.append(Exchange(rows=rows, pairs=pairs))

    def _parties(self, action: Action) -> set[int]:
        """The ranks on which an exchange must stand."""
        if self._is_tie(action):
            return set[int]().union(*(self._holders[stage] for stage in self._tied))
        ranks = self._holders.get(action.stage, set())
        return ranks if action.slice == 0 and len(ranks) > 1 else set()

    def _is_tie(self, action: Action) -> bool:
        return (action.stage, action.slice) == (0, 1)

    def _is_local(self) -> bool:
        """Whether the ranks of the tied stages are the same."""
        return len({frozenset(self._holders[stage]) for stage in self._tied}) == 1

    def _of_barrier(self) -> Iterator[ProgramFault]:
        if not self._has_barrier:
            return
        needed = {r for g, ranks in self._holders.items() if g not in self._hosted for r in ranks}
        for rank in sorted(needed - self._steps.keys()):
            yield f"rank {rank} never comes to the barrier: it has no STEP", []
        if needed <= self._steps.keys() and needed:
            first, *others = sorted(needed)
            rows = {r: self._steps[r] for r in needed}
            self.all.append(Exchange(rows=rows, pairs=tuple((first, other) for other in others)))


def _holders(problem: Problem) -> dict[int, set[int]]:
    """The ranks that run forwards of each stage."""
    forwards = problem.actions.is_kind(*FORWARD_KINDS)
    found: dict[int, set[int]] = defaultdict(set)
    stages, ranks = problem.actions.stage[forwards], problem.rank_of_task[forwards]
    for stage, rank in zip(stages.tolist(), ranks.tolist(), strict=True):
        found[stage].add(rank)
    return dict(found)
