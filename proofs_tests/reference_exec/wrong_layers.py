"""Faults in the model that a rank computes with, where the oracles have the right one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bubbleproof.reference_exec.models import layers, linear, reference
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime import compute, rank_messages, sliced
from bubbleproof.theory.model.actions import Action
from proofs_tests.reference_exec.patching import Key, Marks


def _built(
    patch: pytest.MonkeyPatch, marks: Marks, change: Callable[[reference.Stage], object]
) -> None:
    """Change the stages that ranks build, which oracles do not."""
    right = reference.Stage

    def built(spec: ModelSpec, stage: int) -> reference.Stage:
        made = right(spec, stage)
        marks.append(change(made))
        return made

    patch.setattr(compute, "Stage", built)


def _norms(stage: reference.Stage) -> list[nn.LayerNorm]:
    return [each for each in stage.modules() if isinstance(each, nn.LayerNorm)]


def another_epsilon(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's norms have another epsilon."""

    def set_(stage: reference.Stage) -> None:
        for norm in _norms(stage):
            norm.eps = 2e-5

    _built(patch, marks, set_)


def norms_without_gain(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's norms begin with a gain of 1."""

    def reset(stage: reference.Stage) -> None:
        for norm in _norms(stage):
            with torch.no_grad():
                norm.weight.fill_(1.0)

    _built(patch, marks, reset)


def a_weight_a_bit_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One weight of a rank begins a bit off."""

    def turn(stage: reference.Stage) -> None:
        with torch.no_grad():
            first = next(stage.parameters()).view(-1)[:1]
            first.copy_(torch.nextafter(first, torch.full_like(first, torch.inf)))

    _built(patch, marks, turn)


def weights_in_single_precision(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's weights pass through float32 as it is made."""

    def round_(stage: reference.Stage) -> None:
        for parameter in stage.parameters():
            parameter.data.copy_(parameter.data.float())

    _built(patch, marks, round_)


def layers_in_another_order(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank runs the two layers of a stage in the other order."""

    def turn(stage: reference.Stage) -> None:
        stage.layers = nn.ModuleList(reversed(list(stage.layers)))

    _built(patch, marks, turn)


def dropped_out(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank drops elements out."""
    _on_rank(patch, marks, lambda y: nn.functional.dropout(y, 0.1))


def _running(patch: pytest.MonkeyPatch) -> list[bool]:
    """Not empty while ``Compute`` runs a stage, as oracles do not."""
    right, running = compute.Compute._run, list[bool]()

    def run(self: compute.Compute, *given: object) -> object:
        running.append(True)
        try:
            return right(self, *given)  # type: ignore[arg-type]  # passed on
        finally:
            running.pop()

    patch.setattr(compute.Compute, "_run", run)
    return running


def _on_rank(
    patch: pytest.MonkeyPatch, marks: Marks, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Change the output of each layer, where ``Compute`` runs it."""
    running = _running(patch)
    right_layer = layers.MLPLayer.forward

    def forward(self: layers.MLPLayer, x: torch.Tensor, *more: object) -> torch.Tensor:
        y = right_layer(self, x, *more)  # type: ignore[arg-type]  # passed on
        if not running:
            return y
        marks.append(y.shape)
        return change(y)

    patch.setattr(layers.MLPLayer, "forward", forward)


def activations_in_single_precision(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's activations pass through float32."""
    _on_rank(patch, marks, lambda y: y.float().double())


def activations_cut_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's layer clips what it puts out."""
    _on_rank(patch, marks, lambda y: y.clamp(-1.0, 1.0))


def residual_cut_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A gradient does not pass a layer of a rank."""
    _on_rank(patch, marks, lambda y: y.detach() + 0 * y)


def gradients_turned(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's layer sends its gradient back with the other sign."""

    def turn(y: torch.Tensor) -> torch.Tensor:
        y.register_hook(lambda gradient: -gradient)  # type: ignore[no-untyped-call]  # torch's stub
        return y

    _on_rank(patch, marks, turn)


def _product_backward(
    patch: pytest.MonkeyPatch,
    marks: Marks,
    change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    right = linear.weight_gradient

    def product(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        marks.append(x.shape)
        return change(right(dy, x), x)

    patch.setattr(linear, "weight_gradient", product)


def gemm_in_single_precision(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A weight's gradient passes through float32."""
    _product_backward(patch, marks, lambda gradient, _: gradient.float().double())


def gemm_without_its_last_token(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A weight's gradient leaves a token out."""

    def product(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        marks.append(x.shape)
        rows, given = dy.reshape(-1, dy.shape[-1]).clone(), x.reshape(-1, x.shape[-1])
        rows[-1] = 0
        return rows.t() @ given

    patch.setattr(linear, "weight_gradient", product)


def gemm_scaled(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A weight's gradient is a mean over tokens, not a sum."""
    _product_backward(patch, marks, lambda gradient, x: gradient / x.shape[-2])


def positions_of_a_slice_from_zero(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A later slice's tokens are turned as if they were the first."""
    right = layers.LlamaLayer.placed

    def placed(self: layers.LlamaLayer, x: torch.Tensor, heads: int, start: int) -> torch.Tensor:
        inner = start if not isinstance(last.get("prefix"), sliced.LayerPrefix) else 0
        marks.append(start)
        return right(self, x, heads, inner)

    last: dict[str, object] = {}
    right_attention = layers.AttentionLayer._attention

    def attention(
        self: layers.AttentionLayer, x: torch.Tensor, store: object, prefix: object = None
    ) -> torch.Tensor:
        last["prefix"] = prefix  # of ranks it is a ``LayerPrefix``
        return right_attention(self, x, store, prefix)  # type: ignore[arg-type]  # passed on

    patch.setattr(layers.LlamaLayer, "placed", placed)
    patch.setattr(layers.AttentionLayer, "_attention", attention)


def keys_in_another_order(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A slice has the keys of the slices before it in the other order, values not."""
    right = sliced.LayerPrefix.extend

    def extend(self: sliced.LayerPrefix, *pair: torch.Tensor) -> list[sliced.KeysAndValues]:
        *earlier, own = right(self, *pair)
        marks.append(len(earlier))
        keys = [key for key, _ in reversed(earlier)]
        return [*((key, value) for key, (_, value) in zip(keys, earlier, strict=True)), own]

    patch.setattr(sliced.LayerPrefix, "extend", extend)


def values_cut_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Later slices send nothing back to the values of earlier ones."""
    right = sliced.LayerPrefix.extend

    def extend(self: sliced.LayerPrefix, *pair: torch.Tensor) -> list[sliced.KeysAndValues]:
        *earlier, own = right(self, *pair)
        marks.append(len(earlier))
        return [*((key, value.detach()) for key, value in earlier), own]

    patch.setattr(sliced.LayerPrefix, "extend", extend)


def another_word(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank looks up the word after the one that it is given."""
    running = _running(patch)
    looked_up = layers.Embedding.forward

    def forward(self: layers.Embedding, given: torch.Tensor) -> torch.Tensor:
        if running:
            marks.append(given.shape)
            given = (given + 1) % len(self.weight)
        return looked_up(self, given)

    patch.setattr(layers.Embedding, "forward", forward)


def ends_untied(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The head of a tied model begins with other weights than its embedding."""

    def turn(stage: reference.Stage) -> None:
        if stage.head is not None:
            with torch.no_grad():
                stage.head.linear.weight.mul_(1 + 1e-9)

    _built(patch, marks, turn)


def gradient_of_another(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank sends back the gradient that it sent before."""
    right, before = rank_messages.RankMessages.hand_over, dict[int, torch.Tensor]()

    def hand_over(self: rank_messages.RankMessages, tag: Action, tensor: torch.Tensor) -> None:
        if "RECV_B" in str(tag):
            if id(self) in before:
                marks.append(tag)
                tensor.copy_(before[id(self)])
            before[id(self)] = tensor.clone()
        right(self, tag, tensor)

    patch.setattr(rank_messages.RankMessages, "hand_over", hand_over)


def message_read_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank's second forward takes the activation of its first."""
    right, first = compute.Compute.forward, list[torch.Tensor]()

    def forward(self: compute.Compute, key: Key, x: torch.Tensor) -> torch.Tensor | None:
        if key[0] == 1:
            first.append(x.detach().clone())
            marks.append(key)
            with torch.no_grad():
                x.copy_(first[0])
        return right(self, key, x)

    patch.setattr(compute.Compute, "forward", forward)


def forward_in_inference(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One forward runs without a graph."""
    right = compute.Compute.forward

    def forward(self: compute.Compute, key: Key, x: torch.Tensor) -> torch.Tensor | None:
        if key != (0, 1, 0):
            return right(self, key, x)
        marks.append(key)
        with torch.no_grad():
            return right(self, key, x)

    patch.setattr(compute.Compute, "forward", forward)


def store_of_another(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What I leaves for W goes into the store of the microbatch before."""
    right, before = WeightGradStore.put, list[WeightGradStore]()

    def put(self: WeightGradStore, weight: nn.Parameter, dy: torch.Tensor, x: torch.Tensor) -> None:
        before.append(self)
        marks.append(weight)
        other = next((one for one in before if one is not self), self)
        right(other, weight, dy, x)

    patch.setattr(WeightGradStore, "put", put)


FAULTS = (
    (another_epsilon, "1f1b"),
    (norms_without_gain, "1f1b"),
    (a_weight_a_bit_off, "1f1b"),
    (weights_in_single_precision, "1f1b"),
    (layers_in_another_order, "two layers"),
    (dropped_out, "1f1b"),
    (activations_in_single_precision, "1f1b"),
    (activations_cut_off, "1f1b"),
    (residual_cut_off, "1f1b"),
    (gradients_turned, "zb-h1"),
    (gemm_in_single_precision, "zb-h1"),
    (gemm_without_its_last_token, "zb-h1"),
    (gemm_scaled, "zb-h1"),
    (positions_of_a_slice_from_zero, "llama in slices"),
    (keys_in_another_order, "svpp"),
    (values_cut_off, "svpp"),
    (another_word, "tied"),
    (ends_untied, "tied"),
    (gradient_of_another, "1f1b"),
    (message_read_twice, "1f1b"),
    (forward_in_inference, "1f1b"),
    (store_of_another, "zb-h1"),
)
