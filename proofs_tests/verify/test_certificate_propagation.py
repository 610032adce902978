"""Rule 9, crowds and suppositions: true proofs are accepted, damaged and invented ones refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.propagation import improve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates import certificate
from bubbleproof.verify.certificates.certificate import Drup, Lemma, take
from bubbleproof.verify.certificates.drup_replay import DrupReplay
from bubbleproof.verify.certificates.one_machine import OneMachine
from proofs_tests.patience import in_time
from proofs_tests.sized import sized
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.solvers.small import UNEVEN, by_hand, split, tiny_pipelines

# Two ranks, two microbatches, tF = 1, tB = 2: 9 ticks; 1F0 at 1, then 6 ticks of work, then 0B1.
PROBLEM = Pipeline(num_ranks=2, num_microbatches=2).problem()
UNFOUNDED = "does not follow from those before it"


def refusal(problem: Problem, certificate: Drup) -> str:
    return "; ".join(v.message for v in check_certificate(problem, certificate).violations)


def tasks(*texts: str) -> tuple[int, ...]:
    return tuple(map(PROBLEM.task, texts))


def order(first: str, second: str) -> tuple[str, int, int]:
    return ("<", PROBLEM.task(first), PROBLEM.task(second))


def at_least(task: str, ticks: int, *crowd: str) -> Lemma:
    return Lemma(literals=((">=", PROBLEM.task(task), ticks),), crowd=tasks(*crowd))


# 1B1 runs after 1F0, 1F1 and 1B0: from 1 + 1 + 1 + 2 = 5 to 7, and 0B1 to 9.
PUSH = at_least("1B1", 5, "1F0", "1F1", "1B0")


def test_a_bound_of_paths_and_orders_needs_no_lemma() -> None:
    proof = Drup(bound=9, lemmas=(PUSH,))
    assert refusal(PROBLEM, proof) == ""
    assert refusal(PROBLEM, replace(proof, bound=10)) == "the lemmas do not refute makespan 9"
    # By paths alone 1B1 ends at 6 (0F0, 1F0, 1B0, 1B1) and 0B1 at 8; at 8 ticks 1B0 starts at 2,
    # and 1F1, which is not there before, comes too late behind it and pushes it away before it.
    assert refusal(PROBLEM, replace(proof, lemmas=())) == ""


def test_a_makespan_is_proved_whatever_rank_is_named() -> None:
    # The rank is where time begins for a span alone.
    proof = Drup(bound=9, lemmas=(PUSH,), rank=1)
    assert refusal(PROBLEM, proof) == ""
    assert refusal(PROBLEM, replace(proof, bound=10)) == "the lemmas do not refute makespan 9"


def test_as_many_pairs_as_the_limit_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two ranks with 4 tasks each: (4 * 4 + 4 * 4) / 2 = 16.
    proof = Drup(bound=9, lemmas=(PUSH, PUSH))
    monkeypatch.setattr(certificate, "MOST_PAIRS", 16)
    assert refusal(PROBLEM, proof) == ""
    monkeypatch.setattr(certificate, "MOST_PAIRS", 15)
    assert refusal(PROBLEM, proof).startswith("more than 15 pairs of tasks share a resource")


def test_a_push_says_no_more_than_its_crowd() -> None:
    # At a makespan of 11 nothing is refuted, and 1B1 may start at 5.
    for ticks, why in ((5, "the lemmas do not refute makespan 11"), (6, f"lemma 0 {UNFOUNDED}")):
        push = at_least("1B1", ticks, "1F0", "1F1", "1B0")
        assert refusal(PROBLEM, Drup(bound=12, lemmas=(push,))) == why
    # Without 1F1 the crowd has 3 ticks from 1 on; the other 1B0 and 1F1 may come in any order.
    for ticks, why in ((4, "the lemmas do not refute makespan 11"), (7, f"lemma 0 {UNFOUNDED}")):
        push = at_least("1B1", ticks, "1F0", "1B0")
        assert refusal(PROBLEM, Drup(bound=12, lemmas=(push,))) == why


FREE = by_hand([("0F0", 3, (0,)), ("0F1", 2, (0,)), ("1F0", 2, (0,)), ("1F1", 0, (0,))])


def test_a_crowd_needs_the_time_it_takes() -> None:
    # Three tasks of 7 ticks and one of none, with no precedence: any order, back to back.
    everyone = Lemma(crowd=(0, 1, 2, 3))
    assert refusal(FREE, Drup(bound=7, lemmas=(everyone,))) == ""
    assert refusal(FREE, Drup(bound=8, lemmas=(everyone,))) == f"lemma 0 {UNFOUNDED}"
    twice = Lemma(crowd=(0, 0, 0, 1))
    assert refusal(FREE, Drup(bound=6, lemmas=(twice,))) == f"lemma 0 {UNFOUNDED}"
    assert refusal(FREE, Drup(bound=5, lemmas=(Lemma(crowd=(0, 0, 1)),))) == ""


def test_edge_finding_is_a_crowd_with_an_order() -> None:
    # 0F3 comes 2 ticks after 0F0, 0F2 and 0F4 and takes 2: in 12 ticks those three end by 8. They
    # differ, so that nothing else orders them. With 0F1 they take 9, so 0F1 is last of the four.
    # In 13 ticks it may be between.
    problem = by_hand(
        [("0F0", 1, (0,)), ("0F1", 3, (0,)), ("0F2", 2, (0,)), ("0F3", 2, (0,)), ("0F4", 3, (0,))],
        [("0F0", "0F3", 2), ("0F2", "0F3", 2), ("0F4", "0F3", 2)],
    )
    last = Lemma(literals=(("<", 0, 1),), crowd=(0, 1, 2, 4))
    for bound, lemma, why in (
        (13, last, "the lemmas do not refute makespan 12"),
        (13, replace(last, crowd=()), f"lemma 0 {UNFOUNDED}"),
        (13, replace(last, crowd=(0, 1, 2)), f"lemma 0 {UNFOUNDED}"),
        (14, last, f"lemma 0 {UNFOUNDED}"),
    ):
        assert refusal(problem, Drup(bound=bound, lemmas=(lemma,))) == why


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (at_least("1B1", 2, "0F0", "1F0"), "names a crowd that shares no resource"),
        (Lemma(crowd=(0, 8)), "names a crowd that shares no resource"),
        (Lemma(crowd=(-1,)), "names a crowd that shares no resource"),
        (Lemma(rule="guess"), "is no rule, or supposes other than one literal"),
        (Lemma(rule="suppose"), "is no rule, or supposes other than one literal"),
        (
            Lemma(rule="suppose", literals=((">=", 0, 1), ("<=", 0, 1))),
            "is no rule, or supposes other than one literal",
        ),
        (Lemma(rule="absurd"), "comes before the supposition is refuted"),
        (Lemma(), UNFOUNDED),
    ],
)
def test_unfounded_steps_are_refused(wrong: Lemma, sentence: str) -> None:
    assert refusal(PROBLEM, Drup(bound=10, lemmas=(wrong,))) == f"lemma 0 {sentence}"


def test_a_supposition_must_be_closed() -> None:
    opened = Lemma(rule="suppose", literals=(order("1F1", "1B0"),))
    closed = Lemma(rule="absurd")
    open_claim = "the lemmas do not refute makespan 8"
    assert refusal(PROBLEM, Drup(bound=9, lemmas=(opened, PUSH))) == open_claim
    assert refusal(PROBLEM, Drup(bound=9, lemmas=(opened, PUSH, closed, PUSH))) == ""
    early = Drup(bound=10, lemmas=(opened, PUSH, closed))
    assert refusal(PROBLEM, early) == "lemma 2 comes before the supposition is refuted"
    # Closed twice, only the first is refuted; and what was learnt inside is forgotten.
    twice = Drup(bound=9, lemmas=(opened, PUSH, closed, closed))
    assert refusal(PROBLEM, twice) == "lemma 3 comes before the supposition is refuted"


def test_what_is_supposed_is_not_known_afterwards() -> None:
    """Of two orders at one bound either is possible: each may be supposed, neither remembered."""
    # At 9 ticks 1F1 before 1B0 pushes 1B0 to 3 or later, which holds in no other order.
    opened = Lemma(rule="suppose", literals=(order("1F1", "1B0"),))
    inside = at_least("1B0", 3)
    replay = DrupReplay(PROBLEM, 9, "makespan", 0)
    assert take(replay, inside) == UNFOUNDED
    assert take(replay, opened) is None
    assert take(replay, inside) is None
    # A clause of two open literals is believed inside, and must not outlast its reason.
    either = Lemma(literals=((">=", PROBLEM.task("1B0"), 3), (">=", PROBLEM.task("1B1"), 99)))
    assert take(replay, either) is None
    assert take(replay, Lemma(rule="suppose", literals=(("<=", PROBLEM.task("1B0"), 2),))) is None
    assert take(replay, Lemma(rule="absurd")) is None
    assert take(replay, Lemma(rule="absurd")) is not None
    assert not replay.is_refuted
    replay._undo(replay.supposed.pop()[1])  # give the supposition up
    assert take(replay, inside) == UNFOUNDED
    assert take(replay, either) == UNFOUNDED


def test_foreign_objectives_and_ranks_are_refused() -> None:
    claim = Drup(bound=1, lemmas=(), rank=2)
    assert refusal(PROBLEM, claim) == "rank 2 is none of the problem's 2"
    machine = OneMachine(resource=0, tasks=(0,), bound=1, objective="bubble")
    assert check_certificate(PROBLEM, machine).violations[0].message == (
        "the objective must be makespan or span_idle, got 'bubble'"
    )


TIGHT = split(4, 8, 8, UNEVEN, part=True)


def test_what_a_proof_rests_on_must_be_there() -> None:
    problem = TIGHT.problem()
    proof = improve(problem, lower_bounds(problem), 283, in_time())
    assert proof is not None
    assert proof.bound == 283
    assert refusal(problem, proof) == ""
    assert refusal(problem, replace(proof, bound=284)) != ""
    assert refusal(problem, replace(proof, objective="span_idle")) != ""
    assert refusal(TIGHT.with_changes(capacity=16).problem(), proof) != ""
    assert refusal(TIGHT.with_changes(weight_backward=7).problem(), proof) != ""
    assert refusal(problem, replace(proof, lemmas=proof.lemmas[: len(proof.lemmas) // 2])) != ""
    without = tuple(replace(lemma, crowd=(), full=None) for lemma in proof.lemmas)
    assert "does not follow" in refusal(problem, replace(proof, lemmas=without))


@settings(max_examples=sized(50, full=150))
@given(tiny_pipelines(), st.sampled_from(("makespan", "span_idle")), st.integers(0, 1 << 32))
def test_no_sequence_of_steps_refutes_the_optimum(
    pipeline: Pipeline, objective: str, seed: int
) -> None:
    """Whatever steps the checker believes, of hundreds at random, the optimum stands."""
    problem, random = pipeline.problem(), Random(seed)
    best = optimum(problem, objective)
    if best is None:
        return
    replay = DrupReplay(problem, best, objective, random.randrange(problem.num_ranks))
    numbers, orders = range(problem.num_tasks), list(replay.orders)
    for _ in range(300):
        literals = []
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            if orders and random.random() < 0.5:
                literals.append(("<", *random.choice(orders)))
            else:
                ticks = random.randrange(-1, best + 4)
                start = random.randrange(replay.num_starts)
                literals.append((random.choice((">=", "<=")), start, ticks))
        size = random.choice((0, 1, 2, 3, 4))
        drawn = Lemma(
            rule=random.choice(("lemma", "lemma", "lemma", "suppose", "absurd")),
            literals=tuple(literals),
            crowd=tuple(random.choices(numbers, k=size)),
            full=random.choice((None, *numbers)),
        )
        take(replay, drawn)
    while replay.supposed and replay.is_refuted:
        take(replay, Lemma(rule="absurd"))
    assert replay.supposed or not replay.is_refuted
