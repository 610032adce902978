"""ZB-H1 for all durations: the theorem's starts, makespan and peak against the family's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bubbleproof.papers.field import zb_h1_theorem as zb
from bubbleproof.papers.theorems.closed_form import I as RANK
from bubbleproof.papers.theorems.closed_form import J as MICROBATCH
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import check
from proofs_tests.sized import sampled

SIZES = ((1, 1), (1, 3), (2, 2), (2, 5), (3, 3), (3, 4), (3, 7), (4, 4), (4, 9), (5, 6), (6, 13))
DURATIONS = sampled(tuple(product((1, 2, 3), repeat=3)), every=4)
STARTS = {
    Kind.F: zb.forward(RANK, MICROBATCH),
    Kind.I: zb.input_backward(RANK, MICROBATCH),
    Kind.W: zb.weight_backward(RANK, MICROBATCH),
}


def values(p: int, m: int, forward: int, into: int, weight: int) -> dict[str, int]:
    """The theorem's symbols: u = min(tF, tW), x and y the rest of them, wait = max(0, tI - u)."""
    u = min(forward, weight)
    above = {"x": forward - u, "y": weight - u, "wait": max(0, into - u)}
    return {"p": p, "m": m, "u": u, "tI": into, **above}


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_makespan_and_peak_are_the_familys(p: int, m: int) -> None:
    for forward, into, weight in DURATIONS:
        found = member("zb-h1", p=p, m=m, tF=forward, tI=into, tW=weight)
        measured = measure(found.problem, found.schedule)
        # The statement, spelled out apart from the theorem's terms:
        bubble = (p - 1) * (forward + max(0, into - min(forward, weight)))
        assert measured.makespan == m * (forward + into + weight) + bubble
        at = values(p, m, forward, into, weight)
        assert measured.makespan == zb.FORM.makespan.value(at)
        assert set(measured.peak_activations) == {p}


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_the_starts_are_the_familys(p: int, m: int) -> None:
    for forward, into, weight in DURATIONS:
        found = member("zb-h1", p=p, m=m, tF=forward, tI=into, tW=weight)
        at = values(p, m, forward, into, weight)
        program = found.schedule.program
        rows = zip(program.actions, program.resource.tolist(), strict=True)
        starts = [
            int(STARTS[action.kind].value({**at, "i": rank, "j": action.microbatch}))
            for action, rank in rows
        ]
        timed = Schedule(program=program, start=np.array(starts))
        assert check(found.problem, timed).ok
        assert (found.schedule.start == timed.start).all()  # left-shifted
        assert measure(found.problem, timed).makespan == zb.FORM.makespan.value(at)


def test_the_published_bubble_is_not_the_makespans() -> None:
    """tF = tI = 1, tW = 2, p = m = 2: (p-1)(tF+tI-tW) = 0, but rank 1 cannot begin before 1."""
    found = member("zb-h1", p=2, m=2, tF=1, tI=1, tW=2)
    assert measure(found.problem, found.schedule).makespan == 2 * 4 + 1
