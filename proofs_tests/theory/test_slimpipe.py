"""SlimPipe: its closed forms, its legal range, and its source's loop played through."""

from __future__ import annotations

from itertools import product

import pytest

from bubbleproof.theory.families import family, member
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import assert_every_rule_holds, measured

TICKS = [(1, 2), (1, 1), (3, 5), (2, 0)]
SHAPES = [
    (p, m, s, v)
    for p, m, s, v in product(range(1, 6), range(1, 6), (1, 2, 3, 4, 5, 6, 8, 10), (1, 2, 3))
    if v == 1 or s >= p
]
REFUSED = "The source refuses fewer than 2(p-1) passes behind the first sample."


def played(p: int, m: int, s: int, v: int, rank: int) -> list[str]:
    """A rank's order as the loop of the source makes it, by its counters, queues and stacks.

    A round runs a forward while fewer slices than ``target`` are in flight, and then a backward
    where there are as many; with the last forward ``target`` falls to 0. A batch steps through its
    slices cycle by cycle (``CycledBatch.stage_idx``), and back in its backwards.
    """
    group = p if v > 1 else s
    while s % group:
        group += 1
    target = s * v + 2 * (p - rank - 1)
    flight, count = 0, 0
    waiting: list[int] = []  # samples with all slices forwarded, the oldest first
    step = dict.fromkeys(range(m), 0)
    stacks: dict[tuple[int, int], list[int]] = {}
    order = []
    while flight or target:
        if flight < target:
            chunk = step[count] % (v * group) // group
            stack = stacks.setdefault((count, chunk), [])
            order.append(f"{chunk * p + rank}F{count}.{len(stack)}")
            stack.append(len(stack))
            step[count] += 1
            flight += 1
            if step[count] == s * v:
                waiting.append(count)
                count += 1
        if flight >= target:
            sample = waiting[0]
            step[sample] -= 1
            chunk = step[sample] % (v * group) // group
            order.append(f"{chunk * p + rank}B{sample}.{stacks[sample, chunk].pop()}")
            flight -= 1
            if not step[sample]:
                waiting.pop(0)
        target *= count < m
    return order


@pytest.mark.parametrize("shape", SHAPES[:: sized(5, full=1)])
def test_the_order_is_that_of_its_source(shape: tuple[int, int, int, int]) -> None:
    p, m, s, v = shape
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, num_slices=s, num_chunks=v)
    # make_microbatch: no batch begins with fewer slices in flight and to come than the target.
    is_refused = m * s * v < s * v + 2 * (p - 1)
    assert family("slimpipe").ours(pipeline) == (REFUSED if is_refused else None)
    for rank, order in enumerate(family("slimpipe").program(pipeline).orders(p)):
        assert [action.label(sliced=True) for action in order] == played(p, m, s, v, rank)


@pytest.mark.parametrize(("tf", "tb"), TICKS)
def test_makespan_and_peaks(tf: int, tb: int) -> None:
    # m*s*v slices of tF and tB pass each rank without a gap but the p-1 of the pipeline. Rank r
    # runs its warm-up before the first backward frees a slice.
    for p, m, s, v in SHAPES:
        got = measured("slimpipe", p=p, m=m, s=s, v=v, tF=tf, tB=tb)
        assert got.makespan == (m * s * v + p - 1) * (tf + tb)
        ahead = [2 * (p - r - 1) for r in range(p)]
        assert got.peak_activations == tuple(min(m * s * v, s * v + a) for a in ahead)


def test_messages_of_a_pass_delay_the_ends_alone() -> None:
    # Each of the p-1 links delays the first forward and the last backward by the message, and no
    # pass between; in Seq1F1B, which holds fewer slices, passes wait for it again and again.
    for p, m, s, (tf, tb, ticks) in product(
        range(2, 6), (1, 2, 5), (1, 2, 4, 7), ((1, 2, 1), (2, 4, 1), (3, 3, 3), (4, 2, 2))
    ):
        pipeline = Pipeline(
            num_ranks=p, num_microbatches=m, num_slices=s, forward=tf, backward=tb, latency=ticks
        )
        spans = [
            measure(pipeline.problem(), family(name).schedule(pipeline)).makespan
            for name in ("slimpipe", "seq1f1b")
        ]
        assert spans[0] == (m * s + p - 1) * (tf + tb) + 2 * (p - 1) * ticks
        assert spans[0] <= spans[1]


@pytest.mark.sweep
def test_every_rule_holds() -> None:
    for p, m, s, v in sampled(SHAPES, every=29):
        assert_every_rule_holds(member("slimpipe", p=p, m=m, s=s, v=v))


def test_chunks_need_as_many_slices_as_ranks() -> None:
    with pytest.raises(ValueError, match="with chunks takes p=4 slices of a sample or more, got"):
        member("slimpipe", p=4, m=2, s=3, v=2)
