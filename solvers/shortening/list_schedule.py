"""List scheduling with memory, forwards in time or backwards.

Every rank that is free takes, of its ready tasks that have room, the one ranked first. Backwards in
time everything is mirrored: a task is ready when all that wait for it have run, and it takes what
it would give back. A unit is held from the task that takes it to the one that gives it back; no
rank holds more than ``limit`` units.

A run may get stuck with memory full of what cannot go on. Then it begins anew and is careful, with
a bank on each rank (``orders.bankers``). Microbatches of two directions stand in line in turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bubbleproof.solvers.shortening.slides import taken_and_given
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.orders.bankers import RankBank
from bubbleproof.theory.orders.ready_lists import ReadyLists
from bubbleproof.theory.orders.task_lists import TaskLists, task_lists
from bubbleproof.theory.pipelines.placement import num_downward


class MirroredLists(NamedTuple):
    """A problem as lists, in one direction of time; ``job`` counts microbatches in turn."""

    tasks: TaskLists
    rank: list[int]
    job: list[int]
    taken: list[int]
    given: list[int]
    lacking: list[list[int]]  # by rank and job: units still to be taken for good


def mirrored(problem: Problem, *, is_backwards: bool, is_bidirectional: bool) -> MirroredLists:
    """The problem for ``list_starts``, forwards or backwards in time.

    Parameters
    ----------
    is_backwards
        Whether time is reversed.
    is_bidirectional
        Whether microbatches run in two directions, of which each counts its own.
    """
    taken, given = taken_and_given(problem)
    edges, microbatch = problem.edges, problem.actions.microbatch
    half = num_downward(int(microbatch.max()) + 1)
    in_turn = np.where(microbatch < half, 2 * microbatch, 2 * (microbatch - half) + 1)
    job = in_turn if is_bidirectional else microbatch
    if is_backwards:
        edges = Edges(before=edges.after, after=edges.before, lag=edges.lag)
        taken, given = given, taken
        job = int(job.max()) - job
    rank = problem.rank_of_task.tolist()
    lacking = np.zeros((problem.num_ranks, int(job.max()) + 1), dtype=np.int64)
    for_good = np.where(np.array(given) == 0, taken, 0)
    np.add.at(lacking, (problem.rank_of_task, job), for_good)
    return MirroredLists(
        tasks=replace(
            task_lists(problem, edges),
            homes=[*zip(rank, strict=True)],  # no other resource counts
            home=rank,
            num_resources=problem.num_ranks,
        ),
        rank=rank,
        job=job.tolist(),
        taken=taken,
        given=given,
        lacking=lacking.tolist(),
    )


def list_starts(given: MirroredLists, ranking: Ints, limit: int) -> Ints:
    """Starts by task in the given direction of time.

    Preconditions: ``limit`` is at least what one microbatch takes on any rank, and nothing is
    recomputed.

    Parameters
    ----------
    ranking
        The place of each task, the first to be taken least.
    limit
        Units that a rank may hold.

    Returns
    -------
    Ints
        Ticks per task.
    """
    places = ranking.tolist()
    for is_careful in (False, True):
        run = _RankedRun(given, places, limit, is_careful=is_careful)
        if run.run():
            return np.array(run.start, dtype=np.int64)
    raise AssertionError("a careful run does not get stuck")


class _RankedRun(ReadyLists):
    """One run of all ranks, with room for ``limit`` units on each."""

    def __init__(
        self, given: MirroredLists, ranking: list[int], limit: int, *, is_careful: bool
    ) -> None:
        super().__init__(given.tasks, ranking)
        self.limit, self.is_careful = limit, is_careful
        self.banks = [RankBank(row) for row in given.lacking]
        self.bank = [self.banks[place] for place in given.rank]  # by task
        self.job, self.taken, self.given = given.job, given.taken, given.given

    def chosen(self, resource: int, now: int) -> int | None:
        """The first ready task that has room."""
        del now
        if not self.ready[resource]:
            return None
        entry, _ = self.first_fitting(resource)
        return None if entry is None else entry[1]

    def fits(self, task: int) -> bool:
        """Whether its rank has room for what it takes."""
        units, bank = self.taken[task], self.bank[task]
        if not units or bank.load + units > self.limit:
            return not units
        settled = 0 if self.given[task] else units
        return not self.is_careful or bank.allows(self.job[task], units, settled, self.limit)

    def begun(self, task: int, end: int) -> None:
        """Take its units."""
        del end
        if units := self.taken[task]:
            self.bank[task].take(self.job[task], units, 0 if self.given[task] else units)

    def ended(self, task: int) -> None:
        """Give units back."""
        if units := self.given[task]:
            self.bank[task].give(self.job[task], units)
