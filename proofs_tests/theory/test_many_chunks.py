"""T-Pipe, T-Recomp and T-Offload at any number of chunks, held against counts made another way."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from bubbleproof.theory.families import Family, FamilyMember, family
from bubbleproof.theory.families.recomputed_1f1b import chunks_of_share, share_of_chunks
from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.trecomp import TRecomp, recomputed_chunks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.sized import sized
from proofs_tests.theory.members import assert_every_rule_holds, measured
from proofs_tests.theory.two_chunk_starts import Starts, tpipe_starts, trecomp_starts

TICKS = {Kind.F: 1, Kind.R: 1, Kind.B: 2}
SHAPES = [(p, v) for v in (3, 4, 5) for p in (1, 2, 3, 4, 5, 8)]


def shifted(starts: Starts, by: int) -> Starts:
    return {key: start - by for key, start in starts.items()}


def test_two_chunks_run_as_figure_16_and_figure_6d_draw_them() -> None:
    for p in range(1, 60):
        for rank in range(p):
            assert round_starts(p, rank, chunks=2) == tpipe_starts(p, rank)
            first = trecomp_starts(p, 0)[Kind.F, 0]
            drawn = shifted(trecomp_starts(p, rank), first)
            assert round_starts(p, rank, chunks=2, recomputed=1) == drawn


@pytest.mark.parametrize(
    ("name", "starts", "period"),
    [
        ("tpipe", tpipe_starts, 6),
        ("trecomp", trecomp_starts, 7),
    ],
)
def test_the_orders_of_two_chunks_are_those_of_the_drawn_starts(
    name: str, starts: object, period: int
) -> None:
    assert callable(starts)
    for p, m in ((1, 3), (2, 1), (3, 7), (5, 4), (8, 19)):
        orders = family(name)(p=p, m=m).schedule.program.orders(p)
        for rank, order in enumerate(orders):
            drawn = sorted(
                (start + period * j, f"{rank + p * chunk}{kind.name}{j}")
                for (kind, chunk), start in starts(p, rank).items()
                for j in range(m)
            )
            assert [str(action) for action in order] == [text for _, text in drawn]


def test_every_rank_fills_its_round_without_overlap() -> None:
    for p, v in SHAPES:
        for again in range(v + 1):
            period = 3 * v + again
            for rank in range(p):
                starts = round_starts(p, rank, chunks=v, recomputed=again)
                busy = [(s + k) % period for key, s in starts.items() for k in range(TICKS[key[0]])]
                assert sorted(busy) == list(range(period)), (p, v, again, rank)


def test_the_round_keeps_every_dependency_at_its_own_starts() -> None:
    for p, v in SHAPES:
        for again in range(v + 1):
            by_rank = [round_starts(p, r, chunks=v, recomputed=again) for r in range(p)]
            forward = [by_rank[g % p][Kind.F, g // p] for g in range(p * v)]
            backward = [by_rank[g % p][Kind.B, g // p] for g in range(p * v)]
            assert all(a + 1 <= b for a, b in pairwise(forward))
            assert all(b + 2 <= a for a, b in pairwise(backward))
            assert forward[-1] + 1 == backward[-1] - (again == v)  # but for its recomputation


def least_lives(p: int, v: int) -> list[int]:
    """The least life of each chunk over all rounds of v cells of 3 units: by trying them all.

    Chunk c's forward begins 3 a_c units after chunk 0's and its backward 3 b_c after the deepest's;
    the a, and the b, are different modulo v, and a chunk follows the one before it when that is
    through p ranks of 1 or 2 units.
    """
    found: dict[int, set[tuple[int, ...]]] = {}
    for ticks in (1, 2):
        gap = -(-ticks * p // 3)
        rows = [
            tuple(sum(steps[:n]) for n in range(v))
            for steps in product(range(gap, gap + v), repeat=v - 1)
        ]
        found[ticks] = {row for row in rows if len({cell % v for cell in row}) == v}
    lives = []
    for deeper in range(v):  # how many chunks are deeper
        forth = min(row[-1] - row[v - 1 - deeper] for row in found[1])
        back = min(row[deeper] for row in found[2])
        lives.append(3 * p - 2 + 3 * (forth + back))
    return lives[::-1]


def alive(p: int, v: int, chunks: range) -> int:
    """Most activations of some chunks on rank 0 if microbatches came for ever: by counting."""
    starts = round_starts(p, 0, chunks=v)
    return max(
        sum(
            starts[Kind.F, c] <= t + 3 * v * j < starts[Kind.B, c] + 2
            for c in chunks
            for j in range(-4 * p - 9, 4 * p + 9)
        )
        for t in range(3 * v)
    )


def test_more_chunks_hold_a_smaller_share_of_a_on_four_and_eight_ranks() -> None:
    # Section 6.4: "finer-grained chunks showing superior optimization". Not on all: where gaps are
    # multiples of v cells every chunk waits for a free one, as on 12 ranks (gaps of 4 and 8).
    shares = {p: [Fraction(alive(p, v, range(v)), p * v) for v in (2, 3, 4)] for p in (4, 8, 12)}
    assert shares[4] == [Fraction(7, 8), Fraction(5, 6), Fraction(3, 4)]
    assert shares[8] == [Fraction(13, 16), Fraction(19, 24), Fraction(11, 16)]
    assert shares[12] == [Fraction(19, 24), Fraction(2, 3), Fraction(11, 16)]


def kept_peak(made: FamilyMember) -> int:
    """Most activations of chunks that are not recomputed, on any rank: Figure 14 has no buffer."""
    problem, p = made.problem, made.pipeline.num_ranks
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(made.schedule.program.actions)] = made.schedule.start
    kept = problem.actions.stage >= p * recomputed_chunks(made.pipeline)
    tasks = np.flatnonzero(kept)
    return int(memory_profile(problem, tasks, start[tasks]).peaks(problem)[:p].max())


@pytest.mark.parametrize("v", [3, 4])
def test_every_rule_holds_at_every_share(v: int) -> None:
    for name, p in product(("trecomp", "trecomp-interleaved"), sized((1, 3), full=(1, 2, 3, 5))):
        for again, m in product(range(1, v + 1), (1, p + 2)):
            made = family(name)(p=p, m=m, v=v, R=share_of_chunks(again, v))
            assert recomputed_chunks(made.pipeline) == again
            assert_every_rule_holds(made)


def test_interleaved_with_recomputation_keeps_what_1f1b_keeps() -> None:
    # Figure 14: "T-Recomp enables Interleave-1F1B to match standard 1F1B's recomputation
    # efficiency". Where groups of p microbatches follow each other its chunk c > 0 of rank 0 holds
    # p, the shallowest 2p - 1: without the latter it is 1F1B's p(v-k) of p v.
    for p, v in product((2, 3, 4), (2, 3, 4)):
        for again in range(1, v):
            made = family("trecomp-interleaved")(p=p, m=3 * p, v=v, R=share_of_chunks(again, v))
            assert kept_peak(made) == p * (v - again)
        plain = measured("interleaved", p=p, m=3 * p, v=v)
        assert max(plain.peak_activations) > p * v


def test_all_of_tpipe_at_four_chunks() -> None:
    plain = family("trecomp")(p=3, m=5, v=4, R=75).pipeline
    both = TOffload().offloading(plain, weight=2, gradient=2, state=3)
    schedule = TOffload().schedule(both)
    verdict = check(both.problem(), schedule)
    assert verdict.ok, str(verdict)


def test_shares_of_chunks() -> None:
    assert [share_of_chunks(k, 3) for k in range(4)] == [0, 33, 67, 100]
    assert [share_of_chunks(k, 8) for k in range(4)] == [0, 13, 25, 38]
    for v in range(1, 60):
        assert all(chunks_of_share(share_of_chunks(k, v), v) == k for k in range(v + 1))
    with pytest.raises(
        ValueError,
        match=r"R=40 per cent is no whole number of 4 chunks; "
        r"use R=25 or R=50",
    ):
        chunks_of_share(40, 4)


@pytest.mark.parametrize(
    ("owner", "params", "message"),
    [
        (
            "trecomp",
            {"v": 3, "R": 50},
            "R=50 per cent is no whole number of 3 chunks; use R=33 or R=67",
        ),
        ("trecomp", {"R": 0}, "trecomp recomputes one chunk or more, got R=0"),
        ("tpipe", {"R": 50}, "tpipe takes no parameter R, got R=50"),
        ("toffload", {"v": 1}, "toffload has two chunks per rank or more, got v=1"),
    ],
)
def test_what_is_no_share(owner: str, params: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        family(owner)(p=2, m=2, **params)
    assert str(caught.value) == message


def test_half_a_chunk_cannot_be_recomputed_or_off_loaded() -> None:
    made: list[tuple[Family, Pipeline]] = []
    plain = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=3)
    again = TRecomp().recomputing(plain, chunks=2)
    assert again.choices.recompute is not None
    some = again.with_changes(recompute=type(again.choices.recompute)(stages=(0, 1, 2)))
    made.append((TRecomp(), some))
    away = TOffload().offloading(plain, chunks=2)
    assert away.choices.state_offload is not None
    some = away.with_changes(state_offload=type(away.choices.state_offload)(stages=(3, 4, 5)))
    made.append((TOffload(), some))
    for owner, pipeline in made:
        assert "make the pipeline with" in str(owner.refusal(pipeline))
