"""The planner equals enumeration, and more of anything never gives a worse plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from bubbleproof.planners import Plan
from bubbleproof.solvers import Status
from proofs_tests.planners.enumeration import EVERY_NUMBER, PAGE, compared, page, planned, table
from proofs_tests.planners.joint_instances import Instance, instance
from proofs_tests.sized import sampled, sized

compared_once = cache(compared)
USUAL = (0, 2, 5, 8, 14, 22, 38)  # each kind of choice and of placement, split, nothing fits


@pytest.mark.parametrize("number", sized(USUAL, full=tuple(range(EVERY_NUMBER))))
def test_the_plan_is_the_best_of_all_candidates_and_choices(number: int) -> None:
    row = compared_once(number)
    assert row.fault is None
    assert f"| {number} |" in table([row])
    assert "1 of 1 are equal" in page([row])


def test_the_page_has_every_instance_and_all_are_equal() -> None:
    written = PAGE.read_text("utf-8")
    assert f"{EVERY_NUMBER} of {EVERY_NUMBER} are equal" in written
    lines = [line.split(" | ") for line in written.splitlines() if line[2:3].isdigit()]
    assert [int(line[0].removeprefix("| ")) for line in lines] == [*range(EVERY_NUMBER)]
    assert all(line[5] == line[6] for line in lines)


def test_a_plan_that_is_not_the_best_is_a_fault() -> None:
    row = compared_once(2)
    worse = replace(row, truth=1)
    assert worse.fault == "INFEASIBLE None, but the optimum is 1"
    assert "0 of 1 are equal" in page([worse])
    row = compared_once(8)
    assert row.truth is not None
    assert f"{row.truth} is no optimum" in str(replace(row, truth=row.truth - 1).fault)


def value(given: Instance) -> float:
    """The plan's makespan, which is proved; endless where nothing fits."""
    found = planned(given)
    assert found.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return found.value if isinstance(found, Plan) else float("inf")


MORE: dict[str, Callable[[Instance], Instance]] = {
    "memory": lambda given: replace(given, capacity=given.capacity + 2),
    "latency": lambda given: replace(given, latency=max(0, given.latency - 1)),
    "messages": lambda given: replace(given, message=0),
    "transfers": lambda given: (
        given
        if given.evict_ticks is None
        else replace(given, evict_ticks=max(0, given.evict_ticks - 2))
    ),
    "kept": lambda given: replace(given, kept=0),
    "stages": lambda given: replace(given, again=tuple(range(given.num_ranks))),
    "evictions": lambda given: replace(given, evict_ticks=given.evict_ticks or 2),
    "placements": lambda given: replace(
        given, placements=(*given.placements, *({"wave", "bidirectional"} - {*given.placements}))
    ),
    "backward": lambda given: replace(
        given, backward=(*given.backward, *{"whole", "split"} - {*given.backward})
    ),
}
GROWN = sized((8,), full=tuple(range(12)))


@pytest.mark.parametrize("number", GROWN)
def test_more_never_gives_a_worse_plan(number: int) -> None:
    given = instance(number)
    before = value(given)
    after = {name: value(more(given)) for name, more in sampled([*MORE.items()], every=2)}
    assert {name: found for name, found in after.items() if found > before} == {}


def test_more_makes_some_plans_better() -> None:
    # The control: in this instance memory matters, and with less of it so does recomputation.
    given = instance(39)
    tight = replace(given, capacity=given.capacity - 1)
    assert value(given) < value(tight) < value(replace(tight, again=()))
