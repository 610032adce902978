"""Ways to keep more than the schedule's model: one patch of the runtime or of a model each.

A patch is a function of pytest's ``MonkeyPatch`` and a list that it fills with what it keeps, so
that a test can tell that it ran and how much it kept. None keeps tensors that a graph owns in the
place of its own: gradients and losses stay right, only memory does not come back.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator

import pytest
import torch

from bubbleproof.reference_exec import saved
from bubbleproof.reference_exec.models import layers, linear, reference
from bubbleproof.reference_exec.runtime import (
    compute,
    host,
    rank_messages,
    stage_shards,
)
from bubbleproof.reference_exec.runtime.transport import BlockedAction
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.patching import after, after_forward, before

Kept = list[object]
Hoard = Callable[[pytest.MonkeyPatch, Kept], None]
SCRATCH_BYTES = 4 << 20
EXTRA_BYTES = 64


def saved_activations(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Every saved activation is kept through ``t.detach()``."""

    def leave(self: saved.SavedTensors, *_: object) -> None:
        kept.extend(tensor.detach() for tensor in self._packed)

    before(patch, saved.SavedTensors, "__exit__", leave)


def operands(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The operands of W are kept after it."""

    def keep(output_gradient: torch.Tensor, x: torch.Tensor) -> None:
        kept.extend((output_gradient.detach(), x.detach()))

    before(patch, linear, "weight_gradient", keep)


def first_forwards(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """What recomputation should have freed stays, as plain tensors."""

    def drop(self: compute.Compute, key: tuple[int, int, int]) -> None:
        saved_for = self._forwarded[key].saved
        if key in self._recomputed and saved_for is not None:
            kept.extend(tensor.detach() for tensor in saved_for.tensors())

    before(patch, compute.Compute, "drop_recomputed", drop)


class _OnContext(torch.autograd.Function):
    """The identity, with a tensor on its context that autograd is not told of."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.x = x * 2  # type: ignore[attr-defined]  # torch's idiom
        return x.clone()

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *gradients: torch.Tensor
    ) -> torch.Tensor:
        x: torch.Tensor = ctx.x  # type: ignore[attr-defined]  # set in forward
        return gradients[0] + 0 * x


def contexts(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A layer has an autograd Function of its own that puts a tensor on ``ctx.x``."""
    right = layers.MLPLayer.forward

    def forward(self: layers.MLPLayer, x: torch.Tensor, *more: object) -> torch.Tensor:
        kept.append("ran")
        return _OnContext.apply(right(self, x, *more))  # type: ignore[arg-type, no-any-return, no-untyped-call]  # passed on

    patch.setattr(layers.MLPLayer, "forward", forward)


def scratch(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """4 MB of scratch per F are never freed."""
    after_forward(patch, lambda *_: kept.append(torch.empty(SCRATCH_BYTES, dtype=torch.uint8)))


def outputs_in_a_list(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A list that everybody sees grows by a copy of each output."""
    after_forward(patch, lambda _, output: kept.append(output.detach().clone()))


def whole_graphs(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Outputs are kept with their graphs, of which a backward frees only what it saved."""
    after_forward(patch, lambda _, output: kept.append(output))


def attributes(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A module's buffer grows by each output."""

    def grow(stage: reference.Stage, output: torch.Tensor) -> None:
        seen = getattr(stage, "seen", output.new_empty(0))
        stage.seen = torch.cat([seen, output.detach().reshape(-1)])
        kept.append("grown")

    after_forward(patch, grow)


def hooks(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A hook on each output keeps its gradient, in a closure."""

    def hook(_: reference.Stage, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: kept.append(gradient.clone()))  # type: ignore[no-untyped-call]  # torch's stub

    after_forward(patch, hook)


def storages(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Bare storages are kept, no tensor."""
    after_forward(patch, lambda _, output: kept.append(output.detach().clone().untyped_storage()))


def arrays(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Arrays of numpy are kept, which share the storages of outputs."""
    after_forward(patch, lambda _, output: kept.append(output.detach().cpu().numpy()))


def stretched(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The storage of a parameter grows in each F."""

    def stretch(stage: reference.Stage, _: torch.Tensor) -> None:
        storage = next(stage.parameters()).untyped_storage()
        storage.resize_(storage.nbytes() + EXTRA_BYTES)
        kept.append("stretched")

    after_forward(patch, stretch)


def swapped(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A parameter shows the first part of another, longer storage."""

    def swap(stage: reference.Stage, _: torch.Tensor) -> None:
        weight = next(stage.parameters())
        longer = torch.cat([weight.data.reshape(-1), weight.data.new_zeros(EXTRA_BYTES)])
        weight.data = longer[: weight.numel()].view_as(weight)
        kept.append("swapped")

    after_forward(patch, swap)


def swollen(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The storage of each output grows after it is known."""

    def end(_: saved.SavedTensors, output: torch.Tensor, *__: object) -> None:
        storage = output.untyped_storage()
        storage.resize_(storage.nbytes() + EXTRA_BYTES)
        kept.append("swollen")

    after(patch, saved.SavedTensors, "end_with", end)


def frozen(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A copy of each output is no longer young when an action ends."""

    def keep(_: reference.Stage, output: torch.Tensor) -> None:
        kept.append(output.detach().clone())
        gc.freeze()
        gc.unfreeze()

    after_forward(patch, keep)


def received(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """What was received is kept after its use."""
    right = rank_messages.RankMessages.take

    def take(
        self: rank_messages.RankMessages, *given: object
    ) -> Generator[BlockedAction, None, torch.Tensor]:
        message = yield from right(self, *given)  # type: ignore[arg-type]  # passed on
        kept.append(message.detach())
        return message

    patch.setattr(rank_messages.RankMessages, "take", take)


def sent(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """What was sent is kept after it has arrived."""
    right = rank_messages.RankMessages.send

    def send(self: rank_messages.RankMessages, action: Action) -> Iterator[BlockedAction]:
        kept.extend(tensor.detach() for tensor in self._ready.values())
        yield from right(self, action)

    patch.setattr(rank_messages.RankMessages, "send", send)


def evicted(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """What was evicted stays on its source."""

    def free(self: saved.SampleStorages) -> None:
        kept.append([tensor.clone() for tensor in self._tensors])

    before(patch, saved.SampleStorages, "free", free)


def off_loaded(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """The host keeps its copy of what the rank has back."""
    before(patch, host.Host, "drop", lambda self, key: kept.append(self.kept(key)))


def weights_on_the_rank(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Weights and gradients that went to the host stay on the rank."""

    def begin(self: host.Host, stage: int) -> None:
        kept.append([parameter.detach().clone() for parameter in self._stages[stage].parameters()])

    before(patch, host.Host, "_begin_offload", begin)


def gathered(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A gathered copy of parameters is kept where RESHARD should have freed it."""

    def free(self: stage_shards.StageShards, number: int) -> None:
        kept.append(self.copies[number].flat.clone())

    before(patch, stage_shards.StageShards, "free_copy", free)


FAULTS = (
    (saved_activations, "1f1b"),
    (saved_activations, "bpipe"),
    (operands, "zb-h1"),
    (first_forwards, "trecomp"),
    (contexts, "1f1b"),
    (scratch, "1f1b"),
    (outputs_in_a_list, "zb-h1"),
    (whole_graphs, "1f1b"),
    (attributes, "training"),
    (hooks, "1f1b"),
    (storages, "1f1b"),
    (arrays, "1f1b"),
    (stretched, "1f1b"),
    (swapped, "1f1b"),
    (swollen, "1f1b"),
    (frozen, "1f1b"),
    (received, "1f1b"),
    (sent, "1f1b"),
    (evicted, "bpipe"),
    (off_loaded, "off-loaded"),
    (weights_on_the_rank, "toffload"),
    (gathered, "zero"),
)
