"""Seq1F1B: its closed forms, its legal range, and its source's queues played through."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import product

import pytest

from bubbleproof.theory.families import family, member
from bubbleproof.theory.families.seq1f1b import SeqOneForwardOneBackward
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import assert_every_rule_holds, measured

TICKS = [(1, 2), (1, 1), (3, 5), (2, 0)]
SHAPES = [
    (p, m, s, v)
    for p, m, s, v in product(range(1, 7), range(1, 9), (1, 2, 3, 4, 6), (1, 2, 3))
    if v == 1 or (p % s == 0 and m * s % p == 0)
]


def queued(p: int, m: int, s: int, v: int, rank: int) -> list[str]:
    """A rank's order as the source's code makes it, by its counters and queues.

    A forward takes the next slice of its chunk; a backward the last one that waits of the oldest
    sample of its chunk (``sp_queue.pop``). The chunk is that of Megatron's ``get_model_chunk_id``.
    """
    warmup = p - rank + s - 2 if v == 1 else (v - 1) * p + 2 * (p - rank - 1) + s - 1
    count, taken = m * s * v, defaultdict[int, int](int)
    samples = defaultdict[int, deque[list[int]]](deque)
    order = []

    def forward(k: int) -> None:
        chunk = k % (p * v) // p if v > 1 else 0
        microbatch, slice_ = divmod(taken[chunk], s)
        taken[chunk] += 1
        if slice_ == 0:
            samples[chunk].append([])
        samples[chunk][-1].append(slice_)
        order.append(f"{chunk * p + rank}F{microbatch}.{slice_}")

    done = defaultdict[int, int](int)

    def backward(k: int) -> None:
        chunk = v - 1 - (k % (p * v) // p if v > 1 else 0)
        slice_ = samples[chunk][0].pop()
        order.append(f"{chunk * p + rank}B{done[chunk]}.{slice_}")
        if not samples[chunk][0]:
            samples[chunk].popleft()
            done[chunk] += 1

    warmup = min(warmup, count)
    for k in range(warmup):
        forward(k)
    for k in range(count - warmup):
        forward(k + warmup)
        backward(k)
    for k in range(count - warmup, count):
        backward(k)
    return order


@pytest.mark.parametrize("shape", SHAPES[:: sized(5, full=1)])
def test_the_order_is_that_of_its_source(shape: tuple[int, int, int, int]) -> None:
    p, m, s, v = shape
    orders = member("seq1f1b", p=p, m=m, s=s, v=v).schedule.program.orders(p)
    for rank, order in enumerate(orders):
        found = [action.label(sliced=True) for action in order]
        assert found == queued(p, m, s, v, rank)


@pytest.mark.parametrize(("tf", "tb"), TICKS)
def test_makespan_and_peaks(tf: int, tb: int) -> None:
    # m*s*v slices of tF and tB pass each rank without a gap but the p-1 of the pipeline. Rank r
    # runs its warm-up and one forward more before the first backward frees a slice.
    for p, m, s, v in SHAPES:
        got = measured("seq1f1b", p=p, m=m, s=s, v=v, tF=tf, tB=tb)
        assert got.makespan == (m * s * v + p - 1) * (tf + tb)
        ahead = [(p - r - 1) * (2 if v > 1 else 1) + s for r in range(p)]
        assert got.peak_activations == tuple(min(m * s * v, (v - 1) * p + a) for a in ahead)


@pytest.mark.sweep
def test_every_rule_holds() -> None:
    for p, m, s, v in sampled(SHAPES, every=29):
        assert_every_rule_holds(member("seq1f1b", p=p, m=m, s=s, v=v))


def test_with_one_slice_it_is_1f1b_and_interleaved() -> None:
    for p, m in ((1, 2), (3, 4), (4, 8)):
        ours = member("seq1f1b", p=p, m=m).schedule.program
        assert ours.orders(p) == member("1f1b", p=p, m=m).schedule.program.orders(p)
        ours = member("seq1f1b", p=p, m=2 * p, v=2).schedule.program
        theirs = member("interleaved", p=p, m=2 * p, v=2).schedule.program
        assert ours.orders(p) == theirs.orders(p)


def test_chunks_need_groups_of_whole_samples() -> None:
    """What is refused would be a deadlock, or leave a group unfilled."""
    for p, m, s in product(range(2, 6), range(1, 7), range(1, 7)):
        if p % s == 0 and m * s % p == 0:
            continue
        with pytest.raises(ValueError, match="with chunks takes groups of p="):
            member("seq1f1b", p=p, m=m, s=s, v=2)
        if m * s % p == 0:
            uneven = Pipeline(num_ranks=p, num_microbatches=m, num_slices=s, num_chunks=2)
            program = SeqOneForwardOneBackward().program(uneven)
            with pytest.raises(Deadlock):
                left_shift(uneven.problem(), program)


def test_it_splits_no_backward() -> None:
    assert family("seq1f1b").refusal(
        Pipeline(num_ranks=2, num_microbatches=2, num_slices=2, split_backward=True)
    ) == ("seq1f1b has full backwards (split_backward = False)")
