"""Interleaved: the theorem's starts solve the family's problem in the family's order."""

from __future__ import annotations

import numpy as np
import pytest

from bubbleproof.papers.field import interleaved_theorem
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import check
from proofs_tests.sized import sampled

SIZES = [(p, groups * p, v) for p in range(1, 6) for groups in (1, 2, 3) for v in range(1, 4)]


@pytest.mark.parametrize(
    ("forward", "backward"), sampled([(1, 2), (1, 1), (3, 1), (1, 5)], every=2)
)
def test_the_starts_are_a_schedule_in_the_familys_order(forward: int, backward: int) -> None:
    form = interleaved_theorem.InterleavedForm()
    start_of = {
        Kind.F: form.forward(interleaved_theorem.R, interleaved_theorem.X),
        Kind.B: form.backward(interleaved_theorem.R, interleaved_theorem.X),
    }
    for p, m, v in SIZES:
        found = member("interleaved", p=p, m=m, v=v, tF=forward, tB=backward)
        values = {"p": p, "Q": (v - 1) * p, "N": m * v, "tF": forward, "tB": backward}
        program = found.schedule.program
        starts, count = [], dict[tuple[int, int], int]()
        for kind, rank in zip(
            program.actions.kind.tolist(), program.resource.tolist(), strict=True
        ):
            place = count.get((kind, rank), 0)
            count[kind, rank] = place + 1
            starts.append(int(start_of[Kind(kind)].value({**values, "r": rank, "x": place})))
        timed = Schedule(program=program, start=np.array(starts))
        assert check(found.problem, timed).ok, (p, m, v)
        assert (found.schedule.start <= timed.start).all()  # left-shifted is never later
        measured = measure(found.problem, found.schedule)
        makespan = form.makespan.value(values)
        assert measured.makespan == measure(found.problem, timed).makespan == makespan
        peaks = tuple(
            form.peak(interleaved_theorem.R).value({**values, "r": rank}) for rank in range(p)
        )
        assert measured.peak_activations == peaks


def test_one_group_of_microbatches_is_the_most_a_rank_can_hold() -> None:
    # m = p = 3, v = 2: rank 0 would warm up with 3 + 2*2 + 1 = 8 forwards, but has m*v = 6.
    found = member("interleaved", p=3, m=3, v=2)
    values = {"p": 3, "Q": 3, "N": 6, "r": 0}
    peak = interleaved_theorem.InterleavedForm().peak(interleaved_theorem.R).value(values)
    assert measure(found.problem, found.schedule).peak_activations[0] == peak == 6
