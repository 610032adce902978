"""DeepSpeed's instruction schedules, run by their own generator out of an archive of DeepSpeed.

``deepspeed/runtime/pipe/schedule.py`` says of each rank which instructions it does. The k-th
instruction of a kind (of a phase, which is a chunk) is of microbatch k: nothing else names it.
Under ``TrainSchedule`` SENDs and RECVs block where they stand. ``DualPipeVSchedule`` queues them
and ``CommitP2P`` posts the queue as one batch and waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.verdicts.archives import loaded, named, text_of
from benchmarks.verdicts.generated import (
    BEFORE_USE,
    OWN,
    Generated,
    Generator,
    NotGenerated,
    waits_for,
    with_late_receives,
)
from bubbleproof.formats import infer_pipeline
from bubbleproof.frameworks import framework_named
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.matching import compute_part

PACKAGE = "deepspeed"
MODULE = "deepspeed/runtime/pipe/schedule.py"
KINDS = {
    "ForwardPass": Kind.F,
    "BackwardPass": Kind.B,
    "SendActivation": Kind.SEND_F,
    "RecvActivation": Kind.RECV_F,
    "SendGrad": Kind.SEND_B,
    "RecvGrad": Kind.RECV_B,
}
COMMIT = "CommitP2P"
BATCHES = ("batched",)
SCHEDULES = {"TrainSchedule": 1, "DualPipeVSchedule": 2}  # chunks a rank, the second way back


def deepspeed_generators(archive: Path) -> list[Generator]:
    """The schedules that the archive's version has."""
    _, version = named(archive)
    source, blocking = f"DeepSpeed {version}", framework_named("deepspeed", "DeepSpeed").waits
    module = _module(archive)
    return [
        Generator(
            name=name,
            source=source,
            make=partial(_made, archive, name),
            waits={OWN: blocking if chunks == 1 else BATCHES},
        )
        for name, chunks in SCHEDULES.items()
        if hasattr(module, name)
    ]


@cache
def _module(archive: Path) -> ModuleType:
    utils = ModuleType("utils")
    utils.call_to_str = repr  # type: ignore[attr-defined]  # only how instructions are printed
    name = "deepspeed.runtime.pipe.schedule"
    return loaded(text_of(archive, MODULE), name, {"deepspeed.runtime.utils": utils})


def _made(archive: Path, name: str, p: int, m: int) -> Generated:
    schedule = getattr(_module(archive), name)
    orders = []
    for rank in range(p):
        try:
            steps = schedule(m, p, rank).steps()
        except ValueError as error:
            raise NotGenerated(str(error)) from None
        instructions = (each for step in steps for each in step)
        orders.append(actions_of(instructions, rank, p))
    program = Program.from_orders(orders)
    order = compute_part(program)
    problem = infer_pipeline(order).problem()
    late = with_late_receives(problem, program)
    return Generated(problem=problem, order=order, placed={OWN: program, BEFORE_USE: late})


def actions_of(instructions: Iterable[Any], rank: int, num_ranks: int) -> list[Action]:
    """A rank's instructions as actions; what is queued stands where it is committed."""
    seen: Counter[tuple[Kind, int]] = Counter()
    queue: list[Action] = []
    found: list[Action] = []
    for each in instructions:
        name, phase = type(each).__name__, getattr(each, "phase", None)
        if name == COMMIT:
            found += [*queue, *waits_for(queue)]
            queue = []
        if name not in KINDS:
            continue  # loading, gradients among replicas, the optimizer
        kind, chunk = KINDS[name], phase or 0
        stage = rank if chunk == 0 else 2 * num_ranks - 1 - rank
        action = Action(stage=stage, kind=kind, microbatch=seen[kind, chunk])
        seen[kind, chunk] += 1
        is_queued = phase is not None and kind not in (Kind.F, Kind.B)
        (queue if is_queued else found).append(action)
    return found
