"""Executor faults in what is computed when: work at the wrong action, extra work, missing work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bubbleproof.reference_exec.ledger import Hold
from bubbleproof.reference_exec.models import layers, linear, reference
from bubbleproof.reference_exec.models.linear import WeightGradStore, weight_gradient
from bubbleproof.reference_exec.runtime import compute
from proofs_tests.reference_exec.patching import Key, Marks, before, multiply


def _add(weight: nn.Parameter, gradient: torch.Tensor) -> None:
    if weight.grad is None:
        weight.grad = gradient
    else:
        weight.grad += gradient


@torch.no_grad()
def _at_once(
    store: WeightGradStore, weight: nn.Parameter, dy: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """The gradient of one GEMM, whose operands the store holds on as if it were to come."""
    store._left.append((weight, Hold(store._ledger, dy), Hold(store._ledger, x)))
    return weight_gradient(dy.detach(), x.detach())


def weights_computed_in_i(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """I computes the weights' gradients and adds them; W lets go of operands and does no more."""

    def put(self: WeightGradStore, weight: nn.Parameter, dy: torch.Tensor, x: torch.Tensor) -> None:
        marks.append(weight)
        _add(weight, _at_once(self, weight, dy, x))

    def run(self: WeightGradStore, weights: object = None) -> None:
        del weights
        self._left = []

    patch.setattr(WeightGradStore, "put", put)
    patch.setattr(WeightGradStore, "run", run)


def weights_computed_in_i_and_added_in_w(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """I computes the weights' gradients, W only adds them."""
    ready: dict[int, list[tuple[nn.Parameter, torch.Tensor]]] = {}

    def put(self: WeightGradStore, weight: nn.Parameter, dy: torch.Tensor, x: torch.Tensor) -> None:
        marks.append(weight)
        ready.setdefault(id(self), []).append((weight, _at_once(self, weight, dy, x)))

    def run(self: WeightGradStore, weights: object = None) -> None:
        del weights
        self._left = []
        for weight, gradient in ready.pop(id(self)):
            _add(weight, gradient)

    patch.setattr(WeightGradStore, "put", put)
    patch.setattr(WeightGradStore, "run", run)


def gemms_of_w_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """W computes each product twice and throws one away."""

    def again(dy: torch.Tensor, x: torch.Tensor) -> None:
        marks.append(weight_gradient(dy, x).shape)

    before(patch, linear, "weight_gradient", again)


def one_w_added_by_the_next(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What the first W computes is added by the second."""
    right, late = WeightGradStore.run, list[tuple[nn.Parameter, torch.Tensor]]()

    def run(self: WeightGradStore, weights: object = None) -> None:
        if marks:
            right(self, weights)  # type: ignore[arg-type]  # passed on
            while late:
                _add(*late.pop())
            return
        marks.append(self)
        with torch.no_grad():
            for weight, dy, x in self._left:
                late.append((weight, weight_gradient(dy.tensor, x.tensor)))
        self._left = []

    patch.setattr(WeightGradStore, "run", run)


def all_gemms_in_the_first_part(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The first part of a W runs the GEMMs of all parts."""

    def run(self: compute.DeferredWeight, label: str, part: int) -> None:
        if part == 0:
            marks.append(label)
            self._left[0] = [weight for share in self._left.values() for weight in share]
            for other in [key for key in self._left if key]:
                self._left[other] = []

    before(patch, compute.DeferredWeight, "run", run)


def _forward_again(patch: pytest.MonkeyPatch, marks: Marks, when: Callable[[Key], bool]) -> None:
    def again(self: compute.Compute, key: Key, x: torch.Tensor) -> None:
        if when(key):
            with torch.no_grad():
                marks.append(self.stages[key[0]](x.detach(), None).shape)

    before(patch, compute.Compute, "forward", again)


def an_extra_forward(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F runs its stage once more, without a graph, and throws the output away."""
    _forward_again(patch, marks, lambda _: True)


def one_extra_forward(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The F of one microbatch on one stage runs twice."""
    _forward_again(patch, marks, lambda key: key[:2] == (1, 2))


def forwards_run_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F runs its stage twice with a graph, of which the second is used."""
    right = reference.Stage.forward

    def forward(self: reference.Stage, x: torch.Tensor, *more: object) -> torch.Tensor:
        if any(each is not None for each in more):
            marks.append(right(self, x.detach(), None).shape)
        return right(self, x, *more)  # type: ignore[arg-type]  # passed on

    patch.setattr(reference.Stage, "forward", forward)


def recomputed_before_its_backward(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """B runs the forward again, of what was not to be recomputed."""

    def again(self: compute.Compute, key: Key, *_: object) -> None:
        with torch.no_grad():
            marks.append(self.stages[key[0]](self._forwarded[key].x.detach(), None).shape)

    before(patch, compute.Compute, "backward", again)


def recomputed_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """R runs its forward twice."""

    def again(self: compute.Compute, key: Key, *_: object) -> None:
        with torch.no_grad():
            marks.append(self.stages[key[0]](self._checkpoints[key].tensor, None).shape)

    before(patch, compute.Compute, "recompute", again)


def work_in_i(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """I multiplies two matrices that nobody needs."""
    before(patch, compute.Compute, "backward", lambda *_: marks.append(multiply()))


def work_in_w(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """W multiplies two matrices that nobody needs."""
    before(patch, compute.Compute, "weight", lambda *_: marks.append(multiply()))


def attention_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank computes its attention twice."""
    right = layers.attend

    def attend(query: torch.Tensor, *more: object) -> torch.Tensor:
        with torch.no_grad():
            marks.append(right(query, *more).shape)  # type: ignore[arg-type]  # passed on
        return right(query, *more)  # type: ignore[arg-type]  # passed on

    patch.setattr(layers, "attend", attend)


def embedding_by_a_product(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Words are looked up by a product with ones and zeros."""

    def forward(self: layers.Embedding, given: torch.Tensor) -> torch.Tensor:
        marks.append(given.shape)
        chosen = nn.functional.one_hot(given, len(self.weight)).to(self.weight.dtype)
        with torch.no_grad():
            chosen @ self.weight
        return nn.functional.embedding(given, self.weight)

    patch.setattr(layers.Embedding, "forward", forward)


def head_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The head scores each word twice."""
    right = layers.Head.forward

    def forward(self: layers.Head, x: torch.Tensor, store: WeightGradStore | None) -> torch.Tensor:
        with torch.no_grad():
            marks.append(right(self, x, None).shape)
        return right(self, x, store)

    patch.setattr(layers.Head, "forward", forward)


def a_vector_scaled(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A W scales a vector that nobody needs, by itself element by element."""

    def scale(*_: object) -> None:
        marks.append(torch.ones(64).mul(2).sum().shape)

    before(patch, compute.Compute, "weight", scale)


FAULTS = (
    (weights_computed_in_i, "zb-h1"),
    (weights_computed_in_i, "training"),
    (weights_computed_in_i_and_added_in_w, "zb-h1"),
    (gemms_of_w_twice, "zb-h1"),
    (one_w_added_by_the_next, "zb-h1"),
    (all_gemms_in_the_first_part, "parts"),
    (an_extra_forward, "1f1b"),
    (one_extra_forward, "1f1b"),
    (forwards_run_twice, "zb-h1"),
    (recomputed_before_its_backward, "1f1b"),
    (recomputed_twice, "trecomp"),
    (work_in_i, "zb-h1"),
    (work_in_w, "zb-h1"),
    (attention_twice, "svpp"),
    (embedding_by_a_product, "tied"),
    (head_twice, "tied"),
)

NOT_COUNTED = ((a_vector_scaled, "zb-h1", "Operations without a formula"),)
