"""PipeMesh: the theorem's starts, makespan and peaks against the family's, for many sequences."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bubbleproof.papers.field import interleaved_theorem
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import check

FORM = interleaved_theorem.InterleavedForm()
STARTS = {
    Kind.F: FORM.forward(interleaved_theorem.R, interleaved_theorem.X),
    Kind.B: FORM.backward(interleaved_theorem.R, interleaved_theorem.X),
}


def cut(chance: random.Random, m: int, least: int) -> tuple[int, ...]:
    """m in random parts of ``least`` or more."""
    parts: list[int] = []
    while m >= 2 * least and chance.random() < 0.7:
        parts.append(chance.randint(least, m - least))
        m -= parts[-1]
    return (*parts, m)


def buffer(e: tuple[int, ...], d: tuple[int, ...]) -> int:
    """The most enqueued and not dequeued at the start of a microbatch's dequeue operation."""
    most = 0
    for t in range(sum(e)):
        enqueued = next(end for end in np.cumsum(e).tolist() if end > t)
        dequeued = max((end for end in [0, *np.cumsum(d).tolist()] if end <= t), default=0)
        most = max(most, enqueued - dequeued)
    return most


@pytest.mark.parametrize("seed", range(60))
def test_the_starts_are_a_schedule_in_the_familys_order(seed: int) -> None:
    chance = random.Random(seed)
    p, v = chance.randint(1, 4), chance.randint(1, 3)
    m = chance.randint(p, 5 * p + 3)
    e, d = cut(chance, m, p), cut(chance, m, p)
    ticks = {"tF": chance.randint(1, 3), "tB": chance.randint(1, 4)}
    found = member("pipemesh", p=p, m=m, v=v, e=e, d=d, **ticks)
    values = {"p": p, "Q": (v - 1) * buffer(e, d), "N": m * v, **ticks}
    program, count = found.schedule.program, dict[tuple[int, int], int]()
    starts = []
    for kind, rank in zip(program.actions.kind.tolist(), program.resource.tolist(), strict=True):
        place = count.get((kind, rank), 0)
        count[kind, rank] = place + 1
        starts.append(int(STARTS[Kind(kind)].value({**values, "r": rank, "x": place})))
    timed = Schedule(program=program, start=np.array(starts))
    assert check(found.problem, timed).ok, (p, m, v, e, d)
    measured = measure(found.problem, found.schedule)
    assert measured.makespan == FORM.makespan.value(values)
    peak = FORM.peak(interleaved_theorem.R)
    peaks = tuple(peak.value({**values, "r": rank}) for rank in range(p))
    assert measured.peak_activations == peaks
