"""ZeRO-1's collectives beside any order: what waits for them, and how long a step is then."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from bubbleproof.papers.claims.measured_pipelines import last_end
from bubbleproof.papers.pipemesh.optimizer_sharding import (
    with_optimizer_sharding,
    with_sharded_state,
)
from bubbleproof.theory.families import families, member
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift
from bubbleproof.verify import check
from proofs_tests.cases import shapes
from proofs_tests.random_choices import combined, sharded
from proofs_tests.sized import sized


def test_optimizer_sharding_adds_both_ends_to_1f1b() -> None:
    # One chunk a rank: all is gathered before the first forward and reduced after the last
    # backward, rank 0's at the very end: (m + p - 1) (tF + tB) + 2 C.
    made = member("1f1b", p=3, m=5, tF=2, tB=4)
    assert with_optimizer_sharding(made.pipeline, made.schedule, 7) == 7 * 6 + 2 * 7
    both = member("chimera", p=4, m=4)
    assert with_optimizer_sharding(both.pipeline, both.schedule, 7) is None


def test_optimizer_sharding_costs_what_equation_2_says_in_pipemesh_order() -> None:
    """D_o = 2 C + (M-1) (H(C, e_1 tF) + H(C, d_S tB)), and what the family's collectives take."""
    made = member("pipemesh", p=2, m=6, v=3, e=(4, 2), d=(3, 3))
    family = PipeMesh((4, 2), (3, 3))
    for each in range(9):
        plain = step_ticks(made.problem, made.schedule)
        found = with_optimizer_sharding(made.pipeline, made.schedule, 3 * each)
        assert found == plain + 2 * each + 2 * (max(0, each - 4) + max(0, each - 6))
        pipeline = family.sharded(made.pipeline, Sharding(zero=1, gather=each, reduce=each))
        assert found == last_end(family, pipeline)


def waits(problem: Problem) -> Counter[tuple[str, str, int]]:
    edges, label = problem.edges, problem.label
    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    return Counter((label(a), label(b), lag) for a, b, lag in zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(sized(20, full=40)))
def test_gradients_that_lie_whole_let_no_computation_wait_for_a_reduction(seed: int) -> None:
    """Each stage's forwards wait for its gather, its reduction for all that adds: nothing else."""
    random = Random(seed)
    drawn = next(
        one
        for _ in range(99)
        if not (one := combined(random, without=("waits", "frozen_stages"))).is_bidirectional
    )
    plain = drawn.with_changes(overlaps=(), state_offload=None, sharding=None)
    sharding = replace(sharded(plain.num_microbatches, random), zero=1)
    enqueue, dequeue = sharding.sequences(plain.num_microbatches)
    reduction = len(enqueue) + len(dequeue) - 1  # collectives are numbered by operation
    first = "" if plain.num_slices == 1 else ".0"
    problem = plain.problem()
    expected: Counter[tuple[str, str, int]] = Counter()
    for task, action in enumerate(problem.actions):
        if action.kind is Kind.F:
            expected[f"{action.stage}UNSHARD{first}", problem.label(task), 0] += 1
        elif action.kind in (Kind.B, Kind.I, Kind.W):
            expected[problem.label(task), f"{action.stage}REDUCE_GRAD.{reduction}", 0] += 1
    found = waits(plain.with_changes(sharding=sharding).problem())
    assert found - waits(problem) == expected


@pytest.mark.parametrize("name", sorted(families()))
def test_every_published_order_carries_them(name: str) -> None:
    """They delay what is computed by all of a rank's gathers at most, and the end as long."""
    for pipeline in list(shapes(families()[name], (2, 3), (6,)))[:: sized(4, full=1)][:6]:
        chosen = pipeline.choices
        if pipeline.is_bidirectional or chosen.overlaps or chosen.state_offload:
            continue
        if chosen.frozen_stages:  # they have no gradient and no optimizer state
            continue
        schedule = families()[name].schedule(pipeline)
        plain = step_ticks(pipeline.problem(), schedule)
        for each in sized((0, 5), full=(0, 1, 5)):
            whole, run = with_sharded_state(pipeline, schedule, each)
            assert check(whole.problem(), run).ok
            most = 2 * pipeline.num_chunks * each
            assert plain + 2 * each <= step_ticks(whole.problem(), run) <= plain + most


def test_partial_reductions_hold_up_an_interleaved_order() -> None:
    """ZeRO-2 frees a buffer for the next chunk but one: 1F1B with three chunks comes back to it."""
    pipeline = Pipeline(num_ranks=2, num_microbatches=4, num_chunks=3)
    schedule = families()["interleaved"].schedule(pipeline)
    whole, run = with_sharded_state(pipeline, schedule, 1)
    assert check(whole.problem(), run).ok
    two = whole.with_changes(sharding=Sharding(zero=2, gather=1, reduce=1))
    with pytest.raises(Deadlock):
        left_shift(two.problem(), run.program)
