"""Choices: what is decided of a pipeline beyond its shape and its numbers, each as a value.

``placement``        the rank of each stage: ``loop``, ``wave``, ``bidirectional``, or listed
``split_backward``   whether backwards run as I and W: one flag, or a row per stage with one flag
                     per microbatch
``weight_parts``     the ticks of the GEMMs that each W is cut into: one row, or a row per stage
``overlaps``         pairs ((stage, microbatch) of an F, (stage, microbatch) of a B) that run as one
                     task of the summed duration
``recompute``        what is dropped after its forward and made again (``recompute``)
``evictions``        activations that wait on a peer rank (``transfers``)
``waits``            precedences (before, after) by which an author makes room; lag 0
``offloads``         activations that wait on the host (``activation_offload``), where each rank
                     has ``host_capacity`` units, or no limit
``state_offload``    stages that their host updates (``state_offload``)
``sharding``         the collectives of ZeRO (``sharding``)

They combine freely but for what ``refuse_clashes`` names: these have no meaning.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TypedDict

from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.stage_numbers import Parts
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import ActionPair, Eviction

Flags = bool | tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The choices of a pipeline; by default the plain one: no option is taken."""

    placement: str | tuple[int, ...] = "loop"
    split_backward: Flags = False
    weight_parts: Parts = ()
    overlaps: tuple[Overlap, ...] = ()
    recompute: Recompute | None = None
    evictions: tuple[Eviction, ...] = ()
    waits: tuple[ActionPair, ...] = ()
    offloads: tuple[ActivationOffload, ...] = ()
    host_capacity: int | None = None
    state_offload: StateOffload | None = None
    sharding: Sharding | None = None

    @property
    def added(self) -> frozenset[str]:
        """The names of the choices that add tasks to those of the computation."""
        return frozenset(name for name in ADDING if getattr(self, name))


class ChoiceValues(TypedDict, total=False):
    """The fields of ``Choices`` as keywords."""

    placement: str | tuple[int, ...]
    split_backward: Flags
    weight_parts: Parts
    overlaps: tuple[Overlap, ...]
    recompute: Recompute | None
    evictions: tuple[Eviction, ...]
    waits: tuple[ActionPair, ...]
    offloads: tuple[ActivationOffload, ...]
    host_capacity: int | None
    state_offload: StateOffload | None
    sharding: Sharding | None


CHOICES = tuple(field.name for field in fields(Choices))
ADDING = ("recompute", "evictions", "offloads", "state_offload", "sharding")


def refuse_clashes(choices: Choices, *, num_microbatches: int, num_slices: int) -> None:
    """Raise ``ValueError`` naming two choices of a pipeline that have no meaning together."""
    _refuse_samples_chosen_twice(choices)
    if choices.overlaps and num_slices > 1:
        raise ValueError(
            f"overlaps join actions of whole samples, got {num_slices} slices per sample"
        )
    if choices.placement == BIDIRECTIONAL:
        for name in ("state_offload", "sharding"):
            if getattr(choices, name):
                raise ValueError(
                    f"{name} needs each stage on one rank; placement bidirectional has it on two"
                )
    if choices.state_offload and choices.sharding:
        raise ValueError(
            "a stage is updated on its host (state_offload) or on shards (sharding), got both"
        )
    if choices.state_offload:
        both = {o.stage for o in choices.offloads} & {*choices.state_offload.stages}
        if both:
            raise ValueError(
                f"stage {min(both)} off-loads its model state and activations; "
                "the transfers of both would have one name"
            )
    if choices.sharding:
        choices.sharding.require_samples(num_microbatches)


def _refuse_samples_chosen_twice(choices: Choices) -> None:
    """No activation is dropped and moved, or moved twice."""
    again = choices.recompute or Recompute()
    moved = Counter((e.stage, e.microbatch, e.slice) for e in choices.evictions)
    moved.update((o.stage, o.microbatch, o.slice) for o in choices.offloads)
    stages, samples = frozenset(again.stages), frozenset(again.samples)
    for (stage, microbatch, _), count in moved.items():
        if count > 1 or stage in stages or (stage, microbatch) in samples:
            raise ValueError(f"stage {stage} microbatch {microbatch} is chosen twice")
