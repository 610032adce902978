"""Clipping of gradients by their global norm, over the ranks of a pipeline.

As ``torch.nn.utils.clip_grad_norm_`` does for a model in one piece: the norm of each parameter's
total gradient, the norm of these norms, and every gradient times min(1, most / (norm + 1e-6)). The
norms are put in the order of stages, and of parameters within a stage, before they are added up, so
that the result has the same bits wherever the stages are. A stage on two ranks counts once, on the
lower; so does a parameter that several stages share, on the first of them.

The lowest rank that steps collects the norms and tells all ranks the global one; that this waits
for all of them is the barrier of a training (``updates``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from bubbleproof.reference_exec.models.footprint import parameter_tensors, ties_of
from bubbleproof.reference_exec.models.reference import Named
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.stepping import stepping_stages

_NORMS = dict[int, torch.Tensor]  # by stage: one number for each parameter


def counted_stages(plan: ReplayPlan, rank: int) -> list[int]:
    """The stages whose norms a rank tells."""
    return [g for g in stepping_stages(plan, rank) if min(plan.ranks_of(g)) == rank]


def again(plan: ReplayPlan) -> frozenset[tuple[int, str]]:
    """The parameters by (stage, name) that an earlier stage has too."""
    ties = ties_of(plan.spec, plan.num_stages)
    return frozenset(end for ends in ties for end in ends[1:])


def num_norms(plan: ReplayPlan, stage: int) -> int:
    """How many norms a stage has."""
    return parameter_tensors(plan.spec, stage) - sum(g == stage for g, _ in again(plan))


def norms_of(plan: ReplayPlan, gradients: Named) -> torch.Tensor:
    """The norms of a stage's total ``gradients``, by (stage, name) in the order of parameters."""
    counted = [gradient for key, gradient in gradients.items() if key not in again(plan)]
    return torch.stack([torch.linalg.vector_norm(gradient) for gradient in counted])


def by_stage(plan: ReplayPlan, rank: int, told: torch.Tensor) -> _NORMS:
    """What a rank tells of all its stages, taken apart."""
    stages = counted_stages(plan, rank)
    parts = torch.split(told, [num_norms(plan, stage) for stage in stages])
    return dict(zip(stages, parts, strict=True))


def global_norm(norms: Mapping[int, torch.Tensor]) -> torch.Tensor:
    """The norm of all stages' norms, one number."""
    norm: torch.Tensor = torch.linalg.vector_norm(torch.cat([norms[g] for g in sorted(norms)]))
    return norm


def factor(norm: torch.Tensor, most: float) -> torch.Tensor:
    """What every gradient is multiplied by."""
    return torch.clamp(most / (norm + 1e-6), max=1.0)


def scaled(
    totals: Iterable[tuple[torch.Tensor, torch.Tensor]], by: torch.Tensor | None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of weight and total gradient, the latter clipped where there is a factor."""
    return [(weight, total if by is None else total * by) for weight, total in totals]
