"""A pipeline whose choices are all fixed: what it recomputes, evicts and off-loads.

This is what a solver that searches over choices gives back (docs/design.md §1). The three kinds are
independent extensions of one problem and are meant for different (stage, microbatch): what is
recomputed here and parked elsewhere at once would be counted twice, so that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.activation_offload import (
    ActivationOffload,
    with_activation_offloads,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute
from bubbleproof.theory.pipelines.transfers import Eviction, with_evictions


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPipeline(Pipeline):
    """A pipeline with recomputation, evictions and off-loads of activations.

    ``problem()`` raises ``ValueError`` for a (stage, microbatch) that is chosen twice.
    """

    recompute: Recompute | None = None
    evictions: tuple[Eviction, ...] = ()
    offloads: tuple[ActivationOffload, ...] = ()
    host_capacity: int | None = None

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory, those of the choices included."""
        self._refuse_double()
        plain = Pipeline.problem(self)  # a slotted dataclass has no zero-argument super()
        return extended_by_choices(plain, self)

    def _refuse_double(self) -> None:
        stages, samples = (
            ((), ()) if self.recompute is None else (self.recompute.stages, self.recompute.samples)
        )
        parked = [(e.stage, e.microbatch, e.slice) for e in self.evictions]
        parked += [(o.stage, o.microbatch, o.slice) for o in self.offloads]
        for sample in parked:
            stage, microbatch, _ = sample
            again = stage in stages or (stage, microbatch) in samples
            if again or parked.count(sample) > 1:
                raise ValueError(f"stage {stage} microbatch {microbatch} is chosen twice")


def extended_by_choices(problem: Problem, chosen: ChosenPipeline) -> Problem:
    """The plain problem with the chosen evictions, off-loads and recomputations, in this order."""
    if chosen.evictions:
        problem = with_evictions(problem, chosen.evictions)
    if chosen.offloads:
        problem = with_activation_offloads(problem, chosen.offloads, chosen.host_capacity)
    if chosen.recompute is not None:
        problem = with_recompute(problem, chosen.recompute)
    return problem
