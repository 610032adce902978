"""PipeMesh's planner: what it chooses as printed, held against built schedules."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    known_of,
)
from bubbleproof.papers.planning.planner_list import paper_choice
from bubbleproof.planners import PlanOptions, plan
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify import check_whole
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

OPERATIONS = [
    {"name": "gelu", "activation": 2, "ticks": 1, "count": 6},
    {"name": "query", "activation": 1, "ticks": 2, "count": 6},
]


def space(capacity: int | None, *, p: int = 3, m: int = 12, chunks: tuple[int, ...]) -> PlanSpace:
    """A rank of 60 and 120 ticks, 24 units of activation and 200 of model state (8 each of 25)."""
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=60,
        backward=120,
        activation=24,
        static=200,
        capacity=capacity,
    )
    return PlanSpace(pipeline=pipeline, chunks=chunks)


def table(**changes: object) -> Mapping[str, object]:
    given = {
        "parameters": 25,
        "replicas": 3,
        "communication": 300,
        "operations": OPERATIONS,
        **changes,
    }
    return {key: value for key, value in given.items() if value is not None}


def chosen(capacity: int | None, chunks: tuple[int, ...] = (1, 2, 3, 6)) -> PaperChoice:
    return paper_choice("pipemesh", PaperInput(space=space(capacity, chunks=chunks), table=table()))


def test_choices_run_within_the_memory_that_the_paper_counts() -> None:
    for capacity in sized((500, 280, 262), full=range(250, 520, 5)):
        found = chosen(capacity)
        run = found.run
        assert run is not None
        assert isinstance(run, AcceptedSchedule)
        verdict = check_whole(run.pipeline.problem(), run.schedule)
        assert verdict.ok
        assert max(run.measured.peak_memory) <= capacity
        assert found.choice["chunks"] == 6
        if found.executable:
            memory = found.choice["memory"]
            assert isinstance(memory, int)
            assert max(run.measured.peak_memory) <= memory <= capacity
        assert found.value == step_ticks(run.pipeline.problem(), run.schedule)


def test_the_joint_plan_is_never_worse_by_the_same_costs() -> None:
    for capacity in sized((400,), full=(500, 400, 280)):
        found = chosen(capacity)
        assert found.improved is not None
        planned = plan(space(capacity, chunks=(1, 2, 3, 6)), PlanOptions(time_limit=0.5, threads=1))
        best = found_plan(with_paper(planned, found))
        assert found.value is not None
        assert best.lower_bound <= best.value <= found.value
    # At 400 the printed q = 9 leaves an enqueue of 3 that hides too little of ZeRO-3's gathers.
    assert "ticks more than the paper counts" in chosen(400).note


def test_a_choice_that_algorithm_1_cannot_run_is_named_and_replaced() -> None:
    """P = 3, M = 1, B = 3: rank 0 would begin with 4 forwards of 3 (pipemesh_order)."""
    few = PlanSpace(pipeline=space(None, m=3, chunks=(1,)).pipeline, chunks=(1,))
    found = paper_choice("pipemesh", PaperInput(space=few, table=table()))
    assert not found.executable
    assert found.note.startswith("q = 3: Algorithm 1 takes a pass where none is left")
    assert "the best that runs, Algorithm 1 repaired, has q = 3" in found.note
    assert found.run is not None
    # 5 (60 + 120) ticks of compute behind and before 300 of communication.
    assert found.value == 5 * 180 + 600


def test_a_queue_that_adds_a_bubble_is_named_and_the_best_other_runs() -> None:
    """q = 3 leaves (3, 1): an enqueue below P = 3, and a backward of a chunk waits for none."""
    troubled = []
    for m, capacity in product((4, 5, 7, 8), range(240, 330, 10)):
        given = PaperInput(
            space=PlanSpace(pipeline=space(capacity, m=m, chunks=(2,)).pipeline, chunks=(2,)),
            table=table(operations=[]),
        )
        found = paper_choice("pipemesh", given)
        if found.choice["q"] is not None and not found.executable:
            troubled.append(found)
    assert troubled
    for found in troubled:
        assert found.note.startswith(f"q = {found.choice['q']}: ")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"operations": [{"name": "o", "activation": 30, "ticks": 1, "count": 1}]}, "store 30"),
        ({"parameters": 26}, r"memory.static must hold the \(12/D \+ 4\) psi = 208 units"),
    ],
)
def test_a_table_that_does_not_fit_the_file_is_refused(
    changes: dict[str, object], told: str
) -> None:
    given = PaperInput(space=space(500, chunks=(1,)), table=table(**changes))
    with pytest.raises(ValueError, match=told):
        paper_choice("pipemesh", given)


def test_without_a_table_there_is_no_data_parallelism_and_the_choice_enters_the_search() -> None:
    """Of the paper's costs T_DP is 0: the largest M, and the largest q that fits."""
    given = PaperInput(space=space(330, chunks=(1, 2, 3)), table={})
    found = paper_choice("pipemesh", given)
    # Three chunks of 8 units: 2 q + 2 2 + 1 passes beside 200 of static memory: q = 5 makes 320.
    assert (found.choice["chunks"], found.choice["q"], found.choice["memory"]) == (3, 5, 320)
    # (3 12 + 2) (20 + 40) ticks; that order holds no more than the paper counts.
    assert (found.value, found.executable) == (2280, True)
    start = known_of(found)
    assert start is not None
    planned = found_plan(plan(given.space, FIRST_LOOKS, known=(start,)))
    assert planned.value is not None
    assert planned.value <= 2280


def test_without_a_table_the_files_recomputation_is_one_operation() -> None:
    plain = space(260, chunks=(1,)).pipeline
    again = AllowedRecompute(stages=(0, 1, 2), kept=4, duration=10)
    given = PlanSpace(pipeline=plain, allowed=AllowedChoices(recompute=again), chunks=(1,))
    found = paper_choice("pipemesh", PaperInput(space=given, table={}))
    # 2 2 + 1 passes of 24 beside 200 do not fit below 260, of the 4 that are kept they do, for any
    # q: one chunk. Each of (12 + 2) rounds takes 10 more: 14 (60 + 130).
    assert found.choice["recompute"] == ["chunk x1"]
    assert (found.choice["q"], found.value) == (12, 2660)


def test_operations_that_no_listed_number_of_chunks_divides_are_refused() -> None:
    given = PaperInput(space=space(500, chunks=(5, 4)), table=table())
    with pytest.raises(ValueError, match=r"plan.chunks must list what divides .*, got 5, 4; use 6"):
        paper_choice("pipemesh", given)
