"""The tables that PyTorch's pipelining schedules generate, made without a process group.

A schedule object only reads a few numbers of its stage when it lays out its order, so a stand-in
stage is enough; no model and no communication are needed. Tables are kept as PyTorch's own actions
(``Orders``) and become our ``Program`` by their text, collectives (UNSHARD, RESHARD, REDUCE_GRAD)
left out; from torch 2.15 on lowered tables have their waits for SENDs.

Three placements of the RECVs are looked at:

``sender``
    PyTorch's lowering: the RECV stands where the receiver is when the sender sends. This is what
    ``_PipelineScheduleRuntime`` runs by default.
``deferred``
    the same, moved by PyTorch's ``_defer_recv_ops`` (the option ``defer_pp_recv=True``).
``before use``
    each RECV just before the computation that reads it; what a simple runtime would do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch.distributed.pipelining.schedules as torch_schedules
from torch.distributed.pipelining.schedules import (
    PipelineScheduleSingle,
    _Action,
    _ComputationType,
    _PipelineSchedule,
)

from benchmarks.speed_torch import stand_ins
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication import runtime_collectives

Orders = dict[int, list[_Action]]

OUR_1F1B = "1F1B (bubbleproof's order)"
RECEIVES = (_ComputationType.RECV_F, _ComputationType.RECV_B)
COLLECTIVES = tuple(
    _ComputationType[kind.name]
    for kind in runtime_collectives.COLLECTIVES
    if kind.name in _ComputationType.__members__  # which a version may not have
)
NEEDS = {
    _ComputationType.FORWARD: _ComputationType.RECV_F,
    _ComputationType.FULL_BACKWARD: _ComputationType.RECV_B,
    _ComputationType.BACKWARD_INPUT: _ComputationType.RECV_B,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """p ranks, m microbatches, v chunks (stages) per rank."""

    ranks: int
    microbatches: int
    chunks: int

    def __str__(self) -> str:
        return f"p={self.ranks} m={self.microbatches} v={self.chunks}"


class Refused(ValueError):  # noqa: N818 - an answer of PyTorch, not a fault
    """PyTorch takes no schedule of this size; the text is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The compute order of one schedule at one size, and the rank of each of its stages."""

    size: Size
    compute: Orders
    stage_rank: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, size: Size, stage_rank: tuple[int, ...]) -> Table:
        """The table of an order of ours."""
        return cls(size=size, compute=to_orders(program, size.ranks), stage_rank=stage_rank)


def schedule_classes() -> dict[str, type[_PipelineSchedule]]:
    """Every schedule class without subclasses in PyTorch's module, by its name there."""
    found = {
        name: value
        for name, value in inspect.getmembers(torch_schedules, inspect.isclass)
        if issubclass(value, _PipelineSchedule)
    }
    return {
        name.removeprefix("Schedule"): value
        for name, value in found.items()
        if not any(other is not value and issubclass(other, value) for other in found.values())
    }


def torch_table(schedule: type[_PipelineSchedule], size: Size) -> Table | None:
    """PyTorch's table, or None for a class that has none (forward only).

    Raises ``Refused`` for a size that PyTorch refuses.
    """
    p = size.ranks
    stages = stand_ins(p, size.chunks)
    given: object = stages[0] if issubclass(schedule, PipelineScheduleSingle) else stages
    try:
        made = schedule(given, size.microbatches)  # type: ignore[arg-type]  # stand-ins
    except (ValueError, AssertionError) as error:
        raise Refused(str(error)) from None
    order = getattr(made, "pipeline_order", None)
    if not order:
        return None
    told: dict[int, int] = getattr(made, "stage_index_to_group_rank", None) or {}
    ranks = {stage: stage % p for stage in range(p * size.chunks)} | told
    return Table(
        size=size,
        compute={rank: _without_collectives(actions) for rank, actions in order.items()},
        stage_rank=tuple(ranks[stage] for stage in range(p * size.chunks)),
    )


def our_1f1b_table(size: Size) -> Table:
    """The 1F1B order of ``theory.families`` as PyTorch's actions."""
    found = member("1f1b", p=size.ranks, m=size.microbatches)
    return Table.of(found.schedule.program, size, tuple(range(size.ranks)))


def _without_collectives(actions: list[_Action | None]) -> list[_Action]:
    return [a for a in actions if a is not None and a.computation_type not in COLLECTIVES]


def sender_placed(table: Table) -> Orders:
    """PyTorch's whole lowering of the table, as its runtime does it, less the collectives.

    The collectives are added first as they shift where the replay puts a RECV. Raises ``Refused``
    where PyTorch finds no place for a SEND or RECV.
    """
    orders = {
        rank: torch_schedules._add_unshard_reshard(list(actions))
        for rank, actions in table.compute.items()
    }
    if hasattr(torch_schedules, "_add_reduce_grad"):
        m = table.size.microbatches
        orders = {
            rank: [a for a in torch_schedules._add_reduce_grad(list(actions), m) if a is not None]
            for rank, actions in orders.items()
        }
    lowered = add_send_recv(orders, table.stage_rank)
    if hasattr(torch_schedules, "_add_wait_send"):
        lowered = torch_schedules._add_wait_send(lowered)
    return {rank: _without_collectives(list(actions)) for rank, actions in lowered.items()}


def add_send_recv(orders: Orders, stage_rank: tuple[int, ...]) -> Orders:
    """PyTorch's ``_add_send_recv``. Raises ``Refused`` where it finds no place for one."""
    copied = {rank: list(actions) for rank, actions in orders.items()}
    try:
        return torch_schedules._add_send_recv(copied, stage_rank.__getitem__, len(stage_rank))
    except AssertionError as error:
        raise Refused(str(error)) from None


def deferred(table: Table, lowered: Orders) -> Orders:
    """The lowered orders as ``defer_pp_recv=True`` moves them."""
    return torch_schedules._defer_recv_ops(lowered, table.stage_rank.__getitem__)


def before_use(_table: Table, lowered: Orders) -> Orders:
    """The lowered orders with each RECV just before the computation that reads it."""
    return {rank: _received_late(actions) for rank, actions in lowered.items()}


def _received_late(actions: list[_Action]) -> list[_Action]:
    waiting = {a for a in actions if a.computation_type in RECEIVES}
    result: list[_Action] = []
    for action in actions:
        if action in waiting:
            continue
        for part in parts(action):
            kind = NEEDS.get(part.computation_type, part.computation_type)
            receive = _Action(part.stage_index, kind, part.microbatch_index)
            if receive in waiting and kind in RECEIVES:
                result.append(receive)
        result.append(action)
    return result


def parts(action: _Action) -> tuple[_Action, ...]:
    """The action, or those of an overlapped pair; torch 2.6 has none."""
    return getattr(action, "sub_actions", None) or (action,)


def validator_accepts(table: Table) -> bool:
    """Whether PyTorch's ``_validate_schedule`` lets the compute order pass."""
    orders: dict[int, list[_Action | None]] = {
        rank: list(actions) for rank, actions in table.compute.items()
    }
    size, stages = table.size, len(table.stage_rank)
    try:
        torch_schedules._validate_schedule(orders, size.ranks, stages, size.microbatches)
    except AssertionError:
        return False
    return True


Placement = Callable[[Table, Orders], Orders]


def placements() -> dict[str, Placement]:
    """The placements of RECV by name; without ``deferred`` where PyTorch has no such option."""
    known: dict[str, Placement] = {"sender": lambda _table, lowered: lowered}
    if hasattr(torch_schedules, "_defer_recv_ops"):
        known["deferred"] = deferred
    return {**known, "before use": before_use}


@cache
def _parsed(text: str) -> Action:
    return Action.parse(text)


def to_program(orders: Orders) -> Program:
    """Our program of the orders, read from the text of their actions."""
    return Program.from_orders(
        [[_parsed(str(a)) for a in orders[rank]] for rank in range(len(orders))]
    )


def to_orders(program: Program, num_ranks: int) -> Orders:
    """PyTorch's actions of our program, read from their text."""
    return {
        rank: [_Action.from_str(str(action)) for action in actions]
        for rank, actions in enumerate(program.orders(num_ranks))
    }
