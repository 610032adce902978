"""Replication: visits by hand, and PipeMesh's own found again in schedules without collectives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.replication import (
    PlacedCollective,
    memory_changes,
    placed_collectives,
    schedule_with,
    with_placed,
)
from bubbleproof.theory.pipelines.sharding import Sharding, collectives, visits
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.check import check
from proofs_tests.cases import all_family_cases, overlapped
from proofs_tests.sized import sized
from proofs_tests.theory.test_pipemesh import filled

# One rank, two stages, two microbatches, every backward split; all take one tick.
SPLIT = "0F0 0F1 1F0 1I0 1F1 1I1 1W0 0I0 0W0 1W1 0I1 0W1"


def split_on_one_rank() -> tuple[Problem, Schedule]:
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=2,
        num_chunks=2,
        split_backward=True,
        forward=1,
        input_backward=1,
        weight_backward=1,
    )
    problem = pipeline.problem()
    return problem, left_shift(problem, Program.from_orders([SPLIT.split()]))


def told(placed: list[PlacedCollective], problem: Problem) -> list[str]:
    """Each collective with its ticks and what it serves."""
    return [
        f"{c.action} at {c.start}: {' '.join(problem.actions.label(t) for t in c.tasks)}"
        for c in placed
    ]


def test_visits_of_split_backwards_by_hand() -> None:
    problem, schedule = split_on_one_rank()
    assert told(placed_collectives(problem, schedule, 3), problem) == [
        # forward visits: 0F0 0F1, then 1F0 1F1 (the I between them is left out)
        "0UNSHARD at 0: 0F0 0F1",
        "0RESHARD at 2: 0F0 0F1",
        "1UNSHARD at 2: 1F0 1F1",
        "1RESHARD at 5: 1F0 1F1",
        # backward visits: the W of stage 1 in between reads no parameters
        "1UNSHARD.1 at 3: 1I0 1I1",
        "1RESHARD.1 at 6: 1I0 1I1",
        "0UNSHARD.1 at 7: 0I0 0I1",
        "0RESHARD.1 at 11: 0I0 0I1",
        # gradient visits: 1W0 | 0W0 | 1W1 | 0W1; both Is of stage 1 come before its first W
        "1REDUCE_GRAD.2 at 7: 1I0 1I1 1W0",
        "0REDUCE_GRAD.2 at 9: 0I0 0W0",
        "1REDUCE_GRAD.3 at 10: 1W1",
        "0REDUCE_GRAD.3 at 12: 0I1 0W1",
    ]
    assert told(placed_collectives(problem, schedule, 1), problem) == [
        "0UNSHARD at 0: 0F0 0F1 0I0 0I1",
        "1UNSHARD at 2: 1F0 1I0 1F1 1I1",
        "0REDUCE_GRAD.2 at 12: 0I0 0W0 0I1 0W1",
        "1REDUCE_GRAD.2 at 10: 1I0 1I1 1W0 1W1",
    ]
    assert told(placed_collectives(problem, schedule, 0), problem) == [
        "0REDUCE_GRAD.2 at 12: 0I0 0W0 0I1 0W1",
        "1REDUCE_GRAD.2 at 10: 1I0 1I1 1W0 1W1",
    ]
    with pytest.raises(ValueError, match="a ZeRO level must be 0, 1, 2 or 3, got 4"):
        placed_collectives(problem, schedule, 4)


def test_memory_of_split_backwards_by_hand() -> None:
    # stage 0 has 100 units of parameters and 10 of gradient, stage 1 has 7 and 1
    problem, schedule = split_on_one_rank()
    placed = placed_collectives(problem, schedule, 3)
    whole, timed = with_placed(problem, placed), schedule_with(problem, schedule, placed)
    starts = dict(
        zip(whole.locate(timed.program.actions).tolist(), timed.start.tolist(), strict=True)
    )
    changes: dict[int, int] = {}
    for tasks, at_end, _, deltas in memory_changes(whole, placed, (100, 7), (10, 1)):
        for task, delta in zip(tasks.tolist(), np.broadcast_to(deltas, len(tasks)), strict=True):
            when = starts[task] + int(whole.duration[task]) * at_end
            changes[when] = changes.get(when, 0) + int(delta)
    assert changes == {
        0: 100,  # 0UNSHARD
        2: -100 + 7,  # 0RESHARD, 1UNSHARD
        3: 7 + 1,  # 1UNSHARD.1; 1I0 makes room
        5: -7,  # 1RESHARD
        6: -7,  # 1RESHARD.1
        7: 100 + 10 - 1,  # 0UNSHARD.1, 0I0 makes room; 1REDUCE_GRAD.2
        9: 1 - 10,  # 1W1 makes room, 0REDUCE_GRAD.2
        10: -1 + 10,  # 1REDUCE_GRAD.3, 0I1 makes room
        11: -100,  # 0RESHARD.1
        12: -10,
    }


def test_recomputation_reads_the_parameters_of_the_backward_visit() -> None:
    pipeline = Pipeline(
        num_ranks=1, num_microbatches=2, recompute=Recompute(stages=(0,)), forward=1, backward=1
    )
    problem = pipeline.problem()
    order = ["0F0", "0F1", "0R0", "0B0", "0R1", "0B1"]
    schedule = left_shift(problem, Program.from_orders([order]))
    assert told(placed_collectives(problem, schedule, 3), problem) == [
        "0UNSHARD at 0: 0F0 0F1",
        "0RESHARD at 2: 0F0 0F1",
        "0UNSHARD.1 at 2: 0R0 0B0 0R1 0B1",
        "0RESHARD.1 at 6: 0R0 0B0 0R1 0B1",
        "0REDUCE_GRAD.2 at 6: 0B0 0B1",
    ]


def test_an_overlapped_pair_is_in_a_visit_of_each_direction() -> None:
    case = overlapped()
    found = placed_collectives(case.problem, case.schedule, 3)
    pair = "(1F1;1B0)OVERLAP_F_B"
    both = [c for c in found if pair in [case.problem.label(t) for t in c.tasks]]
    assert [(c.kind, c.stage, c.rank) for c in both] == [
        (Kind.UNSHARD, 1, 1),
        (Kind.RESHARD, 1, 1),
        (Kind.UNSHARD, 1, 1),
        (Kind.RESHARD, 1, 1),
        (Kind.REDUCE_GRAD, 1, 1),
    ]


def served_by_theory(pipeline: Pipeline, mesh: PipeMesh, zero: int) -> set[tuple[object, ...]]:
    """What PipeMesh's own collectives serve, by their visits."""
    sharded = mesh.sharded(pipeline, Sharding(zero=zero, gather=1, reduce=1))
    sharding = sharded.choices.sharding
    assert sharding is not None
    listed = visits(sharded.stage_ranks, *sharding.sequences(pipeline.num_microbatches))
    found: set[tuple[object, ...]] = set()
    for c in collectives(listed, sharding):
        visit, kind = c.visit, Kind.F if c.visit.is_forward else Kind.B
        served = tuple((kind, visit.stage, j) for j in range(visit.first, visit.end))
        found.add((c.kind, visit.rank, served))
    return found


def shapes() -> Iterator[tuple[int, int, int, tuple[int, ...], tuple[int, ...]]]:
    """Two chunks or three: with one, visits of one direction are one run."""
    yield from [shape for shape in filled(range(1, 4), 6) if shape[1] > 1][::7]


def test_the_visits_of_pipemesh_are_found_in_its_schedule() -> None:
    # two routes: its enqueue and dequeue sequences, and the runs in its program
    tried = 0
    for p, v, m, e, d in shapes():
        mesh = PipeMesh(e, d)
        pipeline = mesh.pipeline(make_parameters({"p": p, "m": m, "v": v}))
        problem = pipeline.problem()
        schedule = mesh.schedule(pipeline, problem)
        for zero in (2, 3):
            found = {
                (c.kind, c.rank, tuple((u.kind, u.stage, u.microbatch) for u in c.uses))
                for c in placed_collectives(problem, schedule, zero)
                if c.kind is not Kind.UNSHARD or zero == 3
            }
            expected = served_by_theory(pipeline, mesh, zero)
            gathers = {row for row in expected if row[0] is Kind.UNSHARD}
            assert found == (expected if zero == 3 else expected - gathers)
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_family_keeps_its_times_and_its_rules(level: int) -> None:
    found = [*all_family_cases((2, 4), (2, 4), per_family=sized(1, full=2)).items()]
    for name, cases in sized(found[level % 2 :: 2], full=found):
        for case in cases:
            placed = placed_collectives(case.problem, case.schedule, level)
            whole = with_placed(case.problem, placed)
            schedule = schedule_with(case.problem, case.schedule, placed)
            verdict = check(whole, schedule)
            assert verdict.ok, f"{name} {case.name}: {verdict}"
            actions = case.problem.actions  # where no backward runs no gradient is reduced
            is_back = ~actions.is_kind(Kind.F, Kind.SEND_F)
            stages = set(actions.stage[is_back].tolist()) - {-1}
            assert {c.stage for c in placed if c.kind is Kind.REDUCE_GRAD} == stages
            kept = schedule.program.resource < len(case.problem.resources)
            assert (schedule.start[kept] == case.schedule.start).all()
