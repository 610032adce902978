"""Messages missing, doubled, crossed, misnamed or misplaced: wrong under every semantics."""

# ruff: noqa: ARG001 - all operators share one signature, whatever of it they use
from __future__ import annotations

from dataclasses import replace
from random import Random

from bubbleproof.theory.model.actions import Kind
from proofs_tests.verify.program_mutations.operators import (
    RECVS,
    SENDS,
    Orders,
    at,
    channel,
    consumer,
    operator,
    other_end,
    places,
    producer,
)
from proofs_tests.verify.token_simulator import Wiring


@operator("harmless")
def unchanged(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return orders


def _crossed(
    random: Random, wiring: Wiring, orders: Orders, kinds: tuple[Kind, ...]
) -> Orders | None:
    """Two transfers of one channel change places on one side."""
    found = places(orders, kinds)
    pairs = [
        (a, b)
        for a in found
        for b in found
        if a < b
        and a[0] == b[0]
        and channel(wiring, a[0], at(orders, a)) == channel(wiring, b[0], at(orders, b))
    ]
    if not pairs:
        return None
    (r, i), (_, j) = random.choice(pairs)
    orders[r][i], orders[r][j] = orders[r][j], orders[r][i]
    return orders


@operator("wrong")
def crossing_sends(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _crossed(random, wiring, orders, SENDS)


@operator("wrong")
def swapped_receives(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _crossed(random, wiring, orders, RECVS)


@operator("wrong")
def receive_after_use(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, RECVS))
    action = orders[r][i]
    target = consumer(wiring, orders[r], action)
    orders[r].insert(random.randint(target + 1, len(orders[r])), action)
    del orders[r][i]
    return orders


@operator("wrong")
def send_before_production(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    action = orders[r].pop(i)
    orders[r].insert(random.randint(0, producer(orders[r], action)), action)
    return orders


@operator("wrong")
def drop_a_send(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    del orders[r][i]
    return orders


@operator("wrong")
def drop_a_receive(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, RECVS))
    del orders[r][i]
    return orders


@operator("wrong")
def drop_a_message(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    q, j = other_end(orders, orders[r][i])
    del orders[r][i]
    del orders[q][j]
    return orders


def _doubled(random: Random, orders: Orders, kinds: tuple[Kind, ...]) -> Orders:
    r, i = random.choice(places(orders, kinds))
    orders[r].insert(random.randint(i, len(orders[r])), orders[r][i])
    return orders


@operator("wrong")
def duplicate_send(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _doubled(random, orders, SENDS)


@operator("wrong")
def duplicate_receive(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _doubled(random, orders, RECVS)


@operator("wrong")
def duplicate_message(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    q, j = other_end(orders, orders[r][i])
    orders[r].insert(i, orders[r][i])
    orders[q].insert(j, orders[q][j])
    return orders


def _renamed(
    random: Random, orders: Orders, kinds: tuple[Kind, ...], stages: int, microbatches: int
) -> Orders:
    r, i = random.choice(places(orders, kinds))
    action = orders[r][i]
    orders[r][i] = replace(
        action, stage=action.stage + stages, microbatch=action.microbatch + microbatches
    )
    return orders


@operator("wrong")
def receive_of_another_microbatch(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _renamed(random, orders, RECVS, 0, 1)


@operator("wrong")
def send_of_another_microbatch(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _renamed(random, orders, SENDS, 0, 1)


@operator("wrong")
def send_of_another_stage(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    return _renamed(random, orders, SENDS, 1, 0)


@operator("wrong")
def send_in_the_other_direction(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    turned = {Kind.SEND_F: Kind.SEND_B, Kind.SEND_B: Kind.SEND_F}[orders[r][i].kind]
    orders[r][i] = replace(orders[r][i], kind=turned)
    return orders


@operator("wrong")
def send_on_another_rank(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    orders[(r + 1) % len(orders)].append(orders[r].pop(i))
    return orders
