"""Single mistakes by hand: the rule that names each, its sentence, and inputs that broke it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import ActionTable
from bubbleproof.theory.model.problem import Occupancy, Problem, Resource
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Finding, Rule, check, check_program, join
from bubbleproof.verify.check import findings
from proofs_tests.cases import hand_built
from proofs_tests.solvers.small import by_hand

PIPELINE = Pipeline(num_ranks=2, num_microbatches=2)
# Starts of 1F1B by hand (tF=1, tB=2): rank 1 computes 1F0 1..2, 1B0 2..4, 1F1 4..5, 1B1 5..7;
# rank 0 computes 0F0 0..1, 0F1 1..2, 0B0 4..6, 0B1 7..9.
ORDERS = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]
STARTS = [0, 1, 4, 7, 1, 2, 4, 5]


def schedule(orders: list[list[str]], starts: list[int], **claims: ClaimedNumber) -> Schedule:
    program = Program.from_orders(orders)
    return Schedule(program=program, start=np.array(starts), claims=claims)


def only_message(made: Schedule, rule: Rule, pipeline: Pipeline = PIPELINE) -> str:
    """The sentence of the one violation, which must be of that rule."""
    verdict = check(pipeline.problem(), made)
    assert verdict.broken == (rule,), str(verdict)
    assert len(verdict.violations) == 1, str(verdict)
    return verdict.violations[0].message


def test_the_schedule_by_hand_holds_and_is_the_left_shifted_one() -> None:
    assert check(PIPELINE.problem(), schedule(ORDERS, STARTS)).ok
    shifted = left_shift(PIPELINE.problem(), Program.from_orders(ORDERS))
    assert shifted.start.tolist() == STARTS


def test_a_missing_task_is_named_with_its_resource() -> None:
    made = schedule([ORDERS[0][:3], ORDERS[1]], STARTS[:3] + STARTS[4:])
    assert only_message(made, Rule.COMPLETE) == "0B1 is missing on rank 0"


def test_a_repeated_task_is_counted() -> None:
    made = schedule([[*ORDERS[0], "0B1"], ORDERS[1]], [0, 1, 4, 7, 9, 1, 2, 4, 5])
    assert only_message(made, Rule.COMPLETE) == "0B1 stands 2 times on rank 0, must stand once"


def test_a_foreign_task_is_named() -> None:
    made = schedule([[*ORDERS[0], "0F9"], ORDERS[1]], [0, 1, 4, 7, 9, 1, 2, 4, 5])
    assert only_message(made, Rule.COMPLETE) == "0F9 on rank 0 is no task of the problem"


def test_a_misplaced_task_is_misplaced_and_not_also_missing() -> None:
    made = schedule([ORDERS[0][:3], [*ORDERS[1], "0B1"]], [0, 1, 4, 1, 2, 4, 5, 7])
    assert only_message(made, Rule.PLACED) == "0B1 stands on rank 1, belongs on rank 0"


def test_an_early_task_is_shown_with_what_it_waits_for() -> None:
    made = schedule(ORDERS, [0, 1, 3, 7, 1, 2, 4, 5])
    message = only_message(made, Rule.DEPENDENCIES)
    assert message == "0B0 starts at 3, but waits for 1B0, which ends at 4"


def test_a_late_message_is_shown_with_its_lag() -> None:
    # One tick of latency: 1F0 may start at 2. Every other start leaves room.
    made = schedule(ORDERS, [0, 1, 6, 10, 1, 3, 5, 7])
    pipeline = PIPELINE.with_changes(latency=1)
    message = only_message(made, Rule.DEPENDENCIES, pipeline)
    assert message == (
        "1F0 starts at 1, but waits for 0F0, which ends at 1 and needs 1 tick to arrive"
    )


def test_the_lag_that_is_told_is_that_of_the_two_tasks() -> None:
    # 1F0 waits for 0F0 without a lag, 2F0 with one of 3, and 1F0 for 3F0 with one of 2.
    ranks = [Resource(name=f"rank {rank}", rank=rank) for rank in range(4)]
    problem = by_hand(
        [(f"{rank}F0", 1, (rank,)) for rank in range(4)],
        [("0F0", "1F0", 0), ("0F0", "2F0", 3), ("3F0", "1F0", 2)],
        resources=ranks,
    )
    program = Program.from_orders([[f"{rank}F0"] for rank in range(4)])
    verdict = check(problem, Schedule(program=program, start=np.array([4, 3, 9, 0])))
    [violation] = verdict.violations
    assert violation.message == "1F0 starts at 3, but waits for 0F0, which ends at 5"


def test_no_task_starts_before_time_zero() -> None:
    made = schedule(ORDERS, [-1, 1, 4, 7, 1, 2, 4, 5])
    assert only_message(made, Rule.DEPENDENCIES) == "0F0 starts at -1, before time 0"


def test_an_overlap_is_shown_with_both_tasks() -> None:
    made = schedule(ORDERS, [0, 1, 4, 8, 1, 2, 3, 5])
    message = only_message(made, Rule.EXCLUSIVE)
    assert message == "rank 1 starts 1F1 at 3, but 1B0, listed before it, runs until 4"


def test_of_a_row_that_stands_twice_the_one_that_overlaps_is_told() -> None:
    """0F1 stands behind 0F0, which has ended, and once more behind 0B0, which has not."""
    orders = [["0F0", "0F1", "0B0", "0F1", "0B1"], ORDERS[1]]
    verdict = check(PIPELINE.problem(), schedule(orders, [0, 1, 0, 1, 7, 1, 2, 4, 5]))
    told = "rank 0 starts 0F1 at 1, but 0B0, listed before it, runs until 2"
    assert told in [violation.message for violation in verdict.violations]


def test_the_listed_order_counts_and_not_only_the_times() -> None:
    orders = [["0F1", "0F0", "0B0", "0B1"], ORDERS[1]]
    message = only_message(schedule(orders, [1, 0, 4, 7, 1, 2, 4, 5]), Rule.EXCLUSIVE)
    assert message == "rank 0 starts 0F0 at 0, but 0F1, listed before it, runs until 2"


def test_a_full_store_is_shown_with_what_lives_in_it() -> None:
    # Rank 0 holds microbatch 0 from 0 to 6 and microbatch 1 from 1 to 9: two from time 1 on.
    pipeline = PIPELINE.with_changes(capacity=1)
    message = only_message(schedule(ORDERS, STARTS), Rule.MEMORY, pipeline)
    assert message == (
        "memory of rank 0 holds 2 at 1, when 0F1 runs; its capacity is 1 activation; "
        "live: stage 0 microbatch 0 (1), stage 0 microbatch 1 (1)"
    )


def test_a_full_instant_is_one_finding_with_all_that_changes_the_store_then() -> None:
    # All forwards at 0, which take no time: 3 where 1 fits. Backwards end at 2, 4 and 6.
    pipeline = Pipeline(num_ranks=1, num_microbatches=3, forward=0, capacity=1)
    made = schedule([["0F0", "0F1", "0F2", "0B0", "0B1", "0B2"]], [0, 0, 0, 0, 2, 4])
    first, second = findings(pipeline.problem(), made)
    assert first == Finding(Rule.MEMORY, ("0F0", "0F1", "0F2"), 0, 0)
    assert second == Finding(Rule.MEMORY, ("0B0",), 2, 0)
    message = "memory of rank 0 holds 2 at 0, when 0F1 runs; its capacity is 1 activation; "
    verdict = check(pipeline.problem(), made)
    assert [d.count for d in verdict.decisions if not d.ok] == [2]
    assert verdict.violations[0].message.startswith(message)


@pytest.mark.parametrize(("m", "more"), [(12, ""), (14, " and 2 more")])
def test_of_all_that_lives_in_a_store_twelve_are_named(m: int, more: str) -> None:
    # m forwards of 1 tick before any backward: the last, from m - 1 on, is one too many.
    pipeline = Pipeline(num_ranks=1, num_microbatches=m, capacity=m - 1)
    orders = [[f"0F{j}" for j in range(m)] + [f"0B{j}" for j in range(m)]]
    starts = [*range(m), *range(m, 3 * m, 2)]
    message = only_message(schedule(orders, starts), Rule.MEMORY, pipeline)
    named = ", ".join(f"stage 0 microbatch {j} (1)" for j in range(12))
    assert message == (
        f"memory of rank 0 holds {m} at {m - 1}, when 0F{m - 1} runs; "
        f"its capacity is {m - 1} activation; live: {named}{more}"
    )


def test_a_store_may_be_full_of_its_base_load_alone() -> None:
    # 0F0 gives back 1 of 9, which leaves 8 where 6 fit: nothing of a microbatch lives there.
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, static=9, capacity=6)
    problem = pipeline.problem()
    problem = replace(problem, events=replace(problem.events, delta=-problem.events.delta))
    verdict = check(problem, schedule([["0F0", "0B0"]], [0, 1]))
    assert verdict.violations[1].message == (
        "memory of rank 0 holds 8 at 0, when 0F0 runs; its capacity is 6 activation; live: nothing"
    )


def test_a_capacity_beyond_64_bits_is_no_limit() -> None:
    pipeline = PIPELINE.with_changes(capacity=1 << 70)
    assert check(pipeline.problem(), schedule(ORDERS, STARTS)).ok


def test_a_base_load_above_the_capacity_needs_no_task_to_be_wrong() -> None:
    pipeline = PIPELINE.with_changes(static=(7, 0), capacity=(6, None))
    verdict = check(pipeline.problem(), schedule(ORDERS, STARTS))
    assert verdict.broken == (Rule.MEMORY,)
    assert verdict.violations[0].message == (
        "memory of rank 0: the base load 7 exceeds the capacity 6 activation"
    )


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        # makespan 9 - 0; work 2 * 6 = 12 of 2 * 9 ticks, so 1/3 idle.
        ({"makespan": 8}, "makespan is claimed to be 8, but measures 9"),
        ({"idle_ratio": "1/4"}, "idle_ratio is claimed to be 1/4, but measures 1/3"),
        ({"rank_spans": (9, 9)}, "rank_spans is claimed to be (9, 9), but measures (9, 6)"),
        ({"speed": 1}, "speed is claimed, but no measure has that name"),
        ({"idle_ratio": "half"}, "idle_ratio is claimed to be 'half', which is no number"),
        ({"idle_ratio": "1/0"}, "idle_ratio is claimed to be '1/0', which is no number"),
    ],
)
def test_a_false_claim_is_shown_with_the_measured_value(
    claims: dict[str, ClaimedNumber], sentence: str
) -> None:
    assert only_message(schedule(ORDERS, STARTS, **claims), Rule.CLAIMS) == sentence


def test_true_claims_hold_as_numbers_and_as_text() -> None:
    made = schedule(
        ORDERS,
        STARTS,
        makespan=9,
        idle_ratio=Fraction(1, 3),
        idle_over_work="1/2",  # 6 idle ticks over 12 of work
        idle_ticks=(3, 3),
        rank_spans=(9, 6),
        span_idle=3,
    )
    assert check(PIPELINE.problem(), made).ok


def test_a_resource_the_problem_does_not_have_is_a_wrong_place() -> None:
    # Resource 2 of 2: number 2 must not be taken for the next task's resource 0.
    made = schedule([["0F0", "0F1", "0B0"], ORDERS[1], ["0B1"]], [0, 1, 4, 1, 2, 4, 5, 7])
    message = only_message(made, Rule.PLACED)
    assert message == "0B1 stands on resource 2 (not in the problem), belongs on rank 0"


def test_two_rows_on_a_resource_the_problem_does_not_have() -> None:
    made = schedule([[], ORDERS[1], ORDERS[0]], [1, 2, 4, 5, 0, 1, 1, 7])
    verdict = check(PIPELINE.problem(), made)
    assert set(verdict.broken) == {Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE}
    assert "resource 2 (not in the problem) starts 0B0 at 1" in str(verdict)


def test_a_forward_and_backward_of_no_duration_hold_nothing() -> None:
    # Both happen at time 0: the load is 0 after all changes of that instant, never below.
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, forward=0, backward=0, capacity=0)
    made = schedule([["0F0", "0B0", "0F1", "0B1"]], [0, 0, 0, 0])
    assert check(pipeline.problem(), made).ok
    assert member("gpipe", p=3, m=2, tF=0, tB=0).schedule.start.tolist() == [0] * 12
    timeless = member("gpipe", p=3, m=2, tF=0, tB=0)
    assert check(timeless.problem, timeless.schedule).ok


def test_a_release_before_its_acquisition_is_below_zero() -> None:
    made = schedule(
        [["0B0", "0F0", "0F1", "0B1"], ["1F0", "1B0", "1F1", "1B1"]], [0, 3, 4, 9, 4, 5, 7, 8]
    )
    verdict = check(PIPELINE.problem(), made)
    assert set(verdict.broken) == {Rule.DEPENDENCIES, Rule.MEMORY}
    assert "memory of rank 0 holds -1 at 2" in str(verdict)


def test_a_task_listed_twice_is_measured_by_its_first_row() -> None:
    # 0B1 again on rank 1 at 20: rank 0 still releases at 9, so its peak stays 2 even if a third
    # forward came at 10; the checker's memory rule and the measured peak use the same start.
    made = schedule([ORDERS[0], [*ORDERS[1], "0F0"]], [*STARTS, 20])
    verdict = check(PIPELINE.problem(), made)
    assert verdict.broken == (Rule.PLACED,)
    assert verdict.measured is not None
    assert verdict.measured.peak_activations == (2, 1)


def test_a_task_of_two_resources_starts_on_both_at_once() -> None:
    case = hand_built()
    start = case.schedule.start.copy()
    row = [str(a) for a in case.schedule.program.actions].index("0EVICT2")
    start[row] -= 1  # rank 0 is busy with 0F2 then; the link is free
    verdict = check(case.problem, replace(case.schedule, start=start))
    assert Rule.PLACED in verdict.broken
    assert "0EVICT2 starts at different times on its resources" in str(verdict)


def test_every_row_is_foreign_to_a_problem_without_tasks() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = Problem(
        resources=(Resource(name="rank 0", rank=0),),
        actions=ActionTable.from_actions([]),
        duration=none,
        occupancy=Occupancy(task=none, resource=none),
    )
    verdict = check(empty, schedule([["0F0", "0B0"]], [0, 1]))
    assert verdict.broken == (Rule.COMPLETE,)
    assert verdict.violations[0].message == "0F0 on rank 0 is no task of the problem"
    assert check(empty, schedule([[]], [])).ok


def test_a_schedule_without_rows_misses_everything() -> None:
    verdict = check(PIPELINE.problem(), schedule([[], []], []))
    assert verdict.broken == (Rule.COMPLETE,)
    assert verdict.decisions[0].count == 8


def test_a_program_that_waits_for_itself_shows_the_chain() -> None:
    orders = [["0B0", "0F0", "0F1", "0B1"], ORDERS[1]]
    verdict, made = check_program(PIPELINE.problem(), Program.from_orders(orders))
    assert made is None
    assert verdict.broken == (Rule.DEPENDENCIES,)
    assert not verdict.ok
    assert verdict.violations[0].message.startswith("deadlock: ")
    assert [rule for rule, _ in verdict.undecided] == [Rule.EXCLUSIVE, Rule.MEMORY]


def test_an_incomplete_program_leaves_timing_undecided() -> None:
    verdict, made = check_program(PIPELINE.problem(), Program.from_orders([ORDERS[0], []]))
    assert made is None
    assert verdict.broken == (Rule.COMPLETE,)
    assert dict(verdict.undecided)[Rule.MEMORY] == (
        "the program has no times: its tasks are not complete"
    )


def test_a_sound_program_is_checked_with_its_left_shifted_times() -> None:
    verdict, made = check_program(PIPELINE.problem(), Program.from_orders(ORDERS))
    assert verdict.ok
    assert made is not None
    assert made.start.tolist() == STARTS


def test_joined_verdicts_hold_when_all_do() -> None:
    good = check(PIPELINE.problem(), schedule(ORDERS, STARTS))
    bad = check(PIPELINE.problem(), schedule(ORDERS, [0] * 8))
    assert join([good, good]).ok
    assert not join([good, bad]).ok
    assert join([good, bad]).measured == good.measured


def test_a_violation_prints_the_grid_with_the_cell_marked() -> None:
    verdict = check(PIPELINE.problem(), schedule(ORDERS, [0, 1, 3, 7, 1, 2, 4, 5]))
    picture = str(verdict.violations[0])
    assert "[0B0]" in picture
    assert "[1B0]" in picture
    assert "^" in picture
