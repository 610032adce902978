"""Evictions as tasks: where their bytes lie, what they wait for, and what is refused."""

from __future__ import annotations

import pytest

from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction, with_evictions, with_waits
from bubbleproof.verify import Rule, check

SHAPE = Pipeline(num_ranks=2, num_microbatches=2, forward=2, backward=4, activation=(5, 1))
AWAY = Eviction(stage=0, microbatch=1, source=0, target=1, duration=3)
ORDERS = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"], ["0EVICT1", "0LOAD1"]]


def timed(problem: Problem, **starts: int) -> Schedule:
    """The left-shifted schedule, with some starts moved."""
    schedule = left_shift(problem, Program.from_orders(ORDERS))
    start = schedule.start.copy()
    for row, action in enumerate(schedule.program.actions):
        start[row] = starts.get(f"t{action}", int(start[row]))
    return Schedule(program=schedule.program, start=start)


def test_bytes_in_flight_lie_on_both_ends() -> None:
    # 0F0 0-2, 0F1 2-4, 1F0 2-4, 1B0 4-8, 1F1 8-10, 1B1 10-14, 0B0 8-12, 0EVICT1 4-7; 0LOAD1 is put
    # at 10-13, 0B1 at 14-18. Rank 0: 5 at 0, 10 at 2, 5 at 7, 10 at 10, 5 at 12, 0 at 18. Rank 1:
    # its own 1 at 2-8 and 8-14, and 5 more from 4 to 13.
    problem = with_evictions(SHAPE.problem(), [AWAY])
    schedule = timed(problem, t0LOAD1=10)
    assert check(problem, schedule).ok
    task = problem.locate(schedule.program.actions)
    profile = memory_profile(problem, task, schedule.start)
    curves = [[column.tolist() for column in profile.curve(problem, rank)] for rank in (0, 1)]
    assert curves[0] == [[0, 2, 7, 10, 12, 18], [5, 10, 5, 10, 5, 0]]
    assert curves[1] == [[0, 2, 4, 8, 13, 14], [0, 1, 6, 6, 1, 0]]
    assert measure(problem, schedule).peak_activations == (10, 6)
    assert measure(problem, schedule).work == 2 * 2 * (2 + 4)  # transfers are no work


@pytest.mark.parametrize(
    ("moved", "rule"),
    [("t0EVICT1", Rule.DEPENDENCIES), ("t0LOAD1", Rule.DEPENDENCIES), ("t0B1", Rule.DEPENDENCIES)],
)
def test_a_transfer_waits_for_its_inputs(moved: str, rule: Rule) -> None:
    # One tick before: the end of 0F1 (4), of 0EVICT1 (7), of 0LOAD1 (here moved to 20-23).
    problem = with_evictions(SHAPE.problem(), [AWAY])
    starts = {
        "t0EVICT1": {"t0EVICT1": 3},
        "t0LOAD1": {"t0LOAD1": 6},
        "t0B1": {"t0LOAD1": 20, "t0B1": 22},
    }[moved]
    assert rule in check(problem, timed(problem, **starts)).broken


def test_a_link_carries_one_transfer_at_a_time() -> None:
    both = [AWAY, Eviction(stage=0, microbatch=0, source=0, target=1, duration=3)]
    problem = with_evictions(SHAPE.problem(), both)
    assert [resource.name for resource in problem.resources] == ["rank 0", "rank 1", "link 0-1"]
    orders = [*ORDERS[:2], ["0EVICT0", "0EVICT1", "0LOAD0", "0LOAD1"]]
    schedule = left_shift(problem, Program.from_orders(orders))
    assert check(problem, schedule).ok
    row = [str(action) for action in schedule.program.actions].index("0EVICT1")
    start = schedule.start.copy()
    start[row] -= 1  # 0EVICT0 still runs
    early = Schedule(program=schedule.program, start=start)
    assert Rule.EXCLUSIVE in check(problem, early).broken


def test_opposite_evictions_share_the_link() -> None:
    back = Eviction(stage=1, microbatch=0, source=1, target=0, duration=1)
    assert {back.source, back.target} == {AWAY.source, AWAY.target} == {0, 1}
    assert len(with_evictions(SHAPE.problem(), [AWAY, back]).resources) == 3


def test_a_pipeline_with_evictions_survives_changes() -> None:
    wait = (Action.parse("0EVICT1"), Action.parse("0B0"))
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=2, evictions=(AWAY,), waits=(wait,), forward=2, backward=4
    )
    late = pipeline.with_changes(latency=1).problem()
    plain = SHAPE.problem()
    assert late.num_tasks == plain.num_tasks + 2
    assert len(late.edges) == len(plain.edges) + 3 + 1
    assert with_evictions(plain, []).num_tasks == plain.num_tasks


def test_a_split_backward_loads_before_its_input_part() -> None:
    split = Pipeline(num_ranks=2, num_microbatches=2, split_backward=True)
    problem = with_evictions(split.problem(), [AWAY])
    waits = zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True)
    assert (problem.task("0LOAD1"), problem.task("0I1")) in set(waits)


def test_one_slice_may_be_parked_alone() -> None:
    sliced = Pipeline(num_ranks=2, num_microbatches=1, num_slices=2)
    last = Eviction(stage=0, microbatch=0, slice=1, source=0, target=1, duration=1)
    problem = with_evictions(sliced.problem(), [last])
    waits = zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True)
    assert {
        (problem.task("0F0.1"), problem.task("0EVICT0.1")),
        (problem.task("0LOAD0.1"), problem.task("0B0.1")),
    } <= set(waits)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="from one rank to another, got 1 to 1"):
        Eviction(stage=0, microbatch=0, source=1, target=1, duration=1)
    with pytest.raises(ValueError, match="duration of a transfer must be 0 or more, got -1"):
        Eviction(stage=0, microbatch=0, source=0, target=1, duration=-1)
    wrong = Eviction(stage=1, microbatch=0, source=0, target=1, duration=1)
    with pytest.raises(ValueError, match="backward of stage 1 microbatch 0 on rank 0"):
        with_evictions(SHAPE.problem(), [wrong])
    with pytest.raises(ValueError, match="task 0EVICT1 stands twice"):
        with_evictions(SHAPE.problem(), [AWAY, AWAY])
    foreign = (Action.parse("7F0"), Action.parse("0B0"))
    with pytest.raises(ValueError, match="a wait names 7F0, which is no task"):
        with_waits(SHAPE.problem(), [foreign])


def test_an_eviction_goes_to_another_rank() -> None:
    with pytest.raises(ValueError, match="goes from one rank to another, got 1 to 1"):
        Eviction(stage=0, microbatch=1, source=1, target=1, duration=3)


@pytest.mark.parametrize(("overlapped", "source"), [((0, 0), 0), ((0, 1), 1)])
def test_an_eviction_needs_both_passes_on_its_source(
    overlapped: tuple[int, int], source: int
) -> None:
    """The backward of microbatch 0 is half of another task, or both passes are on rank 0."""
    half = "0F0 has no backward of its own"
    pipeline = Pipeline(num_ranks=2, num_microbatches=3, overlaps=(((0, 2), overlapped),))
    move = Eviction(stage=0, microbatch=0, source=source, target=1 - source, duration=1)
    told = f"needs the forward and the backward of stage 0 microbatch 0 on rank {source}"
    with pytest.raises(ValueError, match=half if source == 0 else told):
        with_evictions(pipeline.problem(), (move,))
