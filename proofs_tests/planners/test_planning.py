"""The planner's steps: what it looks at, ends with, and says of each candidate."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import pytest

from bubbleproof.parallel import open_executor
from bubbleproof.planners import NoPlanFound, Plan, PlanOptions, SolvedCandidate, plan
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.pipeline_search import least_capacity
from bubbleproof.planners.planned import front_of
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates.bundle import check_bundle
from bubbleproof.verify.candidates.chosen import foreign_choice
from proofs_tests.patience import FOREVER, PATIENCE, ended
from proofs_tests.planners.found_plans import GAPS, found_plan, value_found
from proofs_tests.sized import sized

SPACE = PlanSpace(
    pipeline=Pipeline(
        num_ranks=2,
        num_microbatches=4,
        forward=(4, 6),
        backward=(8, 12),
        input_backward=(4, 6),
        weight_backward=(4, 6),
        activation=2,
        capacity=4,
        latency=1,
    ),
    allowed=AllowedChoices(
        recompute=AllowedRecompute(stages=(0,)), evict=AllowedEvictions(pairs=((0, 1),), duration=2)
    ),
    chunks=(1, 2, 5),
    placements=("loop", "wave"),
    backward=("whole", "split"),
)
OPTIONS = PlanOptions(time_limit=PATIENCE, threads=1)


@pytest.fixture(scope="module")
def found() -> Plan:
    return found_plan(plan(SPACE, OPTIONS))


def test_the_plan_says_of_each_candidate_what_became_of_it(found: Plan) -> None:
    assert found.status is Status.OPTIMAL
    assert found.value == found.lower_bound
    assert found.statement.startswith("optimal over these choices")
    assert [one.candidate for one in found.judged] == [*SPACE.candidates()]
    by_text = {str(one.candidate): one for one in found.judged}
    # 4 ticks are not divisible by 5 chunks; one chunk has the same stages in a wave as in a loop.
    illegal = by_text["v=5 loop whole"]
    assert (illegal.status, str(illegal.reason)) == (
        Outcome.NOT_LEGAL,
        "forward 4 is not divisible by 5",
    )
    assert sum(not one.is_legal for one in found.judged) == 4
    assert str(by_text["v=1 wave split"].reason) == "the same pipeline as v=1 loop split"
    assert by_text["v=1 wave split"].bound == by_text["v=1 loop split"].bound
    for one in found.judged:
        assert one.bound <= (value_found(one) or NEVER)


def test_the_winner_is_one_of_the_choices_and_its_proofs_are_accepted(found: Plan) -> None:
    winner = found.winner
    assert found.verdict.ok
    verdict = check_bundle(SPACE, found.bundle)
    assert (verdict.refusals, verdict.bound) == ((), found.value)
    assert verdict.believed == found.believed
    is_split = winner.candidate.backward == "split"
    given = SPACE.pipeline.with_changes(split_backward=is_split)
    if winner.candidate.chunks == 1:
        assert foreign_choice(given, SPACE.allowed, winner.pipeline) is None
    assert winner.peak_memory <= 4


def test_the_front_falls_in_memory_as_it_grows_in_time(found: Plan) -> None:
    points = [(one.value, one.peak_memory) for one in front_of(found.solved)]
    assert points[0][0] == found.value
    assert points == sorted(points)
    assert [peak for _, peak in points] == sorted({peak for _, peak in points}, reverse=True)
    ranked = [one.value for one in found.ranked() if isinstance(one, SolvedCandidate)]
    assert ranked == sorted(ranked)
    assert [one.is_legal for one in found.ranked()][-4:] == [False] * 4


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_workers_find_the_same_optimum(found: Plan, workers: str) -> None:
    def asked(executor: Executor | None, space: PlanSpace, value: int | None) -> None:
        assert executor is not None
        beside = plan(space, OPTIONS, executor=executor)
        assert (beside.status, value_found(beside)) == (Status.OPTIMAL, value)
        assert sum(not one.is_legal for one in beside.judged) == 2 * len(space.placements)
        assert check_bundle(space, beside.bundle).bound == value

    if workers == "threads":
        with ThreadPoolExecutor(2) as pool:
            asked(pool, SPACE, found.value)
        return
    few = replace(SPACE, chunks=(1, 5), placements=("loop",))
    with open_executor(2) as processes:
        asked(processes, few, value_found(plan(few, OPTIONS)))


# Eight candidates, of which one look does not close all.
WIDE = replace(
    SPACE, pipeline=SPACE.pipeline.with_changes(num_microbatches=8), chunks=(1, 2), allowed=None
)


@pytest.mark.parametrize("is_interrupted", [False, True], ids=["stop", "Ctrl-C"])
def test_an_interruption_gives_the_best_so_far(is_interrupted: bool) -> None:
    stop, lines = threading.Event(), list[str]()

    def tell(line: str) -> None:
        lines.append(line)
        if is_interrupted:
            raise KeyboardInterrupt
        stop.set()

    options = PlanOptions(time_limit=FOREVER, threads=1, tell=tell, stop=stop)
    found = found_plan(ended(lambda: plan(WIDE, options)))
    assert len(lines) == 1
    assert stop.is_set()
    assert found.reason == "interrupted: the best so far"
    assert found.status is Status.FEASIBLE
    assert found.verdict.ok
    # What nobody looked at has what one rank computes before, for eight microbatches and after: on
    # rank 1, 8 * (6 + 12) between a forward of 4 and a backward of 8 on rank 0 and a latency of 1
    # each way where backwards are whole; where they are split and of two chunks, no backward after,
    # and half the forward before.
    assert found.lower_bound == 8 * 18 + 2 + 1
    verdict = check_bundle(WIDE, found.bundle)
    assert (verdict.refusals, verdict.bound) == ((), found.lower_bound)
    assert verdict.believed == found.believed


def test_one_that_is_stopped_before_it_began_knows_nothing() -> None:
    stop = threading.Event()
    stop.set()
    found = plan(SPACE, replace(OPTIONS, stop=stop))
    assert (found.status, found.solved) == (Status.UNKNOWN, ())
    assert 0 < found.lower_bound <= plan(SPACE, OPTIONS).lower_bound
    assert found.statement == "unknown: no schedule was found in the time given"


# Memory of a chunk's activation is 3, of stage 1 5; weights beside.
PLAIN = {
    "whole": Pipeline(num_ranks=2, num_microbatches=3, activation=(3, 5), static=(4, 1)),
    "split": Pipeline(
        num_ranks=2,
        num_microbatches=3,
        activation=(3, 5),
        split_backward=True,
        released_at_input=1,
    ),
    "residual": Pipeline(
        num_ranks=2,
        num_microbatches=2,
        activation=(3, 5),
        split_backward=True,
        released_at_input=-2,
    ),
    "chunks": Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2, activation=(1, 2, 3, 4)),
    "slices": Pipeline(num_ranks=2, num_microbatches=2, num_slices=2, activation=3),
    "both ways": Pipeline(
        num_ranks=2, num_microbatches=2, placement="bidirectional", activation=(1, 3), static=2
    ),
}
# By hand: one microbatch at a time holds its activation on each stage of a rank.
NEEDED = {
    "whole": 4 + 3,
    "split": 5,
    "residual": 5 + 2,
    "chunks": 2 + 4,
    "slices": 3 + 3,
    "both ways": 2 + 2 + 3,
}


@pytest.mark.parametrize("name", sized(sorted({*PLAIN} - {"split"}), full=[*PLAIN]))
def test_the_least_memory_fits_and_one_unit_less_does_not(name: str) -> None:
    pipeline = PLAIN[name]
    options = SolveOptions(time_limit=PATIENCE, threads=1)
    least = least_capacity(ShapedPipeline(pipeline=pipeline, allowed=None), options)
    assert least == NEEDED[name]
    fits, less = (
        solve(pipeline.with_changes(capacity=capacity).problem(), options)
        for capacity in (least, least - 1)
    )
    assert fits.schedule is not None
    assert less.status is Status.INFEASIBLE


def test_a_plan_in_which_nothing_fits_names_the_nearest_memory() -> None:
    tight = replace(SPACE, pipeline=SPACE.pipeline.with_changes(capacity=1), chunks=(1, 5))
    found = plan(tight, OPTIONS)
    assert found.status is Status.INFEASIBLE
    assert isinstance(found, NoPlanFound)
    assert found.solved == ()
    # One microbatch of 2 units, or while its forward or R runs; whatever is chosen.
    assert found.least_capacity == 2
    assert all(one.status in (Outcome.INFEASIBLE, Outcome.NOT_LEGAL) for one in found.judged)
    enough = replace(tight, pipeline=tight.pipeline.with_changes(capacity=2))
    assert isinstance(plan(enough, OPTIONS), Plan)


def test_no_legal_candidate_is_nothing_that_fits() -> None:
    found = plan(replace(SPACE, chunks=(5,)), OPTIONS)
    assert isinstance(found, NoPlanFound)
    assert (found.status, found.lower_bound, found.least_capacity) == (Status.INFEASIBLE, 0, None)
    assert found.bundle == ()


def test_no_time_is_no_limit() -> None:
    with pytest.raises(ValueError, match="time limit must be above 0 seconds, got 0"):
        PlanOptions(time_limit=0)
    with pytest.raises(ValueError, match="work must be above 0 units, got 0"):
        PlanOptions(work=0)


@pytest.mark.parametrize("has_workers", [False, True], ids=["here", "workers"])
def test_counted_work_repeats(has_workers: bool) -> None:
    """Candidates leave gaps when the work is done: nothing but the count ends it."""
    hard = replace(GAPS, placements=("loop", "wave"))
    options = PlanOptions(time_limit=PATIENCE, work=sized(0.05, full=0.15), threads=1)

    def answers() -> tuple[object, ...]:
        with ThreadPoolExecutor(2) if has_workers else nullcontext() as pool:
            found = plan(hard, options, executor=pool)
        rows = [
            (one.status, value_found(one), one.bound, one.word, one.reason) for one in found.judged
        ]
        starts = [(one.origin, one.pipeline, one.schedule.start.tolist()) for one in found.solved]
        return found.status, rows, starts

    first = answers()
    assert first[0] is Status.FEASIBLE
    assert answers() == first
