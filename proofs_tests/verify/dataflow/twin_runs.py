"""Runs of the arithmetic twin: by the times of a schedule, or by the messages of programs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from proofs_tests.verify.dataflow.arithmetic_twin import MESSAGES, Twin, parts

_LATE = (Kind.RESHARD, Kind.REDUCE_GRAD, Kind.OFFLOAD, Kind.STEP)


Timed = Sequence[tuple[int, Action, int, int]]  # resource, action, start, end (ticks)


def timed(problem: Problem, schedule: Schedule) -> Timed:
    """The rows of a schedule; a row that is no task of the problem takes 0 ticks."""
    ticks = {str(a): int(t) for a, t in zip(problem.actions, problem.duration, strict=True)}
    program = schedule.program
    return [
        (resource, action, start, start + ticks.get(str(action), 0))
        for resource, action, start in zip(
            program.resource.tolist(), program.actions, schedule.start.tolist(), strict=True
        )
    ]


def right_by_time(problem: Problem, rows: Timed) -> bool:
    """Whether the run at these times gives the true gradients. At one instant ends come first."""
    twin = Twin(problem, explicit=False)
    events = []
    for row, (resource, action, start, end) in enumerate(rows):
        if not all(twin.knows(one) for one in parts(action)):
            continue
        for one in parts(action):
            phase = 1 if one.kind is Kind.UNSHARD else 3 if one.kind in _LATE else 2
            events.append((start, phase, row, 0, one, resource))
            events.append((end, phase if end == start else 0, row, 1, one, resource))
    for _, _, row, is_end, one, resource in sorted(events, key=lambda event: event[:4]):
        (twin.end if is_end else twin.begin)(one, resource, row)
    return twin.is_right()


def right_by_messages(problem: Problem, orders: Sequence[Sequence[Action]]) -> bool:
    """Whether the ranks' orders with SEND and RECV end, and give the true gradients.

    An action waits for the messages that its rank has asked for and that it uses; nothing else
    waits. The k-th SEND of a channel meets the k-th RECV, and none is left alone.
    """
    twin, position = Twin(problem, explicit=True), [0] * len(orders)
    post = _Post(twin)
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while position[rank] < len(order):
                action = order[position[rank]]
                if action.kind in MESSAGES:
                    post.run(action, rank)
                elif any(place in post.open for place in _inputs(action, rank)):
                    break
                else:
                    for one in parts(action):
                        twin.begin(one, rank)
                        twin.end(one, rank)
                position[rank] += 1
                moved = True
    ended = all(p == len(o) for p, o in zip(position, orders, strict=True))
    return ended and not any([*post.sent.values(), *post.asked.values()]) and twin.is_right()


Place = tuple[str, int, int, int, int]  # letter, rank, stage, microbatch, slice


def _inputs(action: Action, rank: int) -> list[Place]:
    steps = {Kind.F: ("F", -1), Kind.B: ("B", 1), Kind.I: ("B", 1)}
    return [
        (steps[one.kind][0], rank, one.stage + steps[one.kind][1], one.microbatch, one.slice)
        for one in parts(action)
        if one.kind in steps
    ]


class _Post:
    """The channels: numbers sent and not received, places asked for and not yet filled."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.sent: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self.asked: dict[tuple[int, int], deque[Place]] = defaultdict(deque)
        self.open: set[Place] = set()

    def run(self, action: Action, rank: int) -> None:
        letter, step = MESSAGES[action.kind]
        g, j, k = action.stage, action.microbatch, action.slice
        peer = self.twin.shape.tasks[Kind.F].get((g + step, j, k))
        if peer is None:
            return
        if action.kind in (Kind.SEND_F, Kind.SEND_B):
            channel = (rank, peer)
            self.sent[channel].append(self.twin.pop(letter, rank, g, j, k)[0])
        else:
            channel, place = (peer, rank), (letter, rank, g + step, j, k)
            self.asked[channel].append(place)
            self.open.add(place)
        while self.sent[channel] and self.asked[channel]:
            filled = self.asked[channel].popleft()
            self.open.discard(filled)
            self.twin.memory[filled] = (self.sent[channel].popleft(),)
