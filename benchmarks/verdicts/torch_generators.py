"""The schedule classes of the installed torch, made in process (``benchmarks.torch_tables``).

torchtitan builds the same classes by name, a V for ``ZBVZeroBubble`` and ``DualPipeV`` and a loop
for the others, with two stages a rank unless told (its ``distributed/pipeline_parallel.py``).
"""

from __future__ import annotations

import inspect
from functools import partial

from torch.distributed.pipelining.schedules import PipelineScheduleSingle, _PipelineSchedule

from benchmarks.survey import expected_pipeline
from benchmarks.torch_tables import (
    Refused,
    Size,
    placements,
    schedule_classes,
    sender_placed,
    to_program,
    torch_table,
)
from benchmarks.verdicts.generated import (
    BEFORE_USE,
    DEFERRED,
    OWN,
    Generated,
    Generator,
    NotGenerated,
)
from bubbleproof.frameworks import framework_named
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

PLACED = {"sender": OWN, "deferred": DEFERRED, "before use": BEFORE_USE}


def torch_generators() -> list[Generator]:
    """Each class that trains, with 1 chunk, 2, or 2 and 4."""
    source = f"torch {this_machine().versions['torch'].partition('+')[0]}"
    waits = dict.fromkeys((OWN, DEFERRED), framework_named("torch", "torch").waits)
    found = []
    for name, schedule in schedule_classes().items():
        if "ForwardOnly" in name or inspect.isabstract(schedule):
            continue
        for v in _chunks(schedule):
            label = name if v == 1 else f"{name} v={v}"
            make = partial(_table, name, v)
            found.append(Generator(name=label, source=source, make=make, waits=waits))
    return found


def _chunks(schedule: type[_PipelineSchedule]) -> tuple[int, ...]:
    if issubclass(schedule, PipelineScheduleSingle):
        return (1,)
    try:
        torch_table(schedule, Size(ranks=2, microbatches=4, chunks=4))
    except Refused:
        return (2,)
    return (2, 4)


def _table(name: str, v: int, p: int, m: int) -> Generated:
    size = Size(ranks=p, microbatches=m, chunks=v)
    try:
        table = torch_table(schedule_classes()[name], size)
        if table is None:
            raise NotGenerated(f"{name} has no table")
        order = to_program(table.compute)
        problem = expected_pipeline(order, size).problem()
    except Refused as error:
        raise NotGenerated(str(error)) from None
    try:
        lowered = sender_placed(table)
    except Refused:
        return Generated(problem=problem, order=order, placed={})
    placed = {PLACED[key]: to_program(place(table, lowered)) for key, place in placements().items()}
    return Generated(problem=problem, order=order, placed=placed)
