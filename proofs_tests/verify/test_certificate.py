"""Rule 9: true certificates are accepted; every damaged one is refused, by the right sentence."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates import drup_replay
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate, DirectCertificate
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import NO_PATH, OneMachine
from proofs_tests.solvers.best_machine import best_machine
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand, prefetch, tiny_pipelines

PROBLEM = Pipeline(num_ranks=2, num_microbatches=2).problem()
# Rank 1 starts after 0F0 (1 tick), works 2 * (1 + 2) ticks, and 0B1 (2) follows its last B: 9.
TRUE = OneMachine(
    resource=1, tasks=tuple(PROBLEM.task(text) for text in ("1F0", "1F1", "1B0", "1B1")), bound=9
)
ONCE = "a one-machine certificate names each of its tasks once, and at least one"


def refusal(problem: Problem, certificate: Certificate) -> str:
    """The one sentence by which the certificate is refused; empty when it is accepted."""
    finding = check_certificate(problem, certificate)
    assert finding.rule is Rule.CERTIFICATE
    assert len(finding.violations) == finding.count
    assert finding.ok == (finding.count == 0)
    return "; ".join(violation.message for violation in finding.violations)


def test_a_true_certificate_is_accepted_and_so_is_a_modest_one() -> None:
    assert refusal(PROBLEM, TRUE) == ""
    assert refusal(PROBLEM, replace(TRUE, bound=8)) == ""
    assert refusal(PROBLEM, replace(TRUE, tasks=TRUE.tasks[::-1])) == ""


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (replace(TRUE, bound=10), "the tasks do not prove a bound of 10"),
        # 1B1 alone: before it 0F0 1, 1F0 1, 1B0 2 (index order), itself 2, then 0B1 2.
        (replace(TRUE, tasks=TRUE.tasks[3:]), "the tasks do not prove a bound of 9"),
        (replace(TRUE, tasks=()), ONCE),
        (replace(TRUE, tasks=(*TRUE.tasks, TRUE.tasks[0])), ONCE),
        (replace(TRUE, tasks=(*TRUE.tasks, 8)), "task 8 does not occupy resource 1"),
        (replace(TRUE, tasks=(*TRUE.tasks, -1)), "task -1 does not occupy resource 1"),
        (
            replace(TRUE, tasks=(*TRUE.tasks, PROBLEM.task("0F0"))),
            "task 0 does not occupy resource 1",
        ),
        (
            replace(TRUE, resource=0),
            f"task {min(TRUE.tasks)} does not occupy resource 0",
        ),
        (
            replace(TRUE, resource=2),
            f"task {min(TRUE.tasks)} does not occupy resource 2",
        ),
    ],
)
def test_damage_is_refused(damaged: OneMachine, sentence: str) -> None:
    assert refusal(PROBLEM, damaged) == sentence


PARTS = {"resource": 0, "store": 0, "begin": 0, "end": 0, "first": 0}
MANY = ("tasks", "resources", "stores", "lemmas", "windows")


@pytest.mark.parametrize("kind", [*get_args(DirectCertificate), MicrobatchWindows])
@pytest.mark.parametrize("bound", [float("nan"), float("-inf"), 0.5, True])
def test_no_kind_proves_what_is_no_whole_bound(kind: type[Certificate], bound: float) -> None:
    """NaN is not above what is proved, and no number is below it."""
    given = {f.name: PARTS.get(f.name, ()) for f in fields(kind) if f.default is MISSING}
    assert given.keys() <= {*PARTS, *MANY, "bound"}
    problem = PROBLEM.with_capacity(2)
    claim = kind(**{**given, "bound": bound})  # type: ignore[arg-type]  # what a caller may do
    assert refusal(problem, claim) == f"a certificate proves a whole bound, got {bound}"


def test_what_a_capacity_proves_does_not_hold_without_it() -> None:
    tight = Pipeline(num_ranks=2, num_microbatches=2, capacity=1).problem()
    certificate = lower_bounds(tight).best
    # One at a time: 2 * (1 + 1 + 2 + 2) = 12.
    assert certificate.bound == 12
    assert refusal(tight, certificate) == ""
    assert refusal(PROBLEM, certificate).endswith("a bound of 12")
    # The other way round a certificate stays true: a tighter problem is no shorter.
    assert refusal(tight, TRUE) == ""


def test_a_certificate_of_longer_tasks_is_refused_on_shorter_ones() -> None:
    slower = Pipeline(num_ranks=2, num_microbatches=2, backward=3).problem()
    certificate = lower_bounds(slower).best
    # (m + p - 1)(tF + tB) = 3 * 4.
    assert certificate.bound == 12
    assert refusal(PROBLEM, certificate) == "the tasks do not prove a bound of 12"


def test_a_cycle_proves_nothing() -> None:
    edges = PROBLEM.edges
    back = Edges(
        before=np.append(edges.before, PROBLEM.task("0B0")),
        after=np.append(edges.after, PROBLEM.task("0F0")),
        lag=np.append(edges.lag, 0),
    )
    around = replace(PROBLEM, edges=back)
    assert refusal(around, TRUE) == "the problem's precedences have a cycle"


def test_paths_of_transfers_alone_prove_nothing() -> None:
    problem = prefetch()
    rank, link = problem.task("0B0"), problem.task("0LOAD0")
    # 0LOAD0 takes 5 ticks before 0B0, but they need not lie behind any computation.
    assert refusal(problem, OneMachine(resource=0, tasks=(rank,), bound=1)) == ""
    assert refusal(problem, OneMachine(resource=0, tasks=(rank,), bound=6)) == (
        "the tasks do not prove a bound of 6"
    )
    for bound in (5, NO_PATH << 1):
        claim = OneMachine(resource=1, tasks=(link,), bound=bound)
        assert refusal(problem, claim) == "some of the tasks are not between computations"


def test_the_span_of_a_rank_has_no_head_and_its_work_is_taken_off() -> None:
    # Rank 0: 0F0 and 0F1 (1 each), then 1F1's return: 0B0 waits for 1F0 1 and 1B0 2, and 0B1 takes
    # 2 after 0B0 or 1B1. From 0F0's start 1 + 1 + 2 to 0B0, then 2 + 2; 0F1 fits between.
    rank = OneMachine(
        resource=0, tasks=(PROBLEM.task("0B0"), PROBLEM.task("0B1")), bound=2, objective="span_idle"
    )
    # The span is 4 + 4 or more, the work 1 + 1 + 2 + 2.
    assert refusal(PROBLEM, rank) == ""
    assert refusal(PROBLEM, replace(rank, bound=3)) == "the tasks do not prove a bound of 3"


def test_a_transfer_between_computations_counts() -> None:
    problem = by_hand(
        [("0F0", 1, (0,)), ("0OFFLOAD0", 5, (1,)), ("0B0", 2, (0,))],
        [("0F0", "0OFFLOAD0", 0), ("0OFFLOAD0", "0B0", 0)],
        resources=RANK_AND_LINK,
    )
    link = OneMachine(resource=1, tasks=(problem.task("0OFFLOAD0"),), bound=1 + 5 + 2)
    assert refusal(problem, link) == ""
    assert refusal(problem, replace(link, bound=9)) == "the tasks do not prove a bound of 9"


def proved(problem: Problem, tasks: tuple[int, ...]) -> int:
    """min head + work + min tail by a fixpoint over all edges (precondition: only computations)."""
    order = index_order(problem)
    parts = [problem.edges, order.order_edges, order.memory_edges]
    arcs = [
        arc
        for part in parts
        for arc in zip(part.before.tolist(), part.after.tolist(), part.lag.tolist(), strict=True)
    ]
    ticks: list[int] = problem.duration.tolist()
    head, tail = [0] * len(ticks), [0] * len(ticks)
    for _ in ticks:
        for before, after, lag in arcs:
            head[after] = max(head[after], head[before] + ticks[before] + lag)
            tail[before] = max(tail[before], lag + ticks[after] + tail[after])
    return min(head[t] for t in tasks) + sum(ticks[t] for t in tasks) + min(tail[t] for t in tasks)


@given(tiny_pipelines())
def test_it_accepts_exactly_what_a_second_computation_proves(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    certificate = best_machine(problem, lower_bounds(problem))
    value = proved(problem, certificate.tasks)
    assert value == certificate.bound
    assert refusal(problem, certificate) == ""
    beyond = replace(certificate, bound=value + 1)
    assert refusal(problem, beyond) == f"the tasks do not prove a bound of {value + 1}"


@given(tiny_pipelines())
def test_no_set_of_tasks_proves_more_than_the_optimum(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    best = brute_force(problem)
    if best is None:
        return
    sets = [
        (resource, chosen)
        for resource in range(len(problem.resources))
        for size in (1, 2, 3)
        for chosen in combinations(
            problem.occupancy.task[problem.occupancy.resource == resource].tolist(), size
        )
    ]
    for resource, chosen in sets[:: max(1, len(sets) // 10)]:
        claim = OneMachine(resource=resource, tasks=chosen, bound=best.makespan + 1)
        assert refusal(problem, claim) != ""


def test_paths_of_any_length_are_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on the raises of one lemma grows with the problem, so no long path is cut off."""
    monkeypatch.setattr(drup_replay, "MOST_RAISES", 0)
    problem = Pipeline(num_ranks=16, num_microbatches=64, capacity=16, latency=1).problem()
    best = best_machine(problem, lower_bounds(problem))
    certificate = Drup(bound=best.bound, lemmas=(Lemma(crowd=best.tasks),))
    assert refusal(problem, certificate) == ""
    assert refusal(problem, replace(certificate, bound=certificate.bound + 1)) != ""
