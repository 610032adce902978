"""Pipelines with choices: off-load of activations, single recomputed samples, and their mixture."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import Rule, check
from proofs_tests.judged import accepted

SHAPE = {"num_ranks": 1, "num_microbatches": 2, "forward": 2, "backward": 3, "activation": 4}


def chosen(**changes: object) -> Pipeline:
    return Pipeline(**(SHAPE | changes))  # type: ignore[arg-type]  # fields by name


def evicting(**changes: int | None) -> Problem:
    """Microbatch 0 goes to the host: 1 tick down, 5 ticks up."""
    offload = ActivationOffload(stage=0, microbatch=0, offload=1, reload=5)
    return chosen(offloads=(offload,), **changes).problem()


def at(problem: Problem, starts: dict[str, tuple[int, int]]) -> Schedule:
    """A schedule from (resource, start) by action."""
    return Schedule.grouped(
        actions=problem.actions.take(_numbers(problem, starts)),
        resource=_column(resource for resource, _ in starts.values()),
        start=_column(start for _, start in starts.values()),
    )


def _numbers(problem: Problem, starts: dict[str, tuple[int, int]]) -> Ints:
    return _column(problem.task(text) for text in starts)


def _column(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


# Rank 0 runs 0F0 0-2, 0F1 3-5, 0B1 5-8, 0B0 8-11; 0OFFLOAD0 2-3 and 0RELOAD0 3-8 on engines 1, 2.
LAST_IN_FIRST_OUT = {
    "0F0": (0, 0),
    "0F1": (0, 3),
    "0B1": (0, 5),
    "0B0": (0, 8),
    "0OFFLOAD0": (1, 2),
    "0RELOAD0": (2, 3),
}


def test_an_activation_is_on_both_sides_while_it_moves() -> None:
    problem = evicting()
    verdict = check(problem, at(problem, LAST_IN_FIRST_OUT))
    assert verdict.ok, str(verdict)
    # Rank: 0F0 4; gone at 3 when 0F1 takes 4 and the reload 4: 8; 0B1 gives 4 back at 8.
    # Host: 4 from 2 (off-load begins) to 8 (reload ends).
    names = [store.name for store in problem.stores]
    assert names == ["memory of rank 0", "host memory of rank 0"]
    assert [r.name for r in problem.resources] == [
        "rank 0",
        "download engine of rank 0",
        "upload engine of rank 0",
    ]
    schedule = at(problem, LAST_IN_FIRST_OUT)
    task = problem.locate(schedule.program.actions)
    assert memory_profile(problem, task, schedule.start).peaks(problem).tolist() == [8, 4]


@pytest.mark.parametrize(
    ("action", "moved"), [("0OFFLOAD0", (1, 1)), ("0RELOAD0", (2, 2)), ("0B0", (0, 7))]
)
def test_each_way_waits_for_the_one_before(action: str, moved: tuple[int, int]) -> None:
    problem = evicting()
    starts = LAST_IN_FIRST_OUT | {action: moved}
    assert Rule.DEPENDENCIES in check(problem, at(problem, starts)).broken


def test_capacities_of_rank_and_host_are_kept() -> None:
    for changes in ({"capacity": 7}, {"host_capacity": 3}):
        problem = evicting(**changes)
        assert check(problem, at(problem, LAST_IN_FIRST_OUT)).broken == (Rule.MEMORY,)
    problem = evicting(capacity=8, host_capacity=4)
    assert check(problem, at(problem, LAST_IN_FIRST_OUT)).ok


def test_a_sample_is_recomputed_where_its_stage_is_not() -> None:
    problem = chosen(recompute=Recompute(samples=((0, 1),), kept=1)).problem()
    assert [str(action) for action in problem.actions][4:] == ["0R1"]
    assert problem.num_tasks == 5
    # 0F0 0-2 and 0F1 2-4 hold 4 each, of the second 1 stays; 0B0 4-7; 0R1 7-9, 0B1 9-12.
    order = {"0F0": (0, 0), "0F1": (0, 2), "0B0": (0, 4), "0R1": (0, 7), "0B1": (0, 9)}
    measured = accepted(problem, at(problem, order))
    assert measured.peak_memory == (8,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recompute": Recompute(samples=((0, 2),))}, "stage 0 has no forward of microbatch 2"),
        (
            {"offloads": (ActivationOffload(stage=0, microbatch=2, offload=1, reload=1),)},
            "stage 0 has no forward of microbatch 2",
        ),
        (
            {
                "offloads": tuple(
                    ActivationOffload(stage=0, microbatch=j, offload=1, reload=1) for j in (1, 2)
                )
            },
            "stage 0 has no forward of microbatch 2",
        ),
        (
            {
                "recompute": Recompute(stages=(0,)),
                "offloads": (ActivationOffload(stage=0, microbatch=1, offload=1, reload=1),),
            },
            "stage 0 microbatch 1 is chosen twice",
        ),
        (
            {
                "num_ranks": 2,
                "evictions": (
                    Eviction(stage=0, microbatch=1, source=0, target=1, duration=1),
                    Eviction(stage=0, microbatch=1, source=0, target=1, duration=1),
                ),
            },
            "stage 0 microbatch 1 is chosen twice",
        ),
    ],
)
def test_refusals(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen(**changes).problem()


def test_numbers_are_refused_where_they_stand() -> None:
    with pytest.raises(ValueError, match=r"0 ticks or more, got -1 and 2"):
        ActivationOffload(stage=0, microbatch=0, offload=-1, reload=2)
    with pytest.raises(ValueError, match="each recomputed sample is named once"):
        Recompute(samples=((0, 1), (0, 1)))
    with pytest.raises(ValueError, match="each recomputed sample is named once"):
        Recompute(stages=(0,), samples=((0, 1),))
