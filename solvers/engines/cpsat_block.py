"""A few neighbouring ranks of a schedule that repeats, by CP-SAT (``lists.combs``).

Starts are those of one period's microbatches, 0 to n - 1; microbatch k + n starts every task one
period of P ticks after k. Two tasks of a rank, x of a ticks and y of b, do not overlap in any
period where a <= y - x + q P <= P - b for some whole q. The least sum of the ticks from F to B (or
I) on the block's first rank is wanted: what lies between is what that rank, and each before it,
holds.

Where they are of unlike chunks, what one of chunk c waits lies between F and B of every chunk up to
c, and counts c + 1 times. They may pass each other then. Of the last chunk alone B follows F on the
last rank; what the others do there comes round from elsewhere, and only what they wait is counted.
"""

from __future__ import annotations

from itertools import chain, combinations, pairwise

from ortools.sat.python import cp_model

from bubbleproof.solvers.engines.cpsat_solver import CpSatSolver
from bubbleproof.solvers.engines.cycle import Block
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.theory.model.actions import Ints

LATEST = 2  # periods after I in which W begins


class BlockModel:
    """The model of a block in a period of ``ticks``; ``start[r][kind][k]``."""

    def __init__(self, block: Block, ticks: int) -> None:
        self.block, self.ticks = block, ticks
        self.model = cp_model.CpModel()
        ranks = len(block.ticks)
        reach = sum(map(sum, (*block.ticks, block.down, block.up)))
        self.reach = reach + (1 + LATEST) * (ranks + 2) * ticks
        self.start = [
            [[self._new(self.reach) for _ in range(block.count)] for _ in row]
            for row in block.ticks
        ]

    def _new(self, most: int) -> cp_model.IntVar:
        return self.model.new_int_var(-most, most, "")

    def build(self) -> None:
        """Add every family."""
        for rank, ticks in enumerate(self.block.ticks):
            self._exclude(rank)
            for row, size in zip(self.start[rank][:2], ticks, strict=False):
                if self.block.chunks == 1:
                    self._follow(row, size)
            self._pass(rank)
            for weights in self.start[rank][2:]:
                for one, weight in zip(self.start[rank][1], weights, strict=True):
                    self.model.add(weight >= one + ticks[1])
                    self.model.add(weight <= one + ticks[1] + LATEST * self.ticks)
        self.model.minimize(self._life())

    def _exclude(self, rank: int) -> None:
        """No two tasks of a rank overlap in any period."""
        sizes = zip(self.start[rank], self.block.ticks[rank], strict=True)
        tasks = [(task, size) for row, size in sizes for task in row]
        for (one, size), (other, length) in combinations(tasks, 2):
            turns = self._new(2 * self.reach // self.ticks + 1)
            apart = other - one + turns * self.ticks
            self.model.add_linear_constraint(apart, size, self.ticks - length)

    def _follow(self, row: list[cp_model.IntVar], size: int) -> None:
        """Microbatches keep their order, the first of the next period included."""
        for one, other in pairwise(row):
            self.model.add(other >= one + size)
        self.model.add(row[0] + self.ticks >= row[-1] + size)

    def _pass(self, rank: int) -> None:
        """What the next rank does follows F; what this one does follows that, or its own F."""
        forward, backward = self.start[rank][:2]
        size, below = self.block.ticks[rank][0], self.block.below
        if rank + 1 < len(self.start):
            later, earlier = self.start[rank + 1][:2]
            length = self.block.ticks[rank + 1][1]
            self._link(rank, forward, size, later)
            for one, other in zip(earlier, backward, strict=True):
                self.model.add(other >= one + length + self.block.up[rank])
        elif below is not None:
            self._link(rank, forward, size, below[0])
            for end, other in zip(below[1], backward, strict=True):
                self.model.add(other >= end + self.block.up[rank])
        else:
            self.model.add(forward[0] == 0)
            for one, other, share in zip(forward, backward, self.block.shares, strict=True):
                if share == self.block.chunks:
                    self.model.add(other >= one + size)

    def _link(
        self,
        rank: int,
        forward: list[cp_model.IntVar],
        size: int,
        later: list[cp_model.IntVar] | tuple[int, ...],
    ) -> None:
        for one, other in zip(forward, later, strict=True):
            self.model.add(one + size + self.block.down[rank] <= other)

    def _life(self) -> cp_model.LinearExprT:
        forward, backward, *weights = self.start[0]
        last = weights[0] if weights and self.block.is_first else backward
        shares = self.block.shares
        life = _between(forward, last, shares)
        if self.block.below is None and self.block.chunks > 1:
            forward, backward = self.start[-1][:2]
            come_round = [share % self.block.chunks for share in shares]
            life -= _between(forward, backward, come_round)
        return life


def _between(
    early: list[cp_model.IntVar], late: list[cp_model.IntVar], shares: list[int]
) -> cp_model.LinearExpr:
    """The sum of the ticks from each start to another, times its share."""
    weighted_sum = cp_model.LinearExpr.weighted_sum
    return weighted_sum(late, shares) - weighted_sum(early, shares)


def search(block: Block, ticks: int, budget: Budget, work: float) -> Ints | None:
    """Starts ``[r, kind, k]`` in a period of so many ticks, if found.

    Parameters
    ----------
    ticks
        Of a period, at least those of each rank.
    work
        Of CP-SAT's own count, at most.
    """
    model = BlockModel(block, ticks)
    model.build()
    solver = CpSatSolver()
    solver.parameters.max_deterministic_time = work
    solver.solve(model.model, budget)
    if not solver.is_found:
        return None
    every = list(chain.from_iterable(chain.from_iterable(model.start)))
    return solver.values(every).reshape(len(block.ticks), -1, block.count)
