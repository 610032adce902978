"""Programs that wait for their own SENDs, as PyTorch 2.15 does: rightly and wrongly."""

# ruff: noqa: ARG001 - all operators share one signature, whatever of it they use
from __future__ import annotations

from dataclasses import replace
from random import Random

from bubbleproof.theory.model.actions import Action, Kind
from proofs_tests.verify.program_mutations.moves import receive_just_in_time as late_receive
from proofs_tests.verify.program_mutations.operators import SENDS, Orders, operator, places
from proofs_tests.verify.token_simulator import Wiring

WAIT_OF = {Kind.SEND_F: Kind.WAIT_SEND_F, Kind.SEND_B: Kind.WAIT_SEND_B}


def _wait(send: Action) -> Action:
    return replace(send, kind=WAIT_OF[send.kind])


def _waiting(orders: Orders) -> Orders | None:
    """All ranks wait for all they sent as they end; None where fewer than two messages are sent."""
    if len(places(orders, SENDS)) < 2:
        return None
    return [[*row, *(_wait(action) for action in row if action.kind in SENDS)] for row in orders]


def _a_wait(random: Random, orders: Orders) -> tuple[list[Action], int]:
    """The row of a rank, and where in it a wait stands."""
    found = [(row, i) for row in orders for i, a in enumerate(row) if a.kind in WAIT_OF.values()]
    return random.choice(found)


@operator("harmless")
def waits_at_the_end(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _waiting(orders)


@operator("either")
def waits_anywhere(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """Each wait somewhere behind its SEND, and one RECV just before its use."""
    late_receive(random, wiring, orders)
    for row in orders if _waiting(orders) else ():
        for send in [action for action in row if action.kind in SENDS]:
            row.insert(random.randint(row.index(send) + 1, len(row)), _wait(send))
    return orders


@operator("wrong")
def drop_a_wait(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    if (waiting := _waiting(orders)) is not None:
        row, i = _a_wait(random, waiting)
        del row[i]
    return waiting


@operator("wrong")
def duplicate_wait(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    if (waiting := _waiting(orders)) is not None:
        row, i = _a_wait(random, waiting)
        row.insert(random.randint(i, len(row)), row[i])
    return waiting


@operator("wrong")
def wait_before_its_send(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    if (waiting := _waiting(orders)) is not None:
        row, i = _a_wait(random, waiting)
        wait = row.pop(i)
        sent = next(n for n, a in enumerate(row) if a.kind in SENDS and _wait(a) == wait)
        row.insert(random.randint(0, sent), wait)
    return waiting


@operator("wrong")
def wait_for_what_another_sends(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """A wait stands on another rank."""
    if (waiting := _waiting(orders)) is not None:
        row, i = _a_wait(random, waiting)
        wait = row.pop(i)
        random.choice([other for other in waiting if other is not row]).append(wait)
    return waiting
