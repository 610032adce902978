"""Evict and load, off-load and reload: what leaves a rank and comes back.

An activation goes to a paired rank or to the host. Each EVICT, LOAD, OFFLOAD, RELOAD and STEP
stands twice in a program: the first begins it, the second ends it. An EVICT's or LOAD's bytes
count on both ranks in between; what the host does beside its rank is ``host``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bubbleproof.reference_exec.broken import BrokenProgram, require
from bubbleproof.reference_exec.ledger import Hold
from bubbleproof.reference_exec.models.footprint import footprint, of_size
from bubbleproof.reference_exec.plans.replay_plan import (
    TRANSFER_KINDS,
    Key,
    ReplayPlan,
    key_of,
    label,
)
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.device import DeviceLane
from bubbleproof.reference_exec.runtime.transport import (
    BlockedAction,
    Transport,
    posted,
    until_done,
)
from bubbleproof.theory.model.actions import Action, Kind


class EvictLoad:
    """The transfers of one rank that are under way, and what it keeps for others."""

    def __init__(self, plan: ReplayPlan, compute: Compute, transport: Transport) -> None:
        self._plan = plan
        self._rank = compute.rank
        self._compute = compute
        self._transport = transport
        self._updated = plan.hosted
        self._moving: dict[Action, tuple[BlockedAction, Hold]] = {}  # EVICTs and LOADs posted
        self._hosted: dict[Key, Hold] = {}  # kept here for another rank
        self._host_transfers: set[Action] = set()  # OFFLOADs and RELOADs of activations, begun

    def run(self, action: Action) -> Iterator[BlockedAction]:
        """Begin an EVICT, LOAD, OFFLOAD, RELOAD or STEP, or end the one begun."""
        if action.kind in TRANSFER_KINDS:
            yield from self._move(action)
        elif action.stage in self._updated:
            self._compute.host.run(action)
        else:
            self._to_or_from_host(action)
        self._compute.sample()

    def posted(self) -> list[BlockedAction]:
        """The transfers under way."""
        return [waits for waits, _ in self._moving.values()]

    def left_over(self) -> list[str]:
        """What was begun and not ended, one phrase each."""
        return [
            *(f"{action} not waited for" for action in (*self._moving, *self._host_transfers)),
            *(f"{label(key, 'EVICT')} never loaded" for key in self._hosted),
        ]

    def _to_or_from_host(self, action: Action) -> None:
        """Begin or end the way of one sample's activation to the host or back."""
        compute, key = self._compute, key_of(action)
        device, ends = compute.device, action in self._host_transfers
        (self._host_transfers.discard if ends else self._host_transfers.add)(action)
        if action.kind is Kind.OFFLOAD and not ends:
            storages = compute.send_away(key, Kind.OFFLOAD)
            room = device.host_buffer((storages.num_bytes,), torch.uint8)
            with device.on(DeviceLane.TRANSFERS):
                compute.host.keep(key, storages.copy_to(room))
        elif action.kind is Kind.OFFLOAD:
            device.join(DeviceLane.TRANSFERS)
            compute.away(key).free()
        elif not ends:
            compute.away(key).allocate()
            with device.on(DeviceLane.TRANSFERS):
                compute.away(key).fill(compute.host.kept(key))
        else:
            device.join(DeviceLane.TRANSFERS)
            compute.bring_back(key)
            compute.host.drop(key)

    def _move(self, action: Action) -> Iterator[BlockedAction]:
        """Post an EVICT or a LOAD, or wait for the one posted."""
        key = key_of(action)
        home = self._plan.rank_of(*key[:2])
        if action not in self._moving:
            is_sender = (action.kind is Kind.EVICT) == (home == self._rank)
            hold = self._cargo(action, is_home=home == self._rank)
            peer = self._plan.acceptors[key] if home == self._rank else home
            waits = posted(self._transport, action, hold.tensor, peer, is_send=is_sender)
            self._moving[action] = waits, hold
        else:
            waits, hold = self._moving[action]
            yield from until_done(waits)
            del self._moving[action]
            if home == self._rank and action.kind is Kind.LOAD:
                storages = self._compute.away(key)
                storages.allocate()
                storages.fill(waits.transfer.get())
                self._compute.bring_back(key)
            elif home != self._rank and action.kind is Kind.EVICT:
                self._hosted[key] = hold

    def _cargo(self, action: Action, *, is_home: bool) -> Hold:
        """The bytes to send, or the buffer to receive into."""
        key, ledger, plan = key_of(action), self._compute.ledger, self._plan
        device, where = self._compute.device, self._compute.device.torch_device
        size = footprint(
            of_size(plan.spec, key[1]),
            action.stage,
            plan.num_stages,
            slice_index=key[2],
            num_slices=plan.num_slices,
        ).moved_bytes
        if action.kind is Kind.LOAD and not is_home:
            require(key in self._hosted, f"{action} of what is not here")
            return self._hosted.pop(key)
        if action.kind is Kind.LOAD or not is_home:
            with device.on(DeviceLane.TRANSFERS):
                return Hold(ledger, torch.empty(size, dtype=torch.uint8, device=where))
        storages = self._compute.send_away(key, Kind.EVICT)
        if storages.num_bytes != size:
            why = ""
            if plan.spec.kind == "own":
                why = "; what the model saves depends on its data, and microbatch 0 was measured"
            raise BrokenProgram(
                f"{action} moves {storages.num_bytes} bytes, {size} were expected{why}"
            )
        content = storages.copy_to(torch.empty(size, dtype=torch.uint8, device=where))
        storages.free()
        return Hold(ledger, content)
