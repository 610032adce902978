"""Problems with collectives of their own, which take time, beside any computation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.plans.own_collectives import level_of, own_collectives
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.replay import NotVerified, replay
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.replication import (
    placed_collectives,
    schedule_with,
    with_placed,
)
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.test_every_family import ORDINARY, SHAPES
from proofs_tests.verify.dataflow.samples import without

SPEC = replace(TINY, sequence=2)
COLLECTIVES = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
ENOUGH_FOR = {0: "", 1: "2", 2: "2", 3: "3"}  # whole replicas; one REDUCE_GRAD does for level 2
Made = tuple[Problem, Schedule]


def made(name: str, level: int, ticks: int = 1) -> Made:
    """A family's problem with collectives of so many ticks, which all run as early as they can."""
    case = family_case(name, **SHAPES.get(name, ORDINARY))
    placed = placed_collectives(case.problem, case.schedule, level)
    problem = with_placed(case.problem, placed)
    takes = problem.actions.is_kind(Kind.UNSHARD, Kind.REDUCE_GRAD)
    problem = replace(problem, duration=np.where(takes, ticks, problem.duration))
    program = schedule_with(case.problem, case.schedule, placed).program
    return problem, left_shift(problem, program)


def run(given: Made, levels: str | None = None, **options: object) -> ReplayReport:
    zero = None if levels is None else ZeroLevels.parse(levels)
    return replay(*given, SPEC, data_parallel=2, zero=zero, **options)  # type: ignore[arg-type]  # tests pass what they mean


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("zb-v", 3), ("zb-h1", 2), ("svpp-w", 3), ("trecomp", 3), ("dualpipev", 2),
        ("chimera", 3), ("bpipe", 2), ("dualpipe", 1), ("terapipe", 0),
    ],
)  # fmt: skip
def test_collectives_beside_any_computation_replay(name: str, level: int) -> None:
    given = made(name, level, ticks=1 + level % 2)
    report = run(given)
    assert report.ok, str(report)
    assert report.zero == ENOUGH_FOR[level]
    assert [trace.num_differing for trace in report.traces] == [0] * len(report.traces)


def test_what_is_read_is_what_was_put_in() -> None:
    for name in ("zb-v", "svpp-w", "trecomp", "chimera"):
        case = family_case(name, **SHAPES.get(name, ORDINARY))
        for level in range(4):
            placed = placed_collectives(case.problem, case.schedule, level)
            problem = with_placed(case.problem, placed)
            schedule = schedule_with(case.problem, case.schedule, placed)
            assert own_collectives(problem, schedule) == placed
            assert level_of(placed) == int(ENOUGH_FOR[level] or 0)


def test_shards_of_a_schedule_with_its_own_collectives_train() -> None:
    training = Training(optimizer="momentum", steps=2)
    for name in ("zb-v", "chimera"):
        report = run(made(name, 3), "3,norm=1", training=training)
        assert report.ok, str(report)


def test_a_dropped_collective_is_refused() -> None:
    problem, schedule = made("zb-v", 3)
    for kind in COLLECTIVES:
        dropped = [str(a) for a in schedule.program.actions if a.kind is kind][-1]
        with pytest.raises(NotVerified, match="replay refuses what is not verified"):
            run((problem, without(schedule, dropped)))


def bare(given: Made, kind: Kind) -> Made:
    """The problem without the precedences of one collective of a kind."""
    problem, schedule = given
    task = int(np.flatnonzero(problem.actions.is_kind(kind))[0])
    edges = problem.edges
    kept = (edges.before != task) & (edges.after != task)
    fewer = Edges(before=edges.before[kept], after=edges.after[kept], lag=edges.lag[kept])
    return replace(problem, edges=fewer), schedule


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ZeRO level 3 needs more collectives .* for level 2"):
        run(made("zb-h1", 2), "3")
    with pytest.raises(ValueError, match=r"ZeRO level 1 needs more .* enough for whole replicas"):
        run(made("zb-h1", 0), "1")
    with pytest.raises(ValueError, match="needs 0UNSHARD to serve computations of its stage on"):
        run(bare(made("zb-h1", 1), Kind.UNSHARD))
    with pytest.raises(ValueError, match=r"needs 0REDUCE_GRAD.2 to serve computations of its"):
        run(bare(made("zb-h1", 1), Kind.REDUCE_GRAD))
