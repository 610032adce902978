"""What a generator gives at one size: an order, and the order with its messages, placed some way.

A *placement* of messages is named by whose it is:

``own``
    as the generator's own runtime posts them.
``deferred``
    of torch: moved by its option ``defer_pp_recv=True``.
``unbatched``
    of Megatron: without ``batch_p2p_comm``, in the order of the parity of ranks.
``before use``
    each RECV right before the computation that reads it, each SEND where ``own`` has it, and no
    waits for SENDs: what a simple runtime would do with the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import as_kind, messages
from bubbleproof.theory.pipelines.programs.pytorch_runtime import WAIT_OF

OWN, DEFERRED, UNBATCHED, BEFORE_USE = "own", "deferred", "unbatched", "before use"
PLACEMENTS = (OWN, DEFERRED, UNBATCHED, BEFORE_USE)
DROPPED = (Kind.RECV_F, Kind.RECV_B, *WAIT_OF.values())


class NotGenerated(ValueError):  # noqa: N818 - a generator's answer, not a fault
    """The generator has nothing of this size; the text is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """An order of a problem; ``placed`` are its programs with messages, by placement."""

    problem: Problem
    order: Program
    placed: Mapping[str, Program]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """Who makes schedules of p ranks and m microbatches by ``make``.

    ``source`` is whose it is and of which version; ``waits`` has, by placement, the semantics that
    its own runtime may have with it. ``make`` raises ``NotGenerated`` for a size that it refuses.
    """

    name: str
    source: str
    make: Callable[[int, int], Generated]
    waits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def with_late_receives(problem: Problem, program: Program) -> Program:
    """The program with each RECV right before what reads it, and no waits for SENDs."""
    needed: dict[tuple[int, Action], list[Action]] = {}
    actions = list(problem.actions)
    for message in messages(problem):
        needed.setdefault((message.target, actions[message.consumer]), []).append(message.recv)
    orders: list[list[Action]] = []
    for rank, row in enumerate(program.orders(problem.num_ranks)):
        orders.append([])
        for action in row:
            if action.kind not in DROPPED:
                orders[-1] += [*needed.get((rank, action), ()), action]
    return Program.from_orders(orders)


def waits_for(sends: list[Action]) -> list[Action]:
    """The waits for SENDs among the actions, in their order."""
    return [as_kind(each, WAIT_OF[each.kind]) for each in sends if each.kind in WAIT_OF]
