"""EVICTs and LOADs missing, moved or in another's place, where they stand in ranks' programs.

These apply to programs with transfers in them only, so they are a list of their own.
"""

# ruff: noqa: ARG001 - all operators share one signature, whatever of it they use
from __future__ import annotations

from random import Random

from bubbleproof.theory.model.actions import Kind
from proofs_tests.verify.program_mutations.operators import (
    TRANSFER_OPERATORS,
    Orders,
    operator,
    places,
)
from proofs_tests.verify.token_simulator import Wiring

MOVES = (Kind.EVICT, Kind.LOAD)


@operator("harmless", TRANSFER_OPERATORS)
def transfers_unchanged(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return orders


@operator("wrong", TRANSFER_OPERATORS)
def drop_an_end(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """A post or a wait of one rank is gone."""
    r, i = random.choice(places(orders, MOVES))
    del orders[r][i]
    return orders


@operator("wrong", TRANSFER_OPERATORS)
def drop_a_transfer(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """An EVICT or a LOAD is gone from all ranks, though not the last one."""
    moves = sorted({orders[r][i] for r, i in places(orders, MOVES)}, key=str)
    gone = random.choice(moves)
    return [[action for action in row if action != gone] for row in orders]


@operator("wrong", TRANSFER_OPERATORS)
def duplicate_an_end(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, MOVES))
    orders[r].insert(random.randint(i, len(orders[r])), orders[r][i])
    return orders


@operator("wrong", TRANSFER_OPERATORS)
def transfer_on_another_rank(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, MOVES))
    action = orders[r][i]
    ends = wiring.movers[action]
    others = [rank for rank in range(len(orders)) if rank not in ends]
    orders[r] = [a for a in orders[r] if a != action]
    orders[random.choice(others)] += [action, action]
    return orders


@operator("either", TRANSFER_OPERATORS)
def transfers_moved(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """One to three posts or waits move by up to eight steps."""
    for _ in range(random.randint(1, 3)):
        r, i = random.choice(places(orders, MOVES))
        action = orders[r].pop(i)
        orders[r].insert(max(0, i + random.randint(-8, 8)), action)
    return orders


@operator("either", TRANSFER_OPERATORS)
def late_wait(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, MOVES))
    i = max(k for k, action in enumerate(orders[r]) if action == orders[r][i])
    action = orders[r].pop(i)
    orders[r].insert(random.randint(i, len(orders[r])), action)
    return orders


@operator("either", TRANSFER_OPERATORS)
def early_post(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, MOVES))
    i = orders[r].index(orders[r][i])
    action = orders[r].pop(i)
    orders[r].insert(random.randint(0, i), action)
    return orders


@operator("harmless", TRANSFER_OPERATORS)
def waited_for_at_once(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """On some of the ranks each transfer is waited for where it is posted.

    Both ranks post it at one place of the order in time that all programs agree with.
    """
    for row in random.sample(orders, random.randint(1, len(orders))):
        for action in dict.fromkeys(a for a in row if a.kind in MOVES):
            first = row.index(action)
            row.reverse()
            row.remove(action)
            row.reverse()
            row.insert(first, action)
    return orders


@operator("either", TRANSFER_OPERATORS)
def swapped_transfers(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """Two ends of transfers on one rank in each other's place."""
    r, i = random.choice(places(orders, MOVES))
    others = [k for s, k in places(orders, MOVES) if s == r and orders[r][k] != orders[r][i]]
    if not others:
        return None
    k = random.choice(others)
    orders[r][i], orders[r][k] = orders[r][k], orders[r][i]
    return orders
