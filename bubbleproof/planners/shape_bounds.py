"""The shapes of a deployment's pipeline, each with the best bound that is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.planners.cluster_bound import quick_claim
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify.candidates.bundle import CandidateBound


@dataclass(kw_only=True, eq=False)
class ShapeBound:
    """A candidate of a deployment's pipeline, and the best bound on its makespan."""

    candidate: Candidate
    shaped: ShapedPipeline
    bounded: CandidateBound

    @classmethod
    def of(cls, candidate: Candidate, found: ShapedPipeline) -> ShapeBound:
        """With the bound of microseconds."""
        claim = quick_claim(found)
        bounded = CandidateBound(
            candidate=candidate, bound=0 if claim is None else claim.bound, certificate=claim
        )
        return cls(candidate=candidate, shaped=found, bounded=bounded)

    def take(self, bounded: CandidateBound) -> None:
        """Another bound of it: the greater counts, of equals the one that is shown."""
        is_shown = bounded.certificate is not None and self.bounded.certificate is None
        if (bounded.bound, is_shown) > (self.bounded.bound, False):
            self.bounded = bounded


def legal_shapes(space: PlanSpace) -> tuple[list[ShapeBound], list[NotLegalError]]:
    """The legal candidates of a space, and why others are none."""
    shapes, reasons = [], []
    for candidate in space.candidates():
        try:
            shapes.append(ShapeBound.of(candidate, shaped(space, candidate)))
        except NotLegalError as why:
            reasons.append(why)
    return shapes, reasons
