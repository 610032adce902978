"""Microbatches of unequal sizes of a user's model: which are alike, and what each weighs.

The loss of a batch is the loss of all its microbatches together. Where they are of one size that is
taken to be the mean of theirs. Where they are not, the loss itself says what each weighs: with y_j
the output of microbatch j and L the user's loss, dL(y_0 .. y_m) / dy_j must be w_j dL(y_j) / dy_j,
which gives w_j: of a mean over 3, 3 and 2 samples 3/8, 3/8 and 2/8. A loss of which that is not so
is refused.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import torch

from bubbleproof.reference_exec.models.draws import seed_generators
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import build, own_batch, own_given, told
from bubbleproof.reference_exec.models.parcels import called, joined_rows, tensors_of, with_leaves

PROPORTIONAL = 1e-6  # relative; weights of samples differ by a good part of their gradient


@lru_cache(maxsize=4096)
def _sizes(spec: ModelSpec, sample: int) -> tuple[torch.Size, torch.Size]:
    x, target = own_batch(spec, sample)
    return x.shape, target.shape


def first_alike(spec: ModelSpec, sample: int) -> int:
    """The first microbatch that has the sizes of one."""
    own = _sizes(spec, sample)
    return next(j for j in range(sample + 1) if _sizes(spec, j) == own)


@lru_cache(maxsize=8)
def loss_shares(spec: ModelSpec, num_samples: int) -> tuple[Fraction, ...]:
    """What each of so many microbatches weighs in the loss of all; empty where all are alike.

    Raises ``ValueError`` where the loss does not say.
    """
    samples = range(num_samples)
    if len({_sizes(spec, j) for j in samples}) == 1:
        return ()
    model = build(spec)
    outputs, targets = [], []
    with torch.random.fork_rng(devices=[]):
        for j in samples:
            message, target = own_batch(spec, j)
            value: object = own_given(spec, message, torch.float64)
            seed_generators(0)
            with torch.no_grad():
                for stage in model.stages:
                    value = called(stage.double(), value)
            leaves = [each.detach().requires_grad_() for each in tensors_of(value)]
            outputs.append(with_leaves(value, leaves))
            targets.append(target.double() if target.is_floating_point() else target)
    try:
        together = _gradients(model.loss(joined_rows(outputs), torch.cat(targets)), outputs)
    except (Exception, SystemExit) as error:  # of shapes that differ elsewhere, or of the loss
        raise _unsaid(spec, f"their rows together fail: {told(error)}") from error
    shares = []
    for j in samples:
        (alone,) = _gradients(model.loss(outputs[j], targets[j]), [outputs[j]])
        shares.append(_share(spec, j, together[j], alone, sum(each.numel() for each in targets)))
    return tuple(shares)


def _gradients(loss: torch.Tensor, outputs: list[object]) -> list[torch.Tensor]:
    """The gradients of a loss for each output, one row each."""
    leaves = [tensors_of(value) for value in outputs]
    found = torch.autograd.grad(loss, [each for own in leaves for each in own], allow_unused=True)
    rows = iter(found)
    return [torch.cat([_row(next(rows), each) for each in own]) for own in leaves]


def _row(gradient: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    return (torch.zeros_like(like) if gradient is None else gradient).flatten()


def _share(
    spec: ModelSpec, j: int, together: torch.Tensor, alone: torch.Tensor, numbers: int
) -> Fraction:
    """w with together = w alone."""
    norm = float(alone @ alone)
    found = Fraction(float(together @ alone) / norm if norm else 0.0).limit_denominator(numbers)
    off = float((together - float(found) * alone).abs().max())
    if not found or off > PROPORTIONAL * float(together.abs().max()):
        raise _unsaid(spec, f"that of microbatch {j} is no part of the loss of all together")
    return found


def _unsaid(spec: ModelSpec, why: str) -> ValueError:
    return ValueError(
        f"model {spec.factory}: microbatches differ in size, and what each weighs its loss does "
        f"not say: {why}; take a mean or a sum over samples, or give microbatches of one size"
    )
