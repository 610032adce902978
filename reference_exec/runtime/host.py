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

The step is that of the plan's training, whose moments count as model state alone (``state``), or
plain gradient descent (``optimizers``). The host also keeps what a sample's forward left behind
while that is off-loaded (``theory.pipelines.activation_offload``). Here the host's memory is this
machine's as well; what lies where is told apart by two ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from bubbleproof.reference_exec.broken import require
from bubbleproof.reference_exec.ledger import Hold, Ledger, keys_of
from bubbleproof.reference_exec.models.reference import Named, Stage
from bubbleproof.reference_exec.plans.replay_plan import Key, label
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime.device import CPU, Device, DeviceLane
from bubbleproof.reference_exec.runtime.optimizers import (
    Optimizer,
    kept_by,
    optimizer_of,
    step_with,
    walked,
)
from bubbleproof.theory.model.actions import Action, Kind

HostHolds = dict[str, Hold]  # one tensor for each parameter of a stage, by its name


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
        self.gradients: Named = {}
        self._rank_ledger = rank_ledger
        self._device = device
        self._stages = stages
        self._master: dict[int, HostHolds] = {}
        self._upload: dict[int, HostHolds] = {}
        self._down: dict[int, HostHolds] = {}  # gradients
        self._weights: dict[int, HostHolds] = {}  # on the rank, as are
        self._gradients: dict[int, HostHolds] = {}
        self._kept: dict[Key, Hold] = {}  # activations
        self._begun: set[Action] = set()
        self._present: set[int] = set()
        self._optimizers: dict[int, Optimizer] = {}
        for stage, module in stages.items():
            weights = {name: p.detach().cpu().clone() for name, p in module.named_parameters()}
            self._master[stage] = _held(self.ledger, weights)
            self._upload[stage] = self._copies(self._master[stage])
            stepped = (hold.tensor for hold in self._master[stage].values())
            self._optimizers[stage] = optimizer_of(training, stepped)
            for parameter in module.parameters():
                parameter.untyped_storage().resize_(0)

    def require_present(self, stage: int) -> None:
        """Assert that a stage's weights are on the rank, if they are ever elsewhere."""
        is_away = stage in self._stages and stage not in self._present
        require(not is_away, f"stage {stage} is on the host")

    def run(self, action: Action) -> None:
        """Begin a RELOAD, OFFLOAD or STEP, or end the one begun."""
        ends = action in self._begun
        handlers: dict[tuple[Kind, bool], Callable[[int], object]] = {
            (Kind.RELOAD, False): self._begin_reload,
            (Kind.RELOAD, True): self._end_reload,
            (Kind.OFFLOAD, False): self._begin_offload,
            (Kind.OFFLOAD, True): self._end_offload,
            (Kind.STEP, False): self._begin_step,
            (Kind.STEP, True): self._down.pop,
        }
        handlers[action.kind, ends](action.stage)
        (self._begun.discard if ends else self._begun.add)(action)

    def keep(self, key: Key, content: torch.Tensor) -> None:
        """Take an activation as bytes."""
        self._kept[key] = Hold(self.ledger, content)

    def kept(self, key: Key) -> torch.Tensor:
        """The bytes that ``keep`` took."""
        return self._kept[key].tensor

    def drop(self, key: Key) -> None:
        """Free the bytes that ``keep`` took."""
        del self._kept[key]

    def stepped(self) -> Named:
        """The master weights by (stage, name). Precondition: the program has ended."""
        return {
            (stage, name): hold.tensor
            for stage, weights in self._master.items()
            for name, hold in weights.items()
        }

    def state(self) -> StateBytes:
        """The model state on the host. (Gradients that were taken to be compared are not.)"""
        weights = _tensors(self._master, self._upload)
        return walked(weights, _tensors(self._down), self._optimizers.values())

    def tensors(self) -> Iterator[torch.Tensor]:
        """What was taken to be compared, and the optimizers' state; the rest is in the ledger."""
        yield from self.gradients.values()
        yield from kept_by(self._optimizers.values())

    def left_bytes(self) -> int:
        """The bytes here that are no model state: of activations that the rank has back."""
        state = set(keys_of(_tensors(self._master, self._upload, self._down)))
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
        require(stage in self._upload, f"{stage}RELOAD of what is not on the host")
        gradients, parameters = {}, dict(self._stages[stage].named_parameters())
        for name, parameter in parameters.items():
            parameter.untyped_storage().resize_(parameter.numel() * parameter.element_size())
            gradients[name] = parameter.grad = torch.zeros_like(parameter)
        self._weights[stage] = _held(self._rank_ledger, parameters)
        self._gradients[stage] = _held(self._rank_ledger, gradients)
        with self._device.on(DeviceLane.TRANSFERS):
            for name, weight in self._weights[stage].items():
                weight.tensor.copy_(self._upload[stage][name].tensor, non_blocking=True)

    def _end_reload(self, stage: int) -> None:
        self._device.join(DeviceLane.TRANSFERS)
        del self._upload[stage]
        self._present.add(stage)

    def _begin_offload(self, stage: int) -> None:
        require(stage in self._present, f"{stage}OFFLOAD of what is not on the rank")
        self._present.remove(stage)
        del self._weights[stage]
        for parameter in self._stages[stage].parameters():
            parameter.untyped_storage().resize_(0)
        with self._device.on(DeviceLane.TRANSFERS):
            self._down[stage] = self._copies(self._gradients[stage])

    def _end_offload(self, stage: int) -> None:
        self._device.settle(DeviceLane.TRANSFERS)
        self._device.join(DeviceLane.TRANSFERS)
        for name, gradient in self._down[stage].items():
            self.gradients[stage, name] = gradient.tensor.clone()  # to be compared; no part of STEP
        for parameter in self._stages[stage].parameters():
            parameter.grad = None
        del self._gradients[stage]

    def _begin_step(self, stage: int) -> None:
        require(stage in self._down, f"{stage}STEP without its gradient")
        require(stage not in self._gradients, f"{stage}STEP before its OFFLOAD has ended")
        master, down = self._master[stage], self._down[stage]
        pairs = ((weight.tensor, down[name].tensor) for name, weight in master.items())
        step_with(self._optimizers[stage], pairs)
        self._upload[stage] = self._copies(master)

    def _copies(self, kept: HostHolds) -> HostHolds:
        """Copies in memory of the host, of which a transfer can read."""
        tensors = {name: hold.tensor for name, hold in kept.items()}
        rooms = {n: self._device.host_buffer(t.shape, t.dtype) for n, t in tensors.items()}
        for name, room in rooms.items():
            room.copy_(tensors[name], non_blocking=True)
        return _held(self.ledger, rooms)


def _held(ledger: Ledger, tensors: Mapping[str, torch.Tensor]) -> HostHolds:
    return {name: Hold(ledger, tensor) for name, tensor in tensors.items()}


def _tensors(*kept: Mapping[int, HostHolds]) -> list[torch.Tensor]:
    by_stage = (held for each in kept for held in each.values())
    return [hold.tensor for held in by_stage for hold in held.values()]
