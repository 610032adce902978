"""When to evict and when to load: activation balancing on a computation schedule in slots.

A rank's computation schedule is BPipe's C: one entry per slot of the schedule at tF = tB = 1, an
action or None for a bubble (section 3.4). A plan puts at most one transfer beside each slot. Its
memory is counted as the checker counts it: what lies there when the slot starts (an activation that
leaves in this slot included), the running forward's, and what arrives in this slot.

Rules, with K the objective (most activations a rank may hold):

1. the activation of a backward in slot i that was evicted is loaded beside slot i-1;
2. where slot i+1 would hold more than K, the activation whose backward is furthest away is evicted
   beside slot i (Belady), among those that lie there untouched when slot i starts;
3. where one slot would need two transfers, an eviction moves up to the last earlier free slot.

Source: BPipe (ICML 2023) section 3.4 and Appendix A. Rules 1 and 2 are Algorithm 1 with the victim
of its line 22 named by what it means, so that the plan does not depend on how C is drawn;
``bpipe_literal`` has the printed one, which names it by its slot. Rule 3 is needed by interleaved
schedules only, where backwards follow each other without a bubble.

Room for transfers (``room_waits``): precedences that keep a rank within its objective at any
durations.

An acquisition is the start of a forward or of an arriving transfer, a release the end of a backward
or of a leaving one. Let K acquisitions be free and every other one wait for a release of its own,
no release serving two. Then at any time at most K activations lie there: the acquisitions that have
started, less their releases, are K at most. Nothing depends on durations or on the order in which
the releases come.

The pairs are read off the slots, where a release serves only later slots; so the waits never form a
cycle. A load waits for the eviction that makes room for it and a forward for the backward before
it, as far as there are such; so a long transfer may reach over the end of a backward (Appendix B's
relaxation) and a forward does not wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import ActionPair

Slots = tuple[Action | None, ...]
SavedSample = tuple[int, int]  # (stage, microbatch) of a saved activation
_LIKES = {Kind.F: Kind.B, Kind.LOAD: Kind.EVICT}
_OTHER = {Kind.B: Kind.EVICT, Kind.EVICT: Kind.B}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTransfer:
    """An EVICT or LOAD beside a slot."""

    slot: int
    kind: Kind
    stage: int
    microbatch: int

    @property
    def saved(self) -> SavedSample:
        return self.stage, self.microbatch

    @property
    def action(self) -> Action:
        return Action(stage=self.stage, kind=self.kind, microbatch=self.microbatch)


class NoPlan(ValueError):  # noqa: N818 - a property of the computation schedule and K
    """No transfers by the module's rules keep the rank within its objective."""


def saved_by(action: Action) -> SavedSample:
    """The activation that an action makes or uses."""
    return action.stage, action.microbatch


@lru_cache(maxsize=256)  # a sweep has as many shapes, and several claims go over it
def computation_slots(family: Family, p: int, m: int, v: int = 1) -> tuple[Slots, ...]:
    """The computation schedule of each rank at tF = tB = 1, all of one length.

    Parameters
    ----------
    p, m, v
        Ranks, microbatches, and chunks of a rank.

    Returns
    -------
    tuple[Slots, ...]
        For each rank an action, or None, in every slot of one tick.
    """
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, forward=1, backward=1)
    schedule = family.schedule(pipeline)
    length = int(schedule.start.max()) + 1
    rows: list[list[Action | None]] = [[None] * length for _ in range(p)]
    program = schedule.program
    columns = zip(program.resource.tolist(), schedule.start.tolist(), program.actions, strict=True)
    for rank, start, action in columns:
        rows[rank][start] = action
    return tuple(tuple(row) for row in rows)


def plan_transfers(slots: Slots, capacity: int) -> tuple[PlannedTransfer, ...]:
    """The transfers of an evictor, in slot order; none where its own schedule stays within.

    Parameters
    ----------
    capacity
        The activations that the evictor may hold.

    Raises
    ------
    NoPlan
        Where rule 3 finds no earlier slot.
    """
    early: set[int] = set()
    while True:
        transfers, crowded = _plan(slots, capacity, early)
        if crowded is None:
            return transfers
        taken = {transfer.slot for transfer in transfers} | early
        free = [slot for slot in range(crowded) if slot not in taken and slots[slot] is not None]
        if not free:
            raise NoPlan(f"slot {crowded} needs two transfers and no slot before it is free")
        early.add(free[-1])


def _plan(
    slots: Slots, capacity: int, early: Iterable[int]
) -> tuple[tuple[PlannedTransfer, ...], int | None]:
    """The transfers up to the end, or up to a slot that would need two; and that slot."""
    walk = _Walk(slots)
    for slot in range(len(slots)):
        before = set(walk.resident)
        load = walk.evicted_for(slot + 1)
        needed = walk.after(slot) + walk.arrivals(slot + 1) + (load is not None)
        if needed > capacity + (load is None):
            return tuple(walk.transfers), slot
        if load is not None:
            walk.move(slot, Kind.LOAD, load)
        elif needed > capacity or slot in early:
            walk.move(slot, Kind.EVICT, walk.furthest(before, slot))
        walk.compute(slot)
    return tuple(walk.transfers), None


class _Walk:
    """A walk along the slots: what lies on the evictor, what on its acceptor."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.due = {saved_by(a): i for i, a in enumerate(slots) if a and a.kind is Kind.B}
        self.resident: set[SavedSample] = set()
        self.evicted: set[SavedSample] = set()
        self.transfers: list[PlannedTransfer] = []

    def action(self, slot: int, kind: Kind) -> SavedSample | None:
        found = self.slots[slot] if slot < len(self.slots) else None
        return saved_by(found) if found is not None and found.kind is kind else None

    def evicted_for(self, slot: int) -> SavedSample | None:
        """What the backward in a slot needs and does not find on the rank."""
        saved = self.action(slot, Kind.B)
        return saved if saved in self.evicted else None

    def after(self, slot: int) -> int:
        """How many lie on the rank after the computation of a slot, transfers aside."""
        made, used = self.action(slot, Kind.F), self.action(slot, Kind.B)
        return len(self.resident) + (made is not None) - (used is not None)

    def arrivals(self, slot: int) -> int:
        """How many the computation of a slot and the load beside it add while it runs."""
        makes = self.action(slot, Kind.F) is not None
        return makes + (self.evicted_for(slot + 1) is not None)

    def furthest(self, saved: set[SavedSample], slot: int) -> SavedSample:
        """The activation whose backward is last, the one in use excepted."""
        idle = saved - {self.action(slot, Kind.B)}
        if not idle:
            raise NoPlan(f"slot {slot} must evict, but nothing lies idle there")
        return max(idle, key=self.due.__getitem__)

    def move(self, slot: int, kind: Kind, saved: SavedSample) -> None:
        source, target = self.resident, self.evicted
        if kind is Kind.LOAD:
            source, target = target, source
        source.remove(saved)
        target.add(saved)
        stage, microbatch = saved
        self.transfers.append(
            PlannedTransfer(slot=slot, kind=kind, stage=stage, microbatch=microbatch)
        )

    def compute(self, slot: int) -> None:
        if (made := self.action(slot, Kind.F)) is not None:
            self.resident.add(made)
        if (used := self.action(slot, Kind.B)) is not None:
            self.resident.remove(used)


def room_waits(
    slots: Slots, transfers: Sequence[PlannedTransfer], capacity: int
) -> Iterator[ActionPair]:
    """The waits (release, acquisition) of an evictor with these slots and transfers.

    Precondition: in the slots it holds at most ``capacity`` activations.

    Parameters
    ----------
    capacity
        The activations that the evictor may hold.
    """
    beside: dict[int, Action] = {transfer.slot: transfer.action for transfer in transfers}
    unused: dict[Kind, deque[Action]] = {Kind.B: deque(), Kind.EVICT: deque()}
    free = capacity
    for slot, computation in enumerate(slots):
        begun = [a for a in (computation, beside.get(slot)) if a is not None]
        for action in begun:
            if action.kind not in _LIKES:
                continue
            if free:
                free -= 1
                continue
            liked = _LIKES[action.kind]
            yield (unused[liked] or unused[_OTHER[liked]]).popleft(), action
        for action in begun:
            if action.kind in unused:
                unused[action.kind].append(action)
