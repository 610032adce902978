"""TeraPipe and ZB-H2 meet their closed forms; sliced families are legal on their whole range."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bubbleproof.theory.families import family, member
from bubbleproof.theory.families.zb_h import delayed_weights
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import assert_every_rule_holds, measured

TICKS = [(1, 2), (1, 1), (3, 5), (2, 0)]
NAMES = ["terapipe", "svpp", "svpp-w"]


def chunks_of(name: str, most: int) -> tuple[int, ...]:
    return tuple(range(1, most + 1)) if "v" in family(name).options else (1,)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_holds_for_few_ranks_four_slices_and_three_chunks(name: str) -> None:
    """p <= 6 with ``BUBBLEPROOF_SWEEP=full``; each seventh shape of p <= 4 otherwise."""
    ranks, chunks = range(1, sized(5, full=7)), chunks_of(name, 3)
    shapes = [(p, m) for p in ranks for m in range(1, 2 * p + 2)]
    for (p, m), s, v in sampled([*product(shapes, range(1, 5), chunks)], every=13):
        more = {"v": v} if len(chunks) > 1 else {}
        assert_every_rule_holds(member(name, p=p, m=m, s=s, **more))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_holds_on_large_shapes(name: str) -> None:
    """p <= 12, m <= 3p, s <= 8, v <= 4 with ``BUBBLEPROOF_SWEEP=full``; a few otherwise."""
    for p in range(7, sized(8, full=13)):
        counts = sized([p + 2], full=[*range(1, 3 * p + 1)])
        chunks = chunks_of(name, 4)[:: sized(3, full=1)]
        for m, s, v in product(counts, sized([3, 6], full=[*range(1, 9)]), chunks):
            assert_every_rule_holds(member(name, p=p, m=m, s=s, **({} if v == 1 else {"v": v})))


@pytest.mark.parametrize(("tf", "tb"), TICKS)
def test_terapipe_is_gpipe_over_slices(tf: int, tb: int) -> None:
    # m*s slices pass rank after rank without a gap, p-1 ranks further, and likewise back:
    # (ms + p-1)(tF + tB), MEPipe Table 3's idle ratio (p-1)/(ns + p-1). All forwards come first:
    # m*s slices of A/(ps) each are n/p A.
    for p, m, s in product(range(1, 6), (1, 2, 5), range(1, 5)):
        got = measured("terapipe", p=p, m=m, s=s, tF=tf, tB=tb)
        assert got.makespan == (m * s + p - 1) * (tf + tb)
        assert got.idle_ratio == Fraction(p - 1, m * s + p - 1)
        assert got.peak_activations == (m * s,) * p
        assert Fraction(m * s, p * s) == Fraction(m, p)


def test_terapipe_runs_a_samples_slices_forth_and_back() -> None:
    program = member("terapipe", p=1, m=2, s=2).schedule.program
    labels = [action.label(sliced=True) for action in program.actions]
    assert labels == ["0F0.0", "0F0.1", "0F1.0", "0F1.1", "0B0.1", "0B0.0", "0B1.1", "0B1.0"]


def test_terapipe_with_one_slice_is_gpipe() -> None:
    for p, m in ((1, 1), (3, 4), (4, 2)):
        ours = member("terapipe", p=p, m=m).schedule.program
        assert ours.orders(p) == member("gpipe", p=p, m=m).schedule.program.orders(p)


def test_terapipe_takes_no_chunks() -> None:
    with pytest.raises(ValueError, match="terapipe takes no parameter v, got v=2"):
        member("terapipe", p=2, m=2, v=2)


def test_zb_h2_idles_nowhere_inside_a_ranks_span() -> None:
    # Rank r starts in tick r, has 2(p-r)-1 forwards until the first input gradient comes at 2p-1-r
    # and then always an I, a W or an F: it ends at 3m+r. With fewer than 2p-1 microbatches the
    # forwards of rank 0 run out and each that is missing leaves one tick empty.
    for p in range(1, 7):
        for m in range(1, 3 * p + 1):
            got = measured("zb-h2", p=p, m=m)
            assert got.span_idle == max(0, 2 * p - 1 - m)
            assert got.peak_activations == (min(2 * p - 1, m),) * p
            if m >= 2 * p - 1:
                assert got.rank_spans == (3 * m,) * p
                assert got.makespan == 3 * m + p - 1


def test_zb_h2_needs_all_its_forwards_ahead() -> None:
    # One forward less ahead on every rank but the last, and rank 0 waits for the first gradient.
    p, m = 3, 8
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, split_backward=True)
    orders = []
    for rank in range(p):
        warmup = max(1, 2 * (p - rank) - 2)
        kind, microbatch = delayed_weights(m, warmup=warmup, delay=2 * rank)
        orders.append((kind, np.full(3 * m, rank), microbatch))
    columns = [np.concatenate(parts) for parts in zip(*orders, strict=True)]
    rows = [f"{g}{Kind(int(k)).name}{j}" for k, g, j in zip(*columns, strict=True)]
    program = Program.from_orders([rows[3 * m * r : 3 * m * (r + 1)] for r in range(p)])
    problem = pipeline.problem()
    assert measure(problem, left_shift(problem, program)).span_idle > 0
    assert measured("zb-h2", p=p, m=m).span_idle == 0


def test_zb_h2_trades_memory_for_the_bubble_of_zb_h1() -> None:
    # ZB-H1 holds p activations and idles p-1 ticks inside a rank's span (its own test); H2 holds
    # 2p-1 and idles none.
    for p in range(2, 6):
        m = 2 * p
        assert measured("zb-h1", p=p, m=m).span_idle == p - 1
        assert measured("zb-h2", p=p, m=m).span_idle == 0
