"""Problems: what the constructor refuses, and where tasks are found."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.testing.strategies import pipelines
from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.cases import hand_built, overlapped, without


def column(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def problem(*texts: str, ranks: int = 1) -> Problem:
    """Tasks of one tick each, all on rank 0."""
    return Problem(
        resources=tuple(Resource(name=f"rank {r}", rank=r) for r in range(ranks)),
        actions=ActionTable.from_actions(Action.parse(t) for t in texts),
        duration=np.ones(len(texts), dtype=np.int64),
        occupancy=Occupancy(task=np.arange(len(texts)), resource=column(*[0] * len(texts))),
    )


GOOD = problem("0F0", "0B0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"resources": (Resource(name="a", rank=1),)},
            "compute resources must carry ranks 0, 1, ... in order, got [1]",
        ),
        (
            {"resources": (Resource(name="link"),)},
            "compute resources must carry ranks 0, 1, ... in order, got []",
        ),
        (
            {"resources": (Resource(name="link"), Resource(name="a", rank=0))},
            "compute resources must come before links, NICs and copy engines",
        ),
        ({"duration": column(1)}, "2 tasks but 1 durations"),
        ({"duration": column(1, -3)}, "duration of 0B0 must be 0 or more, got -3"),
        (
            {"occupancy": Occupancy(task=column(0, 2), resource=column(0, 0))},
            "occupancy.task must lie in 0..1, got 2",
        ),
        (
            {"occupancy": Occupancy(task=column(0, 1), resource=column(0, 1))},
            "occupancy.resource must lie in 0..0, got 1",
        ),
        (
            {"occupancy": Occupancy(task=column(1, 0), resource=column(0, 0))},
            "occupancy must be ordered by task",
        ),
        (
            {"occupancy": Occupancy(task=column(0), resource=column(0))},
            "task 0B0 occupies no resource",
        ),
        (
            {"edges": Edges(before=column(0), after=column(5), lag=column(0))},
            "edges.after must lie in 0..1, got 5",
        ),
        (
            {
                "events": MemoryEvents(
                    task=column(0), at_end=np.array([True]), store=column(0), delta=column(1)
                )
            },
            "events.store must lie in 0..-1, got 0",
        ),
        (
            {"duration": column(1, 1 << 60)},
            "durations and lags must add up to less than 2**60 ticks, got about 1.15e+18",
        ),
        (
            {"edges": Edges(before=column(0), after=column(1), lag=column(-(1 << 61)))},
            "durations and lags must add up to less than 2**60 ticks, got about 2.31e+18",
        ),
        (
            {"stores": (Store(name="memory", base=1 << 61),)},
            "base loads and changes must add up to less than 2**60 units, got about 2.31e+18",
        ),
        (
            {"actions": ActionTable.from_actions([Action.parse("0F0")] * 2)},
            "task 0F0 stands twice in the problem",
        ),
    ],
)
def test_what_a_problem_refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        replace(GOOD, **changes)  # type: ignore[arg-type]  # any field may change
    assert str(caught.value) == message


def test_tasks_are_found_by_their_text() -> None:
    assert GOOD.task("0B0") == 1
    with pytest.raises(KeyError):
        GOOD.task("0B1")


@given(pipelines(), st.integers(0, 999))
def test_tasks_are_found_in_permuted_tables(pipeline: Pipeline, seed: int) -> None:
    made = pipeline.problem()
    order = np.array(Random(seed).sample(range(made.num_tasks), made.num_tasks))
    assert made.locate(made.actions.take(order)).tolist() == order.tolist()
    # A problem whose own tasks stand in another order finds them too.
    turned = replace(
        made,
        actions=made.actions.take(order),
        duration=made.duration[order],
        occupancy=replace(made.occupancy, resource=made.occupancy.resource[order]),
        edges=Edges(),
        events=MemoryEvents(),
    )
    where = turned.locate(made.actions)
    assert turned.actions.take(where).keys().tolist() == made.actions.keys().tolist()


def test_an_overlap_is_found_only_with_its_own_partner() -> None:
    fused = overlapped().problem
    texts = ["(1F1;1B0)OVERLAP_F_B", "(1F1;1B1)OVERLAP_F_B", "1F1", "1B0"]
    found = fused.locate(ActionTable.from_actions(Action.parse(t) for t in texts))
    assert (found != NONE).tolist() == [True, False, False, False]


def test_a_problem_without_tasks_finds_nothing() -> None:
    assert problem().locate(GOOD.actions).tolist() == [NONE, NONE]


def test_ranks_of_tasks_and_stages() -> None:
    made = hand_built().problem
    assert made.rank_of_task[made.task("0LOAD0")] == NONE  # on the link only
    assert made.rank_of_task[made.task("0EVICT0")] == 0  # on rank 0 and the link
    assert made.stage_to_rank == {0: 0, 1: 1}


def test_capacities_are_set_on_every_store() -> None:
    capped = hand_built().problem.with_capacity(7)
    assert [store.capacity for store in capped.stores] == [7, 7, 7]
    assert [store.base for store in capped.stores] == [2, 0, 1]


def test_a_resource_beyond_the_problem_has_a_name_too() -> None:
    assert GOOD.resource_name(0) == "rank 0"
    assert GOOD.resource_name(3) == "resource 3 (not in the problem)"


def test_programs_group_their_rows_by_resource_and_keep_the_order_within() -> None:
    table = ActionTable.from_actions(Action.parse(t) for t in ("0F0", "1F0", "0F1", "1F1"))
    program = Program.grouped(actions=table, resource=column(1, 0, 1, 0))
    assert [[str(a) for a in row] for row in program.orders(2)] == [["1F0", "1F1"], ["0F0", "0F1"]]
    assert [str(a) for a in without(program, 0, 3).actions] == ["1F1", "0F0"]


def test_starts_move_with_their_rows_when_a_schedule_is_grouped() -> None:
    table = ActionTable.from_actions(Action.parse(t) for t in ("0F0", "1F0", "0F1", "1F1"))
    made = Schedule.grouped(
        actions=table, resource=column(1, 0, 1, 0), start=column(10, 20, 30, 40), claims={"x": 1}
    )
    rows = zip(made.program.resource.tolist(), made.program.actions, made.start, strict=True)
    assert [(rank, str(action), int(start)) for rank, action, start in rows] == [
        (0, "1F0", 20),
        (0, "1F1", 40),
        (1, "0F0", 10),
        (1, "0F1", 30),
    ]
    assert made.claims == {"x": 1}
    with pytest.raises(ValueError, match="4 actions but 4 resources and 3 starts"):
        Schedule.grouped(actions=table, resource=column(1, 0, 1, 0), start=column(1, 2, 3))


def test_ungrouped_rows_are_refused_so_that_no_start_loses_its_row() -> None:
    table = ActionTable.from_actions(Action.parse(t) for t in ("0F0", "1F0", "0F1"))
    with pytest.raises(ValueError, match=r".") as caught:
        Program(actions=table, resource=column(0, 1, 0))
    assert str(caught.value) == (
        "rows of a program must be grouped by resource, row 2 is on resource 0 after 1; "
        "use Program.grouped, or Schedule.grouped where they have starts"
    )


def test_a_base_load_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="base load of host must be 0 or more, got -1"):
        Store(name="host", base=-1)


def test_what_programs_and_schedules_refuse() -> None:
    with pytest.raises(ValueError, match="2 actions but 1 resources"):
        Program(actions=GOOD.actions, resource=column(0))
    with pytest.raises(ValueError, match="resources count from 0, got -1"):
        Program(actions=GOOD.actions, resource=column(0, -1))
    with pytest.raises(ValueError, match="2 actions but 3 starts"):
        Schedule(program=Program.from_orders([["0F0", "0B0"]]), start=column(0, 0, 0))


@pytest.mark.parametrize("start", [(1 << 63) - 1, 1 << 61, -(1 << 61)])
def test_starts_whose_sums_could_overflow_are_refused(start: int) -> None:
    # Unchecked, 0F0 would end at a large negative time, and 0B0 could start at 5.
    with pytest.raises(ValueError, match=r"starts must lie within 2\*\*61 ticks of 0, got -?\d+"):
        Schedule(program=Program.from_orders([["0F0", "0B0"]]), start=column(start, 5))


def test_the_row_that_is_ungrouped_is_named() -> None:
    # Rows 0 and 1 are on one resource, as they may be; row 3 goes back.
    texts = ActionTable.from_actions([Action.parse(f"0F{j}") for j in range(4)])
    with pytest.raises(ValueError, match="row 3 is on resource 0 after 1;"):
        Program(actions=texts, resource=np.array([0, 0, 1, 0]))
