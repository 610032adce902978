"""Room for transfers: precedences that keep a rank within its objective at any durations.

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
from collections.abc import Iterator, Sequence

from bubbleproof.theory.families.bpipe_plan import Slots, Transfer
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.transfers import Wait

_LIKES = {Kind.F: Kind.B, Kind.LOAD: Kind.EVICT}
_OTHER = {Kind.B: Kind.EVICT, Kind.EVICT: Kind.B}


def room_waits(slots: Slots, transfers: Sequence[Transfer], capacity: int) -> Iterator[Wait]:
    """The waits (release, acquisition) of an evictor with these slots and transfers.

    Precondition: in the slots it holds at most ``capacity`` activations.
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
