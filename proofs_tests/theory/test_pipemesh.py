"""PipeMesh's order: legal for any sequences, and against Algorithm 1 and section IV-A."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from bubbleproof.theory.families.base import FamilyMember, passes
from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.pipemesh_order import buffer_size, literal_orders
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift
from bubbleproof.verify import check, check_communication
from proofs_tests.sized import sampled, sized

Parts = tuple[int, ...]
FIGURE_7: dict[str, int | Parts] = {
    "p": 4,
    "m": 12,
    "v": 3,
    "e": (8, 4),
    "d": (6, 6),
}  # Figure 7(c); its p is not in text


def made(**params: int | Parts) -> FamilyMember:
    return PipeMesh().member(make_parameters(params))


def parts(total: int, least: int = 1, most: int = 2) -> Iterator[Parts]:
    """All sequences of that sum with at most ``most`` elements, each ``least`` or more."""
    if total >= least:
        yield (total,)
    if most > 1:
        for first in range(least, total - least + 1):
            yield from ((first, *rest) for rest in parts(total - first, least, most - 1))


def filled(
    ranks: range, most_m: int, most: int = 2
) -> Iterator[tuple[int, int, int, Parts, Parts]]:
    """(p, M, m, e, d) with every element at least p, as the paper requires."""
    for p in ranks:
        for m in range(p, most_m + 1):
            for e in parts(m, p, most):
                for d in parts(m, p, most):
                    yield from ((p, chunks, m, e, d) for chunks in (1, 2, 3))


def test_every_rule_holds_on_the_small_range() -> None:
    shapes = [(p, m) for p in range(1, 9) for m in range(1, 2 * p + 2)]
    for p, m in sampled(shapes, every=9):
        for v in (1, 2, 3):
            member = made(p=p, m=m, v=v)
            assert check(member.problem, member.schedule).ok, (p, m, v)
        program = lower(member.problem, member.schedule)
        assert check_communication(member.problem, program).ok, (p, m)


@pytest.mark.sweep
def test_any_sequences_of_the_right_sum_are_legal() -> None:
    sums = [(p, parts(m, 1, 3)) for p in (1, 2, 3, 4) for m in sized((1, 4, 5), full=(1, 4, 6))]
    pairs = [(p, e, d) for p, found in sums for e, d in product([*found], repeat=2)]
    for p, e, d in sampled(pairs, every=16):
        member = made(p=p, m=sum(e), v=2, e=e, d=d)
        assert check(member.problem, member.schedule).ok, (p, e, d)


@pytest.mark.sweep
def test_every_rule_holds_on_large_shapes() -> None:
    for p in (8, 13):
        for e, d in (((2 * p, p + 1), (p, 2 * p + 1)), ((p, p, p + 1), (2 * p, p + 1))):
            member = made(p=p, m=3 * p + 1, v=4, e=e, d=d)
            assert check(member.problem, member.schedule).ok, (p, e, d)


@pytest.mark.sweep
@pytest.mark.parametrize("ticks", [(1, 2), (1, 1), (3, 5), (2, 0)])
def test_the_bubble_is_one_pass_of_each_other_rank(ticks: tuple[int, int]) -> None:
    # T_bubble = (P-1) C_comp (section IV-A) where every element is at least P, also where d runs
    # ahead of e and Algorithm 1 itself deadlocks.
    for p, chunks, m, e, d in sampled([*filled(range(1, 4), sized(6, full=7))], every=10):
        member = made(p=p, m=m, v=chunks, e=e, d=d, tF=ticks[0], tB=ticks[1])
        got = measure(member.problem, member.schedule)
        assert got.makespan == (chunks * m + p - 1) * sum(ticks), (p, chunks, e, d)


def test_elements_below_the_ranks_may_add_a_bubble() -> None:
    # Section III-B says they would; the smallest: rank 0 of 2 has run F0 of chunk 0 and waits for
    # rank 1 before chunk 1. e = d = (1): 4 chained F, 4 chained B = 12 ticks, not (2+1)*3 = 9.
    assert measure_of(p=2, m=1, v=2, e=(1,), d=(1,)) == 12


def measure_of(**params: int | Parts) -> int:
    member = made(**params)
    return measure(member.problem, member.schedule).makespan


def test_warm_up_counts_are_those_of_section_iv() -> None:
    # The i-th stage (from 1) runs e_1 (M-1) + 2(P-i) + 1 forwards in a row: P - i = p - 1 - rank.
    member = made(**FIGURE_7)
    orders = member.schedule.program.orders(4)
    counts = [next(k for k, a in enumerate(o) if a.kind.name == "B") for o in orders]
    assert counts == [8 * 2 + 2 * hops + 1 for hops in (3, 2, 1, 0)]
    assert measure(member.problem, member.schedule).peak_activations == tuple(counts)


def test_the_peak_is_the_warm_up_count() -> None:
    for p, chunks, m, e, d in sampled([*filled(range(1, 4), 6)], every=4):
        member = made(p=p, m=m, v=chunks, e=e, d=d)
        lead = (chunks - 1) * buffer_size(e, d)
        peaks = tuple(min(lead + 2 * (p - 1 - r) + 1, chunks * m) for r in range(p))
        assert measure(member.problem, member.schedule).peak_activations == peaks


def test_the_buffer_is_the_least_lead_of_the_forwards() -> None:
    # By brute force: how far each backward's own forward stands behind it in the two lists.
    for _, chunks, _, e, d in filled(range(1, 2), 7, most=3):
        forward, backward = (
            list(zip(*(c.tolist() for c in columns), strict=True))
            for columns in (passes(e, range(chunks)), passes(d, range(chunks)[::-1]))
        )
        lead = max(forward.index(task) - k for k, task in enumerate(backward))
        assert lead == (chunks - 1) * buffer_size(e, d)


def test_the_buffer_is_the_first_enqueue_in_the_papers_examples() -> None:
    assert buffer_size((8, 4), (6, 6)) == 8  # Figure 7(c)
    assert buffer_size((12, 12), (12, 12)) == 12  # Table IV: two equal operations
    assert buffer_size((1, 2), (1, 2)) == 2  # more than e_1, although e = d
    assert buffer_size((4, 8), (8, 4)) == 12


def test_groups_of_the_size_of_the_pipeline_are_megatrons() -> None:
    for p, n, v in ((2, 2, 2), (3, 2, 3), (4, 3, 2)):
        mesh = made(p=p, m=n * p, v=v, e=(p,) * n, d=(p,) * n)
        plain = Pipeline(num_ranks=p, num_microbatches=n * p, num_chunks=v)
        assert mesh.schedule.program.orders(p) == InterleavedOneForwardOneBackward().program(
            plain
        ).orders(p)


def literal_deadlocks(p: int, chunks: int, e: Parts, d: Parts) -> bool:
    problem = Pipeline(num_ranks=p, num_microbatches=sum(e), num_chunks=chunks).problem()
    try:
        left_shift(problem, Program.from_orders(literal_orders(p, chunks, e, d)))
    except Deadlock:
        return True
    return False


def test_algorithm_1_deadlocks_where_dequeues_run_ahead() -> None:
    # The smallest: one rank, two chunks, e = (1, 1), d = (2). n_fwd = 1, so the rank runs 0F0 1F0
    # 1B0 and then 0F1 1B1, but 1F1 comes last.
    assert literal_orders(1, 2, (1, 1), (2,)) == [
        ["0F0", "1F0", "1B0", "0F1", "1B1", "1F1", "0B0", "0B1"]
    ]
    assert literal_deadlocks(1, 2, (1, 1), (2,))
    stuck = [
        (p, chunks, e, d)
        for p, chunks, m, e, d in filled(range(1, 3), 4)
        if chunks * m >= 2 * (p - 1) + (chunks - 1) * e[0] and literal_deadlocks(p, chunks, e, d)
    ]
    assert stuck[0] == (1, 2, (1, 1), (2,))
    assert all(buffer_size(e, d) > e[0] for _, _, e, d in stuck)
    assert next((e, d) for _, _, e, d in stuck if e == d) == ((1, 2), (1, 2))


def test_algorithm_1_starts_with_more_forwards_than_there_are() -> None:
    # n_fwd = (M-1) e_1 + 2(P-i): 2*2 = 4 forwards of 3 at P = 3, M = 1, e = d = (3), the smallest
    # shape with every element at least P.
    with pytest.raises(IndexError):
        literal_orders(3, 1, (3,), (3,))
    short = [
        (p, chunks, m)
        for p, chunks, m, e, _ in filled(range(1, 4), 4)
        if (chunks - 1) * e[0] + 2 * (p - 1) > chunks * m
    ]
    assert short[0] == (3, 1, 3)
    assert measure_of(p=3, m=3, v=1, e=(3,), d=(3,)) == (3 + 2) * 3


def test_where_algorithm_1_works_it_is_what_ships() -> None:
    same = 0
    for p, chunks, m, e, d in sampled([*filled(range(1, 4), 6)], every=4):
        if (chunks - 1) * e[0] + 2 * (p - 1) > chunks * m or literal_deadlocks(p, chunks, e, d):
            continue
        ours = made(p=p, m=m, v=chunks, e=e, d=d).schedule.program.orders(p)
        assert [[str(a) for a in order] for order in ours] == literal_orders(p, chunks, e, d)
        same += 1
    assert same > sized(15, full=60)


def test_algorithm_1_names_a_chunk_that_is_not_there() -> None:
    # Lines 20, 25, 26: (chunkID + 1) mod M with chunks 1..M is 0 for chunk M-1, where chunk M is
    # meant; 1 + chunkID mod M is meant. Line 28: (chunkID - 1) mod M is 0 for chunk 1.
    for chunks in range(2, 9):
        named = {(c + 1) % chunks for c in range(1, chunks + 1)}
        assert 0 in named
        assert chunks not in named
        assert {1 + c % chunks for c in range(1, chunks + 1)} == set(range(1, chunks + 1))


def test_defaults_are_two_halves_or_one_operation() -> None:
    def filled_in(m: int, e: Parts | None = None, d: Parts | None = None) -> tuple[Parts, Parts]:
        return PipeMesh(e, d).sequences(Pipeline(num_ranks=4, num_microbatches=m))

    assert filled_in(9) == ((5, 4), (5, 4))
    assert filled_in(7) == ((7,), (7,))
    assert filled_in(12, e=(8, 4)) == ((8, 4), (6, 6))
    assert filled_in(12, d=(3, 4, 5)) == ((4, 4, 4), (3, 4, 5))
    params = made(p=2, m=4).params
    assert (params["e"], params["d"], params["v"]) == ((2, 2), (2, 2), 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"e": (3,)}, "e must be numbers of 1 or more that add up to the 4 microbatches, got 3"),
        (
            {"d": (4, 0)},
            "d must be numbers of 1 or more that add up to the 4 microbatches, got 4,0",
        ),
        ({"s": 2}, "pipemesh takes no parameter s, got s=2"),
    ],
)
def test_what_sequences_are_refused(given: dict[str, int | Parts], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        made(p=2, m=4, **given)
    assert str(caught.value) == message


def test_a_users_plain_pipeline_runs_with_the_default_sequences() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=5, num_chunks=2, latency=1)
    problem = pipeline.problem()
    assert check(problem, PipeMesh().schedule(pipeline, problem)).ok
