"""The host beside a rank: weights that come up, gradients that go down, and the step in between.

A stage with a STEP in its program is updated by the host (T-Pipe section 5,
``theory.pipelines.state_offload``). The host keeps its master weights and, to begin with, a copy to
bring up. Each task has a beginning and an end, with the memory of
``theory.pipelines.state_offload``:

    RELOAD   begins: the weights' storages and those of their gradients are allocated on the rank
             ends:   the weights are there; the host's copy is freed
    OFFLOAD  begins: the weights are freed on the rank; the host has room for the gradients
             ends:   the gradients are on the host and freed on the rank
    STEP     begins: the master weights take a step; the host has a new copy to bring up
             ends:   the gradients on the host are freed

The step is plain gradient descent, w - LEARNING_RATE * gradient, or that of the plan's training,
whose moments count as model state alone (``state``). The host also keeps what a
sample's forward left behind while that is off-loaded (``theory.pipelines.activation_offload``).
Here the host's memory is this machine's as well; what lies where is told apart by two ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Hold, Ledger, keys_of
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.plan import Key, label
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime.device import CPU, Device, Lane
from bubbleproof.reference_exec.runtime.optimizers import optimizer_of
from bubbleproof.reference_exec.runtime.state_walk import kept_by, walked
from bubbleproof.theory.model.actions import Action, Kind

LEARNING_RATE = 0.125
Tensors = dict[str, torch.Tensor]
Named = dict[tuple[int, str], torch.Tensor]


class Host:
    """The model state of one rank's off-loaded stages, on its host and on the rank."""

    def __init__(
        self,
        rank_ledger: Ledger,
        stages: Mapping[int, Stage],
        device: Device = CPU,
        training: Training | None = None,
    ) -> None:
        self.ledger = Ledger()
        self.live_bytes: list[int] = []
        self.gradients: Named = {}
        self._rank_ledger = rank_ledger
        self._device = device
        self._stages = stages
        self._master: dict[int, Tensors] = {}
        self._upload: dict[int, Tensors] = {}
        self._down: dict[int, Tensors] = {}
        self._holds: dict[tuple[str, int], list[Hold]] = {}  # by (what, stage)
        self._kept: dict[Key, Hold] = {}  # activations
        self._begun: set[Action] = set()
        self._present: set[int] = set()
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        for stage, module in stages.items():
            self._master[stage] = {
                k: p.detach().cpu().clone() for k, p in module.named_parameters()
            }
            self._upload[stage] = self._copies(self._master[stage])
            if training is not None:
                self._optimizers[stage] = optimizer_of(training, self._master[stage].values())
            self._hold("master", stage, self.ledger, self._master[stage])
            self._hold("upload", stage, self.ledger, self._upload[stage])
            for parameter in module.parameters():
                parameter.untyped_storage().resize_(0)
        if stages:
            self._sample()

    def require_present(self, stage: int) -> None:
        """Assert that a stage's weights are on the rank, if they are ever elsewhere."""
        if stage in self._stages and stage not in self._present:
            raise BrokenProgram(f"stage {stage} is on the host")

    def run(self, action: Action) -> None:
        """Begin a RELOAD, OFFLOAD or STEP, or end the one begun."""
        ends = action in self._begun
        handlers: dict[tuple[Kind, bool], Callable[[int], None]] = {
            (Kind.RELOAD, False): self._begin_reload,
            (Kind.RELOAD, True): self._end_reload,
            (Kind.OFFLOAD, False): self._begin_offload,
            (Kind.OFFLOAD, True): self._end_offload,
            (Kind.STEP, False): self._begin_step,
            (Kind.STEP, True): self._end_step,
        }
        handlers[action.kind, ends](action.stage)
        (self._begun.discard if ends else self._begun.add)(action)
        self._sample()

    def keep(self, key: Key, content: torch.Tensor) -> None:
        """Take an activation as bytes."""
        self._kept[key] = Hold(self.ledger, content)
        self._sample()

    def kept(self, key: Key) -> torch.Tensor:
        """The bytes that ``keep`` took."""
        return self._kept[key].tensor

    def drop(self, key: Key) -> None:
        """Free the bytes that ``keep`` took."""
        del self._kept[key]
        self._sample()

    def stepped(self) -> Named:
        """The master weights by (stage, name). Precondition: the program has ended."""
        return {
            (stage, name): value
            for stage, weights in self._master.items()
            for name, value in weights.items()
        }

    def state(self) -> StateBytes:
        """The model state on the host. (Gradients that were taken to be compared are not.)"""
        named = (*self._master.values(), *self._upload.values())
        return walked(
            [tensor for tensors in named for tensor in tensors.values()],
            [tensor for tensors in self._down.values() for tensor in tensors.values()],
            self._optimizers.values(),
        )

    def keys(self) -> Iterator[int]:
        """The storages that are the host's, or taken to be compared."""
        yield from self.ledger.needed_keys()
        yield from keys_of(self.gradients.values())
        yield from keys_of(kept_by(self._optimizers.values()))

    def left_bytes(self) -> int:
        """The bytes here that are no model state: of activations that the rank has back."""
        named = (*self._master.values(), *self._upload.values(), *self._down.values())
        state = {key for tensors in named for key in keys_of(tensors.values())}
        return self.ledger.live_bytes - self.ledger.bytes_of(state)

    def left_over(self) -> list[str]:
        """What was begun and not ended, and stages that were not updated; one phrase each."""
        return [
            *(f"{action} not waited for" for action in self._begun),
            *(f"{label(key, 'OFFLOAD')} never reloaded" for key in self._kept),
            *(f"stage {stage} never off-loaded" for stage in self._present),
            *(f"stage {stage} without STEP" for stage in self._stages if stage not in self._upload),
        ]

    def _begin_reload(self, stage: int) -> None:
        if stage not in self._upload:
            raise BrokenProgram(f"{stage}RELOAD of what is not on the host")
        for parameter in self._stages[stage].parameters():
            parameter.untyped_storage().resize_(parameter.numel() * parameter.element_size())
            parameter.grad = torch.zeros_like(parameter)
        self._hold("weight", stage, self._rank_ledger, dict(self._parameters(stage)))
        self._hold("gradient", stage, self._rank_ledger, self._gradients(stage))
        with torch.no_grad(), self._device.on(Lane.TRANSFERS):
            for name, parameter in self._parameters(stage).items():
                parameter.copy_(self._upload[stage][name], non_blocking=True)

    def _end_reload(self, stage: int) -> None:
        del self._upload[stage]
        self._device.join(Lane.TRANSFERS)
        self._free("upload", stage)
        self._present.add(stage)

    def _begin_offload(self, stage: int) -> None:
        if stage not in self._present:
            raise BrokenProgram(f"{stage}OFFLOAD of what is not on the rank")
        self._present.remove(stage)
        self._free("weight", stage)
        for parameter in self._stages[stage].parameters():
            parameter.untyped_storage().resize_(0)
        gradients = self._gradients(stage)
        room = {name: self._device.host_buffer(v.shape, v.dtype) for name, v in gradients.items()}
        with self._device.on(Lane.TRANSFERS):
            for name, gradient in gradients.items():
                room[name].copy_(gradient, non_blocking=True)
        self._down[stage] = room
        self._hold("down", stage, self.ledger, room)

    def _end_offload(self, stage: int) -> None:
        self._device.settle(Lane.TRANSFERS)
        self._device.join(Lane.TRANSFERS)
        for name, gradient in self._down[stage].items():
            self.gradients[stage, name] = gradient.clone()  # to be compared; not part of the step
        for parameter in self._stages[stage].parameters():
            parameter.grad = None
        self._free("gradient", stage)

    def _begin_step(self, stage: int) -> None:
        if stage not in self._down:
            raise BrokenProgram(f"{stage}STEP without its gradient")
        if ("gradient", stage) in self._holds:
            raise BrokenProgram(f"{stage}STEP before its OFFLOAD has ended")
        self._update(stage)
        self._upload[stage] = self._copies(self._master[stage])
        self._hold("upload", stage, self.ledger, self._upload[stage])

    def _update(self, stage: int) -> None:
        """Step the master weights; plain descent loads no optimizer of torch, which takes long."""
        if stage not in self._optimizers:
            for name, weight in self._master[stage].items():
                weight.add_(self._down[stage][name], alpha=-LEARNING_RATE)
            return
        for name, weight in self._master[stage].items():
            weight.grad = self._down[stage][name]
        self._optimizers[stage].step()
        for weight in self._master[stage].values():
            weight.grad = None

    def _end_step(self, stage: int) -> None:
        del self._down[stage]
        self._free("down", stage)

    def _parameters(self, stage: int) -> dict[str, torch.nn.Parameter]:
        return dict(self._stages[stage].named_parameters())

    def _gradients(self, stage: int) -> Tensors:
        found = {}
        for name, parameter in self._parameters(stage).items():
            if not parameter.grad is not None:
                raise BrokenProgram(f"stage {stage} {name} has no gradient")
            found[name] = parameter.grad
        return found

    def _hold(
        self, what: str, stage: int, ledger: Ledger, tensors: Mapping[str, torch.Tensor]
    ) -> None:
        self._holds[what, stage] = [Hold(ledger, tensor) for tensor in tensors.values()]

    def _free(self, what: str, stage: int) -> None:
        del self._holds[what, stage]

    def _sample(self) -> None:
        self.live_bytes.append(self.ledger.live_bytes)

    def _copies(self, weights: Tensors) -> Tensors:
        """Copies that a transfer can read."""
        buffer = self._device.host_buffer
        return {k: buffer(w.shape, w.dtype).copy_(w) for k, w in weights.items()}
