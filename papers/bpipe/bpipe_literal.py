"""BPipe's Algorithm 1 as printed, on the computation schedule C that its section 3.4 describes.

T_i runs beside C_i: it starts and ends with that slot. Line 22 names its victim by position,
C_{i-3}.idx, so it matters how C is drawn at tF = tB = 1, of which the paper shows one example:
``paired``, as Megatron-LM runs 1F1B, on which BPipe is built. Rank s runs p-s-1 forwards as early
as it can, and each later one right before the backward that it makes a pair with. Then C_6 of stage
0 in Figure 4 is F3, line 22 evicts 3 and then 5, as the text has it, and the algorithm is right for
all p, s and m (theorem ``bpipe-printed``).

With every forward as early as it can, the last of the warm-up too (``computation_slots``), bubbles
lie between the warm-up and the first backward, and C_{i-3} is one for backward 1 where p = 4: line
22 names no microbatch, and ``microbatch`` is None. For every other p the transfers are the same.

Source: BPipe (ICML 2023) section 3.4, Algorithm 1; line numbers are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.families.evicting.bpipe_plan import Slots
from bubbleproof.theory.model.actions import Action, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferDecision:
    """A transfer decision T_i of one rank; ``microbatch`` None where the printed index is empty."""

    slot: int
    kind: Kind
    microbatch: int | None


def literal(slots: Slots, p: int, s: int, m: int) -> tuple[TransferDecision, ...]:
    """Algorithm 1 on the computation schedule ``slots`` of stage ``s``, lines 3 to 27.

    Parameters
    ----------
    p, s, m
        Ranks, the evicting stage, and microbatches.
    """
    mu_opt = -(-(p + 2) // 2)
    n_evict = min(p - s, m) - mu_opt
    evicted: set[int | None] = set()
    transfer: dict[int, tuple[Kind, int | None]] = {}
    for i, computation in enumerate(slots):
        if computation is None:
            continue
        index = computation.microbatch
        if computation.kind is Kind.F:
            if mu_opt - 1 <= index < mu_opt - 1 + n_evict:
                transfer[i] = Kind.EVICT, _index(slots, i - 1)
                evicted.add(_index(slots, i - 1))
        elif index in evicted:
            transfer[i - 1] = Kind.LOAD, index
            evicted.remove(index)
            if (earlier := slots[i - 1]) is not None and earlier.kind is Kind.F:
                transfer[i - 2] = Kind.EVICT, _index(slots, i - 3)
                evicted.add(_index(slots, i - 3))
    return tuple(
        TransferDecision(slot=i, kind=k, microbatch=j) for i, (k, j) in sorted(transfer.items())
    )


def paired(slots: tuple[Slots, ...]) -> tuple[Slots, ...]:
    """1F1B's computation schedules, each forward behind a warm-up of p-s-1 beside its backward.

    Forward j of rank s >= p-s-1 moves to the slot before backward j-(p-s-1), which is free: the
    order on the rank stays.
    """
    return tuple(_paired(row, len(slots) - s - 1) for s, row in enumerate(slots))


def _paired(slots: Slots, warm_up: int) -> Slots:
    moved: list[Action | None] = list(slots)
    backwards = [i for i, action in enumerate(slots) if action and action.kind is Kind.B]
    forwards = [i for i, action in enumerate(slots) if action and action.kind is Kind.F]
    for i, behind in zip(forwards[warm_up:], backwards, strict=False):
        moved[i], moved[behind - 1] = None, slots[i]
    return tuple(moved)


def _index(slots: Slots, i: int) -> int | None:
    found = slots[i] if 0 <= i < len(slots) else None
    return None if found is None else found.microbatch
