"""Claims about one rank: below every optimum, exact where they should be, refused where changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.planners.looks import quick_claim
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedOffloads
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates import rank_claims
from bubbleproof.verify.candidates.bundle import CandidateBound, check_bundle
from bubbleproof.verify.candidates.cases import candidate_refusal
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    ShownByRanks,
)
from bubbleproof.verify.certificates.one_machine import (
    OneMachine,
    one_machine_refusal,
    paths_along,
)
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.zeros import zeros_or

CASES = sized(16, full=400)


def drawn(seed: int) -> Pipeline:
    """A small pipeline of uneven stages, of which many take nothing; every other one has slices."""
    draw = random.Random(32 + seed)
    ranks, chunks = draw.choice([(2, 1), (3, 1), (2, 2)])
    stages, slices = ranks * chunks, 1 + seed % 2

    def row() -> tuple[int, ...]:
        return zeros_or(draw, 1, 6, stages)

    halves = row(), row()
    return Pipeline(
        num_ranks=ranks,
        num_chunks=chunks,
        num_slices=slices,
        num_microbatches=draw.randint(1, 3 if stages * slices <= 4 else 1),
        placement=draw.choice(["loop", "wave"]),
        split_backward=draw.random() < 0.5,
        forward=row(),
        input_backward=halves[0],
        weight_backward=halves[1],
        backward=tuple(a + b for a, b in zip(*halves, strict=True)),
        latency=draw.randint(0, 3),
        message=draw.randint(0, 2),
        bandwidth=1,
        activation=row(),
        static=row(),
        capacity=draw.choice([None, 20, 30]),
    )


@pytest.mark.parametrize("seed", range(CASES))
def test_what_a_rank_computes_is_below_every_optimum(seed: int) -> None:
    pipeline = drawn(seed).with_changes(capacity=None)
    found = solve(pipeline.problem(), SolveOptions(time_limit=PATIENCE))
    assert found.status is Status.OPTIMAL
    assert found.makespan is not None
    assert max(ShownByRanks(pipeline).work) <= found.makespan


@pytest.mark.parametrize("seed", range(CASES))
def test_another_checker_accepts_it_of_all_tasks_of_the_rank(seed: int) -> None:
    """One-machine certificates are checked on the tasks, by longest paths, not by stages."""
    pipeline = drawn(seed).with_changes(capacity=None)
    problem = pipeline.problem()
    for rank, bound in enumerate(ShownByRanks(pipeline).work):
        tasks = problem.occupancy.task[problem.occupancy.resource == rank].tolist()
        claim = OneMachine(resource=rank, tasks=tuple(tasks), bound=bound)
        assert one_machine_refusal(problem, claim) is None


@pytest.mark.parametrize("seed", range(CASES))
def test_without_room_no_schedule_fits_and_with_room_one_microbatch_does(seed: int) -> None:
    pipeline = drawn(seed).with_changes(capacity=9, num_microbatches=1, weight_workspace=())
    found = solve(pipeline.problem(), SolveOptions(time_limit=PATIENCE))
    if any(room is not None and room < 0 for room in ShownByRanks(pipeline).room):
        assert found.status is Status.INFEASIBLE
    elif not pipeline.split_backward:  # a W that takes time may hold what no I does
        assert found.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", range(CASES))
def test_what_a_rank_holds_is_below_every_optimum(seed: int) -> None:
    pipeline = drawn(seed)
    room = [
        units for units in ShownByRanks(pipeline.with_changes(capacity=0)).room if units is not None
    ]
    pipeline = pipeline.with_changes(capacity=-min(room) + seed % 7)
    found = solve(pipeline.problem(), SolveOptions(time_limit=PATIENCE))
    if found.status is not Status.INFEASIBLE or not pipeline.split_backward:
        assert found.status is Status.OPTIMAL
        assert found.makespan is not None
        assert max(ShownByRanks(pipeline).memory) <= found.makespan


def test_one_microbatch_at_a_time_is_exact() -> None:
    """Of 3 microbatches each goes through 4 stages and back before the next: 3 * 4 (3 + 5 + 2 1)
    less 2 messages that the last stage does not send; a byte short of two is room for one."""
    one = Pipeline(
        num_ranks=4,
        num_microbatches=3,
        forward=3,
        backward=5,
        latency=1,
        activation=10,
        capacity=19,
    )
    assert ShownByRanks(one).memory[0] == 3 * (4 * (3 + 5) + 2 * 3)
    found = solve(one.problem(), SolveOptions(time_limit=PATIENCE))
    assert found.makespan == ShownByRanks(one).memory[0]
    claim = RankMemory(rank=0, bound=ShownByRanks(one).memory[0])
    assert candidate_refusal(one, None, claim) is None
    assert candidate_refusal(one, None, replace(claim, bound=claim.bound + 1)) is not None
    assert ShownByRanks(one.with_changes(capacity=20)).memory[0] == -(-3 * (4 * 8 + 2 * 3) // 2)
    assert ShownByRanks(one.with_changes(capacity=None)).memory == [0] * 4


def test_there_are_such_and_such() -> None:
    full = [
        any(
            room is not None and room < 0
            for room in ShownByRanks(drawn(s).with_changes(capacity=9)).room
        )
        for s in range(CASES)
    ]
    assert any(full)
    assert not all(full)


def test_it_is_1f1bs_time_where_stages_are_even() -> None:
    """1F1B takes (m + p - 1)(tF + tB); a split backward (p - 1) tF + m (tF + tI + tW) or more.

    The last rank shows both.
    """
    plain = Pipeline(num_ranks=4, num_microbatches=8, forward=3, backward=5)
    assert quick_claim(ShapedPipeline(pipeline=plain, allowed=None)) == RankWork(
        rank=3, bound=(8 + 4 - 1) * (3 + 5)
    )
    split = Pipeline(
        num_ranks=4,
        num_microbatches=8,
        forward=3,
        input_backward=3,
        weight_backward=2,
        backward=5,
        split_backward=True,
    )
    assert quick_claim(ShapedPipeline(pipeline=split, allowed=None)) == RankWork(
        rank=3, bound=3 * 3 + 8 * 8
    )
    both = Pipeline(num_ranks=2, num_microbatches=2, placement="bidirectional")
    assert quick_claim(ShapedPipeline(pipeline=both, allowed=None)) is None


def test_a_slice_comes_before_its_sample_is_through() -> None:
    """Two slices on two ranks, one microbatch: rank 1 begins after one slice, not after both.

    F of rank 1 may start at 3, 8 ticks of work in 2 slices, then 5 back: 3 + 2 (3 + 5) + 5.
    """
    sliced = Pipeline(num_ranks=2, num_microbatches=1, num_slices=2, forward=3, backward=5)
    assert ShownByRanks(sliced).work[1] == 3 + 2 * (3 + 5) + 5
    found = solve(sliced.problem(), SolveOptions(time_limit=PATIENCE))
    assert found.makespan == 3 + 2 * (3 + 5) + 5


PIPELINE = Pipeline(num_ranks=2, num_microbatches=2, activation=(4, 3), static=(1, 2), capacity=4)


def test_a_claim_is_refused_by_its_reason() -> None:
    full = NoRoom(rank=0, bound=1 << 40)
    assert candidate_refusal(PIPELINE, None, full) is None
    # Rank 0 holds 1 + 4 of 4, rank 1 holds 2 + 3; of 5 there is room on both.
    roomy = PIPELINE.with_changes(capacity=5)
    assert candidate_refusal(roomy, None, full) == "rank 0 has room for one microbatch"
    unlimited = PIPELINE.with_changes(capacity=None)
    assert candidate_refusal(unlimited, None, full) == "rank 0 has room for one microbatch"
    away = AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=1, reload=1))
    assert candidate_refusal(PIPELINE, away, full) == "what a rank holds depends on choices"
    for rank in (-1, 2):
        why = f"rank {rank} is none of the pipeline's 2"
        assert candidate_refusal(PIPELINE, None, replace(full, rank=rank)) == why
    both = Pipeline(num_ranks=2, num_microbatches=2, placement="bidirectional", capacity=0)
    assert candidate_refusal(both, None, full) == "its stages stand on two ranks each"


def test_a_tick_more_than_a_rank_shows_is_refused() -> None:
    # Rank 1: 1 tick until it begins, 2 (1 + 2) of work, 2 back.
    assert candidate_refusal(PIPELINE, None, RankWork(rank=1, bound=9)) is None
    why = candidate_refusal(PIPELINE, None, RankWork(rank=1, bound=10))
    assert why == "rank 1 shows 9 ticks, not 10"
    idle = RankWork(rank=1, bound=3, objective="span_idle")
    assert "bounds the makespan" in (candidate_refusal(PIPELINE, None, idle) or "")


def test_a_frozen_stage_does_no_work_that_is_not_its_own() -> None:
    """By hand at ``FROZEN``: 4 + 4 (4 + 4) + 8 on rank 1, and what rank 0 does, 48, is reached."""
    assert ShownByRanks(FROZEN).work == [48, 44]
    assert candidate_refusal(FROZEN, None, RankWork(rank=1, bound=44)) is None
    why = candidate_refusal(FROZEN, None, RankWork(rank=1, bound=60))
    assert why == "rank 1 shows 44 ticks, not 60"
    # Its activation is given back with its B: life 4 + 4 + 4 + 8 on rank 0, one at a time.
    one = FROZEN.with_changes(capacity=(1, None))
    assert candidate_refusal(one, None, RankMemory(rank=0, bound=4 * 20)) is None
    assert candidate_refusal(one, None, RankMemory(rank=0, bound=4 * 20 + 1)) is not None


# What holds whatever is drawn needs each of its hypotheses: without one, a claim stands that a
# schedule refutes.

NEVER = 1 << 40
LIVES, PATHS, COPIED = rank_claims._lives, paths_along, rank_claims.copied_problem


def without_life(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """Lives of which none is 0."""
    return np.maximum(LIVES(problem, forward, backward), 1)


def longest_slice(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """Lives of which each slice has the longest."""
    lives = LIVES(problem, forward, backward)
    return np.broadcast_to(lives.max(axis=1, keepdims=True), lives.shape)


def until_w(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """Lives until W, also of what an I gives back."""
    lives, actions = LIVES(problem, forward, backward).copy(), problem.actions
    weights = np.flatnonzero(actions.is_kind(Kind.W))
    lives[actions.stage[weights], actions.slice[weights]] += problem.duration[weights]
    return lives


def after_i(problem: Problem, edges: Edges, counted: Sequence[int]) -> tuple[list[int], list[int]]:
    """Paths as if a rank never ended with a W."""
    paths, weights = PATHS(problem, edges, counted), problem.actions.is_kind(Kind.W).tolist()
    assert paths is not None
    return paths[0], [NEVER if is_w else tail for is_w, tail in zip(weights, paths[1], strict=True)]


def all_trained(pipeline: Pipeline) -> tuple[Problem, int]:
    """As it was derived once: from numbers of the stages, which say not what is frozen."""
    return COPIED(pipeline.with_changes(frozen_stages=()))


# F 4 and B 8 on rank 0, nothing on rank 1, whose 4 units never stay: 2 (4 + 8).
INSTANT = Pipeline(
    num_ranks=2, num_microbatches=2, forward=(4, 0), backward=(8, 0), activation=(1, 4), capacity=3
)
# The second slice's F and B at the instant at which the first slice's F ends: 1 unit is held.
SECOND_SLICE = Pipeline(
    num_ranks=1,
    num_microbatches=1,
    num_slices=2,
    forward=((1, 0),),
    backward=((1, 0),),
    capacity=1,
)
# I gives all back after 4 ticks on both ranks, so that the second F is at 4 and its I ends at 8;
# then W takes 2. Held until the end of W it were 2 (4 + 2).
AT_INPUT = Pipeline(
    num_ranks=2,
    num_microbatches=2,
    backward=3,
    weight_backward=(2, 0),
    released_at_input=1,
    split_backward=True,
    capacity=(1, None),
)
# One of two microbatches is recomputed: 2 (1 + 2), and R 1.
AGAIN = Pipeline(num_ranks=1, num_microbatches=2, recompute=Recompute(samples=((0, 0),)))
# Rank 1 trains nothing: it computes for 4 (4 + 4) ticks, between 4 before and 8 after. Rank 0 has
# 4 (4 + 8) and never waits.
FROZEN = Pipeline(
    num_ranks=2,
    num_microbatches=4,
    forward=4,
    backward=8,
    input_backward=4,
    weight_backward=4,
    frozen_stages=(1,),
)
# Stage 0 runs on rank 0 for one microbatch and on rank 1 for the other: 9 + 1 + 1 + 9 on each.
BOTH_WAYS = Pipeline(
    num_ranks=2, num_microbatches=2, forward=(9, 1), backward=(9, 1), placement="bidirectional"
)
# The last I of rank 1 has one of rank 0 after it, its last W nothing: 1 + (1 + 1 + 5).
LAST_W = Pipeline(
    num_ranks=2, num_microbatches=1, backward=6, weight_backward=(0, 5), split_backward=True
)


def test_a_bundle_bounds_a_frozen_pipeline_by_what_it_does() -> None:
    """At most 48, which is reached (``FROZEN``)."""
    space = PlanSpace(pipeline=FROZEN)
    [candidate] = space.candidates()
    for rank, bound, proved in ((0, 48, 48), (1, 60, None)):
        proof = RankWork(rank=rank, bound=bound)
        entry = CandidateBound(candidate=candidate, bound=bound, certificate=proof)
        assert check_bundle(space, (entry,)).bound == proved


CONTROLS: dict[str, tuple[Pipeline, RankClaim, int, object, str, object]] = {
    "a life of 0": (INSTANT, NoRoom(rank=1, bound=NEVER), 24, rank_claims, "_lives", without_life),
    "the last slice's life": (
        SECOND_SLICE,
        NoRoom(rank=0, bound=NEVER),
        2,
        rank_claims,
        "_lives",
        longest_slice,
    ),
    "given back by I": (AT_INPUT, RankMemory(rank=0, bound=12), 10, rank_claims, "_lives", until_w),
    "microbatches alike": (
        AGAIN,
        RankWork(rank=0, bound=8),
        7,
        rank_claims,
        "is_alike",
        lambda _: True,
    ),
    "all that is chosen": (
        FROZEN,
        RankWork(rank=1, bound=60),
        48,
        rank_claims,
        "copied_problem",
        all_trained,
    ),
    "one direction": (
        BOTH_WAYS,
        RankWork(rank=0, bound=36),
        20,
        Pipeline,
        "is_bidirectional",
        False,
    ),
    "nothing after a W": (
        LAST_W,
        RankWork(rank=1, bound=9),
        8,
        rank_claims,
        "paths_along",
        after_i,
    ),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_each_hypothesis_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, claim, least, home, part, careless = CONTROLS[name]
    assert optimum(pipeline.problem(), "makespan") == least < claim.bound
    assert candidate_refusal(pipeline, None, claim) is not None
    monkeypatch.setattr(home, part, careless)
    assert candidate_refusal(pipeline, None, claim) is None
