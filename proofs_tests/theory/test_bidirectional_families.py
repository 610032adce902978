"""Chimera and DualPipe: legal on their range, with the papers' bubbles and peaks or corrected ones.

m counts the microbatches of both directions. An overlapped pair takes tF + tB.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from bubbleproof.solvers.result import Status
from bubbleproof.solvers.solving import solve
from bubbleproof.theory.families import Family
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.chimera import Chimera
from bubbleproof.theory.families.dualpipe import DualPipe
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.sized import sized
from proofs_tests.theory.members import assert_every_rule_holds, measured


def legal_members(ranks: tuple[int, ...]) -> list[FamilyMember]:
    """Chimera around every turn of m, DualPipe from its least m on, with changing ticks."""
    found = []
    for p in ranks:
        for m in sorted({1, 2, p - 1, p, p + 1, 2 * p, 2 * p + 3}):
            found.append(Chimera()(p=p, m=m, tF=1 + m % 2, tB=1 + m % 3))
        for m in (2 * p, 2 * p + 2, 3 * p):
            found.append(DualPipe()(p=p, m=m, tF=1 + m % 3, tI=1 + m % 4, tW=m % 5))
    return found


def test_every_rule_holds_up_to_8_ranks() -> None:
    for member in legal_members(sized((2, 4, 6), full=(2, 4, 6, 8))):
        assert_every_rule_holds(member)


def test_chimeras_bubble_and_peaks_where_forward_and_backward_are_equal() -> None:
    # Published for m = p: bubble ratio (D-2)/(2N+D-2), and between D/2+1 and D activations. Each
    # rank waits p/2-1 ticks in the middle of the forwards and of the backwards: p-2 in all.
    for p in (2, 4, 6, 8):
        for units in (1, 2, 3):
            m = units * p
            got = measured(Chimera(), p=p, m=m, tF=1, tB=1)
            assert got.makespan == 2 * m + p - 2
            assert got.idle_ratio == Fraction(p - 2, 2 * m + p - 2)
            # Rank r holds its p/2 microbatches of the nearer end, and those of the other end that
            # pass before the first backward: min(r, p-1-r) + 1 at once.
            expected = tuple(p // 2 + 1 + min(r, p - 1 - r) for r in range(p))
            assert got.peak_activations == expected


def test_chimeras_makespan_is_optimal_at_equal_ticks() -> None:
    for m in (4, 8):
        member = Chimera()(p=4, m=m, tF=1, tB=1)
        result = solve(member.problem, starts=[("chimera", member.schedule.program)])
        assert (result.status, result.lower_bound) == (Status.OPTIMAL, 2 * m + 4 - 2)


def test_chimeras_units_join_without_a_gap_only_at_equal_ticks() -> None:
    # Published for tB = 2tF: (D-2)/(3N/2+D-2), that is 2(p-2) idle ticks of 3m + 2(p-2). It holds
    # for one unit; joined directly, each further unit adds a gap of p-2 (the paper says that there
    # are gaps and removes them by doubling forwards). First at p = 4, m = 8: 6 ticks, not 4.
    for p in (2, 4, 6, 8):
        assert measured(Chimera(), p=p, m=p).idle_ticks == (2 * (p - 2),) * p
        assert measured(Chimera(), p=p, m=p).idle_ratio == Fraction(
            2 * (p - 2), 3 * p + 2 * (p - 2)
        )
        for units in (2, 3):
            got = measured(Chimera(), p=p, m=units * p)
            assert got.idle_ticks == ((units + 1) * (p - 2),) * p
    # Another order of the same problem does better: 27 ticks, where the direct join takes 30.
    member = Chimera()(p=4, m=8)
    assert measure(member.problem, member.schedule).makespan == 30
    assert solve(member.problem).lower_bound == 27


def test_dualpipe_idles_the_published_bubble_where_forward_and_input_are_equal() -> None:
    # Published: (PP/2-1)(F&B + B - 3W) and PP+1 activations. An overlapped pair takes F + B here.
    for p in (2, 4, 6, 8):
        for m in (2 * p, 2 * p + 2, 3 * p):
            for f, w in ((1, 1), (2, 1), (3, 0), (3, 3)):
                b = f + w
                got = measured(DualPipe(), p=p, m=m, tF=f, tI=f, tW=w)
                assert got.span_idle == (p // 2 - 1) * (f + b + b - 3 * w)
                assert got.makespan == m * (f + b) + got.span_idle
                assert got.peak_activations == (p + 1,) * p


def test_dualpipes_bubble_in_general() -> None:
    # Our correction, for tW <= tI: h(F + 2I - W) - min(F, h(I - F)) with h = p/2-1. Where I is
    # faster than F, every hop of the turn waits for an F instead: h(2F + I - W).
    for p in (2, 4, 6, 8):
        h = p // 2 - 1
        for f, i in ((1, 2), (1, 4), (2, 1), (2, 3), (3, 1), (0, 2)):
            for w in range(i + 1):
                got = measured(DualPipe(), p=p, m=2 * p, tF=f, tI=i, tW=w)
                expected = h * (f + 2 * i - w) - min(f, h * (i - f))
                assert got.span_idle == expected
                assert got.makespan == 2 * p * (f + i + w) + expected


@pytest.mark.parametrize(
    ("f", "i", "published", "optimal"), [(1, 2, 8 * 4 + 4, 35), (2, 1, 8 * 4 + 3, 36)]
)
def test_dualpipes_published_bubble_fails_both_ways_at_unequal_ticks(
    f: int, i: int, published: int, optimal: int
) -> None:
    # p = 4, m = 8, tW = 1, work 8(F+I+W) = 32 ticks per rank. The published bubble F + 2I - W is 4
    # for (F, I) = (1, 2): a shorter schedule exists, and this order is one. It is 3 for (2, 1): a
    # checked bound shows that no schedule of these tasks is that short.
    member = DualPipe()(p=4, m=8, tF=f, tI=i, tW=1)
    result = solve(member.problem, starts=[("dualpipe", member.schedule.program)])
    assert measure(member.problem, member.schedule).makespan == optimal != published
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, optimal)


def test_dualpipes_steps_on_the_first_and_on_a_middle_rank() -> None:
    # p = 4, m = 8: rank 0 has q = 1, d = 1 and m/2 - p + d = 1 pair; rank 1, in the middle, has
    # q = 0, d = 2 and 2 pairs, the first of them apart. Down: stage r, microbatches 0..3; up:
    # stage 3-r, microbatches 4..7.
    first, middle = DualPipe()(p=4, m=8).schedule.program.orders(4)[:2]
    assert " ".join(map(str, first)) == (
        "0F0 0F1 0F2 3F4 3I4 3W4 3F5 "
        "(0F3;3B5)OVERLAP_F_B (3F6;0B0)OVERLAP_F_B 3B6 (3F7;0B1)OVERLAP_F_B "
        "3B7 0I2 0W2 0I3 0W3"
    )
    assert " ".join(map(str, middle)) == (
        "1F0 2F4 1F1 2F5 1F2 2B4 (2F6;1B0)OVERLAP_F_B (1F3;2B5)OVERLAP_F_B (2F7;1B1)OVERLAP_F_B "
        "2B6 1B2 2I7 1I3 2W7 1W3"
    )


def test_each_microbatch_is_split_or_overlapped_as_the_pipeline_says() -> None:
    pipeline = DualPipe()(p=4, m=8).pipeline
    kinds = Counter(action.kind for action in pipeline.problem().actions)
    # Splits: q in step 3, d in step 6, q in step 7, on each of 4 ranks: (1+1+1) * 2 + (0+2+0) * 2.
    # Overlaps: two per pair less the parted one, and q: (2+1) * 2 + (4-1+0) * 2.
    assert (kinds[Kind.I], kinds[Kind.W], kinds[Kind.OVERLAP_F_B]) == (10, 10, 12)
    assert kinds[Kind.B] == 4 * 8 - 10 - 12
    assert [store.base for store in pipeline.with_changes(static=1).problem().stores] == [2] * 4


@pytest.mark.parametrize(
    ("family_", "params", "message"),
    [
        (Chimera(), {"p": 3, "m": 4}, "chimera needs an even number of ranks, got p=3"),
        (Chimera(), {"p": 2, "m": 4, "v": 2}, "chimera takes no parameter v, got v=2"),
        (DualPipe(), {"p": 3, "m": 8}, "dualpipe needs an even number of ranks, got p=3"),
        (DualPipe(), {"p": 4, "m": 9}, "dualpipe needs an even m of 2p = 8 or more, got m=9"),
        (DualPipe(), {"p": 4, "m": 6}, "dualpipe needs an even m of 2p = 8 or more, got m=6"),
    ],
)
def test_what_a_bidirectional_family_refuses(
    family_: Family, params: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        family_(**params)
    assert str(caught.value) == message


def test_bidirectional_families_refuse_a_loop_and_other_choices() -> None:
    pair = Pipeline(num_ranks=2, num_microbatches=2, placement="bidirectional")
    loop = pair.with_changes(placement="loop")
    assert Chimera().refusal(loop) == "chimera places stages as bidirectional: (0, 1)"
    assert Chimera().refusal(pair) is None
    plain = Pipeline(num_ranks=2, num_microbatches=4, placement="bidirectional")
    assert DualPipe().refusal(plain) == (
        "dualpipe fixes which backwards are split and which overlap a forward; "
        "take split_backward and overlaps from dualpipe p=2 m=4"
    )
    own = DualPipe()(p=2, m=4).pipeline
    assert DualPipe().refusal(own) is None
    assert DualPipe().refusal(own.with_changes(overlaps=own.overlaps[1:])) is not None
