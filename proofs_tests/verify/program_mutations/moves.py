"""Transfers and computations moved: a deadlock under some semantics, or none."""

# ruff: noqa: ARG001 - all operators share one signature, whatever of it they use
from __future__ import annotations

from random import Random

from bubbleproof.theory.model.actions import Action
from proofs_tests.verify.program_mutations.operators import (
    RECVS,
    SENDS,
    Orders,
    channel,
    consumer,
    operator,
    other_end,
    places,
    token_of,
)
from proofs_tests.verify.token_simulator import Wiring, parts_of


def _just_in_time(wiring: Wiring, row: list[Action], position: int) -> None:
    """Move a RECV to just before the task it feeds."""
    action = row[position]
    row.insert(consumer(wiring, row, action), action)
    del row[position]


@operator("either")
def receive_just_in_time(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, RECVS))
    _just_in_time(wiring, orders[r], i)
    return orders


@operator("either")
def all_receives_just_in_time(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """On some of the ranks every RECV stands just before the task it feeds."""
    for row in random.sample(orders, random.randint(1, len(orders))):
        for action in [a for a in row if a.kind in RECVS]:
            _just_in_time(wiring, row, row.index(action))
    return orders


@operator("either")
def message_just_in_time(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """A SEND moves to the end of its rank's next few steps, its RECV to just before its use."""
    r, i = random.choice(places(orders, SENDS))
    q, j = other_end(orders, orders[r][i])
    _just_in_time(wiring, orders[q], j)
    orders[r].insert(min(len(orders[r]), i + random.randint(2, 4)), orders[r][i])
    del orders[r][i]
    return orders


@operator("either")
def late_send(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, SENDS))
    action = orders[r].pop(i)
    orders[r].insert(random.randint(i, len(orders[r])), action)
    return orders


@operator("either")
def early_receive(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    r, i = random.choice(places(orders, RECVS))
    action = orders[r].pop(i)
    orders[r].insert(random.randint(0, i), action)
    return orders


@operator("either")
def transfers_across_computations(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """One to three transfers move by up to four steps."""
    for _ in range(random.randint(1, 3)):
        r, i = random.choice(places(orders))
        action = orders[r].pop(i)
        orders[r].insert(max(0, i + random.randint(-4, 4)), action)
    return orders


@operator("either")
def swapped_neighbouring_transfers(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    known = set(places(orders))
    pairs = [(r, i) for r, i in known if (r, i + 1) in known]
    for r, i in random.sample(sorted(pairs), min(len(pairs), random.randint(1, 3))):
        orders[r][i : i + 2] = orders[r][i : i + 2][::-1]
    return orders if pairs else None


@operator("either")
def transfers_across_pairs(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """One to twelve transfers move back, none past another of its pair of ranks."""
    for _ in range(random.randint(1, 12)):
        rank, i = random.choice(places(orders))
        row = orders[rank]
        pair = {*channel(wiring, rank, row[i])}
        end = consumer(wiring, row, row[i]) if row[i].kind in RECVS else len(row)
        last = i
        while last + 1 < end and not _is_of_pair(wiring, rank, row[last + 1], pair):
            last += 1
        row.insert(random.randint(i, last), row.pop(i))
    return orders


def _is_of_pair(wiring: Wiring, rank: int, action: Action, pair: set[int]) -> bool:
    return action.kind in SENDS + RECVS and {*channel(wiring, rank, action)} == pair


@operator("either")
def receives_before_sends(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """Wherever transfers stand side by side, all ranks receive first."""
    for row in orders:
        for i in range(len(row)):
            j = i
            while j > 0 and row[j].kind in RECVS and row[j - 1].kind in SENDS:
                row[j - 1 : j + 1] = [row[j], row[j - 1]]
                j -= 1
    return orders


@operator("either")
def swapped_computations(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """A rank takes two successive computations the other way round; transfers stay."""
    rank = random.randrange(len(orders))
    steps = [i for i, a in enumerate(orders[rank]) if a.kind not in SENDS + RECVS]
    k = random.randrange(len(steps) - 1)
    i, j = steps[k], steps[k + 1]
    orders[rank][i], orders[rank][j] = orders[rank][j], orders[rank][i]
    return orders


@operator("either")
def bundle_moved_ahead(random: Random, wiring: Wiring, orders: Orders) -> Orders | None:
    """A computation with its RECVs and SENDs around it moves to an earlier step of its rank."""
    row = orders[random.randrange(len(orders))]
    steps = [i for i, a in enumerate(row) if a in wiring.inputs]
    task = row[random.choice(steps[1:])]
    made = set(parts_of(task))
    before = [a for a in row if a.kind in RECVS and token_of(a) in wiring.inputs[task]]
    after = [a for a in row if a.kind in SENDS and token_of(a) in made]
    bundle = [*before, task, *after]
    rest = [a for a in row if a not in bundle]
    where = random.randint(0, max(0, row.index(task) - len(before)))
    row[:] = rest[:where] + bundle + rest[where:]
    return orders
