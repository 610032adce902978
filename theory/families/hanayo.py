"""Hanayo: v chunks per rank in wave placement; a microbatch runs down the ranks and back up.

With two chunks (one wave) microbatch j visits ranks 0..p-1 and p-1..0, with 2w chunks it makes w
such waves; odd v end half a wave later. At ticks of one action each microbatch is placed by the
slots of its rounds (below): p microbatches at a time where p divides m, and where it does
not the last ones share the slots so that none is empty.

That closed form fits tF = tB; at other durations it leaves gaps (``papers.mepipe.mepipe_table3``
says how many ticks). A search begins from a shorter order too, "hanayo, improved".

Source: Liu, Cheng, Zhou and You, "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
Large Model Training Efficiency" (SC 2023, arXiv:2308.15762) for waves and their placement; MEPipe
(EuroSys 2025) Table 3 for the makespan at tF = tB and the memory. The orders are ours, not a copy
of Hanayo's generator. Of Hanayo's own text only the abstract was at hand, and no code of its
authors, so neither was compared.
Legal range: any p, m, v. At tF = tB the makespan is MEPipe's (mv + p-1)(tF + tB) for m >= p and its
(vp + m-1)(tF + tB) for m <= p; where ``round_slots`` finds no way (not at v <= 4, p <= 16) the last
group of b < p costs 2(v-1)(p-b) ticks more in the closed form. Peak: at most min(p, m)*v
activations.

Rounds. Let an action last one tick. In wave placement a microbatch that never waits runs down the
ranks and up again, 2p ticks a *round*, v rounds of forwards and backwards: step y of its 2pv is F
of stage y, or B of stage 2pv-1-y in the second half, and is on rank y mod 2p or, on the way up,
2p-1 - (y mod 2p). Slot n is the round that starts in tick 2n. Rounds of different slots never meet
on a rank: in one tick their places differ by an even number of steps. So a schedule is an
assignment of slots in which the rounds of a microbatch are at least p slots apart, and if m v slots
from 0 on are taken it ends in tick 2(mv + p-1), MEPipe's Table 3 for n >= p.

Where p divides m, p microbatches take turns in groups: round i of microbatch b of a group is its
slot ip + b. A remainder would leave slots empty. So the last p + b microbatches share theirs as
preemptive jobs share machines (McNaughton 1959): the slots n of one n mod p are a machine, and each
microbatch is laid along the machines, one after the other; one that does not fit on the first goes
on with the next one's first slots, and waits in between. Which machines follow each other is free,
and so is another way, in which the b last microbatches take the last b places of every p slots for
v rounds and the others the rest in turn. Of these the first is taken that holds no more than p v
activations on any rank; there is one for v <= 4 and p <= 16 (the tests look at each). Elsewhere,
rarely, there is none, and then the last group is a short one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class Hanayo(Family):
    """Rounds of p microbatches, two ticks apart, along v chunks in wave placement."""

    name = "hanayo"
    title = "Hanayo"
    source = "Hanayo (SC 2023) for the placement; MEPipe (EuroSys 2025) Table 3 for the time"
    least = frozenset({"bubble"})
    options = frozenset({"v"})
    placement = "wave"
    default_chunks = 2

    def program(self, pipeline: Pipeline) -> Program:
        return closed_form_order(pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        del pipeline
        return (
            "The placement is Hanayo's; the order is bubbleproof's, made for MEPipe's Table 3 at "
            "tF = tB."
        )


def closed_form_order(pipeline: Pipeline) -> Program:
    """Each rank's actions by their starts in the closed form."""
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    rank_of_stage = np.array(pipeline.stage_ranks)
    slots = round_slots(p, m, v)
    rows = []
    for rank in range(p):
        stage = np.tile(np.flatnonzero(rank_of_stage == rank), m)
        microbatch = np.repeat(np.arange(m), v)
        step = np.concatenate([stage, 2 * p * v - 1 - stage])
        turn, place = np.divmod(step, 2 * p)
        order = np.argsort(2 * slots[np.tile(microbatch, 2), turn] + place)
        kind = np.repeat([Kind.F, Kind.B], m * v)
        rows.append((kind[order], np.tile(stage, 2)[order], np.tile(microbatch, 2)[order]))
    return program_of_ranks(rows)


def round_slots(p: int, m: int, v: int) -> Ints:
    """The slot of each round, shape (m, v), ascending along the rounds.

    Parameters
    ----------
    p, m, v
        Ranks, microbatches, and chunks of a rank.

    Examples
    --------
    >>> round_slots(2, 3, 2).tolist()
    [[0, 2], [1, 4], [3, 5]]
    """
    groups, rest = divmod(m, p)
    found = None if not groups or not rest else _shared(p, rest, v)
    full = m if found is None else (groups - 1) * p
    group, place = np.divmod(np.arange(full), p)
    plain = (group * p * v + place)[:, None] + p * np.arange(v)
    if found is None:
        return plain
    return np.concatenate([plain, found + full * v])


@lru_cache(maxsize=1024)
def _shared(p: int, rest: int, v: int) -> Ints | None:
    """The slots of p + rest microbatches, within p v activations; None where no way is."""
    for slots in _ways(p, p + rest, v):
        if slots is not None and _peak(slots, p, v) <= p * v:
            return slots
    return None


def _ways(p: int, m: int, v: int) -> Iterator[Ints | None]:
    """The ways to share p < m < 2p, None for one in which rounds come too close."""
    yield _laid(range(p), p, m, v)
    yield _reserved(p, m, v)
    for first in range(1, p):
        yield _laid([(first + i) % p for i in range(p)], p, m, v)
    for stride in range(2, p):
        yield _laid(sorted(range(p), key=partial(_strided, stride)), p, m, v)


def _strided(stride: int, machine: int) -> tuple[int, int]:
    """Where a machine comes when every ``stride``-th goes first."""
    return machine % stride, machine


def _laid(machines: Iterable[int], p: int, m: int, v: int) -> Ints | None:
    """Each microbatch along the machines in this order, one after the other."""
    along = [slot for machine in machines for slot in range(machine, m * v, p)]
    return _apart(np.sort(np.array(along, dtype=np.int64).reshape(m, v), axis=1), p)


def _reserved(p: int, m: int, v: int) -> Ints | None:
    """The last m - p microbatches in the last places of p slots each, the others in turn."""
    slots = np.arange(m * v)
    behind = m * v - 1 - slots
    is_kept = (behind < p * v) & (behind % p < m - p)
    kept, others = slots[is_kept].reshape(v, m - p).T, slots[~is_kept].reshape(v, p).T
    return _apart(np.concatenate([others, kept]), p)


def _apart(slots: Ints, p: int) -> Ints | None:
    """The slots, where the rounds of every microbatch are at least p apart."""
    return slots if (np.diff(slots, axis=1) >= p).all() else None


def _peak(slots: Ints, p: int, v: int) -> int:
    """The most activations that any rank holds at ticks of 1."""
    step = np.arange(2 * p * v)
    turn, place = np.divmod(step, 2 * p)
    rank = np.where(place < p, place, 2 * p - 1 - place)
    start = 2 * slots[:, turn] + place
    is_forward = step < p * v
    change = np.zeros((p, int(start.max()) + 2), dtype=np.int64)
    ranks = np.broadcast_to(rank, start.shape)
    np.add.at(change, (ranks[:, is_forward], start[:, is_forward]), 1)
    np.add.at(change, (ranks[:, ~is_forward], start[:, ~is_forward] + 1), -1)
    return int(change.cumsum(axis=1).max())
