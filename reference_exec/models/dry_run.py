"""Dry runs of a user's stages: what one holds, computes and keeps, measured on one input.

A stage runs forth and back on microbatch 0, which measures what ``footprint`` says of the reference
models in closed form; a new build of it, after one forward, what is there from the start.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch

from bubbleproof.reference_exec.births import BIRTHS, constants_of, living_storages, settled_bytes
from bubbleproof.reference_exec.broken import BrokenProgram, of_model
from bubbleproof.reference_exec.flop_count import FlopCount
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.draws import seed_generators
from bubbleproof.reference_exec.models.linear import WeightGradStore, frozen, watched
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import OwnLayer, build
from bubbleproof.reference_exec.models.own_checks import (
    is_compiled,
    require_dense_gradients,
    require_gradients,
)
from bubbleproof.reference_exec.models.parcels import tensors_of
from bubbleproof.reference_exec.saved import SavedTensors


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """One stage of a user's model: its input's shape and bytes, and the bytes that it holds.

    ``activation_bytes`` from F to B or I, ``operand_bytes`` from I to W, of which each of the GEMMs
    of W lets go ``gemm_bytes``, in the order of ``shares``; ``weight_bytes`` of its
    parameters, ``gradient_bytes`` of the ``num_trained`` that are not ``frozen``; ``kept_bytes``
    what it keeps of its last microbatch, beside the weights, until the next; ``resident_bytes``
    what is there of a new build after one forward, the weights included; ``sample`` is an input;
    ``draws`` says whether it draws random numbers, ``is_compiled`` whether torch.compile made it;
    ``replaced`` are the linears whose weights' gradients W computes, ``watched`` the parameters
    whose gradients hooks see, which I computes. ``forward_flops`` and ``backward_flops`` are the
    floating-point operations of the module as it is, ``input_flops`` and ``gemm_flops`` those of I
    and of each GEMM of W.
    ``shared`` are the tensors that all builds have in common, ``written`` those from before the dry
    run that it has changed.
    """

    input_shape: tuple[int, ...]
    input_bytes: int
    activation_bytes: int
    operand_bytes: int
    kept_bytes: int
    resident_bytes: int
    shared: tuple[weakref.ref[torch.Tensor], ...] = field(repr=False, compare=False)
    written: tuple[weakref.ref[torch.Tensor], ...] = field(repr=False, compare=False)
    sample: torch.Tensor = field(repr=False, compare=False)
    gemm_bytes: tuple[int, ...]
    weight_bytes: int
    gradient_bytes: int
    num_trained: int
    replaced: tuple[str, ...]
    frozen: tuple[str, ...]
    draws: bool
    is_compiled: bool
    watched: tuple[str, ...]
    forward_flops: int
    backward_flops: int
    input_flops: int
    gemm_flops: tuple[int, ...]


class _Reading(NamedTuple):
    """The bytes that something in a ledger needs, and those that live without."""

    needed: int
    unneeded: int

    @classmethod
    def of(cls, ledger: Ledger) -> _Reading:
        ledger.find(BIRTHS.taken())
        unneeded = ledger.unneeded_bytes()
        return cls(ledger.needed_bytes, unneeded)


@dataclass(frozen=True, slots=True, eq=False)
class DryRun:
    """One stage on one input, ``score`` its loss where it is the last."""

    stage: int
    layer: OwnLayer
    x: torch.Tensor
    score: Callable[[torch.Tensor], torch.Tensor]
    shared: Sequence[torch.Tensor] = ()

    def measured(
        self, spec: ModelSpec, replaced: Sequence[str], plain_flops: tuple[int, int]
    ) -> StageFacts:
        """The bytes that live after a forward, after an I and after each GEMM.

        The stage runs twice: what it keeps from one microbatch to the next, and no more of the
        second, is its own (``kept_bytes``); what grows is nobody's and is not predicted.
        """
        ledger = Ledger()
        ledger.exclude([*self.layer.parameters(), *self.layer.buffers()])
        constants = constants_of([self.layer])  # also those that ``gc.freeze`` hides
        ledger.exclude_storages([*living_storages(), *(t.untyped_storage() for t in constants)])
        ledger.follow(constants)
        ledger.elsewhere.append(lambda: (each.grad for each in self.layer.parameters()))
        try:
            with BIRTHS.watched():
                BIRTHS.guard(self.shared)
                BIRTHS.forget()
                first, flops = self._readings(ledger)
                second, _ = self._readings(ledger)
                written = BIRTHS.changed()
                resident = self._resident_bytes(spec, replaced)
        except BrokenProgram as error:
            raise ValueError(f"model stage {self.stage}: {error}") from error
        kept = first[-1].unneeded
        held = [reading.needed + max(reading.unneeded - kept, 0) for reading in first]
        require_gradients(self.stage, self.layer.module)
        trained = [each for each in self.layer.parameters() if each.requires_grad]
        return StageFacts(
            sample=self.x.detach(),
            input_shape=tuple(self.x.shape),
            input_bytes=self.x.numel() * self.x.element_size(),
            activation_bytes=held[0],
            operand_bytes=held[1],
            gemm_bytes=tuple(before - after for before, after in pairwise(held[1:-1])),
            kept_bytes=max(2 * kept - max(second[-1].unneeded, kept), 0),
            resident_bytes=resident,
            shared=tuple(map(weakref.ref, self.shared)),
            written=tuple(map(weakref.ref, written)),
            weight_bytes=sum(p.numel() * p.element_size() for p in self.layer.parameters()),
            gradient_bytes=sum(p.numel() * p.element_size() for p in trained),
            num_trained=len(trained),
            replaced=tuple(replaced),
            frozen=frozen(self.layer.module),
            draws=self._draws(),
            is_compiled=is_compiled(self.layer.module),
            watched=watched(self.layer.module),
            forward_flops=plain_flops[0],
            backward_flops=plain_flops[1],
            input_flops=flops[1],
            gemm_flops=tuple(flops[2:]),
        )

    def _resident_bytes(self, spec: ModelSpec, replaced: Sequence[str]) -> int:
        """The bytes of a new build of the stage, after a forward.

        Of a large model Python's collector may have seen a parameter before it was cast: that is
        not young, though its storage is new. So what the stage holds is asked for besides.
        """
        old = [*living_storages(), *(tensor.untyped_storage() for tensor in self.shared)]
        keys = {each._cdata for each in old}
        BIRTHS.forget()
        layer = self.layer.again(build(spec).stages[self.stage], replaced)
        given = self.x.detach().clone()
        keys.add(given.untyped_storage()._cdata)  # who keeps its input keeps no more of a build
        layer(given, None)
        held = [tensor.untyped_storage() for tensor in constants_of([layer])]
        made = [each for each in (*BIRTHS.taken(), *held) if each._cdata not in keys]
        del held
        return sum(settled_bytes(made).values())

    def _readings(self, ledger: Ledger) -> tuple[list[_Reading], list[int]]:
        """After F, after I, after each GEMM of W, and at the end; and the operations of each."""
        with FlopCount() as count:
            readings = []
            flops = [0]
            for reading in self._run(ledger):
                readings.append(reading)
                flops.append(count.flops)
        return readings, [after - before for before, after in pairwise(flops[:-1])]

    def _run(self, ledger: Ledger) -> Iterator[_Reading]:
        store = WeightGradStore(ledger)
        store.is_deferring = True
        given = self._input()
        with SavedTensors(ledger) as saved:
            root = self._forward(given, store)
        saved.end_with(root, given)
        yield _Reading.of(ledger)
        self._backward(root, given)
        del root, given
        yield _Reading.of(ledger)
        for weight in filter(store.has, reversed(self.layer.gemm_weights().values())):
            with of_model(self.stage, "W"):
                store.run([weight])
            yield _Reading.of(ledger)
        yield _Reading.of(ledger)

    def backward(self, scale: float = 1.0, store: WeightGradStore | None = None) -> None:
        """A forward and a backward of the loss times ``scale``, uncounted."""
        given = self._input()
        self._backward(self._forward(given, store), given, scale)

    def _input(self) -> torch.Tensor:
        return self.x.detach().clone().requires_grad_(self.stage > 0)

    def _forward(self, given: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        seed_generators(0)  # whoever examines has kept the generator's state
        root = self.layer(given, store)
        has_gradient = any(each.requires_grad for each in tensors_of(root))
        if not has_gradient and (self.stage or self._has_trained()):
            raise ValueError(
                f"model stage {self.stage}: its output has no gradient; a stage must not cut off "
                "its parameters, or its input from the stage before"
            )
        return self.score(root)

    def _draws(self) -> bool:
        """Whether a forward moves torch's generator."""
        seed_generators(0)
        before = torch.get_rng_state()
        self.layer(self._input(), None)
        return not torch.equal(torch.get_rng_state(), before)

    def _has_trained(self) -> bool:
        return any(parameter.requires_grad for parameter in self.layer.parameters())

    def _backward(self, root: torch.Tensor, given: torch.Tensor, scale: float = 1.0) -> None:
        if not root.requires_grad:  # the first stage, frozen
            return
        before = torch.get_rng_state()
        with of_model(self.stage, "B"):
            torch.autograd.backward([root], [torch.full_like(root, scale)])
        if not torch.equal(torch.get_rng_state(), before):
            raise ValueError(
                f"model stage {self.stage} draws random numbers in a backward; only those of a "
                "forward are the same in any order: draw there and save them"
            )
        require_dense_gradients(self.stage, self.layer.module)
        if self.stage and given.grad is None:
            raise ValueError(f"model stage {self.stage}: its input gets no gradient to send back")
