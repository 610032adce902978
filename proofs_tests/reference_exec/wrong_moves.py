"""Faults in what goes to a host or to another rank, and comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bubbleproof.reference_exec import saved
from bubbleproof.reference_exec.runtime import (
    host,
    peer_transfers,
)
from bubbleproof.theory.model.actions import Action, Kind
from proofs_tests.reference_exec.patching import Marks, after, before


def stale_upload(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A host brings up the weights of before its step."""
    right = host.Host._begin_step

    def step(self: host.Host, stage: int) -> None:
        old = {name: hold.tensor.clone() for name, hold in self._master[stage].items()}
        right(self, stage)
        for name, hold in self._upload[stage].items():
            marks.append(hold.tensor.copy_(old[name]))

    patch.setattr(host.Host, "_begin_step", step)


def down_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What comes down to a host is added to itself."""

    def end(self: host.Host, stage: int) -> None:
        for hold in self._down[stage].values():
            marks.append(hold.tensor.mul_(2))

    before(patch, host.Host, "_end_offload", end)


def room_not_cleared(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The room for gradients that a RELOAD makes is not zero."""

    def begin(self: host.Host, stage: int) -> None:
        for hold in self._gradients[stage].values():
            marks.append(hold.tensor.fill_(1e-9))

    after(patch, host.Host, "_begin_reload", begin)


def host_steps_in_single_precision(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A host keeps its master weights in float32."""

    def step(self: host.Host, stage: int) -> None:
        for hold in self._master[stage].values():
            marks.append(hold.tensor.copy_(hold.tensor.float()))

    after(patch, host.Host, "_begin_step", step)


def _filled(
    patch: pytest.MonkeyPatch, marks: Marks, change: Callable[[torch.Tensor], object]
) -> None:
    right = saved.SampleStorages.fill

    def fill(self: saved.SampleStorages, buffer: torch.Tensor) -> None:
        other = buffer.clone()
        marks.append(change(other))
        right(self, other)

    patch.setattr(saved.SampleStorages, "fill", fill)


def first_bytes_lost(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The first element of what comes back is not written."""
    _filled(patch, marks, lambda content: content[:8].zero_())


def one_bit_turned_under_way(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One bit of what comes back is another."""

    def turn(content: torch.Tensor) -> None:
        content[6] ^= 1  # of the first element's mantissa

    _filled(patch, marks, turn)


def bytes_turned_around(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What comes back lies the other way round, element by element."""
    _filled(patch, marks, lambda content: content.copy_(content.view(-1, 8).flip(0).reshape(-1)))


def loaded_of_another(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Every LOAD brings back what the first EVICT took away."""
    right = peer_transfers.EvictLoad._cargo
    first: list[torch.Tensor] = []

    def cargo(self: peer_transfers.EvictLoad, action: Action, *, is_home: bool) -> object:
        hold = right(self, action, is_home=is_home)
        if action.kind is Kind.LOAD and not is_home:
            first.append(hold.tensor.clone())
            marks.append(hold.tensor.copy_(first[0]))
        return hold

    patch.setattr(peer_transfers.EvictLoad, "_cargo", cargo)


FAULTS = (
    (stale_upload, "hosted training"),
    (down_twice, "toffload"),
    (room_not_cleared, "toffload"),
    (host_steps_in_single_precision, "toffload"),
    (first_bytes_lost, "bpipe"),
    (one_bit_turned_under_way, "bpipe"),
    (bytes_turned_around, "off-loaded"),
    (loaded_of_another, "bpipe"),
)
