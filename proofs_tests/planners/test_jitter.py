"""Schedules in life: exact where nothing spreads, derived by hand where one thing does."""

from __future__ import annotations

from math import exp, log1p, sqrt

import numpy as np
import pytest

from bubbleproof.planners import Plan, SolvedCandidate
from bubbleproof.planners import jitter as module
from bubbleproof.planners.jitter import Jitter, jitter
from bubbleproof.planners.outcome import Outcome, comparison
from bubbleproof.solvers import Status
from bubbleproof.theory.families import family
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.theory.pipelines.programs.spread import MOST_SAMPLES, Spread
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Verdict
from proofs_tests.cases import all_family_cases
from proofs_tests.solvers.small import by_hand

STILL = Spread(action_percent=0, rank_percent=0, samples=3)
ONE = Pipeline(num_ranks=1, num_microbatches=3, forward=10, backward=20)
TWO = Pipeline(num_ranks=2, num_microbatches=1, forward=10, backward=20, latency=5)


def ordered(problem: Problem, *orders: str) -> Schedule:
    """The left-shifted schedule of an order per rank; messages are sent when they are ready."""
    rows = [(r, Action.parse(text)) for r, order in enumerate(orders) for text in order.split()]
    program = Program(
        actions=ActionTable.from_actions(action for _, action in rows),
        resource=np.array([rank for rank, _ in rows]),
    )
    return left_shift(problem, with_messages_in_order(problem, program))


def exactly(pipeline: Pipeline, *orders: str, **one: object) -> float:
    """The makespan where ``one`` thing is slow and nothing spreads: all quantiles are the same."""
    spread = Spread(action_percent=0, rank_percent=0, samples=3, **one)  # type: ignore[arg-type]  # by name
    problem = pipeline.problem()
    found = jitter(problem, ordered(problem, *orders), spread)
    assert found.p5 == found.median == found.p95
    assert found.expected == pytest.approx(found.median)
    return found.median


def test_without_spread_it_is_the_nominal_makespan() -> None:
    cases = all_family_cases((2, 3, 4), (2, 4), per_family=2)
    for case in (case for of_family in cases.values() for case in of_family):
        nominal = measure(case.problem, case.schedule).makespan
        found = jitter(case.problem, case.schedule, STILL)
        assert found == Jitter(expected=nominal, p5=nominal, median=nominal, p95=nominal)


def test_a_straggler_takes_longer_in_all_it_does() -> None:
    alone = "0F0 0B0 0F1 0B1 0F2 0B2"
    assert exactly(ONE, alone) == 3 * (10 + 20)
    assert exactly(ONE, alone, straggler=(0, 20)) == pytest.approx(90 * 1.2)
    # F 10, latency 5, F 10, B 20, latency 5, B 20; rank 1 takes half as long again.
    both = "0F0 0B0", "1F0 1B0"
    assert exactly(TWO, *both) == 70
    assert exactly(TWO, *both, straggler=(1, 50)) == pytest.approx(10 + 5 + 15 + 30 + 5 + 20)
    assert exactly(TWO, *both, straggler=(0, 50)) == pytest.approx(15 + 5 + 10 + 20 + 5 + 30)


@pytest.mark.parametrize("link", [(0, 1), (1, 0)])
def test_messages_of_a_slow_link_take_longer_both_ways(link: tuple[int, int]) -> None:
    both, slow = ("0F0 0B0", "1F0 1B0"), (*link, 100)
    # Latency alone: 5 becomes 10, twice.
    assert exactly(TWO, *both, slow_link=slow) == 60 + 2 * 10
    # 4 units at 2 a tick take 2 ticks on the link before that.
    for duplex in ("half", "full"):
        wide = TWO.with_changes(message=4, bandwidth=2, duplex=duplex)
        assert exactly(wide, *both) == 60 + 2 * (2 + 5)
        assert exactly(wide, *both, slow_link=slow) == 60 + 2 * (4 + 10)


def test_a_slow_link_of_other_ranks_changes_nothing() -> None:
    three = Pipeline(num_ranks=3, num_microbatches=1, latency=5, message=4, bandwidth=2)
    orders = "0F0 0B0", "1F0 1B0", "2F0 2B0"
    assert exactly(three, *orders, slow_link=(0, 2, 100)) == exactly(three, *orders)
    # One of two boundaries: 7 more ticks each way.
    assert exactly(three, *orders, slow_link=(2, 1, 100)) == exactly(three, *orders) + 2 * 7


def test_a_seed_repeats_and_another_differs() -> None:
    pipeline = Pipeline(num_ranks=3, num_microbatches=4)
    problem, schedule = pipeline.problem(), family("1f1b").schedule(pipeline)
    first, again, other = (
        jitter(problem, schedule, Spread(samples=50, seed=seed)) for seed in (7, 7, 8)
    )
    assert first == again != other
    assert first.p5 < first.median < first.p95


def test_ranks_are_drawn_once_for_a_step() -> None:
    # All of the rank's 90 ticks have one factor: log-normal of mean 1 and deviation 10 %.
    problem = ONE.problem()
    spread = Spread(action_percent=0, rank_percent=10, samples=20_000)
    found = jitter(problem, ordered(problem, "0F0 0B0 0F1 0B1 0F2 0B2"), spread)
    deviation = sqrt(log1p(0.01))
    assert found.expected == pytest.approx(90, rel=0.005)
    assert found.median == pytest.approx(90 * exp(-(deviation**2) / 2), rel=0.01)
    assert found.p95 == pytest.approx(90 * exp(-(deviation**2) / 2 + 1.645 * deviation), rel=0.01)
    # Six actions with a factor each even out: 3 * (10**2 + 20**2) * 0.01 is the variance.
    each = Spread(action_percent=10, rank_percent=0, samples=20_000)
    found = jitter(problem, ordered(problem, "0F0 0B0 0F1 0B1 0F2 0B2"), each)
    assert found.p95 - found.expected == pytest.approx(1.645 * sqrt(15), rel=0.05)


def test_many_samples_are_drawn_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=2)
    problem, schedule = pipeline.problem(), family("1f1b").schedule(pipeline)
    monkeypatch.setattr(module, "MOST_NUMBERS", 7 * problem.num_tasks)
    sizes: list[int] = []
    whole = module._makespans

    def counted(*asked: object) -> object:
        sizes.append(asked[3])  # type: ignore[arg-type]  # the size
        return whole(*asked)  # type: ignore[arg-type]  # what was asked

    monkeypatch.setattr(module, "_makespans", counted)
    jitter(problem, schedule, Spread(samples=20))
    assert sizes == [7, 7, 6]


# Rank 0 has 0F0 (40 ticks) and 0F1 (60); each other rank r has rF0 (1), which waits for 0F0, and
# rF1 (59). The hasty order ends with five ranks at once: 40 + max(60, 1 + 59, ...) = 100. The calm
# one has one tick at the end of everything: 60 + 40 + 1 = 101, when all others wait since 59.
OTHERS = range(1, 5)
UNEVEN = by_hand(
    [("0F0", 40, (0,)), ("0F1", 60, (0,))]
    + [task for r in OTHERS for task in ((f"{r}F0", 1, (r,)), (f"{r}F1", 59, (r,)))],
    [("0F0", f"{r}F0", 0) for r in OTHERS],
    resources=[Resource(name=f"rank {r}", rank=r) for r in range(5)],
)
HASTY = ordered(UNEVEN, "0F0 0F1", *(f"{r}F0 {r}F1" for r in OTHERS))
CALM = ordered(UNEVEN, "0F1 0F0", *(f"{r}F1 {r}F0" for r in OTHERS))


def judged(schedule: Schedule, chunks: int) -> SolvedCandidate:
    measured = measure(UNEVEN, schedule)
    return SolvedCandidate(
        candidate=Candidate(chunks=chunks, placement="loop", backward="whole", slices=1),
        status=Outcome.FEASIBLE,
        reason=comparison(None, 0, None),
        pipeline=ONE,
        schedule=schedule,
        measured=measured,
        origin="",
        value=measured.makespan,
    )


def test_an_order_that_is_shorter_on_paper_is_ranked_by_how_it_is_in_life() -> None:
    spread = Spread(action_percent=20, rank_percent=0, samples=4000)
    hasty, calm = judged(HASTY, 1), judged(CALM, 2)
    found = Plan(
        space=PlanSpace(pipeline=ONE),
        status=Status.FEASIBLE,
        judged=(calm, hasty),
        winner=hasty,
        verdict=Verdict(decisions=()),
        seconds=0.0,
    )
    assert (hasty.value, calm.value) == (100, 101)
    assert found.ranked() == (hasty, calm)
    life = {one.candidate: jitter(UNEVEN, s, spread) for one, s in ((hasty, HASTY), (calm, CALM))}
    assert found.ranked(by=lambda one: life[one.candidate].expected) == (calm, hasty)
    assert found.ranked(by=lambda one: life[one.candidate].p95) == (calm, hasty)
    # The largest of five of 60 with deviation 12 is 1.16 * 12 above them, in the mean.
    assert life[hasty.candidate].expected == pytest.approx(100 + 1.16 * 12, rel=0.03)
    assert life[calm.candidate].expected == pytest.approx(101, rel=0.01)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"action_percent": 101}, "action_percent must be 0 to 100, got 101"),
        ({"rank_percent": -1}, "rank_percent must be 0 to 100, got -1"),
        ({"samples": 0}, "samples must be 1 to 100000, got 0"),
        ({"samples": MOST_SAMPLES + 1}, "samples must be 1 to 100000, got 100001"),
    ],
)
def test_what_is_no_spread_is_refused(values: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Spread(**values)  # type: ignore[arg-type]  # by name
