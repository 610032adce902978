"""Budgets: a part ends within the whole, and the clock says where it decided."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from bubbleproof.planners import PlanOptions, plan
from bubbleproof.planners.search_budget import LEAST_WORK, Pace, SearchBudget
from bubbleproof.solvers import Status
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.found_plans import GAPS


def test_a_part_never_ends_after_the_whole() -> None:
    whole = SearchBudget.of(100.0, None, Event())
    assert whole.part(10.0, 1.0).deadline < whole.deadline
    assert whole.part(1000.0, 1.0).deadline == whole.deadline
    assert whole.part(0.5, 1000.0).deadline == whole.deadline
    part = whole.part(50.0, 1.0)
    assert part.part(80.0, 1.0).deadline == part.deadline


def test_counted_work_is_shared_and_the_clock_is_not() -> None:
    whole = SearchBudget.of(100.0, 4.0, Event())
    whole.spend(1.0)
    assert whole.left == 3.0
    part = whole.part(1.5, 1.0)
    assert (part.left, part.deadline) == (1.5, whole.deadline)
    assert whole.part(0.0, 1.0).work == LEAST_WORK
    whole.pace.measure(1.0, 10.0)  # a slow machine
    assert whole.preparable == pytest.approx(whole.seconds, abs=1.0)


def test_a_slow_machine_prepares_less_in_the_time() -> None:
    whole = SearchBudget.of(1000.0, None, Event())
    whole.pace.measure(0.001, 5.0)  # too short to tell
    assert whole.pace.factor == 1.0
    whole.pace.measure(2.0, 8.0)
    assert whole.pace.factor == 4.0
    assert whole.preparable <= 250.0
    assert whole.part(500.0, 1.0).pace is whole.pace
    fast = Pace()
    fast.measure(2.0, 1.0)
    assert fast.factor == 1.0


def test_nothing_is_left_after_a_stop() -> None:
    stop = Event()
    whole = SearchBudget.of(100.0, 4.0, stop)
    stop.set()
    assert (whole.left, whole.part(2.0, 1.0).left) == (0.0, 0.0)


def test_the_answer_says_which_limit_ended_it() -> None:
    """Or the limit of work, which is then told in place of it."""
    counted = PlanOptions(time_limit=PATIENCE, work=0.05, threads=1)
    found = plan(GAPS, counted)
    assert found.status is Status.FEASIBLE
    assert found.reason.startswith("the limit of work ended the search: ")
    late = plan(GAPS, replace(counted, work=None, time_limit=0.02))
    is_open = late.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert is_open == late.reason.startswith("the clock ended the search: ")
    assert is_open
