"""Published schedules: legal on their whole range, and as fast and as large as their papers say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bubbleproof.theory.families import families, family, member
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift
from bubbleproof.verify import check, check_communication
from proofs_tests.cases import shapes, variations
from proofs_tests.sized import sampled, sized
from proofs_tests.theory.members import measured

TICKS = [(1, 2), (1, 1), (3, 5), (2, 0)]
FEW = 6  # shapes that are all looked at
SMALL = [(p, m) for p in range(1, sized(5, full=7)) for m in range(1, 2 * p + 2)]


def assert_legal(name: str, pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    schedule = family(name).schedule(pipeline, problem)
    verdict = check(problem, schedule)
    assert verdict.ok, f"{name} {pipeline}\n{verdict}"


def pipelines_of(name: str, ranks: tuple[int, ...], most: int) -> Iterator[Pipeline]:
    for p in ranks:
        yield from shapes(family(name), (p,), tuple(range(1, 2 * p + 2)), most)


@pytest.mark.sweep
@pytest.mark.parametrize("name", families())
def test_a_family_passes_every_rule_on_its_whole_small_range(name: str) -> None:
    found = [*pipelines_of(name, sized((1, 2, 3, 4), full=(1, 2, 3, 4, 5, 6)), 3)]
    # A family may refuse most shapes, but not nearly all; DualPipe takes even p and m >= 2p only.
    assert len(found) >= (sized(2, full=3) if "dualpipe" in name else sized(14, full=20))
    for pipeline in sampled(found, every=3 if len(found) < 30 else 13):
        assert_legal(name, pipeline)


@pytest.mark.parametrize("name", families())
def test_a_family_passes_every_rule_with_uneven_stages_latency_and_bytes(name: str) -> None:
    family_ = family(name)
    found = [*shapes(family_, sized((2, 3), full=(2, 3, 4)), sized((1, 5), full=(1, 3, 5)), 2)]
    for pipeline in sampled(found, every=3) if len(found) > FEW else found:
        for _, varied in variations(pipeline)[1:]:
            if family_.refusal(varied) is None:
                assert_legal(name, varied)


@pytest.mark.parametrize("name", families())
def test_a_family_lowers_to_programs_that_never_wait_for_themselves(name: str) -> None:
    ranks, microbatches = sized(((2, 3), (1, 4)), full=((1, 2, 3, 5), (1, 2, 4, 7)))
    found = [*shapes(family(name), ranks, microbatches, 3)]
    for pipeline in sampled(found, every=5) if len(found) > FEW else found:
        problem = pipeline.problem()
        program = lower(problem, family(name).schedule(pipeline, problem))
        verdict = check_communication(problem, program)
        assert verdict.ok, f"{name} {pipeline}\n{verdict}"


@pytest.mark.sweep
@pytest.mark.parametrize("name", families())
def test_a_family_passes_every_rule_on_large_shapes(name: str) -> None:
    """p <= 16, m <= 4p, v <= 4 with ``BUBBLEPROOF_SWEEP=full``; a few of them otherwise."""
    ranks = sized([7, 10], full=[*range(1, 17)])
    for p in ranks:
        counts = sized([p - 1 if p % 2 else 2 * p + 3], full=[*range(1, 4 * p + 1)])
        for pipeline in shapes(family(name), (p,), tuple(counts), 4):
            if pipeline.num_chunks in sized((1, 4), full=(1, 2, 3, 4)):
                assert_legal(name, pipeline)


@pytest.mark.parametrize("name", families())
def test_schedules_are_left_shifted_and_parameters_complete(name: str) -> None:
    pipeline = next(shapes(family(name), (2, 3, 4), (4,)))
    given = {"p": pipeline.num_ranks, "m": 4}
    made = family(name).member(make_parameters(dict(given)))
    again = left_shift(made.problem, made.schedule.program)
    assert (again.start == made.schedule.start).all()
    assert given.items() <= made.params.items()
    assert family(name).name == name
    assert family(name).title
    assert family(name).source


@pytest.mark.parametrize(("tf", "tb"), TICKS)
@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_one_chunk_makespan(name: str, tf: int, tb: int) -> None:
    # Some rank always works while one microbatch after another passes: rank 0 does m forwards and
    # m backwards, and the last microbatch crosses p-1 more ranks and back: (m+p-1)(tF+tB).
    for p, m in SMALL:
        got = measured(name, p=p, m=m, tF=tf, tB=tb)
        assert got.makespan == (m + p - 1) * (tf + tb)
        assert got.work == p * m * (tf + tb)
        assert got.idle_ratio == Fraction(p - 1, m + p - 1)
        assert got.idle_over_work == Fraction(p - 1, m)
        assert got.idle_ticks == ((p - 1) * (tf + tb),) * p


def test_peaks_of_one_chunk() -> None:
    for p, m in SMALL:
        # GPipe has run all m forwards before a backward.
        assert measured("gpipe", p=p, m=m).peak_activations == (m,) * p
        # 1F1B: rank r is p-r-1 hops from the end, so p-r forwards start before a backward ends.
        expected = tuple(min(p - r, m) for r in range(p))
        assert measured("1f1b", p=p, m=m).peak_activations == expected


@pytest.mark.parametrize(("tf", "tb"), TICKS)
def test_interleaved_makespan_where_ranks_divide_microbatches(tf: int, tb: int) -> None:
    # Each rank does m*v actions of either kind without a gap, after its first forward could start
    # (rank r waits r*tF) and with the mirrored wait at the end: (m*v+p-1)(tF+tB).
    for p in range(1, 6):
        for m, v in ((p, 1), (p, 2), (2 * p, 3), (3 * p, 2)):
            got = measured("interleaved", p=p, m=m, v=v, tF=tf, tB=tb)
            assert got.makespan == (m * v + p - 1) * (tf + tb)
            assert got.idle_ratio == Fraction(p - 1, m * v + p - 1)


def test_interleaved_peaks_are_megatrons_warm_up_counts() -> None:
    # Megatron: rank r runs 2(p-r-1) + (v-1)p forwards, then one forward before each backward: one
    # more is alive at the peak, and never more than the m*v there are.
    for p in range(1, 6):
        for m, v in ((p, 2), (2 * p, 2), (2 * p, 3), (3 * p, 4)):
            warmup = [2 * (p - r - 1) + (v - 1) * p + 1 for r in range(p)]
            peaks = measured("interleaved", p=p, m=m, v=v).peak_activations
            assert peaks == tuple(min(count, m * v) for count in warmup)


@pytest.mark.parametrize(("tf", "tb"), TICKS)
def test_breadth_first_makespan_and_peaks(tf: int, tb: int) -> None:
    # Chunk c reaches rank 0 after c rounds of max(m, p) forwards: the ring (p) or the rank (m) is
    # slower. The last chunk's m forwards cross p-1 more ranks; the backwards mirror the forwards.
    for p, m in SMALL:
        for v in (1, 2, 3):
            got = measured("bfs", p=p, m=m, v=v, tF=tf, tB=tb)
            assert got.makespan == ((v - 1) * max(m, p) + m + p - 1) * (tf + tb)
            assert got.peak_activations == (m * v,) * p


def test_zb_h1_at_unit_ticks() -> None:
    # Every rank has 3m ticks of work. Rank p-1 waits p-1 ticks for its first forward and then works
    # without a gap, and so does every other rank but for p-1 ticks: 3m+p-1 in all, where m >= p.
    for p in range(1, 7):
        for m in range(p, 2 * p + 2):
            got = measured("zb-h1", p=p, m=m)
            assert got.makespan == 3 * m + p - 1
            assert got.idle_ticks == (p - 1,) * p


def test_zb_h1_holds_what_1f1b_holds_at_most() -> None:
    # Rank r warms up with p-r forwards and delays W by r microbatches: p activations on each rank.
    for p, m in SMALL:
        assert measured("zb-h1", p=p, m=m).peak_activations == (min(p, m),) * p


def literal_megatron(p: int, m: int, v: int) -> Program:
    """Megatron's table with groups of p microbatches and a short last one, as its code builds it.

    ``get_schedule_table``: for each group, for each chunk, for each microbatch of the group. Rank r
    runs 2(p-r-1) + (v-1)p forwards, then forward and backward in turn, then backwards.
    """
    table = [
        (chunk, microbatch)
        for first in range(0, m, p)
        for chunk in range(v)
        for microbatch in range(first, min(first + p, m))
    ]
    orders = []
    for rank in range(p):
        forwards = [f"{c * p + rank}F{j}" for c, j in table]
        backwards = [f"{(v - 1 - c) * p + rank}B{j}" for c, j in table]
        warmup = min(2 * (p - rank - 1) + (v - 1) * p, m * v)
        steady = [a for pair in zip(forwards[warmup:], backwards, strict=False) for a in pair]
        orders.append(forwards[:warmup] + steady + backwards[m * v - warmup :])
    return Program.from_orders(orders)


def deadlocks(p: int, m: int, v: int) -> bool:
    try:
        left_shift(
            Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v).problem(),
            literal_megatron(p, m, v),
        )
    except Deadlock:
        return True
    return False


def test_megatrons_short_last_group_deadlocks_first_at_4_ranks_5_microbatches_3_chunks() -> None:
    sizes = [(p, m, v) for p in range(1, 5) for m in range(1, 2 * p + 1) for v in range(1, 5)]
    stuck = [size for size in sizes if deadlocks(*size)]
    assert stuck == [(4, 5, 3), (4, 5, 4)]


def test_our_groups_are_megatrons_where_ranks_divide_microbatches_and_safe_elsewhere() -> None:
    for p in range(1, 6):
        for m, v in ((p, 2), (2 * p, 3)):
            ours = member("interleaved", p=p, m=m, v=v).schedule.program
            assert ours.orders(p) == literal_megatron(p, m, v).orders(p)
    assert measured("interleaved", p=4, m=5, v=3).work == 4 * 5 * 3 * 3


def test_forwards_and_backwards_run_in_microbatch_order_on_every_stage() -> None:
    for name in families():
        # of 5 on 3 ranks Hanayo's last microbatches share the slots of its rounds
        pipeline = next(shapes(family(name), (3, 4), (6, 8)))
        program = family(name).schedule(pipeline).program
        table = program.actions
        for rank, stage in product(range(pipeline.num_ranks), range(pipeline.num_stages)):
            for kind in (Kind.F, Kind.W):
                rows = (program.resource == rank) & (table.stage == stage) & (table.kind == kind)
                assert (np.diff(table.microbatch[rows]) >= 0).all(), (name, rank, stage)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("1f1b", {"p": 2, "m": 2, "v": 2}, "1f1b takes no parameter v, got v=2"),
        ("gpipe", {"p": 2, "m": 2, "s": 2}, "gpipe takes no parameter s, got s=2"),
        ("gpipe", {"p": 2, "m": 2, "f": 1}, "gpipe takes no parameter f, got f=1"),
        ("gpipe", {"p": 2, "m": 2, "e": (1,)}, "gpipe takes no parameter e, got e=(1,)"),
        (
            "zb-h1",
            {"p": 2, "m": 2, "tB": 3},
            "tB must be tI + tW = 1 + 1 where the backward is split, got 3; give tI and tW",
        ),
        ("1f1b", {"p": 2, "m": 2, "tB": 3, "tI": 1}, "tB must be tI + tW = 1 + 1, got 3"),
    ],
)
def test_what_a_family_takes_no_part_of(
    name: str, params: dict[str, int | tuple[int, ...]], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        member(name, **params)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "pipeline", "message"),
    [
        ("1f1b", Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2),
         "1f1b has one chunk per rank, got v=2"),
        ("1f1b", Pipeline(num_ranks=2, num_microbatches=2, num_slices=2),
         "1f1b does not slice samples, got s=2"),
        ("1f1b", Pipeline(num_ranks=2, num_microbatches=2, split_backward=True),
         "1f1b has full backwards (split_backward = False)"),
        ("zb-h1", Pipeline(num_ranks=2, num_microbatches=2),
         "zb-h1 has split backwards (split_backward = True)"),
        ("bfs", Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2, placement="wave"),
         "bfs places stages as loop: (0, 1, 0, 1)"),
    ],
)  # fmt: skip
def test_what_shape_a_family_refuses(name: str, pipeline: Pipeline, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        family(name).schedule(pipeline)
    assert str(caught.value) == message


def test_an_unknown_family_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no family 'ring'; the families are gpipe 1f1b"):
        family("ring")
