"""Mutation operators on lowered programs: orders of computations, SENDs and RECVs per rank.

As in ``mutations``: a ``wrong`` operator's mutants fail under every semantics, those of a
``harmless`` one under none, and ``either`` leaves it to the token simulator. Operators that find
nothing to change return None.
"""

# ruff: noqa: ARG001 - all operators share one signature, whatever of it they use
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from bubbleproof.theory.actions import Action, Kind
from proofs_tests.verify.token_simulator import Part, Verdict, Wiring, neighbour, parts_of

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


def operator(nature: Nature) -> Callable[[Mutation], Mutation]:
    """Register a mutation under the name of its function."""

    def register(apply: Mutation) -> Mutation:
        PROGRAM_OPERATORS.append(ProgramOperator(name=apply.__name__, nature=nature, apply=apply))
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
    steps = [i for i, a in enumerate(row) if a.kind not in SENDS + RECVS]
    task = row[random.choice(steps[1:])]
    made = set(parts_of(task))
    before = [a for a in row if a.kind in RECVS and token_of(a) in wiring.inputs[task]]
    after = [a for a in row if a.kind in SENDS and token_of(a) in made]
    bundle = [*before, task, *after]
    rest = [a for a in row if a not in bundle]
    where = random.randint(0, max(0, row.index(task) - len(before)))
    row[:] = rest[:where] + bundle + rest[where:]
    return orders


def mutate(chosen: ProgramOperator, seed: str, wiring: Wiring, orders: Orders) -> Orders | None:
    """The operator's mutant of a copy of the orders."""
    try:
        return chosen.apply(Random(seed), wiring, [list(row) for row in orders])
    except Verdict as end:
        raise AssertionError(f"the unmutated program is {end}") from end
