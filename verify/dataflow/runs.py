"""Two ways to run a program symbolically: by its times, or as its orders let it go on.

``by_time`` runs each work from its start to its end. At one instant ends come before starts; works
that start together (or take no time) run in the order in which they can; what brings parameters
runs first, and what takes something away (frees parameters, sums a gradient up) last. What cannot
run at its start is a fault.

``by_order`` runs each resource's rows in their order, each as soon as nothing stands against it.
Where nobody can go on, a work that waits for nothing that is still to come elsewhere is run in
spite of its faults; where all wait for each other the run ends there.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from bubbleproof.theory.model.actions import Kind
from bubbleproof.verify.dataflow.machine import SymbolicMachine
from bubbleproof.verify.dataflow.mistakes import Fault, Supply, SymbolicAction

RunnableRow = tuple[SymbolicAction, ...]  # the works of one row, which begin and end together
_FIRST = (Kind.UNSHARD, Kind.RELOAD)
_LAST = (Kind.RESHARD, Kind.REDUCE_GRAD, Kind.STEP, Kind.OFFLOAD)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A fault of a work; without a work it is one of the whole run."""

    work: SymbolicAction | None
    fault: Fault


@dataclass(frozen=True, slots=True)
class SymbolicStandstill:
    """The works at which every resource that is not done waits for another, and why."""

    waiting: tuple[Mistake, ...]


class SymbolicRun:
    """A run in progress: the machine, and the mistakes so far."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine = machine
        self.mistakes: list[Mistake] = []

    def faults(self, row: RunnableRow) -> list[Mistake]:
        """What the work of a row lacks before it begins."""
        return [Mistake(work, fault) for work in row for fault in self.machine.faults(work)]

    def begin(self, row: RunnableRow) -> None:
        """Begin the work of a row."""
        for work in row:
            self.machine.begin(work)

    def end(self, row: RunnableRow) -> None:
        """End the work of a row, and keep what is wrong with it."""
        for work in row:
            self.mistakes += [Mistake(work, fault) for fault in self.machine.end(work)]

    def finish(self) -> list[Mistake]:
        """All mistakes of the run, with what was left over."""
        self.mistakes += [Mistake(None, fault) for fault in self.machine.left_over()]
        return self.mistakes


def by_time(
    machine: SymbolicMachine, rows: Sequence[RunnableRow], start: Sequence[int], end: Sequence[int]
) -> list[Mistake]:
    """All mistakes of a run in which row i takes from ``start[i]`` to ``end[i]`` (ticks).

    Parameters
    ----------
    start, end
        Ticks of each row.
    """
    run = SymbolicRun(machine)
    running: list[tuple[int, int]] = []

    def fire(number: int) -> None:
        run.begin(rows[number])
        if end[number] == start[number]:
            run.end(rows[number])
        else:
            heapq.heappush(running, (end[number], number))

    order = sorted((i for i in range(len(rows)) if rows[i]), key=start.__getitem__)
    for instant, together in groupby(order, key=start.__getitem__):
        while running and running[0][0] <= instant:
            run.end(rows[heapq.heappop(running)[1]])
        queues: dict[int, deque[int]] = defaultdict(deque)
        for number in together:
            queues[rows[number][0].resource].append(number)
        _settle(queues, rows, run, fire)
    while running:
        run.end(rows[heapq.heappop(running)[1]])
    return run.finish()


def _settle(
    queues: dict[int, deque[int]],
    rows: Sequence[RunnableRow],
    run: SymbolicRun,
    fire: Callable[[int], None],
) -> None:
    """Fire all rows of one instant."""
    while any(queues.values()):
        if _advance(queues, rows, run, fire):
            continue
        resource = next(r for r, queue in queues.items() if queue)
        number = queues[resource].popleft()
        run.mistakes += run.faults(rows[number])
        fire(number)


def _advance(
    queues: dict[int, deque[int]],
    rows: Sequence[RunnableRow],
    run: SymbolicRun,
    fire: Callable[[int], None],
) -> bool:
    """Fire what can be fired, or else one row that takes something away; whether there was one."""
    moved = False
    for queue in queues.values():
        while queue and rows[queue[0]][0].kind in _FIRST and not run.faults(rows[queue[0]]):
            fire(queue.popleft())
            moved = True
    for queue in queues.values():
        while queue and rows[queue[0]][0].kind not in _LAST and not run.faults(rows[queue[0]]):
            fire(queue.popleft())
            moved = True
    if moved:
        return True
    for queue in queues.values():
        if queue and rows[queue[0]][0].kind in _LAST and not run.faults(rows[queue[0]]):
            fire(queue.popleft())
            return True
    return False


def by_order(
    machine: SymbolicMachine, rows: Sequence[RunnableRow]
) -> tuple[list[Mistake], SymbolicStandstill | None]:
    """All mistakes of a run in which every resource keeps the order of its rows."""
    run = SymbolicRun(machine)
    pending: dict[Supply, Counter[int]] = defaultdict(Counter)
    queues: dict[int, deque[int]] = defaultdict(deque)
    for number, row in enumerate(rows):
        if row:
            queues[row[0].resource].append(number)
        for work in row:
            pending[machine.supply(work)][work.resource] += 1

    def fire(number: int) -> None:
        for work in rows[number]:
            pending[machine.supply(work)][work.resource] -= 1
        run.begin(rows[number])
        run.end(rows[number])

    while any(queues.values()):
        if _advance(queues, rows, run, fire):
            continue
        heads = {r: run.faults(rows[queue[0]]) for r, queue in queues.items() if queue}
        culprit = _culprit(heads, pending)
        if culprit is None:
            return run.mistakes, SymbolicStandstill(tuple(found[0] for found in heads.values()))
        run.mistakes += heads[culprit]
        fire(queues[culprit].popleft())
    return run.finish(), None


def _culprit(heads: dict[int, list[Mistake]], pending: dict[Supply, Counter[int]]) -> int | None:
    """A resource whose head waits for something that nobody else is still to bring."""

    def comes(resource: int, fault: Fault) -> bool:
        if fault.awaited is None:
            return False
        return any(n for r, n in pending[fault.awaited].items() if r != resource)

    return next(
        (
            resource
            for resource, found in heads.items()
            if any(not comes(resource, mistake.fault) for mistake in found)
        ),
        None,
    )
