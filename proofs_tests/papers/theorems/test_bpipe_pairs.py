"""BPipe's Algorithm 1 in pairs: the theorem's slots and states are those of the algorithm."""

from __future__ import annotations

import pytest

from bubbleproof.papers.bpipe import bpipe_pairs as printed
from bubbleproof.papers.bpipe.bpipe_literal import TransferDecision, literal, paired
from bubbleproof.papers.bpipe.bpipe_theorem import X, warmup_state
from bubbleproof.theory.families.evicting.bpipe_plan import Slots, computation_slots
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.model.actions import Kind

SIZES = [(p, m) for p in range(4, 11) for m in (p - 2, p - 1, p, p + 1, 2 * p, 3 * p + 1)]


def drawn(p: int, m: int) -> tuple[Slots, ...]:
    return paired(computation_slots(OneForwardOneBackward(), p, m))


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_the_slots_are_those_of_the_drawing(p: int, m: int) -> None:
    for i, slots in enumerate(drawn(p, m)):
        for slot, action in enumerate(slots):
            if action is not None:
                form = printed.forward if action.kind is Kind.F else printed.backward
                at = {"p": p, "m": m, "i": i, "j": action.microbatch}
                assert form(printed.RANK, printed.J).value(at) == slot


def walk(slots: Slots, decisions: tuple[TransferDecision, ...], p: int, m: int, s: int) -> int:
    """Follow the algorithm pair by pair through the theorem's states; how many pairs moved."""
    mu, peak = -(-(p + 2) // 2), min(p - s, m)
    beside = {each.slot: each for each in decisions}
    resident = away = forwards = moved = 0
    out: set[int | None] = set()
    for slot, action in enumerate(slots):
        if action is not None and action.kind is Kind.F:
            if forwards < min(p - s - 1, m):
                at = {"p": p, "s": s, "mu": mu, "N": peak, "x": forwards}
                state = tuple(int(term.value(at)) for term in warmup_state(X))
            else:  # the pair's state, by whether its backward's microbatch is away
                is_away = forwards - (p - s - 1) in out
                state = (mu - 1 - is_away, peak - mu + is_away)
                moved += is_away
            assert (resident, away) == state
            forwards += 1
        resident += (action is not None) and (1 if action.kind is Kind.F else -1)
        if (move := beside.get(slot)) is not None:
            step = 1 if move.kind is Kind.LOAD else -1
            resident, away = resident + step, away - step
            (out.remove if move.kind is Kind.LOAD else out.add)(move.microbatch)
        assert resident <= mu
    assert (resident, away, out) == (0, 0, set())
    return moved


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_every_pair_starts_in_the_theorems_state(p: int, m: int) -> None:
    mu, moved = -(-(p + 2) // 2), 0
    for s in range((p - 4) // 2 + 1):
        slots = drawn(p, m)[s]
        decisions = literal(slots, p, s, m)
        assert bool(decisions) == (min(p - s, m) > mu)
        if decisions:
            moved += walk(slots, decisions, p, m, s)
    assert moved or m <= p + 1


def test_a_transfer_that_is_missing_leaves_the_states() -> None:
    slots = drawn(8, 20)[0]
    with pytest.raises((AssertionError, KeyError)):
        walk(slots, literal(slots, 8, 0, 20)[1:], 8, 20, 0)
