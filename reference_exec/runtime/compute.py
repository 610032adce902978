"""What a rank computes: F, R, B, I and W on its stages, and the bytes that lie there meanwhile.

The callers hand in what a stage needs and take what it makes; who sends it where is ``rank``'s
business. What an action uses must have been left by an earlier one, which is asserted. Live bytes
are sampled after each action. The forward of a sample that is recomputed is sampled twice: as it
ends with everything saved, which is what ``theory.pipelines.recompute`` counts while a forward
runs, and after it has dropped all but its input. (A forward that saves nothing from the start would
hold less while it runs.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import nn

from bubbleproof.reference_exec.births import BIRTHS
from bubbleproof.reference_exec.broken import BrokenProgram, of_model, require
from bubbleproof.reference_exec.ledger import Hold, Ledger
from bubbleproof.reference_exec.models.draws import drawing
from bubbleproof.reference_exec.models.footprint import shares
from bubbleproof.reference_exec.models.layers import Prefix
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.reference import (
    Named,
    Stage,
    gradients_of,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.plans.replay_plan import Key, ReplayPlan, key_of, label
from bubbleproof.reference_exec.runtime.birth import Birth
from bubbleproof.reference_exec.runtime.device import CPU, Device
from bubbleproof.reference_exec.runtime.host import Host
from bubbleproof.reference_exec.runtime.optimizers import first_gradient
from bubbleproof.reference_exec.runtime.sliced import SlicedSample
from bubbleproof.reference_exec.runtime.stage_shards import StageShards
from bubbleproof.reference_exec.saved import SampleStorages, SavedTensors
from bubbleproof.theory.model.actions import NONE, Kind


class DeferredWeight:
    """One W to come: whole, or in ``num_parts`` parts where that is not 0.

    ``weights`` are those of the stage's GEMMs, in the order of ``shares``.
    """

    def __init__(
        self, store: WeightGradStore, weights: Sequence[nn.Parameter], num_parts: int
    ) -> None:
        self._store = store
        self._num_parts = num_parts
        self._left = {NONE: list(weights)}
        if num_parts:
            cut = shares(len(weights), num_parts)
            self._left = {part: [weights[k] for k in share] for part, share in enumerate(cut)}

    @property
    def left(self) -> list[str]:
        """What is still to run: ``W``, or ``W#0`` and so on."""
        return ["W" if part == NONE else f"W#{part}" for part in self._left]

    def run(self, label: str, part: int) -> None:
        """Run one part (``NONE``: a W that is whole), called ``label`` in errors."""
        if (part == NONE) == bool(self._num_parts) or part >= max(self._num_parts, 1):
            cut = f"cut into {self._num_parts} parts" if self._num_parts else "whole"
            raise BrokenProgram(f"{label} of a weight gradient that is {cut}")
        require(part in self._left, f"{label} runs twice")
        if weights := self._left.pop(part):
            self._store.run(None if part == NONE else weights)


class Batch:
    """What the forwards of one rank take from outside: inputs on stage 0, targets on the last."""

    def __init__(self, plan: ReplayPlan, rank: int, device: Device, replica: int = 0) -> None:
        forwards = [a for a in plan.order(rank) if a.kind in (Kind.F, Kind.OVERLAP_F_B)]
        self._inputs: dict[tuple[int, Key], torch.Tensor] = {}
        self._targets: dict[tuple[int, Key], torch.Tensor] = {}
        self.step = 0
        drawn = sorted({key_of(action) for action in forwards})
        for step, key in ((step, key) for step in range(plan.num_passes) for key in drawn):
            part = (plan.sample(replica, key[1]), key[2], plan.num_slices)
            if key[0] == 0:
                given = microbatch_input(plan.spec, *part, step=step)
                self._inputs[step, key] = device.put(given)
            if key[0] == plan.num_stages - 1:
                wanted = microbatch_target(plan.spec, *part, step=step)
                self._targets[step, key] = device.put(wanted)

    def tensors(self) -> list[torch.Tensor]:
        """The data of all steps."""
        return [*self._inputs.values(), *self._targets.values()]

    def begin_pass(self, step: int) -> None:
        """From now on the data are those of an optimizer step, counted from 0."""
        self.step = step

    def input(self, key: Key) -> torch.Tensor:
        """The input of a forward on stage 0."""
        return self._inputs[self.step, key]

    def target(self, key: Key) -> torch.Tensor:
        """What a forward on the last stage should put out."""
        return self._targets[self.step, key]


Gradients = Named
Losses = dict[tuple[int, int, int], torch.Tensor]  # by (step, number in the whole batch, slice)
Forward = tuple[int, int, int, int]  # (step, stage, number in the whole batch, slice)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Forwarded:
    """What F leaves for B or I: the stage's input and output, and its GEMMs' store.

    The store is there where the backward is split; a full one is torch's own from end to end.
    ``saved`` is told of these two and of what autograd saved, and counts them; None where no bytes
    are counted and nothing of the sample leaves the rank.
    """

    x: torch.Tensor = field(repr=False)
    root: torch.Tensor = field(repr=False)
    store: WeightGradStore | None
    saved: SavedTensors | None


class Compute:
    """The stages of one process, what their actions have left, and the ledger of its bytes."""

    def __init__(self, plan: ReplayPlan, process: int, device: Device = CPU) -> None:
        self._plan = plan
        self.replica, self.rank = replica, rank = plan.seat(process)
        self.device = device
        self.ledger = Ledger()
        self._divisors = [plan.divisor(sample) for sample in range(plan.num_samples)]
        self.birth = Birth(plan, self.ledger)
        self.stages = {
            stage: Stage(plan.spec, stage).to(device.torch_device) for stage in plan.stages_of(rank)
        }
        self.birth.note_stages(self.stages, device)
        self._gemm_weights = {
            g: [m.get_parameter(name) for name in m.gemms()] for g, m in self.stages.items()
        }
        self._parameters = [p for module in self.stages.values() for p in module.parameters()]
        # what a user's model raises is its stage's, what a reference model raises a fault of ours
        self._told = of_model if plan.spec.kind == "own" else lambda *_: nullcontext()
        self._recomputed = plan.recomputed()
        self._split = plan.split()
        self.batch = Batch(plan, rank, device, replica)
        self.birth.note_data(self.batch.tensors())
        updated = {g: module for g, module in self.stages.items() if g in plan.hosted}
        self.host = Host(self.ledger, updated, device, plan.training)
        self.shards: dict[int, StageShards] = {}
        if plan.parallel is not None and plan.is_sharded:
            for g, module in self.stages.items():
                here = plan.parallel, plan.training, (replica, rank), g
                self.shards[g] = StageShards(*here, module, self.ledger)
        for stage, module in self.stages.items():
            self.ledger.exclude(module.buffers())
            if stage not in {*updated, *self.shards}:  # these count while they are here
                self.ledger.exclude(module.parameters())
        self._forwarded: dict[Key, _Forwarded] = {}
        self._checkpoints: dict[Key, Hold] = {}
        self._deferred: dict[Key, DeferredWeight] = {}
        self._away: dict[Key, tuple[_Forwarded, SampleStorages]] = {}
        self._sliced: dict[tuple[int, int], SlicedSample] = {}
        self.losses: Losses = {}
        self.saved_bytes: dict[Forward, int] = {}
        self.ledger.elsewhere.append(self._elsewhere)
        self.ledger.others.append(self.host.ledger.needed_keys)
        self.scale = plan.loss_scale  # of the step
        self._leaving = {*plan.acceptors, *plan.offloaded()}
        self._has_host = bool(plan.hosted or plan.offloaded())
        self.live_bytes: list[int] = []
        self.host_live_bytes: list[int] = []
        self.allocated_bytes: list[int] = []

    def forward(self, key: Key, x: torch.Tensor) -> torch.Tensor | None:
        """Run F; the stage's output, None on the last stage, where it is the loss.

        The caller says that the output is a message, and then ``drop_recomputed``. Where nothing is
        trained nothing is kept, and the caller takes the sample too.
        """
        if key[0] not in self.stages:
            raise BrokenProgram(f"{label(key, 'F')} of a stage that is not on rank {self.rank}")
        self.host.require_present(key[0])
        is_left = key in {*self._forwarded, *self._checkpoints, *self._away}
        require(not is_left, f"{label(key, 'F')} runs twice")
        with torch.set_grad_enabled(self._plan.trains):
            forwarded = self._run(Kind.F, key, x)
        output = forwarded.root.detach()
        sample = self._plan.sample(self.replica, key[1])
        if self._is_last(key):
            self._keep_loss(sample, key[2], output)
        if forwarded.saved is not None:
            self.saved_bytes[self.batch.step, key[0], sample, key[2]] = forwarded.saved.num_bytes
        if self._plan.trains:
            self._forwarded[key] = forwarded
            self.sample()
        return None if self._is_last(key) else output

    def drop_recomputed(self, key: Key) -> None:
        """Keep no more of a forward than its input, if it will be recomputed."""
        if key in self._recomputed:
            self._checkpoints[key] = Hold(self.ledger, self._forwarded.pop(key).x)
            if key[:2] in self._sliced:
                self._sliced[key[:2]].forget(key[2])
            self.sample()

    def recompute(self, key: Key) -> None:
        """Run R: the forward again, from its input."""
        self.host.require_present(key[0])
        require(key in self._checkpoints, f"{label(key, 'R')} without its forward, or again")
        x = self._checkpoints[key].tensor.requires_grad_(key[0] > 0)
        self._forwarded[key] = self._run(Kind.R, key, x)
        del self._checkpoints[key]
        self.sample()

    def require_forwarded(self, key: Key, kind: str) -> None:
        """Assert that the backward of ``key`` can start here and now."""
        self.host.require_present(key[0])
        require(key not in self._away, f"{label(key, kind)} while its activation is away")
        require(key not in self._checkpoints, f"{label(key, kind)} without its R")
        require(key in self._forwarded, f"{label(key, kind)} without its forward, or again")

    def backward(
        self, key: Key, output_gradient: torch.Tensor | None, *, is_split: bool
    ) -> torch.Tensor | None:
        """Run B, or I where ``is_split``; the input's gradient, None on the first stage.

        The caller takes the sample, when it has said that the gradient is a message.
        """
        self._begin_gradient(Kind.I if is_split else Kind.B, key)
        forwarded = self._forwarded.pop(key)
        if (store := forwarded.store) is not None:
            store.is_deferring = is_split
        begins = first_gradient(forwarded.root, self.scale) if self._is_last(key) else None
        roots = [(forwarded.root, output_gradient if begins is None else begins)]
        if self._plan.num_slices > 1:
            sample = self._sliced[key[:2]]
            require(sample.num_forwarded == key[2] + 1, f"{label(key, 'B')} before a later slice's")
            roots += sample.pop()
        with self._told(key[0], "I" if is_split else "B"):
            if forwarded.root.requires_grad or key[0]:  # not of a first stage that is frozen
                torch.autograd.backward(
                    [root for root, _ in roots], [gradient for _, gradient in roots]
                )
        del roots, begins
        if key[0] in self.shards:
            self.shards[key[0]].unbind()
        if is_split and store is not None:
            weights, num_parts = self._gemm_weights[key[0]], self._plan.weight_parts.get(key[0], 0)
            self._deferred[key] = DeferredWeight(store, weights, num_parts)
        gradient = forwarded.x.grad
        has_all = gradient is not None or key[0] == 0
        require(has_all, f"{label(key, 'B')} gives no gradient for the stage's input")
        return gradient

    def weight(self, key: Key, part: int = NONE) -> None:
        """Run W, or one part of it: the weight gradients that I left."""
        name = label(key, "W") + ("" if part == NONE else f"#{part}")
        require(key in self._deferred, f"{name} without its I, or again")
        self._begin_gradient(Kind.W, key, part)
        with self._told(key[0], "W"):
            self._deferred[key].run(name, part)
        if key[0] in self.shards:
            self.shards[key[0]].unbind()
        if not self._deferred[key].left:
            del self._deferred[key]
        self.sample()

    def send_away(self, key: Key, kind: Kind) -> SampleStorages:
        """Everything saved for the backward of ``key``, which cannot run before ``bring_back``."""
        require(key in self._forwarded, f"{label(key, kind.name)} without its forward, or again")
        forwarded = self._forwarded.pop(key)
        if forwarded.saved is None:
            raise BrokenProgram(f"{label(key, kind.name)} of a sample that was to stay here")
        ends = forwarded.x.detach(), forwarded.root.detach()
        stays: list[torch.Tensor] = [*self.stages[key[0]].parameters()]
        if key[:2] in self._sliced:
            stays += self._sliced[key[:2]].leaves()
        storages = SampleStorages(self.ledger, [*forwarded.saved.tensors(), *ends], stays)
        self._away[key] = forwarded, storages
        return storages

    def away(self, key: Key) -> SampleStorages:
        """What ``send_away`` gave."""
        require(key in self._away, f"{label(key, 'F')} is not away")
        return self._away[key][1]

    def bring_back(self, key: Key) -> None:
        """Take in again what was away, allocated and filled."""
        self._forwarded[key] = self._away.pop(key)[0]

    def sample(self) -> None:
        """Note the live bytes here and on the host, and the allocator's where it keeps count.

        Nothing if none should be.
        """
        if not self._plan.counts_bytes:
            return
        BIRTHS.leave_to(self.ledger)
        self.live_bytes.append(self.ledger.live_bytes)
        if self._has_host:
            self.host_live_bytes.append(self.host.ledger.live_bytes)
        if (allocated := self.device.allocated_bytes()) is not None:
            self.allocated_bytes.append(allocated)

    def gradients(self) -> Gradients:
        """The gradients by (stage, parameter name). Precondition: the program has ended."""
        found: Gradients = dict(self.host.gradients)
        if not self._plan.trains:
            return found
        for shards in self.shards.values():
            found |= shards.pieces(shards.reduced)
        whole = self.stages.keys() - self._plan.hosted - self.shards.keys()
        return found | gradients_of({stage: self.stages[stage] for stage in whole})

    def left_over(self) -> list[str]:
        """What was begun and not ended, one phrase each."""
        deferred = self._deferred
        return [
            *(f"{label(key, 'F')} without backward" for key in self._forwarded),
            *(f"{label(key, 'F')} without R" for key in self._checkpoints),
            *(f"{label(key, 'F')} without LOAD or RELOAD" for key in self._away),
            *(f"{label(key, 'I')} without {w}" for key in deferred for w in deferred[key].left),
            *self.host.left_over(),
        ]

    def _keep_loss(self, sample: int, slice_: int, output: torch.Tensor) -> None:
        """Keep a loss to be compared, which is no activation."""
        loss = self.losses[self.batch.step, sample, slice_] = output.clone()
        self.ledger.set_apart(loss)

    def _elsewhere(self) -> Iterator[torch.Tensor | None]:
        """What is here and no activation: gradients, and what the host and shards keep."""
        yield from (parameter.grad for parameter in self._parameters)
        for sample in self._sliced.values():
            yield from sample.sent_back()
        yield from self.host.tensors()
        for shards in self.shards.values():
            yield from (*shards.weights(), *shards.sums())

    def _is_last(self, key: Key) -> bool:
        return key[0] == self._plan.num_stages - 1

    def _begin_gradient(self, kind: Kind, key: Key, part: int = NONE) -> None:
        """Bind the parameters and gradients of a sharded stage for what adds to the latter.

        Room that is made for a gradient counts while the computation runs. W reads no parameters.
        """
        shards, parallel = self.shards.get(key[0]), self._plan.parallel
        if shards is None or parallel is None:
            return
        if kind is not Kind.W:
            shards.bind(parallel.copy(kind, key))
        if shards.accumulate(parallel.reduction(kind, key, self.rank, part)):
            self.sample()

    def _run(self, kind: Kind, key: Key, x: torch.Tensor) -> _Forwarded:
        """The stage on ``x``, and the loss on the last stage, with everything saved held."""
        stage, _, slice_ = key
        plan = self._plan
        store = WeightGradStore(self.ledger) if key in self._split else None
        prefixes: Sequence[Prefix] | None = None
        if plan.num_slices > 1 and kind is Kind.R:
            prefixes = self._sliced[key[:2]].again(slice_)
        elif plan.num_slices > 1:
            sample = self._sliced.setdefault(key[:2], SlicedSample(plan.spec.layers_of(stage)))
            require(sample.num_forwarded == slice_, f"{label(key, 'F')} before an earlier slice's")
            sample.num_forwarded += 1
            prefixes = sample.prefixes
        shards = self.shards.get(stage)
        if shards is not None and plan.parallel is not None:
            shards.bind(plan.parallel.copy(kind, key))
        with self._saving(key, shards) as saved:
            place = self.batch.step, plan.sample(self.replica, key[1]), slice_
            with drawing(plan.spec, stage, *place):
                root = self.stages[stage](x, store, prefixes)
            if self._is_last(key):
                target = self.batch.target(key).clone()  # the graph's own, if it keeps it
                with drawing(plan.spec, stage + 1, *place):
                    root = microbatch_loss(plan.spec, root, target, self._divisors[place[1]])
        if shards is not None:
            shards.unbind()
        if saved is not None:
            saved.end_with(root, x)
        return _Forwarded(x=x, root=root, store=store, saved=saved)

    def _saving(
        self, key: Key, shards: StageShards | None
    ) -> SavedTensors | AbstractContextManager[None]:
        """The context of a forward that knows what autograd saves, where that is needed."""
        counts = self._plan.counts_bytes and self._plan.trains
        if counts or shards is not None or key in self._leaving:
            return SavedTensors(self.ledger, None if shards is None else shards.lent)
        return nullcontext()
