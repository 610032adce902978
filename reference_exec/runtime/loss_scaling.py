"""What a rank does about a scaled loss: what its backward begins with, and what a STEP takes.

The rule is ``plans.loss_scale``. A backward of the last stage begins with S where torch's own would
begin with 1. A STEP takes gradients that are divided by S: in float32 where they are of float16, in
their own type otherwise. Whether all are finite every rank tells before the STEPs, with its norms
where gradients are clipped (``updates``), so that all ranks skip the same steps and have the same
scale.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from bubbleproof.reference_exec.plans.loss_scale import LossScale


def first_gradient(root: torch.Tensor, scale: LossScale | None) -> torch.Tensor | None:
    """What the backward of a loss begins with; None is torch's own 1."""
    if scale is None:
        return None
    return torch.full_like(root, scale.value, dtype=torch.float64).to(root)  # infinite if too large


def unscaled(gradient: torch.Tensor, scale: LossScale | None) -> torch.Tensor:
    """A gradient as a STEP takes it."""
    whole = gradient.float() if gradient.dtype is torch.float16 else gradient
    return whole if scale is None else whole / scale.value


def all_finite(gradients: Iterable[torch.Tensor]) -> bool:
    """Whether no gradient has an infinity or a NaN."""
    return all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
