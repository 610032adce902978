"""T-Pipe with many chunks: lives, peaks and makespans by formulas and by our schedules."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import gcd

import pytest

from bubbleproof.papers.tpipe.tpipe_formulas import (
    ceil_div,
    deep_peak,
    printed_trecomp_makespan,
    shallow_peak,
    tpipe_makespan,
)
from bubbleproof.theory.families import family
from bubbleproof.theory.families.recomputed_1f1b import share_of_chunks
from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify import check
from proofs_tests.sized import sized
from proofs_tests.theory.members import measured
from proofs_tests.theory.test_many_chunks import SHAPES, alive, kept_peak, least_lives


def chunk_life(p: int, v: int, chunk: int) -> int:
    """Units from a chunk's forward on rank 0 to its backward there, the shallowest chunk 0.

    Eq. 1's 3p - 2, and p forwards and 2p backwards of each deeper chunk, rounded up to whole cells
    of 3 units, and one cell more whenever the next one is another chunk's (every v / gcd of so many
    cells and v).
    """
    deeper = v - 1 - chunk
    forth, back = ceil_div(p, 3), ceil_div(2 * p, 3)
    taken = deeper * gcd(forth, v) // v + deeper * gcd(back, v) // v
    return 3 * p - 2 + 3 * (deeper * (forth + back) + taken)


def chunk_peak(p: int, v: int, chunk: int) -> int:
    """The most activations of a chunk alive on rank 0, ceil(life / 3v)."""
    return ceil_div(chunk_life(p, v, chunk), 3 * v)


def kept_limit(v: int, k: int = 0) -> Fraction:
    """Share of m_a kept for large p, the k shallowest of v chunks recomputed: (v-c)/v rounds."""
    return Fraction((v - k) * (v - k + 1), 2 * v * v)


def phases_makespan(p: int, m: int, v: int, k: int = 0) -> int:
    """v p units of warm-up, 3v + k a round, 2v p of cool-down."""
    return 3 * v * p + (3 * v + k) * (m - 1)


@pytest.mark.parametrize("v", [2, 3, 4])
def test_no_round_of_cells_has_a_shorter_life_of_any_chunk(v: int) -> None:
    for p in range(1, 15):
        starts = round_starts(p, 0, chunks=v)
        lives = [starts[Kind.B, chunk] - starts[Kind.F, chunk] for chunk in range(v)]
        assert lives == least_lives(p, v) == [chunk_life(p, v, chunk) for chunk in range(v)]


def test_the_peaks_of_each_chunk_are_counted_as_appendix_a_counts_them() -> None:
    for p in range(1, 33):
        assert (chunk_peak(p, 2, 0), chunk_peak(p, 2, 1)) == (shallow_peak(p), deep_peak(p))
    for p, v in SHAPES:
        for chunk in range(v):
            assert alive(p, v, range(chunk, chunk + 1)) == chunk_peak(p, v, chunk)


def test_the_peak_is_within_a_constant_of_its_limit() -> None:
    # A life to the backward's end is at least 3p(v-c) units, so that on average p(v-c)/v are alive:
    # p(v+1)/2 in all. A gap is rounded up by at most 2 units, and a chunk meets at most one taken
    # cell per deeper chunk and direction: at most 10(v-1-c) units more, 5(v-1)/3 in all, and one
    # activation a chunk for rounding up.
    for p, v in product(range(1, 17), (2, 3, 4, 5, 6)):
        peak = alive(p, v, range(v))
        assert kept_limit(v) * p * v <= peak <= kept_limit(v) * p * v + Fraction(5 * (v - 1), 3) + v
        if p <= 5:
            assert measured("tpipe", p=p, m=3 * p + 3, v=v).peak_activations[0] == peak
    assert [kept_limit(v) for v in (2, 3, 4)] == [Fraction(3, 4), Fraction(2, 3), Fraction(5, 8)]


def test_the_makespan_is_that_of_1f1b_at_any_number_of_chunks() -> None:
    # 1F1B with stages v chunks long takes (m+p-1) 3v.
    for p, v in SHAPES:
        for m in (1, 2, p + 1, 2 * p + 1):
            got = measured("tpipe", p=p, m=m, v=v)
            assert got.makespan == phases_makespan(p, m, v) == 3 * v * (m + p - 1)
            assert got.work == 3 * v * m * p
    assert all(phases_makespan(p, 9, 2) == tpipe_makespan(p, 9) for p in range(1, 9))
    assert all(phases_makespan(p, 9, 2, 1) == printed_trecomp_makespan(p, 9) for p in range(1, 9))


@pytest.mark.parametrize("v", [2, 3, 4])
def test_recomputed_rounds_beat_1f1b_at_every_share_and_take_what_the_phases_say(v: int) -> None:
    # Figure 14: below 1F1B's 1 - k/v at all ratios, the buffer ignored.
    for p in sized((3, 8), full=(2, 3, 4, 5, 6, 7, 8, 9)):
        for again in range(1, v):
            share = share_of_chunks(again, v)
            for m in (1, p, 3 * p):
                made = family("trecomp")(p=p, m=m, v=v, R=share)
                got = measure(made.problem, made.schedule)
                assert got.work == p * m * (3 * v + again)
                assert got.makespan <= phases_makespan(p, m, v, again)
            kept = Fraction(kept_peak(made), p * v)
            assert kept < 1 - Fraction(again, v)
            assert kept >= kept_limit(v, again)


def test_four_chunks_with_one_recomputed_take_longer_than_the_phases_say_on_ten_ranks() -> None:
    # The only such shape with v <= 4 and p <= 16: what is looked for is the least memory.
    long = measured("trecomp", p=10, m=22, v=4, R=25).makespan - phases_makespan(10, 22, 4, 1)
    assert long == 4


@pytest.mark.parametrize("v", [3, 4])
def test_deep_chunks_are_off_loaded_within_t_pipes_makespan(v: int) -> None:
    offload = TOffload()
    for p, m in ((2, 3), (4, 9), (5, 2)):
        made = family("toffload")(p=p, m=m, v=v)
        choice = made.pipeline.choices.state_offload
        assert choice is not None
        assert choice.stages == tuple(range(p, p * v))
        assert check(made.problem, made.schedule).ok
        assert measure(made.problem, made.schedule).makespan == phases_makespan(p, m, v)
        for away in range(1, v):
            some = offload.offloading(family("tpipe")(p=p, m=m, v=v).pipeline, chunks=away)
            schedule = offload.schedule(some)
            assert check(some.problem(), schedule).ok
            labels = [str(action) for action in schedule.program.orders(4 * p)[p]]
            deepest = range(p * (v - 1), p * (v - 1 - away), -p)
            assert labels == [f"{stage}OFFLOAD{m - 1}" for stage in deepest]
