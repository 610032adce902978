"""Off-load: what it adds to a problem, and T-Offload against Appendix D."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.state_offload import StateOffload, with_state_offload
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Rule, check
from proofs_tests.judged import accepted

SMALL = [(p, m) for p in range(1, 9) for m in range(1, 2 * p + 2)]


def starts(problem: Problem, schedule: Schedule) -> Ints:
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(schedule.program.actions)] = schedule.start
    return start


def lone_rank() -> Problem:
    """One rank, one microbatch, stages 0 and 1; stage 1's weights (3) and gradients (2) move."""
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, num_chunks=2, static=10)
    choice = StateOffload(stages=(1,), offload=2, step=4, reload=5, weight=3, gradient=2, state=7)
    return with_state_offload(pipeline.problem(), choice)


ORDERS = [["0F0", "1F0", "1B0", "0B0"], ["1OFFLOAD0"], ["1STEP"], ["1RELOAD0"]]


def test_an_off_loaded_stage_step_by_step() -> None:
    # RELOAD 0..5, so 1F0 5..6, 1B0 6..8, OFFLOAD 8..10, STEP 10..14; 0B0 8..10 runs beside OFFLOAD.
    problem = lone_rank()
    schedule = left_shift(problem, Program.from_orders(ORDERS))
    found = dict(zip(map(str, schedule.program.actions), schedule.start.tolist(), strict=True))
    assert found == {
        "0F0": 0,
        "1F0": 5,
        "1B0": 6,
        "0B0": 8,
        "1OFFLOAD0": 8,
        "1STEP": 10,
        "1RELOAD0": 0,
    }
    measured = accepted(problem, schedule)
    assert measured.makespan == 10  # 0F0 starts at 0, 0B0 ends at 10; engines do not count


def test_model_state_lies_where_it_should_and_is_back_in_the_end() -> None:
    problem = lone_rank()
    schedule = left_shift(problem, Program.from_orders(ORDERS))
    profile = memory_profile(problem, np.arange(problem.num_tasks), starts(problem, schedule))
    # Rank: base 20; 0F0 and RELOAD acquire 1 + 5 at 0; 1F0 1 at 5; at 8 1B0 gives 1 and OFFLOAD 3
    # back; at 10 0B0 gives 1 and OFFLOAD 2 back.
    time, load = profile.curve(problem, 0)
    assert dict(zip(time.tolist(), load.tolist(), strict=True)) == {0: 26, 5: 27, 8: 23, 10: 20}
    # Host: 7 + 3; at 5 the uploaded copy goes (7); at 8 the gradient comes (9); at 10 STEP makes
    # the next copy (12); at 14 the gradient goes (10).
    time, load = profile.curve(problem, 1)
    assert dict(zip(time.tolist(), load.tolist(), strict=True)) == {
        0: 10,
        5: 7,
        8: 9,
        10: 12,
        14: 10,
    }


@pytest.mark.parametrize(
    ("task", "shift", "rule"),
    [
        ("1STEP", -1, Rule.DEPENDENCIES),
        ("1OFFLOAD0", -1, Rule.DEPENDENCIES),
        ("1RELOAD0", 1, Rule.DEPENDENCIES),
    ],
)
def test_a_transfer_at_the_wrong_time_is_found(task: str, shift: int, rule: Rule) -> None:
    problem = lone_rank()
    schedule = left_shift(problem, Program.from_orders(ORDERS))
    is_task = np.array([str(action) == task for action in schedule.program.actions])
    moved = Schedule(program=schedule.program, start=schedule.start + shift * is_task)
    assert check(problem, moved).broken == (rule,)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"stages": (1, 1)}, "each off-loaded stage is named once, got (1, 1)"),
        ({"stages": (1,), "step": -1}, "step of an off-load must be 0 or more, got -1"),
        ({"stages": (2,)}, "stage 2 runs on no rank or on several; off-load takes one"),
    ],
)
def test_what_is_no_off_load(choice: dict[str, object], message: str) -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, num_chunks=2)
    with pytest.raises(ValueError, match=r".") as caught:
        with_state_offload(pipeline.problem(), StateOffload(**choice))  # type: ignore[arg-type]  # on purpose
    assert str(caught.value) == message


def idle_between(member: FamilyMember, rank: int, left: str, right: str) -> int:
    """Idle ticks of a rank from the end of one of its tasks to the start of another."""
    problem = member.problem
    start = starts(problem, member.schedule)
    end = start + problem.duration
    begin, stop = end[problem.task(left)], start[problem.task(right)]
    own = problem.rank_of_task == rank
    inside = np.minimum(end[own], stop) - np.maximum(start[own], begin)
    return int(stop - begin - inside[inside > 0].sum())


def gaps_between(member: FamilyMember, rank: int, left: str, right: str) -> list[int]:
    """The lengths of the single idle stretches of a rank between two of its tasks."""
    problem = member.problem
    start = starts(problem, member.schedule)
    end = start + problem.duration
    own = np.flatnonzero(problem.rank_of_task == rank)
    own = own[np.argsort(start[own])].tolist()
    inside = own[own.index(problem.task(left)) : own.index(problem.task(right)) + 1]
    gaps = [int(start[b] - end[a]) for a, b in pairwise(inside)]
    return [gap for gap in gaps if gap]


def test_recomputation_and_off_load_together() -> None:
    family, base = TOffload(), TRecomp()
    for p, m in SMALL[::4]:
        recomputing = base.pipeline(make_parameters({"p": p, "m": m}))
        both = family.offloading(recomputing, weight=2, gradient=2)
        assert isinstance(both, Pipeline)
        problem = both.problem()
        schedule = family.schedule(both, problem)
        assert check(problem, schedule).ok
        plain = recomputing.problem()
        alone = measure(plain, base.schedule(recomputing, plain))
        assert measure(problem, schedule).makespan >= alone.makespan
