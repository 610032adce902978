"""Operators on lowered programs, and how they find their way in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from bubbleproof.theory.model.actions import Action, Kind
from proofs_tests.verify.token_links import Part
from proofs_tests.verify.token_simulator import Wiring, neighbour, parts_of

Orders = list[list[Action]]
Place = tuple[int, int]
Nature = Literal["wrong", "either", "harmless"]
Mutation = Callable[[Random, Wiring, Orders], Orders | None]
SENDS, RECVS = (Kind.SEND_F, Kind.SEND_B), (Kind.RECV_F, Kind.RECV_B)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOperator:
    """A named mutation of a lowered program."""

    name: str
    nature: Nature
    apply: Mutation


PROGRAM_OPERATORS: list[ProgramOperator] = []
TRANSFER_OPERATORS: list[ProgramOperator] = []  # for programs that hold EVICT and LOAD


def operator(
    nature: Nature, where: list[ProgramOperator] = PROGRAM_OPERATORS
) -> Callable[[Mutation], Mutation]:
    """Register a mutation under the name of its function."""

    def register(apply: Mutation) -> Mutation:
        where.append(ProgramOperator(name=apply.__name__, nature=nature, apply=apply))
        return apply

    return register


def places(orders: Orders, kinds: tuple[Kind, ...] | None = None) -> list[Place]:
    """(rank, position) of all transfers, or of those of the given kinds."""
    wanted = kinds or SENDS + RECVS
    return [(r, i) for r, row in enumerate(orders) for i, a in enumerate(row) if a.kind in wanted]


def token_of(action: Action) -> Part:
    """The token a SEND or RECV names."""
    letter = "F" if action.kind in (Kind.SEND_F, Kind.RECV_F) else "B"
    mine: Part = (letter, action.stage, action.microbatch, action.slice)
    return mine if action.kind in SENDS else neighbour(mine, -1)


def other_end(orders: Orders, action: Action) -> Place:
    """Where the RECV of a SEND, or the SEND of a RECV, stands."""
    kinds = RECVS if action.kind in SENDS else SENDS
    return next(p for p in places(orders, kinds) if token_of(at(orders, p)) == token_of(action))


def at(orders: Orders, place: Place) -> Action:
    return orders[place[0]][place[1]]


def channel(wiring: Wiring, rank: int, action: Action) -> tuple[int, int]:
    kind, _, peer = wiring.post(rank, action)
    return (rank, peer) if kind == "send" else (peer, rank)


def consumer(wiring: Wiring, row: list[Action], action: Action) -> int:
    """The position of the task that a RECV feeds."""
    token = token_of(action)
    return next(i for i, a in enumerate(row) if token in wiring.inputs.get(a, ()))


def producer(row: list[Action], action: Action) -> int:
    """The position of the task whose output a SEND sends."""
    token = token_of(action)
    return next(i for i, a in enumerate(row) if token in parts_of(a))
