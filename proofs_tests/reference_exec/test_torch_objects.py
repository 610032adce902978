"""torch's schedule objects at the door: every class that keeps an order, made without processes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import bubbleproof as bp
from benchmarks.speed_torch import StandInStage
from benchmarks.torch_tables import schedule_classes
from bubbleproof.formats.held_orders import is_torch_schedule

pytestmark = pytest.mark.torch
WITH_ONE_STAGE = ("GPipe", "1F1B", "_ScheduleForwardOnly")
# Makespans by other means: (m + p - 1)(tF + tB) of the single-stage classes, p = 4, m = 8.
KNOWN = {"GPipe": 33, "1F1B": 33}


def made(name: str) -> Any:
    """A schedule object of 4 ranks, 8 microbatches and, where it can, 2 stages a rank."""
    chunks = 1 if name in WITH_ONE_STAGE else 2
    stages = [
        StandInStage(stage_index=4 * chunk, num_stages=4 * chunks, group_size=4)
        for chunk in range(chunks)
    ]
    given: object = stages[0] if chunks == 1 else stages
    return schedule_classes()[name](given, 8)  # type: ignore[arg-type]  # stand-ins


@pytest.mark.parametrize("name", [n for n in schedule_classes() if n != "_ScheduleForwardOnly"])
def test_every_class_is_judged_as_it_runs(name: str) -> None:
    schedule = made(name)
    assert is_torch_schedule(schedule)
    verdict = bp.check(schedule)
    assert verdict.ok, verdict
    assert verdict.measured is not None
    assert verdict.measured.makespan == KNOWN.get(name, verdict.measured.makespan)
    assert len(bp.idle(schedule)) > 0


def test_a_changed_order_of_theirs_is_refuted() -> None:
    schedule = made("GPipe")
    spoilt = made("Interleaved1F1B")
    order = spoilt.pipeline_order_with_comms[0]
    forward = next(i for i, a in enumerate(order) if str(a) == "0F0")
    order.append(order.pop(forward))
    assert bp.check(schedule).ok
    assert not bp.check(spoilt).ok


def test_what_keeps_no_order_says_so() -> None:
    with pytest.raises(ValueError, match="_ScheduleForwardOnly: expected a schedule that keeps"):
        bp.check(made("_ScheduleForwardOnly"))
    assert not is_torch_schedule(schedule_classes()["GPipe"])  # a class is no object of it
