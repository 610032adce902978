"""Why ranks are idle: cases by hand, a second implementation, and moves that really can be made."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from bubbleproof.testing.strategies import random_program
from bubbleproof.theory.families import family
from bubbleproof.theory.idle import IdleCause, IdleStretches, critical_path, idle_stretches
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.random_choices import combined
from proofs_tests.sized import sized
from proofs_tests.solvers.small import by_hand, offloading
from proofs_tests.theory.plain_idle import PlainIdle
from proofs_tests.verify.random_schedules import random_specimen

HALF = sized(50, full=5000)


def told(pipeline: Pipeline, name: str = "1f1b") -> list[str]:
    """The stretches of a published order, each as one line."""
    schedule = family(name).schedule(pipeline)
    return lines(idle_stretches(pipeline.problem(), schedule))


def lines(found: IdleStretches) -> list[str]:
    return [f"{s.rank}: {s.from_tick}-{s.to_tick} {s.sentence}" for s in found]


def test_1f1b_could_have_run_forwards_where_memory_is_free() -> None:
    # Two ranks, three microbatches, tF = 1, tB = 2. Rank 0 runs F0 F1, waits for 1B0 (ticks 2 to 4)
    # and has 0F2 to run in the first of these; 1B2 ends at 10.
    assert told(Pipeline(num_ranks=2, num_microbatches=3)) == [
        "0: 2-3 the order's own choice: 0F2 could have run",
        "0: 3-4 0B0 waits for 1B0 of rank 1 over link 1>0",
        "0: 9-10 0B2 waits for 1B2 of rank 1 over link 1>0",
        "1: 0-1 warm-up: no schedule starts sooner here",
        "1: 10-12 drain: no schedule runs longer here",
    ]


def test_with_a_cap_of_what_1f1b_holds_memory_is_the_cause() -> None:
    # The same schedule; rank 0 may hold two activations, and 0F0's is held until 0B0 ends.
    found = told(Pipeline(num_ranks=2, num_microbatches=3, capacity=2))
    assert found[0] == "0: 2-3 memory of rank 0 has no room for 0F2 until 0B0 ends"
    assert found[1:] == told(Pipeline(num_ranks=2, num_microbatches=3))[1:]


def test_a_message_on_its_way_is_told_from_its_computation() -> None:
    # 0F0 ends at 1, its message takes 2 ticks on the link and 3 more: 1F0 starts at 6, of which no
    # schedule spares a tick. 1B0 (6+1 .. 9) comes back the same way: 0B0 starts at 9 + 5.
    slow = Pipeline(num_ranks=2, num_microbatches=1, message=2, bandwidth=1, latency=3)
    assert told(slow) == [
        "0: 1-9 0B0 waits for 1B0 of rank 1 over link 0-1",
        "0: 9-14 0B0 waits for 1SEND_B0 of rank 1, on its way over link 0-1",
        "1: 0-6 warm-up: no schedule starts sooner here",
        "1: 9-16 drain: no schedule runs longer here",
    ]


def test_an_engine_that_others_hold_is_the_link() -> None:
    # The link carries 0OFFLOAD0 from 1 to 4, then 0OFFLOAD1 until 7, when 0B1 can start.
    problem = offloading(2)
    program = Program.from_orders([["0F0", "0F1", "0B0", "0B1"], ["0OFFLOAD0", "0OFFLOAD1"]])
    assert lines(idle_stretches(problem, left_shift(problem, program))) == [
        "0: 2-4 0B0 waits for 0OFFLOAD0 of rank 0, on its way over link",
        "0: 6-7 0B1 waits for 0OFFLOAD1 of rank 0, on its way over link",
    ]


def test_what_starts_late_for_no_reason_is_the_orders_choice() -> None:
    problem = by_hand([("0F0", 1, (0,)), ("0B0", 2, (0,))], [("0F0", "0B0", 1)])
    schedule = Schedule(program=Program.from_orders([["0F0", "0B0"]]), start=np.array([0, 5]))
    # 0F0's result is there after a lag of 1 tick, at 2.
    assert lines(idle_stretches(problem, schedule)) == [
        "0: 1-2 0B0 waits for 0F0 of rank 0, on its way",
        "0: 2-5 the order's own choice: 0B0 could have started",
    ]
    path = critical_path(problem, schedule)
    assert [(s.action, s.after, s.lag, s.late) for s in path] == [
        ("0F0", "start", 0, 0),
        ("0B0", "input", 1, 3),
    ]


def test_a_rank_that_has_run_all_its_tasks_is_finished() -> None:
    problem = by_hand(
        [("0F0", 1, (0,)), ("1F0", 5, (1,)), ("1F1", 2, (1,))],
        resources=[Resource(name=f"rank {r}", rank=r) for r in range(3)],
    )
    program = Program.from_orders([["0F0"], ["1F0", "1F1"], []])
    # Rank 2 has nothing to run at all; nothing waits for anything, so there is no bound to drain.
    assert lines(idle_stretches(problem, left_shift(problem, program))) == [
        "0: 1-7 finished; 1F1 of rank 1 ends last",
        "2: 0-7 finished; 1F1 of rank 1 ends last",
    ]


def test_the_critical_path_is_as_long_as_the_schedule() -> None:
    member = family("1f1b")(p=4, m=8)
    path = critical_path(member.problem, member.schedule)
    assert (path[0].start, path[-1].end) == (0, 33)  # (8 + 3) (1 + 2)
    for one, other in pairwise(path):
        assert one.end + other.lag + other.late == other.start
    assert {step.after for step in path} == {"start", "input", "order"}


def test_memory_stands_on_the_critical_path() -> None:
    # Room for one activation: 0F1 starts when 0B0 ends, which is what a solver would choose.
    problem = by_hand(
        [("0F0", 1, (0,)), ("0F1", 1, (0,)), ("0OFFLOAD0", 4, (1,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=[Resource(name="rank 0", rank=0), Resource(name="host")],
        stores=[Store(name="memory of rank 0", capacity=1)],
        events=[("0F0", False, 0, 1), ("0OFFLOAD0", True, 0, -1), ("0F1", False, 0, 1)],
    )
    program = Program.from_orders([["0F0", "0F1"], ["0OFFLOAD0"]])
    schedule = Schedule(program=program, start=np.array([0, 5, 1]))
    assert [(s.action, s.after) for s in critical_path(problem, schedule)] == [
        ("0F0", "start"),
        ("0OFFLOAD0", "input"),
        ("0F1", "memory"),
    ]
    assert lines(idle_stretches(problem, schedule)) == [
        "0: 1-5 memory of rank 0 has no room for 0F1 until 0OFFLOAD0 ends"
    ]


def test_two_things_at_once_are_refused_by_name() -> None:
    problem = by_hand([("0F0", 2, (0,)), ("0F1", 2, (0,))])
    schedule = Schedule(program=Program.from_orders([["0F0", "0F1"]]), start=np.array([0, 1]))
    with pytest.raises(ValueError, match="got rank 0 at 0F0 and 0F1 from tick 1"):
        idle_stretches(problem, schedule)


def test_tasks_on_a_foreign_rank_are_told_where_they_stand() -> None:
    """Each task of a schedule in turn, done by the other rank after all else: causes add up."""
    member = family("zb-h1")(p=2, m=2)
    problem, rows = member.problem, member.schedule.program
    for row in range(len(rows)):
        resource, start = rows.resource.copy(), member.schedule.start.copy()
        resource[row], start[row] = 1 - resource[row], 100
        order = np.lexsort((start, resource))
        program = Program(actions=rows.actions.take(order), resource=resource[order])
        moved = Schedule(program=program, start=start[order])
        found = idle_stretches(problem, moved)
        assert found.idle_ticks() == measure(problem, moved).idle_ticks
        last = critical_path(problem, moved)[-1]
        assert (last.start, last.resource) == (100, f"rank {resource[row]}")


def test_an_empty_schedule_has_no_idle_time() -> None:
    empty = Schedule(program=Program.from_orders([[]]), start=np.zeros(0, dtype=np.int64))
    problem = Pipeline(num_ranks=1, num_microbatches=1).problem()
    assert len(idle_stretches(problem, empty)) == len(critical_path(problem, empty)) == 0


def test_a_stretch_is_found_by_its_tick() -> None:
    member = family("1f1b")(p=2, m=3)
    found = idle_stretches(member.problem, member.schedule)
    at = found.at(0, 3)
    assert at is not None
    assert (at.from_tick, at.to_tick, at.cause) == (3, 4, IdleCause.INPUT)
    assert found.at(0, 4) is None  # 0B0 runs
    assert found.at(1, 12) is None
    assert found.ticks_by_cause(1)[IdleCause.DRAIN] == 2
    assert sum(found.ticks_by_cause().values()) == 6
    assert repr(found) == ("<IdleStretches: 5 on 2 ranks; warm-up 1, drain 2, order 1, input 2>")


def drawn(seed: int) -> tuple[Problem, Schedule]:
    """A random schedule: of a pipeline, perhaps capped and late, or of tasks of any kind."""
    random = Random(seed)
    if seed % 2:
        specimen = random_specimen(random)
        return specimen.problem, specimen.schedule()
    problem = combined(random).problem()
    schedule = left_shift(problem, random_program(problem, random))
    peaks = memory_profile(problem, problem.locate(schedule.program.actions), schedule.start).peaks(
        problem
    )
    more = random.choice([None, 0, 1])
    stores = tuple(
        replace(store, capacity=None if more is None else int(peak) + more)
        for store, peak in zip(problem.stores, peaks, strict=True)
    )
    return replace(problem, stores=stores), schedule


def ticks_of(found: IdleStretches, rank: int) -> dict[int, tuple[str, str | None, str | None]]:
    """(cause, action, of_action) of each idle tick of a rank; actions as plain texts."""

    def text(task: int) -> str | None:
        return None if task < 0 else str(found.problem.actions[task])

    return {
        tick: (stretch.cause.value, text(int(found.action[row])), text(int(found.of_action[row])))
        for row, stretch in enumerate(found)
        if stretch.rank == rank
        for tick in range(stretch.from_tick, stretch.to_tick)
    }


@pytest.mark.sweep
def test_two_implementations_agree_and_the_causes_add_up() -> None:
    """On 10,000 random schedules in full; half of pipelines, half of tasks of any kind."""
    seen = set()
    for seed in range(2 * HALF):
        problem, schedule = drawn(seed)
        found, plain = idle_stretches(problem, schedule), PlainIdle(problem, schedule)
        assert found.idle_ticks() == measure(problem, schedule).idle_ticks, seed
        for rank in range(problem.num_ranks):
            mine = ticks_of(found, rank)
            assert mine == {k: tuple(v) for k, v in plain.causes(rank).items()}, (seed, rank)
            seen |= {cause for cause, _, _ in mine.values()}
    assert seen == {cause.value for cause in IdleCause}


@pytest.mark.sweep
def test_what_could_have_run_is_moved_and_every_rule_holds() -> None:
    """All that one stretch names are moved at once: rules 1 to 5 hold, and no tick is lost."""
    moves = 0
    for seed in range(0, 2 * HALF, 2):
        problem, schedule = drawn(seed)
        assert check(problem, schedule).ok
        for moved in moves_of(problem, schedule):
            assert check(problem, moved).ok, seed
            moves += 1
    assert moves > HALF / 4


def moves_of(problem: Problem, schedule: Schedule) -> list[Schedule]:
    """For each next task the schedule with all moved that could have run before it."""
    found = idle_stretches(problem, schedule)
    task = problem.locate(schedule.program.actions)
    by_stretch: dict[int, dict[int, int]] = {}
    for row in np.flatnonzero(found.cause == list(IdleCause).index(IdleCause.ORDER)).tolist():
        starts = by_stretch.setdefault(int(found.of_action[row]), {})
        starts.setdefault(int(found.action[row]), int(found.from_tick[row]))
    moved = []
    for starts in by_stretch.values():
        start = schedule.start.copy()
        for which, tick in starts.items():
            start[task == which] = tick
        order = np.lexsort((problem.duration[task], start, schedule.program.resource))
        program = schedule.program
        moved.append(
            Schedule.grouped(
                actions=program.actions.take(order),
                resource=program.resource[order],
                start=start[order],
            )
        )
    return moved
