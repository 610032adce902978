"""DRUP certificates: true ones are accepted, damaged ones refused, and nothing false is proved."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Objective
from bubbleproof.solvers.refutation.proofs import refute
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.drup_replay import DrupReplay, Literal
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.patience import in_time
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import UNEVEN, by_hand, split, tiny_pipelines

# Unsplit, tF = 2, tB = 4, latency 1, room for p: optima by two other engines (test_known_optima).
LATE = Pipeline(
    num_ranks=8, num_microbatches=16, forward=2, backward=4, latency=1, capacity=8
).problem()
# Split, released in parts: 283 by the same.
IN_PARTS = split(4, 8, 8, UNEVEN, part=True).problem()
# Two chunks in a V share a store of 5: 72.
SHARED = Pipeline(
    num_ranks=4, num_microbatches=8, num_chunks=2, placement="wave", capacity=5
).problem()


def proof(problem: Problem, bound: int, objective: Objective = "makespan") -> Drup | None:
    """The certificate that the SAT solver's proof gives."""
    deadline = in_time()
    return refute(problem, lower_bounds(problem), bound, objective=objective, deadline=deadline)


@cache
def late() -> Drup:
    """The proof of 172 on eight ranks."""
    found = proof(LATE, 172)
    assert found is not None
    return found


def refusal(problem: Problem, certificate: Drup) -> str:
    """The one sentence by which the certificate is refused; empty when it is accepted."""
    return "; ".join(v.message for v in check_certificate(problem, certificate).violations)


@pytest.mark.parametrize(
    ("problem", "optimum"),
    [(LATE, 172), (IN_PARTS, 283), (SHARED, 72)],
    ids=["late", "in parts", "shared"],
)
def test_an_optimum_has_a_proof_and_the_next_value_none(problem: Problem, optimum: int) -> None:
    certificate = proof(problem, optimum)
    assert certificate is not None
    assert 0 < len(certificate.lemmas) < 200
    assert refusal(problem, certificate) == ""
    assert refusal(problem, replace(certificate, bound=optimum - 1)) == ""
    assert refusal(problem, replace(certificate, bound=optimum + 1)) != ""
    assert proof(problem, optimum + 1) is None


def test_memory_that_is_no_precedence_is_used() -> None:
    certificate = proof(IN_PARTS, 283)
    assert certificate is not None
    at = next(n for n, lemma in enumerate(certificate.lemmas) if lemma.full is not None)
    unexplained = replace(certificate.lemmas[at], full=None)
    lemmas = (*certificate.lemmas[:at], unexplained, *certificate.lemmas[at + 1 :])
    damaged = replace(certificate, lemmas=lemmas)
    assert refusal(IN_PARTS, damaged) == f"lemma {at} does not follow from those before it"
    roomy = IN_PARTS.with_capacity(16)  # a microbatch each holds 2
    assert "does not follow" in refusal(roomy, certificate)


def test_what_is_left_out_is_missed() -> None:
    lemmas = late().lemmas
    for count in (0, len(lemmas) // 2, len(lemmas) - 1):
        cut = refusal(LATE, replace(late(), lemmas=lemmas[:count]))
        assert cut == "the lemmas do not refute makespan 171"
    dropped = [
        refusal(LATE, replace(late(), lemmas=(*lemmas[:n], *lemmas[n + 1 :])))
        for n in range(0, len(lemmas), 8)
    ]
    # Some lemmas have a stand-in, most have none, and no other sentence is used.
    assert sum(not sentence for sentence in dropped) < len(dropped) / 2
    assert all("does not follow" in s or "do not refute" in s for s in dropped if s)


def test_another_problem_refuses_it() -> None:
    faster = Pipeline(
        num_ranks=8, num_microbatches=16, forward=2, backward=3, latency=1, capacity=8
    ).problem()
    assert "does not follow" in refusal(faster, late())
    smaller = Pipeline(num_ranks=2, num_microbatches=4, capacity=2).problem()
    assert refusal(smaller, late()) != ""
    assert "does not follow" in refusal(LATE, replace(late(), objective="span_idle"))


NOTHING = "lemma 0 has a literal about no start or pair of the problem"


@pytest.mark.parametrize(
    ("literal", "sentence"),
    [
        (("<=", LATE.num_tasks + 8, 5), NOTHING),  # beyond the last span
        (("<=", -1, 5), NOTHING),
        ((">=", 0, 1 << 61), NOTHING),
        (("<", 0, 1), NOTHING),  # 0F0 and 0F1: a path orders them
        (("<", LATE.task("0F0"), LATE.task("1F0")), NOTHING),  # on two ranks
        (("<", 0, 99_999), NOTHING),
        (("==", 0, 5), NOTHING),
        ((">=", 0, 5), "lemma 0 does not follow from those before it"),
    ],
)
def test_literals_that_mean_nothing_are_refused(
    literal: tuple[str, int, int], sentence: str
) -> None:
    lemmas = (Lemma(literals=(literal,)), *late().lemmas)
    assert refusal(LATE, replace(late(), lemmas=lemmas)) == sentence


def test_a_pair_that_a_path_orders_has_no_literal_however_its_tasks_are_numbered() -> None:
    rows = [("0F0", 1, (0,)), ("0B0", 1, (0,))]
    for tasks in (rows, rows[::-1]):
        problem = by_hand(tasks, [("0F0", "0B0", 0)])
        for pair in (("<", 0, 1), ("<", 1, 0)):
            certificate = Drup(bound=2, lemmas=(Lemma(literals=(pair,)), Lemma()))
            assert refusal(problem, certificate) == NOTHING


def test_the_rest_of_a_certificate_is_looked_at_too() -> None:
    assert refusal(LATE, replace(late(), rank=8)) == "rank 8 is none of the problem's 8"
    assert refusal(LATE, replace(late(), rank=-1)) == "rank -1 is none of the problem's 8"
    assert refusal(LATE, replace(late(), bound=1 << 61)) == "the bound must be below 2**61 ticks"
    assert "makespan or span_idle" in refusal(LATE, replace(late(), objective="peak"))
    for task in (-1, LATE.num_tasks):
        lemma = Lemma(literals=(("<=", 0, 9),), full=task)
        assert "no task that takes time" in refusal(LATE, replace(late(), lemmas=(lemma,)))
    edges = LATE.edges
    back = Edges(
        before=np.append(edges.before, LATE.task("0B0")),
        after=np.append(edges.after, LATE.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    assert refusal(replace(LATE, edges=back), late()) == "the problem's precedences have a cycle"


def test_a_problem_of_too_many_pairs_is_refused_at_once() -> None:
    large = Pipeline(num_ranks=1, num_microbatches=2048).problem()
    # 4096 tasks on one rank: 4096 * 4095 / 2 pairs.
    assert "too many to check" in refusal(large, late())
    assert proof(large, 1) is None


def test_a_cycle_of_orders_among_free_tasks_ends() -> None:
    """Without an end to their windows, tasks in a circle would be pushed for ever."""
    problem = Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2).problem()
    free = replace(problem, edges=Edges())
    replay = DrupReplay(free, 1 << 50, "makespan", 0)
    a, b, c = (free.task(text) for text in ("0F0", "1F0", "0B0"))
    assert not replay.follows([replay.orders[b, a], replay.orders[c, b], replay.orders[a, c]])


def test_without_time_there_is_no_proof() -> None:
    assert refute(LATE, lower_bounds(LATE), 172, deadline=time.perf_counter()) is None


@settings(max_examples=30)
@given(tiny_pipelines(), st.sampled_from(["makespan", "span_idle"]))
def test_no_bound_above_the_optimum_is_proved(pipeline: Pipeline, objective: Objective) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is None:
        return
    if objective == "makespan":
        assert proof(problem, best.makespan) is not None
        assert proof(problem, best.makespan + 1) is None
    else:  # the left-shifted best is some schedule: its value can be refuted by none
        value = _span_idle(problem, best.start)
        assert proof(problem, value + 1, "span_idle") is None


def _span_idle(problem: Problem, start: tuple[int, ...]) -> int:
    """Of a start per task: the most of last end - first start - work over the ranks."""
    idle = []
    for rank in range(problem.num_ranks):
        tasks = [t for t in range(problem.num_tasks) if problem.rank_of_task[t] == rank]
        ticks = [int(problem.duration[t]) for t in tasks]
        last = max(start[t] + d for t, d in zip(tasks, ticks, strict=True))
        idle.append(last - min(start[t] for t in tasks) - sum(ticks))
    return max(idle)


def in_index_order(problem: Problem, start: tuple[int, ...]) -> list[int]:
    """The same schedule with the tasks of each class in the order of their microbatches."""
    order, moved = index_order(problem), list(start)
    for row in (row.tolist() for group in order.groups for row in group):
        for task, value in zip(row, sorted(start[task] for task in row), strict=True):
            moved[task] = value
    return moved


@settings(max_examples=sized(30, full=80))
@given(st.data())
def test_what_follows_holds_in_an_optimal_schedule(data: st.DataObject) -> None:
    """Any clause that the checker takes is true in a schedule that meets the limit."""
    problem = data.draw(tiny_pipelines(least=1)).problem()
    best = brute_force(problem)
    if best is None:
        return
    replay = DrupReplay(problem, best.makespan, "makespan", 0)
    assert not replay.is_refuted
    start = in_index_order(problem, best.start)
    start = [value - min(start) for value in start]
    ticks = st.integers(-1, best.makespan + 1)
    tasks = st.integers(0, problem.num_tasks - 1)
    about_starts = st.one_of(
        st.tuples(tasks.map(lambda t: 2 * t), ticks),
        st.tuples(tasks.map(lambda t: 2 * t + 1), ticks.map(lambda v: -v)),
    )
    orders = sorted(replay.orders.values())
    literals = st.one_of(about_starts, st.sampled_from(orders)) if orders else about_starts
    clause = st.lists(literals, max_size=4, unique_by=lambda literal: literal[0])
    pair_of = {literal: pair for pair, literal in replay.orders.items()}

    def holds(literal: Literal) -> bool:
        if literal in pair_of:
            before, after = pair_of[literal]
            return start[before] + int(problem.duration[before]) <= start[after]
        node, value = literal
        return -start[node // 2] >= value if node & 1 else start[node // 2] >= value

    for given_clause, full in data.draw(
        st.lists(st.tuples(clause, st.one_of(st.none(), tasks)), max_size=30)
    ):
        if replay.follows(given_clause, full):
            assert any(holds(literal) for literal in given_clause)
            replay.learn(given_clause)
            assert not replay.is_refuted
