"""BPipe: the plans that ship consist of the theorem's slots, and nothing else."""

from __future__ import annotations

import pytest

from bubbleproof.papers.bpipe import bpipe_theorem
from bubbleproof.theory.families.evicting.bpipe import BPipe
from bubbleproof.theory.families.evicting.bpipe_plan import PlannedTransfer, computation_slots
from bubbleproof.theory.model.actions import Kind

FAMILY = BPipe()
SIZES = [(p, m) for p in range(4, 13) for m in (p - 1, p, p + 1, 2 * p, 3 * p + 1)]


def counts(values: dict[str, int]) -> tuple[int, ...]:
    """(R, E) of the theorem's warm-up state."""
    return tuple(int(term.value(values)) for term in bpipe_theorem.warmup_state(bpipe_theorem.X))


def walk(p: int, m: int, s: int, transfers: tuple[PlannedTransfer, ...]) -> int:
    """Follow a plan slot by slot through the theorem's phases; the number of slots that moved."""
    mu, peak = FAMILY.objective(p, m), min(p - s, m)
    slots = computation_slots(FAMILY.base, p, m)[s]
    moves = {transfer.slot: transfer.kind for transfer in transfers}
    values = {"p": p, "s": s, "mu": mu, "N": peak}
    evicts = bpipe_theorem.Balance().evicts(bpipe_theorem.X)
    resident = evicted = forwards = 0
    evicted_in_round = False
    for number, action in enumerate(slots):
        kind, move = action and action.kind, moves.get(number)
        in_warmup = forwards < peak
        if kind is Kind.F and in_warmup:
            at = {**values, "x": forwards}
            assert (resident, evicted) == counts(at)
            assert (move is Kind.EVICT) == evicts.holds(at)
            assert move is not Kind.LOAD
        elif kind is Kind.F:  # the second half of a steady round
            assert (move is Kind.LOAD) == evicted_in_round
            assert move is not Kind.EVICT
        elif kind is Kind.B and forwards < m:  # the first half of a steady round
            assert (resident, evicted) == (mu, peak - mu)
            assert move is not Kind.LOAD
            evicted_in_round = move is Kind.EVICT
        elif kind is Kind.B:  # cool-down
            assert move is None
            assert 0 <= resident <= mu
            assert 0 <= evicted <= peak - mu
        else:
            assert move in (None, Kind.LOAD)
        forwards += kind is Kind.F
        moved = (move is Kind.LOAD) - (move is Kind.EVICT)
        resident += (kind is Kind.F) - (kind is Kind.B) + moved
        evicted -= moved
    assert (resident, evicted) == (0, 0)
    return len(moves)


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_every_slot_of_the_plan_is_one_of_the_theorems(p: int, m: int) -> None:
    plans = FAMILY.transfers(p, m)
    expected = {s for s in range(p // 2) if min(p - s, m) > FAMILY.objective(p, m)}
    assert set(plans) == expected  # N > mu is exactly when something moves
    for s, transfers in plans.items():
        assert walk(p, m, s, transfers) > 0


def test_a_plan_with_a_transfer_missing_is_not_the_theorems() -> None:
    transfers = FAMILY.transfers(8, 20)[0]
    with pytest.raises((AssertionError, KeyError)):
        walk(8, 20, 0, transfers[1:])
