"""BPipe's printed algorithm beside our plan, which evicts least."""

from __future__ import annotations

import pytest

from bubbleproof.papers.bpipe.bpipe_literal import (
    TransferDecision,
    literal,
    paired,
)
from bubbleproof.papers.bpipe.bpipe_search import least_evictions
from bubbleproof.theory.families.evicting.bpipe_plan import (
    Slots,
    computation_slots,
    plan_transfers,
)
from bubbleproof.theory.model.actions import Kind
from proofs_tests.sized import sized
from proofs_tests.theory.test_bpipe import BPIPE, INTERLEAVED, counted, sizes


@pytest.mark.parametrize("m", [1, 3, 4, 5, 7, 8, 11, 13])
def test_no_plan_evicts_less(m: int) -> None:
    for p in range(2, 8):
        slots, most = computation_slots(BPIPE.base, p, m), BPIPE.objective(p, m)
        for s in range(p // 2):
            moves = plan_transfers(slots[s], most)
            ours = sum(move.kind is Kind.EVICT for move in moves)
            assert ours == least_evictions(slots[s], slots[p - 1 - s], most), (p, m, s)


def test_no_interleaved_plan_evicts_less() -> None:
    for p, m, v in ((3, 6, 1), (4, 12, 1), (3, 9, 2), (4, 8, 2), (4, 12, 2), (5, 10, 2)):
        slots, most = computation_slots(INTERLEAVED.base, p, m, v), INTERLEAVED.objective(p, m, v)
        for s in range(p // 2):
            moves = plan_transfers(slots[s], most)
            ours = sum(move.kind is Kind.EVICT for move in moves)
            assert ours == least_evictions(slots[s], slots[p - 1 - s], most), (p, m, v, s)


def as_decisions(slots: Slots, most: int) -> tuple[TransferDecision, ...]:
    return tuple(
        TransferDecision(slot=t.slot, kind=t.kind, microbatch=t.microbatch)
        for t in plan_transfers(slots, most)
    )


def test_with_eager_forwards_the_printed_algorithm_is_ours_but_for_four_ranks() -> None:
    for p, m in sizes(sized(9, full=16)):
        slots, most = computation_slots(BPIPE.base, p, m), BPIPE.objective(p, m)
        for s in range(p // 2):
            printed = literal(slots[s], p, s, m)
            is_same = printed == as_decisions(slots[s], most)
            assert is_same == (p != 4 or m <= 4 or s == 1), (p, m, s)


@pytest.mark.sweep
def test_drawn_in_pairs_the_printed_algorithm_is_right() -> None:
    """p <= 32 with ``BUBBLEPROOF_SWEEP=full``, where there are 11480 cases; a few p otherwise."""
    for p in sized([4, 5, 9], full=[*range(4, 33)]):
        for m in counted(p):
            slots = paired(computation_slots(BPIPE.base, p, m))
            plan = BPIPE.transfers(p, m)
            for s in range((p - 4) // 2 + 1):
                found = literal(slots[s], p, s, m)
                # The plan that ships moves the same microbatches in the same order.
                moved = [(move.kind, move.microbatch) for move in plan.get(s, ())]
                assert moved == [(move.kind, move.microbatch) for move in found]


def test_pairs_have_the_order_of_1f1b() -> None:
    for p, m in sizes(6):
        plain = computation_slots(BPIPE.base, p, m)
        for s, row in enumerate(paired(plain)):
            assert [each for each in row if each] == [each for each in plain[s] if each]
            forwards = [i for i, action in enumerate(row) if action and action.kind is Kind.F]
            ahead = min(p - s - 1, m)
            assert forwards == [*range(s, s + ahead), *(s + 2 * j for j in range(ahead, m))]
