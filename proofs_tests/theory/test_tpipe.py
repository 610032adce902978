"""T-Pipe: legal on its range, and as fast and as large as its Appendix A says, or not."""

from __future__ import annotations

import pytest

from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp, TRecompInterleaved
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import assert_every_rule_holds, measured

FAMILIES = [TPipe(), TRecomp(), TRecompInterleaved(), TOffload()]
SMALL = [(p, m) for p in range(1, 9) for m in range(1, 2 * p + 2)]
SOME = sampled(SMALL, every=9)
OTHER_TICKS = [(1, 1), (3, 5), (2, 0), (0, 1)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_every_rule_holds_on_the_small_range(family: TPipe) -> None:
    for p, m in SOME:
        assert_every_rule_holds(family(p=p, m=m))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_every_rule_holds_at_other_durations(family: TPipe) -> None:
    for ticks in OTHER_TICKS:
        for p, m in sized(SMALL[::25], full=SMALL[::3]):
            member = family(p=p, m=m, tF=ticks[0], tB=ticks[1])
            verdict = check(member.problem, member.schedule)
            assert verdict.ok, f"{family.name} p={p} m={m} {ticks}\n{verdict}"


@pytest.mark.sweep
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_every_rule_holds_on_large_shapes(family: TPipe) -> None:
    for p in (11, 16, 23):
        for m in (1, p, 4 * p + 1):
            member = family(p=p, m=m)
            assert check(member.problem, member.schedule).ok, f"{family.name} p={p} m={m}"


def test_at_other_durations_the_order_may_be_slower_than_1f1b() -> None:
    # 1F1B's makespan at two chunks of tF and tB: 2(m+p-1)(tF+tB). With tF = tB = 1 it is met at
    # p = 1, 2 for all m and at p = 3 for m = 1; at p = 3 each further round of 4 lasts 5 ticks.
    slower = [
        (p, m)
        for p, m in SMALL
        if p <= 3 and measured(TPipe(), p=p, m=m, tF=1, tB=1).makespan > 4 * (m + p - 1)
    ]
    assert slower == [(3, m) for m in range(2, 8)]
    assert [measured(TPipe(), p=3, m=m, tF=1, tB=1).makespan for m in (1, 2, 3)] == [12, 17, 22]


def alive(p: int, chunks: tuple[int, ...], rank: int = 0) -> int:
    """Most activations of some chunks alive at once if microbatches came for ever: by counting.

    An activation lives from its forward's start to its backward's end (2 units); microbatch j of
    the periodic starts lies 6j later, so instant t of a round sees one per round of its life.
    """
    starts = round_starts(p, rank, chunks=2)
    return max(
        sum(
            starts[Kind.F, c] <= t + 6 * j < starts[Kind.B, c] + 2
            for c in chunks
            for j in range(-4 * p - 9, 4 * p + 9)
        )
        for t in range(6)
    )


def test_rank_0_holds_most_and_no_rank_more_than_in_interleaved() -> None:
    # Megatron's rank 0 warms up with p + 2(p-1) + 1 = 3p - 1 forwards.
    for p in range(3, 9):
        peaks = measured(TPipe(), p=p, m=3 * p).peak_activations
        assert peaks == tuple(sorted(peaks, reverse=True))
        assert peaks[0] < 3 * p - 1


def test_a_swapped_order_deadlocks() -> None:
    # A negative control: rank 1's chunk-2 backward before the forward that it needs.
    member = TPipe()(p=2, m=2)
    orders = [[str(a) for a in order] for order in member.schedule.program.orders(2)]
    one, two = orders[1].index("3F0"), orders[1].index("3B0")
    orders[1][one], orders[1][two] = orders[1][two], orders[1][one]
    with pytest.raises(Deadlock, match="3B0 waits for"):
        left_shift(member.problem, Program.from_orders(orders))


@pytest.mark.parametrize(
    ("family", "chunks", "message"),
    [
        (TPipe(), 1, "tpipe has two chunks per rank or more, got v=1"),
        (TRecomp(), 1, "trecomp has two chunks per rank or more, got v=1"),
        (TRecomp(), 2, "trecomp recomputes stages 0..1; make the pipeline with "
         "family('trecomp').recomputing(pipeline)"),
        (TOffload(), 2, "toffload off-loads stages 2..3; make the pipeline with "
         "family('toffload').offloading(pipeline)"),
        (TRecomp(), 3, "trecomp recomputes stages 0..1 or more chunks; make the pipeline with "
         "family('trecomp').recomputing(pipeline)"),
        (TOffload(), 3, "toffload off-loads stages 2..5 or their deeper chunks; make the pipeline "
         "with family('toffload').offloading(pipeline)"),
    ],
)  # fmt: skip
def test_what_shapes_are_refused(family: TPipe, chunks: int, message: str) -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=chunks)
    with pytest.raises(ValueError, match=r".") as caught:
        family.schedule(pipeline)
    assert str(caught.value) == message
