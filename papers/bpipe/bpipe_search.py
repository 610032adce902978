"""Exhaustive search over transfer plans in slots: what is the least that any plan can do?

A plan puts at most one transfer, of any saved activation, beside each slot of an evictor (BPipe
section 3.4: T_i runs beside C_i). Nothing of ``families.evicting.bpipe_plan`` is used: no rule
about when to move or what. The work grows with the number of sets of evicted activations; seconds
for p = 16.
"""

from __future__ import annotations

from bubbleproof.theory.model.actions import Action, Kind

Slots = tuple[Action | None, ...]


def _items(slots: Slots, kind: Kind) -> dict[int, tuple[int, int]]:
    return {i: (a.stage, a.microbatch) for i, a in enumerate(slots) if a and a.kind is kind}


def held_during(slots: Slots) -> list[int]:
    """How many activations the rank's own computations hold in each slot."""
    made, used = _items(slots, Kind.F), _items(slots, Kind.B)
    return [sum(i <= q for i in made) - sum(i < q for i in used) for q in range(len(slots))]


def least_evictions(evictor: Slots, acceptor: Slots, capacity: int) -> int | None:
    """The least number of evictions of any plan that keeps both ranks within; None if none does.

    In-flight activations count on both ranks. Slot by slot, every set of activations that may be
    away (a bit mask) is kept with the least evictions that lead to it.
    """
    made, used, own = _masks(evictor, Kind.F), _masks(evictor, Kind.B), held_during(acceptor)
    costs, alive = {0: 0}, 0
    for q in range(len(evictor)):
        needed = used.get(q, 0)
        following: dict[int, int] = {}
        for away, cost in costs.items():
            here, there = alive & ~away, own[q] + away.bit_count()
            room = capacity - here.bit_count() - (q in made)
            if needed & away or room < 0 or there > capacity:
                continue
            options = [(away, cost)]
            if there < capacity:
                options += [(away | x, cost + 1) for x in _bits(here & ~needed)]
            if room:
                options += [(away & ~x, cost) for x in _bits(away)]
            for then, price in options:
                if price < following.get(then, price + 1):
                    following[then] = price
        costs, alive = following, (alive | made.get(q, 0)) & ~needed
    return min(costs.values()) if costs else None


def _masks(slots: Slots, kind: Kind) -> dict[int, int]:
    """The slots of a kind, each with the bit of its activation."""
    order = {x: i for i, x in enumerate(_items(slots, Kind.F).values())}
    return {q: 1 << order[x] for q, x in _items(slots, kind).items()}


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest)
        mask ^= lowest
    return found


def least_capacity(slots: tuple[Slots, ...]) -> int:
    """The least number of activations per rank that some plan of every pair keeps to.

    ``slots`` are the computation schedules of ranks 0..p-1; rank s pairs with rank p-1-s.
    """
    p = len(slots)
    least = max(held_during(slots[p // 2])) if p % 2 else 0
    for s in range(p // 2):
        capacity = 0
        while least_evictions(slots[s], slots[p - 1 - s], capacity) is None:
            capacity += 1
        least = max(least, capacity)
    return least
