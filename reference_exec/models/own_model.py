"""A model of a user's own, or of a library: its stages, data and loss, all of them torch's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnModel:
    """Stages with their data and loss.

    ``stages`` are modules, or one model of transformers, whose own forward is then cut
    (``hf_stages``). A stage takes what the one before gives: a tensor, or several things
    (``parcels``), of which a tuple's are its arguments and a dictionary's are by name. Stages may
    share parameters.
    ``batch(j)`` gives the input, which is either, and the target of microbatch j; where it has a
    parameter named ``step``, ``batch(j, step=i)`` gives those of optimizer step i, from 0 on, and
    otherwise all steps of a training have one batch (``has_steps``);
    ``loss(output, target)`` a scalar, of which a replay takes the mean over its microbatches.
    Tensors of floating point are cast to the type of the ``ModelSpec``; ``notes`` says, a sentence
    each, what is not as whoever named the model may believe.
    """

    stages: Sequence[nn.Module] | Any  # a PreTrainedModel, which not everyone has
    batch: Callable[..., tuple[object, torch.Tensor]]
    loss: Callable[..., torch.Tensor]
    notes: tuple[str, ...] = ()

    @property
    def has_steps(self) -> bool:
        """Whether each optimizer step has a batch of its own."""
        try:
            return "step" in inspect.signature(self.batch).parameters
        except ValueError:  # a function of C, which does not tell its parameters
            return False
