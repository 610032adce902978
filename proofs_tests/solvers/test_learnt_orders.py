"""What a store forbids may rest on orders learnt before; its proof then says so step by step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import bubbleproof as bp
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.overloads import avoid_overload
from bubbleproof.solvers.refutation.propagation import decide
from bubbleproof.solvers.refutation.propagator import Propagator
from bubbleproof.solvers.refutation.windows import Windows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.certificate import Drup, Lemma, take
from bubbleproof.verify.certificates.drup_replay import DrupReplay
from proofs_tests.patience import in_time

Order = tuple[str, str]
LONG = 1000  # ticks: no window excludes anything


def alone(num_chunks: int, capacity: int) -> Problem:
    """One rank with all stages, three microbatches, a unit per activation of each stage."""
    return Pipeline(
        num_ranks=1, num_microbatches=3, num_chunks=num_chunks, capacity=capacity
    ).problem()


def deduced(
    problem: Problem, known: Sequence[Order], wanted: Order
) -> tuple[DrupReplay, list[Lemma]]:
    """The steps of a store's rules for an order (none if it does not follow), where the known ones
    were learnt, and a replay that has learnt them and all that was deduced before, too."""
    bounds = lower_bounds(problem)
    state, replay = Windows(problem, bounds, LONG), DrupReplay(problem, LONG, "makespan", 0)
    for pair in known:
        before, after = (problem.task(name) for name in pair)
        state.learn(before, after, state.deduce(()))
        replay.learn([replay.orders[before, after]])
    state.flush()
    before, after = (problem.task(name) for name in wanted)
    assert not state.prior[after, before]
    propagator = Propagator(problem, bounds)
    for _ in range(2):  # first windows shrink, then orders are learnt
        avoid_overload(state, propagator.chains[0], propagator.homes)
        state.flush()
    if not state.prior[after, before]:
        return replay, []
    event = state.prior_event[before, after]
    earlier = [step for event in state.events[:event] for step in event.steps]
    assert [take(replay, step) for step in earlier] == [None] * len(earlier)
    return replay, list(state.events[event].steps)


RELEASE, DEFER = ("0B0", "0F2"), ("2F0", "1F1")
STORES = [
    # When 0F2 starts, 0F0, 0F1, 1F1 and 0F2 hold 4 units of 3, unless 0B0 or 1B1 has ended. If 0F2
    # comes before 0B0, then before 1B1, which is known to come behind it: so 0B0 comes first.
    (alone(2, 3), [("1F1", "0F2"), ("1B0", "0F2"), ("0B0", "1B1")], RELEASE),
    # When 2F0 starts, no B has run, and 0F0, 1F0, 2F0 hold 3 units. If 1F1 starts before, 0F1 has,
    # too, which is 5; and 0F2, which is known to end by then: 6 units of 5. So 1F1 comes later.
    (alone(3, 5), [("0F2", "1F1")], DEFER),
]


@pytest.mark.parametrize(("problem", "known", "wanted"), STORES, ids=["release", "defer"])
def test_orders_that_go_along_are_steps_of_the_proof(
    problem: Problem, known: list[Order], wanted: Order
) -> None:
    replay, steps = deduced(problem, known, wanted)
    assert steps
    assert [take(replay, step) for step in steps] == [None] * len(steps)
    before, after = (problem.task(name) for name in wanted)
    assert replay.is_false(replay.orders[after, before])


@pytest.mark.parametrize(("problem", "known", "wanted"), STORES, ids=["release", "defer"])
def test_without_these_steps_nothing_follows(
    problem: Problem, known: list[Order], wanted: Order
) -> None:
    replay, steps = deduced(problem, known, wanted)
    before, after = (problem.task(name) for name in wanted)
    (full,) = {step.full for step in steps} - {None}
    at_once = Lemma(literals=(("<", before, after),), full=full)
    assert take(replay, at_once) == "does not follow from those before it"


@pytest.mark.parametrize(("problem", "known", "wanted"), STORES, ids=["release", "defer"])
def test_with_room_for_one_more_neither_comes_first(
    problem: Problem, known: list[Order], wanted: Order
) -> None:
    roomier = problem.with_capacity((problem.stores[0].capacity or 0) + 1)
    assert deduced(roomier, known, wanted)[1] == []


@pytest.mark.parametrize("limit", [51, 52, 53])
def test_a_proof_by_four_slices_in_eight_places_is_accepted(limit: int) -> None:
    """SVPP, two ranks with two chunks each: here the step was first found missing."""
    family = bp.family("svpp")(p=2, m=3, v=2, s=4, tF=1, tB=1)
    problem = family.problem.with_capacity(8)
    proof = decide(problem, lower_bounds(problem), limit, in_time())
    assert isinstance(proof, Drup)
    assert check_certificate(problem, proof).ok
    assert any(lemma.rule == "suppose" for lemma in proof.lemmas)
