"""Single GEMMs in the waits: the order of W where its parts or its slices differ in cost.

MEPipe section 5 puts the weight GEMMs of a slice in a queue and takes them out while a rank waits
for a tensor; it stops between two of them as soon as the next F or I can go on. That happens at run
time, so it depends on the ticks. Here the run is played through once and its order kept:

- F and I keep the order of the uncut schedule on every rank, each as early as its input allows;
- an F waits while its rank holds ``limit`` units, a unit being held from F to the end of the last
  part of W;
- a rank that waits takes the next part of the oldest slice whose W is not done. It does so at once
  (*eager*), or only where the part ends before an input that is on its way arrives (*patient*): an
  eager part can delay the F or I that comes during it by less than one GEMM.

Neither is always best (starting early can end late in any list schedule), and single parts need not
beat whole W's. So the order is that of the shortest run: the uncut schedule with the parts of each
W side by side, or a run, eager or patient, with parts or with whole W's. It is therefore never
longer than what the same rule makes of the uncut pipeline. No run gets stuck: an F that lacks room
waits for W's whose I came before it, and the uncut schedule found room after some of those.
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from bubbleproof.theory.families.base import program_of_tasks
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.links import without_messages
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift, successors


def shortest_filling(pipeline: Pipeline, uncut: Program, limit: int) -> Program:
    """The order for a pipeline with cut W or uneven slices.

    ``uncut`` is an order of its F, I and whole W that holds at most ``limit`` units per rank.
    """
    problem = without_messages(pipeline.problem())
    found = [uncut]
    for source in dict.fromkeys([pipeline.with_whole_weights(), pipeline]):
        found += _runs(without_messages(source.problem()), uncut, limit)
    programs = [program_of_tasks(problem, _expanded(problem, program)) for program in found]
    return min(programs, key=lambda program: _makespan(problem, program))


def _runs(problem: Problem, uncut: Program, limit: int) -> list[Program]:
    orders = _expanded(problem, uncut)
    return [
        program_of_tasks(problem, _Run(problem, orders, limit, is_patient=patient).orders())
        for patient in (False, True)
    ]


def _expanded(problem: Problem, program: Program) -> list[list[int]]:
    """The tasks of each rank in the order of ``program``, parts side by side where it has none."""
    place: dict[tuple[int, ...], int] = {}
    for row, action in enumerate(program.actions):
        place[action.kind, action.stage, action.microbatch, action.slice, action.part] = row
    actions = problem.actions
    columns = (actions.kind, actions.stage, actions.microbatch, actions.slice, actions.part)
    position = [
        place[name] if name in place else place[(*name[:-1], NONE)]
        for name in zip(*(column.tolist() for column in columns), strict=True)
    ]
    order = np.lexsort([actions.part, np.array(position), problem.rank_of_task])
    rank = problem.rank_of_task[order]
    return [order[rank == r].tolist() for r in range(problem.num_ranks)]


def _makespan(problem: Problem, program: Program) -> int:
    ticks: Ints = problem.duration[problem.locate(program.actions)]
    return int((left_shift(problem, program).start + ticks).max())


class _Run:
    """One run of all ranks at the problem's ticks; the order in which they act is the result."""

    def __init__(
        self, problem: Problem, orders: list[list[int]], limit: int, *, is_patient: bool
    ) -> None:
        self.limit, self.is_patient = limit, is_patient
        self.kind, self.ticks = problem.actions.kind.tolist(), problem.duration.tolist()
        self.rank = problem.rank_of_task.tolist()
        is_main = problem.actions.kind != Kind.W
        self.mains = [deque(task for task in order if is_main[task]) for order in orders]
        self.parts = _parts_of_inputs(problem)
        self.queue: list[list[deque[int]]] = [[] for _ in orders]
        self.held = [0] * len(orders)
        self.free_at = [0] * len(orders)
        self.done: list[list[int]] = [[] for _ in orders]
        edges = problem.edges
        kept = is_main[edges.before] & is_main[edges.after]
        order, first = successors(problem.num_tasks, edges.before[kept])
        self.after, self.lag = edges.after[kept][order].tolist(), edges.lag[kept][order].tolist()
        self.first = first.tolist()
        self.waits = np.bincount(edges.after[kept], minlength=problem.num_tasks).tolist()
        self.arrival = [0] * problem.num_tasks  # of the last input that is known
        self.events = [(0, rank) for rank in range(len(orders))]  # when a rank looks what to do

    def orders(self) -> list[list[int]]:
        """Event after event until nothing is left."""
        while self.events:
            now, rank = heapq.heappop(self.events)
            if self.free_at[rank] <= now and (task := self._choose(rank, now)) is not None:
                self._start(rank, task, now)
        if any(self.mains) or any(self.queue):
            raise ValueError("an order with weights put off came to a stop before its end")
        return self.done

    def _choose(self, rank: int, now: int) -> int | None:
        """Take what the rank starts now out of its list or queue: its next F or I, else a part."""
        main = self.mains[rank][0] if self.mains[rank] else None
        if main is not None and not self.waits[main] and self.arrival[main] <= now:
            if self.kind[main] != Kind.F or self.held[rank] < self.limit:
                return self.mains[rank].popleft()
            return self._next_part(rank, None)
        if main is None or self.waits[main] or not self.is_patient:
            return self._next_part(rank, None)
        return self._next_part(rank, self.arrival[main] - now)

    def _next_part(self, rank: int, room: int | None) -> int | None:
        """The next part of the oldest W whose next part takes at most ``room`` ticks."""
        queue = self.queue[rank]
        for position, parts in enumerate(queue):
            if room is None or self.ticks[parts[0]] <= room:
                task = parts.popleft()
                if not parts:
                    del queue[position]
                    self.held[rank] -= 1  # the rank does nothing else before the part ends
                return task
        return None

    def _start(self, rank: int, task: int, now: int) -> None:
        end = now + self.ticks[task]
        self.done[rank].append(task)
        self.free_at[rank] = end
        heapq.heappush(self.events, (end, rank))
        if self.kind[task] == Kind.F:
            self.held[rank] += 1
        elif self.kind[task] == Kind.I:
            self.queue[rank].append(deque(self.parts[task]))
        for edge in range(self.first[task], self.first[task + 1]):
            later = self.after[edge]
            self.arrival[later] = max(self.arrival[later], end + self.lag[edge])
            self.waits[later] -= 1
            if not self.waits[later]:
                heapq.heappush(self.events, (self.arrival[later], self.rank[later]))


def _parts_of_inputs(problem: Problem) -> dict[int, list[int]]:
    """The parts of the W behind each I, in order."""
    actions = problem.actions
    following: dict[int, int] = {
        before: after
        for before, after in zip(
            problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True
        )
        if actions.kind[after] == Kind.W
    }
    found = {}
    for task in np.flatnonzero(actions.is_kind(Kind.I)).tolist():
        chain = [following[task]]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        found[task] = chain
    return found
