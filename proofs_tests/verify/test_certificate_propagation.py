"""Rule 9, replayed propagation: true proofs are accepted, damaged and invented ones refused."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.propagation import improve
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate import OneMachine, Propagation, Step, check_certificate
from bubbleproof.verify.certificate_propagation import _Replay
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.solvers.small import tiny_pipelines

RULES = ("after", "before", "wait", "release", "defer", "suppose", "absurd")
# Two ranks, two microbatches, tF = 1, tB = 2: 9 ticks; 1F0 at 1, then 6 ticks of work, then 0B1.
PROBLEM = Pipeline(num_ranks=2, num_microbatches=2).problem()


def refusal(problem: Problem, certificate: Propagation) -> str:
    return "; ".join(v.message for v in check_certificate(problem, certificate).violations)


def step(rule: str, task: str, *tasks: str, value: int = 0) -> Step:
    return Step(
        rule=rule, task=PROBLEM.task(task), tasks=tuple(map(PROBLEM.task, tasks)), value=value
    )


def test_one_push_proves_the_bound() -> None:
    # 1B1 runs after 1F0, 1F1 and 1B0: from 1 + 1 + 1 + 2 = 5 to 7, and 0B1 to 9.
    push = step("after", "1B1", "1F0", "1F1", "1B0")
    proof = Propagation(bound=9, steps=(push,))
    assert refusal(PROBLEM, proof) == ""
    assert refusal(PROBLEM, replace(proof, bound=10)) == "the steps do not refute makespan 9"
    # By paths alone 1B1 ends at 6 (0F0, 1F0, 1B0, 1B1) and 0B1 at 8, which refutes 7.
    assert refusal(PROBLEM, replace(proof, steps=())) == "the steps do not refute makespan 8"
    assert refusal(PROBLEM, replace(proof, steps=(), bound=8)) == ""


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (step("after", "1B1", "0F0"), "must name other tasks of the task's resource"),
        (step("after", "1B1", "1B1"), "must name other tasks of the task's resource"),
        (step("after", "1B1"), "must name other tasks of the task's resource"),
        (step("suppose", "1B1", "1F0", "1F1"), "must name one task"),
        (step("release", "1B1"), "must name one task"),
        (Step(rule="after", task=8, tasks=(0,)), "names no task, or one that takes no time"),
        (Step(rule="after", task=-1, tasks=(0,)), "names no task, or one that takes no time"),
        (step("guess", "0F1", "0F0"), "is no rule"),
        (step("wait", "0F1", value=2), "does not show that a store is too full"),
        (step("absurd", "1B0", "1F1"), "comes before the supposition is refuted"),
    ],
)
def test_unfounded_steps_are_refused(wrong: Step, sentence: str) -> None:
    claim = Propagation(bound=9, steps=(wrong,))
    assert refusal(PROBLEM, claim) == f"step 0 ({wrong.rule}) {sentence}"


def test_an_order_must_be_shown() -> None:
    # At a makespan of 9 either of 1B0 (2 to 5) and 1F1 (2 to 5) may come first: 2 + 2 + 1 = 5.
    claim = Propagation(bound=10, steps=(step("after", "1B0", "1F1"),))
    first, second = PROBLEM.task("1F1"), PROBLEM.task("1B0")
    assert refusal(PROBLEM, claim) == (
        f"step 0 (after) does not show the order of tasks {first} and {second}"
    )


def test_a_supposition_must_be_closed_by_itself() -> None:
    push = step("after", "1B1", "1F0", "1F1", "1B0")
    opened, closed = step("suppose", "1F1", "1B0"), step("absurd", "1F1", "1B0")
    assert refusal(PROBLEM, Propagation(bound=9, steps=(opened, push))) != ""
    assert refusal(PROBLEM, Propagation(bound=9, steps=(opened, push, closed, push))) == ""
    other = step("absurd", "1B0", "1F1")
    assert refusal(PROBLEM, Propagation(bound=9, steps=(opened, push, other))) == (
        "step 2 (absurd) closes another supposition than the last"
    )


def test_foreign_objectives_and_ranks_are_refused() -> None:
    claim = Propagation(bound=1, steps=(), rank=2)
    assert refusal(PROBLEM, claim) == "rank 2 is none of the problem's 2"
    machine = OneMachine(resource=0, tasks=(0,), bound=1, objective="bubble")
    assert check_certificate(PROBLEM, machine).violations[0].message == (
        "the objective must be makespan or span_idle, got 'bubble'"
    )


TIGHT = Pipeline(
    num_ranks=4, num_microbatches=8, split_backward=True, forward=10, input_backward=11,
    weight_backward=8, latency=1, activation=2, released_at_input=1, capacity=8,
)  # fmt: skip


def test_what_a_proof_rests_on_must_be_there() -> None:
    problem = TIGHT.problem()
    proof = improve(problem, lower_bounds(problem), 283, time.perf_counter() + 60)
    assert proof is not None
    assert proof.bound == 283
    assert refusal(problem, proof) == ""
    assert refusal(problem, replace(proof, bound=284)) != ""
    assert refusal(problem, replace(proof, objective="span_idle")) != ""
    assert refusal(TIGHT.with_changes(capacity=16).problem(), proof) != ""
    assert refusal(TIGHT.with_changes(weight_backward=7).problem(), proof) != ""
    assert refusal(problem, replace(proof, steps=proof.steps[: len(proof.steps) // 2])) != ""


@settings(max_examples=150)
@given(tiny_pipelines(), st.sampled_from(("makespan", "span_idle")), st.integers(0, 1 << 32))
def test_no_sequence_of_steps_refutes_the_optimum(
    pipeline: Pipeline, objective: str, seed: int
) -> None:
    """Whatever steps the checker believes, of hundreds at random, the optimum stands."""
    problem, random = pipeline.problem(), Random(seed)
    best = optimum(problem, objective)
    if best is None:
        return
    claim = Propagation(
        bound=best + 1, steps=(), objective=objective, rank=random.randrange(problem.num_ranks)
    )
    replay = _Replay(problem)
    assert replay.close()
    replay.add_spans(claim)
    believed = 0
    tasks = range(problem.num_tasks)
    for _ in range(300):
        rule = random.choice(RULES)
        chosen = tuple(random.sample(tasks, random.choice((1, 1, 2, 3))))
        drawn = Step(
            rule=rule, task=random.choice(tasks), tasks=chosen, others=random.choice(((), chosen)),
            value=random.randrange(best + 4),
        )  # fmt: skip
        if rule == "absurd" and replay.supposed:
            drawn = replay.supposed[-1][0]
            drawn = replace(drawn, rule="absurd")
        believed += replay.take(drawn) is None
    while replay.supposed and replay.is_refuted:
        replay.take(replace(replay.supposed[-1][0], rule="absurd"))
    assert replay.supposed or not replay.is_refuted
