"""A replica whose collectives stand in another order, for both drivers.

The processes of the gloo driver import this module and not the tests.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.reference_exec.drivers.gloo_worker import ParentLine, Seat, work
from bubbleproof.reference_exec.drivers.rank_report import RankReport
from bubbleproof.theory.model.actions import Action, ActionTable, Kind
from bubbleproof.theory.model.schedule import Program


def swapped(order: list[Action]) -> list[Action]:
    """The order with its first UNSHARD and the next one of another stage in each other's place."""
    places = [row for row, action in enumerate(order) if action.kind is Kind.UNSHARD]
    first = order[places[0]]
    other = next(order[row] for row in places if order[row] != first)
    exchange = {first: other, other: first}
    return [exchange.get(action, action) for action in order]


def work_in_another_order(seat: Seat, line: ParentLine) -> RankReport:
    """A worker whose second replica runs ``swapped`` orders."""
    replica, _ = seat.plan.seat(seat.rank)
    if replica == 1:
        orders = [swapped(order) for order in seat.plan.program.orders(seat.plan.num_ranks)]
        program = Program(
            actions=ActionTable.from_actions(action for order in orders for action in order),
            resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
        )
        seat = replace(seat, plan=replace(seat.plan, program=program))
    return work(seat, line)
