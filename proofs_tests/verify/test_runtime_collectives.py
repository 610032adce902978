"""Collectives of PyTorch tables, by hand: each mistake is named; PyTorch makes none."""

from __future__ import annotations

import pytest

from bubbleproof.formats import infer_pipeline
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import Rule
from bubbleproof.verify.communication.runtime_collectives import (
    COLLECTIVES,
    check_runtime_collectives,
)

WHOLE = "0UNSHARD 0F0 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0RESHARD"
TWO = "0F0 1F0 1B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD"


def judged(*rows: str) -> list[str]:
    program = Program.from_orders([row.split() for row in rows])
    bare = program.take(~program.actions.is_kind(*COLLECTIVES))
    decision = check_runtime_collectives(infer_pipeline(bare).problem(), program)
    assert (decision.rule, decision.detail) == (Rule.COMMUNICATION, "collectives")
    assert decision.ok == (not decision.violations)
    return [violation.message for violation in decision.violations]


@pytest.mark.parametrize("row", [WHOLE, TWO, "0F0 0B0", "0F0 0I0 0W0 0REDUCE_GRAD"])
def test_whole_tables_have_no_fault(row: str) -> None:
    assert judged(row) == []


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            WHOLE.replace("0B0 0REDUCE_GRAD", "0REDUCE_GRAD 0B0"),
            ["0REDUCE_GRAD stands before 0B0, which adds to it"],
        ),
        ("0F0 0I0 0REDUCE_GRAD 0W0", ["0REDUCE_GRAD stands before 0W0, which adds to it"]),
        ("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD", ["0REDUCE_GRAD stands 2 times, must stand once"]),
        ("0F0 1F0 1B0 1REDUCE_GRAD 0B0", ["0REDUCE_GRAD stands 0 times, must stand once"]),
        (
            TWO.replace("1WAIT_REDUCE_GRAD 0B0 0REDUCE_GRAD", "0B0 0REDUCE_GRAD 1WAIT_REDUCE_GRAD"),
            [
                "0REDUCE_GRAD begins on rank 0 before 1REDUCE_GRAD is waited for",
                "1WAIT_REDUCE_GRAD on rank 0 waits for no REDUCE_GRAD that is under way",
                "0WAIT_REDUCE_GRAD on rank 0 waits for no REDUCE_GRAD that is under way",
            ],
        ),
        (
            TWO.removesuffix(" 0WAIT_REDUCE_GRAD"),
            ["0REDUCE_GRAD on rank 0 is never waited for"],
        ),
        ("0F0 0UNSHARD 0B0 0RESHARD", ["0F0 comes where stage 0 is not gathered"]),
        ("0UNSHARD 0F0 0RESHARD 0B0", ["0B0 comes where stage 0 is not gathered"]),
        ("0UNSHARD 0F0 0UNSHARD 0B0 0RESHARD", ["0UNSHARD comes where stage 0 is gathered"]),
        ("0UNSHARD 0F0 0B0", ["stage 0 is gathered and not freed as the step ends"]),
        ("0UNSHARD 0F0 0B0 0RESHARD 0RESHARD", ["0RESHARD comes where stage 0 is not gathered"]),
    ],
)
def test_each_mistake_is_named(row: str, expected: list[str]) -> None:
    assert judged(row) == expected


@pytest.mark.torch
@pytest.mark.parametrize("name", ["Interleaved1F1B", "ZBVZeroBubble", "DualPipeV"])
def test_pytorchs_own_lowering_has_no_fault(name: str) -> None:
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    from benchmarks.torch_tables import Size, schedule_classes, torch_table

    table = torch_table(schedule_classes()[name], Size(ranks=2, microbatches=4, chunks=2))
    assert table is not None
    rows = []
    for actions in table.compute.values():
        lowered = schedules._add_unshard_reshard(list(actions))
        if hasattr(schedules, "_add_reduce_grad"):
            lowered = schedules._add_reduce_grad(lowered, 4)
        rows.append(" ".join(str(action).replace("; ", ";") for action in lowered))
    assert "REDUCE_GRAD" in rows[0]
    assert judged(*rows) == []
