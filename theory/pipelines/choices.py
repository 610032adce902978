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
``frozen_stages``    stages whose weights are not trained (``frozen``)

They combine freely but for what ``refuse_clashes`` names: these have no meaning.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import Annotated

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.activation_offload import HostCapacityChoice, OffloadChoice
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind, ChoiceSetting
from bubbleproof.theory.pipelines.frozen import FrozenChoice
from bubbleproof.theory.pipelines.overlaps import OverlapChoice
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, PlacementChoice
from bubbleproof.theory.pipelines.recompute import Recompute, RecomputeChoice
from bubbleproof.theory.pipelines.sharding import ShardingChoice
from bubbleproof.theory.pipelines.stage_numbers import Parts
from bubbleproof.theory.pipelines.state_offload import StateOffloadChoice
from bubbleproof.theory.pipelines.transfers import EvictionChoice, WaitChoice
from bubbleproof.theory.pipelines.value_types import Expectation, beside, declared

Flags = bool | tuple[tuple[bool, ...], ...]
SplitChoice = Annotated[Flags, Expectation("a flag, or rows (stages) of flags (microbatches)")]
PartsChoice = Annotated[Parts, Expectation("a row of ticks, or a row per stage")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What is chosen; absent keys take the defaults of ``Choices``.

    By default the plain pipeline: no option is taken.
    """

    placement: PlacementChoice = "loop"
    split_backward: SplitChoice = False
    weight_parts: PartsChoice = ()
    overlaps: OverlapChoice = ()
    recompute: RecomputeChoice = None
    evictions: EvictionChoice = ()
    waits: WaitChoice = ()
    offloads: OffloadChoice = ()
    host_capacity: HostCapacityChoice = None
    state_offload: StateOffloadChoice = None
    sharding: ShardingChoice = None
    frozen_stages: FrozenChoice = ()

    @property
    def added(self) -> frozenset[str]:
        """The names of the choices that add tasks to those of the computation, or change them."""
        return self.omitting | {n for n, kind in self._kinds() if kind.adds_tasks}

    @property
    def omitting(self) -> frozenset[str]:
        """The names of the choices that leave out a part of the step's work."""
        return frozenset(n for n, kind in self._kinds() if kind.omits_work)

    @property
    def is_of_stages(self) -> bool:
        """Whether all that is chosen of kinds treats the microbatches of a stage alike."""
        return all(kind.is_of_stages for _, kind in self._kinds())

    def _kinds(self) -> list[tuple[str, ChoiceKind]]:
        """The kinds of which something is chosen, by name."""
        return [(name, kind) for name, kind in KINDS.items() if getattr(self, name)]


CHOICES = tuple(field.name for field in fields(Choices))
KINDS: dict[str, ChoiceKind] = {
    name: kind
    for name, hint in declared(Choices).items()
    if (kind := beside(hint, ChoiceKind)) is not None
}
_BY_TURN = sorted(KINDS, key=lambda name: KINDS[name].turn)


def changed_by(problem: Problem, choices: Choices, setting: ChoiceSetting) -> Problem:
    """The problem of the computation with what is chosen, by the text of each kind's module.

    Raises ``ValueError`` for a choice that names what the problem does not have.
    """
    for name in _BY_TURN:
        if value := getattr(choices, name):
            problem = KINDS[name].change(problem, value, setting)
    return problem


def refuse_clashes(choices: Choices, *, num_microbatches: int, num_slices: int) -> None:
    """Raise ``ValueError`` naming two choices of a pipeline that have no meaning together.

    Parameters
    ----------
    num_microbatches
        How many the pipeline has; the sequences of a sharding add up to them.
    num_slices
        Slices of each of its samples, 1 where samples are whole.
    """
    _refuse_samples_chosen_twice(choices)
    _refuse_clashing_kinds(choices)
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


def _refuse_clashing_kinds(choices: Choices) -> None:
    for name, kind in KINDS.items():
        for other in kind.clashes if getattr(choices, name) else ():
            if getattr(choices, other):
                raise ValueError(f"{name} and {other} have no meaning together, got both")


def _refuse_samples_chosen_twice(choices: Choices) -> None:
    """No activation is dropped and moved, or moved twice."""
    again = choices.recompute or Recompute()
    moved = Counter((e.stage, e.microbatch, e.slice) for e in choices.evictions)
    moved.update((o.stage, o.microbatch, o.slice) for o in choices.offloads)
    stages, samples = frozenset(again.stages), frozenset(again.samples)
    for (stage, microbatch, _), count in moved.items():
        if count > 1 or stage in stages or (stage, microbatch) in samples:
            raise ValueError(f"stage {stage} microbatch {microbatch} is chosen twice")
