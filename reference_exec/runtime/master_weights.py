"""Master weights: an optimizer of float16 weights steps copies of them in float32.

What a step adds to a weight is often less than the last bit of float16, and the square of a small
gradient is 0 there. So torch's optimizer keeps its weights and its moments in float32, takes
gradients in float32, and the weights of the model are the masters rounded to float16 after each
step (Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.1). Masters are made at
the first step that is taken, of the weights that are there then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch


class MasterSteps:
    """Weights of float16 with their masters, and the optimizer of these, which ``make`` makes."""

    def __init__(
        self,
        weights: Iterable[torch.Tensor],
        make: Callable[[list[torch.Tensor]], torch.optim.Optimizer],
    ) -> None:
        self._weights, self._make = list(weights), make
        self._masters: dict[int, torch.Tensor] = {}  # by the id of the weight
        self._inner: torch.optim.Optimizer | None = None

    @property
    def state(self) -> Mapping[torch.Tensor, Mapping[str, object]]:
        """The master of each weight, and the moments of it; nothing before the first step."""
        if self._inner is None:
            return {}
        masters = {weight: self._masters[id(weight)] for weight in self._weights}
        inner = self._inner.state
        return {w: {"master": m, **inner.get(m, {})} for w, m in masters.items()}

    def stepped(self, weight: torch.Tensor) -> torch.Tensor:
        """The tensor that is stepped in the place of a weight."""
        self._made()
        return self._masters[id(weight)]

    def step(self) -> None:
        """Step the masters, which have their gradients, and round them to the weights."""
        self._made().step()
        for weight in self._weights:
            weight.detach().copy_(self._masters[id(weight)])

    def _made(self) -> torch.optim.Optimizer:
        """The optimizer of the masters, which are made with it, of the weights as they are."""
        if self._inner is None:
            self._masters = {id(each): each.detach().float() for each in self._weights}
            self._inner = self._make(list(self._masters.values()))
        return self._inner
