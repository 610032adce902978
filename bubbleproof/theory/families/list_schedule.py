"""List scheduling with memory, forwards in time or backwards.

Every rank that is free takes, of its ready tasks that have room, the one ranked first. Backwards in
time everything is mirrored: a task is ready when all that wait for it have run, and it takes what
it would give back. A unit is held from the task that takes it to the one that gives it back; no
rank holds more than ``limit`` units.

A run may get stuck with memory full of what cannot go on. Then it begins anew and is careful: a
task that takes units starts only if afterwards every microbatch i can still be completed once its
predecessors are, that is if what the rank holds of i and later ones, plus what i still lacks on the
rank, is at most ``limit`` (as in ``svpp_orders``). Microbatches of two directions count in turn.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from bubbleproof.theory.families.slides import taken_and_given
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.placement import num_downward


class MirroredLists(NamedTuple):
    """A problem as lists, in one direction of time; ``job`` counts microbatches in turn."""

    problem: Problem
    ticks: list[int]
    rank: list[int]
    job: list[int]
    taken: list[int]
    given: list[int]
    after: list[list[tuple[int, int]]]
    waits: list[int]
    lacking: list[list[int]]  # by rank and job: units still to be taken for good


def mirrored(problem: Problem, *, is_backwards: bool, is_bidirectional: bool) -> MirroredLists:
    """The problem for ``list_starts``, forwards or backwards in time."""
    taken, given = taken_and_given(problem)
    before, after = problem.edges.before, problem.edges.after
    microbatch = problem.actions.microbatch
    count = int(microbatch.max()) + 1
    half = num_downward(count)
    in_turn = np.where(microbatch < half, 2 * microbatch, 2 * (microbatch - half) + 1)
    job = in_turn if is_bidirectional else microbatch
    if is_backwards:
        before, after, taken, given = after, before, given, taken
        job = int(job.max()) - job
    following: list[list[tuple[int, int]]] = [[] for _ in taken]
    columns = (before.tolist(), after.tolist(), problem.edges.lag.tolist())
    for first, later, lag in zip(*columns, strict=True):
        following[first].append((later, lag))
    lacking = np.zeros((problem.num_ranks, int(job.max()) + 1), dtype=np.int64)
    for_good = np.where(np.array(given) == 0, taken, 0)
    np.add.at(lacking, (problem.rank_of_task, job), for_good)
    return MirroredLists(
        problem=problem,
        ticks=problem.duration.tolist(),
        rank=problem.rank_of_task.tolist(),
        job=job.tolist(),
        taken=taken,
        given=given,
        after=following,
        waits=np.bincount(after, minlength=problem.num_tasks).tolist(),
        lacking=lacking.tolist(),
    )


def list_starts(given: MirroredLists, ranking: Ints, limit: int) -> Ints:
    """Starts by task in the given direction of time.

    Preconditions: ``limit`` is at least what one microbatch takes on any rank, and nothing is
    recomputed.
    """
    places = ranking.tolist()
    found = _Run(given, places, limit, is_careful=False).starts()
    if found is None:
        found = _Run(given, places, limit, is_careful=True).starts()
    assert found is not None, "a careful run does not get stuck"
    return found


class _Run:
    """One run of all ranks; events are ends of tasks and tasks that become ready."""

    def __init__(
        self, given: MirroredLists, ranking: list[int], limit: int, *, is_careful: bool
    ) -> None:
        self.given, self.ranking, self.limit, self.is_careful = given, ranking, limit, is_careful
        ranks = given.problem.num_ranks
        self.waits = list(given.waits)
        self.arrival = [0] * len(ranking)
        self.start = [-1] * len(ranking)
        self.lacking = [list(row) for row in given.lacking]
        self.held_of = [[0] * len(row) for row in self.lacking]
        self.held, self.oldest, self.free_at = [0] * ranks, [0] * ranks, [0] * ranks
        self.ready: list[list[tuple[int, int]]] = [[] for _ in self.held]
        # (time, has it only become ready?, task); ends come before what becomes ready
        self.events = [(0, True, task) for task, count in enumerate(self.waits) if not count]

    def starts(self) -> Ints | None:
        heapq.heapify(self.events)
        events, rank = self.events, self.given.rank
        while events:
            now, touched = events[0][0], set()
            while events and events[0][0] == now:
                _, is_ready, task = heapq.heappop(events)
                touched.add(rank[task])
                if is_ready:
                    heapq.heappush(self.ready[rank[task]], (self.ranking[task], task))
                else:
                    self._finish(task, now)
            for place in sorted(touched):
                if self.free_at[place] <= now and (chosen := self._choose(place)) is not None:
                    self._start(place, chosen, now)
        return None if -1 in self.start else np.array(self.start, dtype=np.int64)

    def _choose(self, rank: int) -> int | None:
        """Take the first ready task that has room; the ones passed over stay ready."""
        ready, passed = self.ready[rank], []
        chosen: int | None = None
        while ready and chosen is None:
            entry = heapq.heappop(ready)
            if self._has_room(rank, entry[1]):
                chosen = entry[1]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(ready, entry)
        return chosen

    def _has_room(self, rank: int, task: int) -> bool:
        units = self.given.taken[task]
        load = self.held[rank] + units
        if not units or load > self.limit or not self.is_careful:
            return load <= self.limit or not units
        lacking, held_of = self.lacking[rank], self.held_of[rank]
        job, settled = self.given.job[task], 0 if self.given.given[task] else units
        oldest = self.oldest[rank]
        while oldest < job and not held_of[oldest] + lacking[oldest]:
            oldest += 1
        self.oldest[rank] = oldest
        for other in range(oldest, len(lacking)):
            own = other == job
            if load + lacking[other] - settled * own > self.limit:
                return False
            load -= held_of[other] + units * own
            if load <= 0:
                return True
        return True

    def _start(self, rank: int, task: int, now: int) -> None:
        units, job = self.given.taken[task], self.given.job[task]
        if units:
            self.held[rank] += units
            self.held_of[rank][job] += units
            self.lacking[rank][job] -= 0 if self.given.given[task] else units
        self.start[task] = now
        self.free_at[rank] = now + self.given.ticks[task]
        heapq.heappush(self.events, (self.free_at[rank], False, task))

    def _finish(self, task: int, now: int) -> None:
        rank, units = self.given.rank[task], self.given.given[task]
        if units:
            self.held[rank] -= units
            self.held_of[rank][self.given.job[task]] -= units
        for later, lag in self.given.after[task]:
            self.arrival[later] = max(self.arrival[later], now + lag)
            self.waits[later] -= 1
            if not self.waits[later]:
                heapq.heappush(self.events, (self.arrival[later], True, later))
