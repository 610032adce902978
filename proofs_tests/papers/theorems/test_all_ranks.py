"""Theorems for all p and m on rows, waves, units, slices, rounds and steps: their starts are a
schedule of the family's problem in the family's order, with the family's makespan and peaks.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from bubbleproof.papers.field import v_blocks_theorem as v_blocks
from bubbleproof.papers.theorems.closed_form import I, J
from bubbleproof.theory.families import FamilyMember, families, hanayo, member
from bubbleproof.theory.families.v_shape import RepeatedBlock
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.check import check
from proofs_tests.papers.theorems.compared import CASES, Compared, Numbers, Size, value
from proofs_tests.sized import sized


def found_and_timed(about: Compared, size: Size) -> tuple[FamilyMember, Schedule, Numbers]:
    """The family's member, and its program at the theorem's starts."""
    found, numbers = member(about.family, **about.params(size)), about.symbols(size)
    program = found.schedule.program
    actions = zip(program.actions, program.resource.tolist(), strict=True)
    starts = [about.start(action, rank, numbers) for action, rank in actions]
    return found, Schedule(program=program, start=np.array(starts)), numbers


def sizes_of(about: Compared) -> Iterable[Size]:
    return sized(about.sizes, full=about.sizes + about.more)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [name for name in CASES if name != "hanayo-equal"])
def test_the_starts_are_a_schedule_in_the_familys_order(name: str) -> None:
    about = CASES[name]
    for size in sizes_of(about):
        found, timed, numbers = found_and_timed(about, size)
        assert check(found.problem, timed).ok, size
        assert (found.schedule.start <= timed.start).all(), size  # left-shifted is never later
        if about.is_left_shifted:
            assert (found.schedule.start == timed.start).all(), size
        measured = measure(found.problem, found.schedule)
        told = value(about.makespan, numbers)
        assert measured.makespan <= told if about.is_bound else measured.makespan == told, size
        if about.peak is not None:
            peaks = tuple(about.peak(rank, numbers) for rank in range(size[0]))
            assert measured.peak_activations[: size[0]] == peaks, size


@pytest.mark.sweep
def test_waves_are_the_rounds_of_hanayo() -> None:
    """Slots two ticks apart: the closed form is the family's order, and as long."""
    about = CASES["hanayo-equal"]
    for size in sizes_of(about):
        found, numbers = member(about.family, **about.params(size)), about.symbols(size)
        program = hanayo.closed_form_order(found.pipeline)
        actions = zip(program.actions, program.resource.tolist(), strict=True)
        starts = np.array([about.start(action, rank, numbers) for action, rank in actions])
        timed = Schedule(program=program, start=starts)
        assert check(found.problem, timed).ok, size
        assert (left_shift(found.problem, program).start <= starts).all(), size
        measured = measure(found.problem, timed)
        assert measured.makespan == value(about.makespan, numbers), size
        assert measure(found.problem, found.schedule).makespan == measured.makespan, size
        assert max(measured.peak_activations) <= size[0] * size[2], size


@pytest.mark.parametrize(
    ("name", "form", "parts"), [("v-half", v_blocks.HALF, 2), ("v-min", v_blocks.MIN, 3)]
)
def test_blocks_are_the_familys(name: str, form: v_blocks.BlockForm, parts: int) -> None:
    """Starts of microbatch 0 at every rank; the family's peaks keep to the limit."""
    family = families()[name]
    assert isinstance(family, RepeatedBlock)
    for p in range(1, 65):
        block, numbers = family.block(p), {"p": p, "h": p // parts, "o": p % parts, "j": 0}
        starts = [row.start(I, J) for row in form.rows]
        for rank in range(p):
            at = {**numbers, "i": rank}
            assert block[:, rank].tolist() == [value(start, at) for start in starts]
    for p, m in sized(((4, 9), (7, 15)), full=[(p, 2 * p + 1) for p in range(1, 17)]):
        found = member(name, p=p, m=m)
        most = value(form.most, {"p": p, "h": p // parts, "o": p % parts})
        assert max(measure(found.problem, found.schedule).peak_activations) <= most


def test_fewer_microbatches_than_zb_h2_and_zb_v_ask_for_are_another_schedule() -> None:
    # p = 3, m = 4: rank 0 has 5 = 2p-1 forwards before its first I in the closed form, but m is 4.
    for name in ("zb-h2", "zb-v"):
        found, timed, _ = found_and_timed(CASES[name], (3, 4))
        assert not check(found.problem, timed).ok


def test_svpp_with_faster_backwards_is_slower_than_the_least() -> None:
    # p=3, m=4, v=s=1, tF=2, tB=1: (m+p-1)(tF+tB) = 18 is every schedule's least. On rank 1 B(0)
    # could start at 7 but waits for F(2) until 8, so on rank 0 it ends at 10. F(3) comes behind it,
    # 10 to 12, on the last rank 14 to 16; then B(3) goes up 3 ranks until 19.
    for p, m, least in ((3, 4, 18), (4, 5, 24)):
        found = member("svpp", p=p, m=m, v=1, s=1, tF=2, tB=1)
        assert (m + p - 1) * 3 == least
        assert measure(found.problem, found.schedule).makespan > least
