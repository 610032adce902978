"""V-shaped schedules: ZB-V, V-Half, V-Min and DualPipeV, against their papers' closed forms.

One unit of memory is one chunk's activation of one microbatch: a microbatch through both chunks of
a rank is two units, and 1F1B holds 2p of them on rank 0.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from bubbleproof.solvers.result import Status
from bubbleproof.solvers.solving import solve
from bubbleproof.theory.families import Family
from bubbleproof.theory.families.dualpipe import DualPipe, DualPipeV
from bubbleproof.theory.families.v_shape import PERIOD, RepeatedBlock, VHalf, VMin
from bubbleproof.theory.families.zb_v import ZeroBubbleV, phase_order
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check, check_communication
from proofs_tests.sized import sized
from proofs_tests.theory.members import measured

BLOCKS: tuple[RepeatedBlock, ...] = (VHalf(), VMin())
V_FAMILIES: tuple[Family, ...] = (ZeroBubbleV(), VHalf(), VMin(), DualPipeV())
TICKS = [(1, 1, 1), (2, 3, 1), (3, 2, 2), (1, 0, 4), (0, 1, 1)]


def counts(family: Family, p: int) -> list[int]:
    """Microbatches around every turn of the family's behaviour, from the least it takes on."""
    least = 2 * p if isinstance(family, DualPipeV) else 1
    return sorted({m for m in (1, 2, p - 1, p, p + 1, 2 * p - 1, 2 * p, 3 * p + 1) if m >= least})


@pytest.mark.parametrize("family", V_FAMILIES, ids=lambda family: family.name)
def test_every_rule_holds_up_to_8_ranks(family: Family) -> None:
    for p in sized((1, 2, 5), full=range(1, 9)):
        for m in counts(family, p):
            f, i, w = TICKS[(p + m) % len(TICKS)]
            member = family(p=p, m=m, tF=f, tI=i, tW=w)
            verdict = check(member.problem, member.schedule)
            assert verdict.ok, f"{family.name} p={p} m={m}\n{verdict}"


@pytest.mark.parametrize("family", V_FAMILIES, ids=lambda family: family.name)
def test_no_communication_semantics_gets_stuck(family: Family) -> None:
    for p in sized((2, 3, 6), full=range(2, 9)):
        for m in counts(family, p)[-2:]:
            member = family(p=p, m=m)
            verdict = check_communication(member.problem, lower(member.problem, member.schedule))
            assert verdict.ok, f"{family.name} p={p} m={m}\n{verdict}"


def test_zb_v_has_no_bubble_and_1f1bs_memory() -> None:
    # A rank works 6m ticks. The last starts when the first F arrives, p-1 ticks late: 6m + p-1.
    # p microbatches are on their way before one ends on rank 0, so 2p units.
    for p in range(1, 9):
        for m in (2 * p - 1, 2 * p, 3 * p + 1):
            got = measured(ZeroBubbleV(), p=p, m=m)
            assert got.span_idle == 0
            assert got.makespan == 6 * m + p - 1
            assert got.peak_activations == (2 * p,) * p


def test_zb_vs_makespan_is_optimal_and_its_bubble_needs_2p_minus_1_microbatches() -> None:
    member = ZeroBubbleV()(p=4, m=8)
    result = solve(member.problem, starts=[("zb-v", member.schedule.program)])
    assert result.status is Status.OPTIMAL
    assert result.lower_bound == measure(member.problem, member.schedule).makespan
    for m, idle in ((5, 4), (6, 2), (7, 0)):
        problem = ZeroBubbleV()(p=4, m=m).problem
        assert measure(problem, left_shift(problem, phase_order(4, m))).span_idle == idle


@pytest.mark.parametrize("family", BLOCKS, ids=lambda family: family.name)
def test_building_blocks_repeat_without_a_collision(family: RepeatedBlock) -> None:
    for p in range(1, 100):
        f_down, f_up, i_down, i_up = block = family.block(p)
        for rank in range(p):
            assert len({start % PERIOD for start in block[:, rank].tolist()}) == 4, (p, rank)
        chain = [*f_down, *f_up[::-1], *i_down, *i_up[::-1]]
        assert all(later > earlier for earlier, later in pairwise(chain))


def test_v_min_collides_at_multiples_of_3_unless_its_backwards_come_later() -> None:
    # With A = 2p-1 and B = 2p, F down (r) and I down (2p + r) differ by 2p: 6 where p is 3.
    assert VMin().block(3)[2, 0] == 2 * 3 + 2
    assert VMin().block(4)[2, 0] == 2 * 4


@pytest.mark.parametrize("family", BLOCKS, ids=lambda family: family.name)
def test_what_a_v_block_holds_and_idles_at_most(family: RepeatedBlock) -> None:
    # Published: a half and a third of 1F1B's p microbatches, (p+2) div 2 and (p+4) div 3 of them,
    # and a half and two thirds of its bubble, which is p-1 microbatches of 6 ticks.
    parts, more, bubble = (2, 2, 3) if family.name == "v-half" else (3, 4, 4)
    for p in sized((1, 2, 3, 4, 5, 6), full=range(1, 13)):
        for m in (p, p + 1, 2 * p, 3 * p + 1):
            got = measured(family, p=p, m=m)
            assert max(got.peak_activations) == 2 * ((p + more) // parts)
            if m >= 2 * p:
                assert got.makespan <= 6 * m + bubble * (p - 1)


# (p, m, ticks) of the authors' generator, sail-sg/zero-bubble-pipeline-parallelism at 39f2c18,
# megatron/core/pipeline_parallel/zerobubble/scheduler/zbv_greedy.py, run at unit ticks.
AUTHORS = {
    "v-half": [(4, 4, 34), (4, 8, 53), (5, 10, 71), (6, 6, 48), (6, 18, 119), (8, 8, 65),
               (8, 16, 113), (8, 24, 161)],
    "v-min": [(3, 9, 59), (4, 12, 83), (5, 5, 45), (6, 6, 53), (6, 18, 125), (8, 16, 123),
              (8, 24, 171)],
}  # fmt: skip
# The orders that it gives there.
ORDERS = {
    ("v-half", 2, 3): (
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0I0 3I1 3W1 3F2 3I2 0I1 3W2 0I2 0W0 0W1 0W2",
        "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 1F2 2F2 2I1 1I1 2I2 1I2 2W1 2W2 1W1 1W2",
    ),
    ("v-half", 3, 3): (
        "0F0 0F1 0F2 5F0 5I0 5W0 5F1 5I1 5W1 0I0 0W0 5F2 5I2 0I1 5W2 0W1 0I2 0W2",
        "1F0 1F1 4F0 4F1 4I0 4W0 1F2 4I1 1I0 4W1 1W0 4F2 1I1 4I2 4W2 1W1 1I2 1W2",
        "2F0 3F0 2F1 3F1 3I0 3W0 2I0 2W0 2F2 3F2 3I1 2I1 3W1 2W1 3I2 2I2 3W2 2W2",
    ),
    ("v-min", 2, 3): (
        "0F0 0F1 3F0 3I0 3W0 0I0 0W0 3F1 3I1 3W1 0F2 0I1 0W1 3F2 3I2 3W2 0I2 0W2",
        "1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 1F2 2F2 2W1 1W1 2I2 1I2 2W2 1W2",
    ),
    ("v-min", 3, 4): (
        "0F0 0F1 0F2 5F0 5I0 5W0 5F1 0I0 5I1 5W1 0W0 5F2 0F3 0I1 5I2 5W2 0W1 5F3 5I3 0I2 5W3 0W2 "
        "0I3 0W3",
        "1F0 1F1 4F0 4F1 4I0 4W0 1I0 1F2 1W0 4I1 4F2 4W1 1I1 1F3 1W1 4I2 4F3 4W2 1I2 4I3 4W3 1W2 "
        "1I3 1W3",
        "2F0 3F0 2F1 3F1 3I0 2I0 3W0 2W0 2F2 3F2 3I1 2I1 3W1 2W1 2F3 3F3 3I2 2I2 3W2 2W2 3I3 2I3 "
        "3W3 2W3",
    ),
}


@pytest.mark.parametrize("family", BLOCKS, ids=lambda family: family.name)
def test_the_order_is_that_of_the_authors_generator(family: RepeatedBlock) -> None:
    for p, m, ticks in AUTHORS[family.name]:
        assert measured(family, p=p, m=m).makespan == ticks, (p, m)
    for name, p, m in ORDERS:
        if name == family.name:
            found = family(p=p, m=m).schedule.program.orders(p)
            assert tuple(" ".join(map(str, row)) for row in found) == ORDERS[name, p, m]


@pytest.mark.parametrize(("f", "i", "w"), [(1, 1, 1), (2, 2, 1), (3, 3, 0), (3, 3, 2)])
def test_dualpipev_idles_the_published_bubble_where_forward_and_input_are_equal(
    f: int, i: int, w: int
) -> None:
    # Published: (PP/2-1)(F&B + B - 3W), PP = 2p stages, and PP+1 chunk activations. F&B = F + B.
    for p in (1, 2, 3, 4, 5):
        for m in (2 * p, 2 * p + 1, 3 * p):
            got = measured(DualPipeV(), p=p, m=m, tF=f, tI=i, tW=w)
            b = i + w
            assert got.span_idle == (p - 1) * (f + b + b - 3 * w)
            assert got.makespan == 2 * m * (f + b) + got.span_idle
            assert got.peak_activations == (2 * p + 1,) * p


def test_dualpipev_is_dualpipe_cut_in_half() -> None:
    # Half of DualPipe's ranks, each with both directions of the pair (r, 2p-1-r), the same ticks.
    for p, m in ((2, 4), (3, 7), (4, 8)):
        for f, i, w in TICKS[:3]:
            half = measured(DualPipeV(), p=p, m=m, tF=f, tI=i, tW=w)
            whole = measured(DualPipe(), p=2 * p, m=2 * m, tF=f, tI=i, tW=w)
            assert half.makespan == whole.makespan
            assert half.peak_activations == whole.peak_activations[:p]


def wave(**changes: object) -> Pipeline:
    """Two ranks, four microbatches, two chunks, placed as a V, with some fields changed."""
    fields: dict[str, object] = {
        "num_ranks": 2,
        "num_microbatches": 4,
        "num_chunks": 2,
        "placement": "wave",
        "split_backward": True,
    }
    return Pipeline(**(fields | changes))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (VHalf(), {"num_chunks": 4}, "v-half has two chunks per rank, got v=4"),
        (VMin(), {"placement": "loop"}, "v-min places stages as wave: (0, 1, 1, 0)"),
        (
            ZeroBubbleV(),
            {"split_backward": False},
            "zb-v has split backwards (split_backward = True)",
        ),
        (VMin(), {"num_slices": 2}, "v-min does not slice samples, got s=2"),
        (DualPipeV(), {"num_chunks": 1}, "dualpipev has two chunks per rank, got v=1"),
        (DualPipeV(), {"num_microbatches": 3}, "dualpipev needs m of 2p = 4 or more, got m=3"),
        (
            DualPipeV(),
            {},
            "dualpipev fixes which backwards are split and which overlap a forward; "
            "take split_backward and overlaps from dualpipev p=2 m=4",
        ),
    ],
)
def test_what_shape_a_v_family_refuses(
    family: Family, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        family.schedule(wave(**changes))
    assert str(caught.value) == message


def test_what_parameters_a_v_family_refuses() -> None:
    with pytest.raises(ValueError, match="dualpipev needs m of 2p = 8 or more, got m=7"):
        DualPipeV()(p=4, m=7)
    with pytest.raises(ValueError, match="zb-v has two chunks per rank, got v=3"):
        ZeroBubbleV()(p=4, m=7, v=3)
    for v in (1, 3):
        with pytest.raises(ValueError, match=f"dualpipev has two chunks per rank, got v={v}"):
            DualPipeV()(p=2, m=4, v=v)
