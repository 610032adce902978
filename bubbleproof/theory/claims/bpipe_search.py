"""Exhaustive search over transfer plans in slots: what is the least that any plan can do?

A plan puts at most one transfer, of any saved activation, beside each slot of an evictor (BPipe
section 3.4: T_i runs beside C_i). Nothing of ``families.bpipe_plan`` is used: no rule about when to
move or what. The work grows with the number of sets of evicted activations; meant for p <= 8.
"""

from __future__ import annotations

from bubbleproof.theory.actions import Action, Kind

Slots = tuple[Action | None, ...]


def _items(slots: Slots, kind: Kind) -> dict[int, tuple[int, int]]:
    return {i: (a.stage, a.microbatch) for i, a in enumerate(slots) if a and a.kind is kind}


def held_during(slots: Slots) -> list[int]:
    """How many activations the rank's own computations hold in each slot."""
    made, used = _items(slots, Kind.F), _items(slots, Kind.B)
    return [sum(i <= q for i in made) - sum(i < q for i in used) for q in range(len(slots))]


def least_evictions(evictor: Slots, acceptor: Slots, capacity: int) -> int | None:
    """The least number of evictions of any plan that keeps both ranks within; None if none does.

    In-flight activations count on both ranks.
    """
    made, used = _items(evictor, Kind.F), _items(evictor, Kind.B)
    own = held_during(acceptor)
    costs: dict[frozenset[tuple[int, int]], int] = {frozenset(): 0}
    for q in range(len(evictor)):
        alive = {x for i, x in made.items() if i < q} - {x for i, x in used.items() if i < q}
        running = {made[q]} if q in made else set()
        following: dict[frozenset[tuple[int, int]], int] = {}
        for away, cost in costs.items():
            if q in used and used[q] in away:
                continue
            here = alive - away
            fits_here = len(here) + len(running) <= capacity
            options = [(away, cost, 0, 0)]
            idle = here - {used[q]} if q in used else here
            options += [(away | {x}, cost + 1, 0, 1) for x in idle]
            options += [(away - {x}, cost, 1, 0) for x in away]
            for then, price, arriving, leaving in options:
                here_now = len(here) + len(running) + arriving
                there_now = own[q] + len(away) + leaving
                if fits_here and max(here_now, there_now) <= capacity:
                    following[then] = min(price, following.get(then, price))
        costs = following
    return min(costs.values()) if costs else None


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
