"""Parameters, FLOPs and saved bytes against small real layers in torch.

Weights are counted by torch, FLOPs by its own counter, bytes by the replay's account of storages.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from bubbleproof.costs import (
    Deployment,
    Transformer,
    layer_flops,
    layer_operations,
    layer_saved,
    transformer,
)
from bubbleproof.costs.deployment import SCOPES
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.weights import layer_weights
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.saved import SavedTensors

GPT = transformer("gpt", layers=1, hidden=24, heads=3, vocabulary=7)
SHAPES = [(8, 2, 2, 4, 2), (24, 4, 2, 6, 1), (16, 4, 4, 5, 3)]  # hidden, heads, kv_heads, s, b


class GptLayer(nn.Module):
    """A GPT layer with biases and dropout, written down anew in plain torch."""

    def __init__(self, model: Transformer, rate: float, scope: str = "none") -> None:
        super().__init__()
        self.scope = scope
        h, f = model.hidden, 4 * model.hidden
        self.heads = model.heads
        self.norms = nn.ModuleList(nn.LayerNorm(h) for _ in range(2))
        self.inputs = nn.ModuleList(nn.Linear(h, h) for _ in range(3))
        self.output, self.up, self.down = nn.Linear(h, h), nn.Linear(h, f), nn.Linear(f, h)
        self.rate = rate

    def dropout(self, x: torch.Tensor) -> torch.Tensor:
        """As on a device, with a mask of one byte; elsewhere torch keeps numbers of x's type."""
        return torch.native_dropout(x, self.rate, True)[0] if self.rate else x

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Plain, computed again in its backward, or fused; (batch, heads, tokens, width) each."""
        if self.scope == "fused":
            return nn.functional.scaled_dot_product_attention(q, k, v)
        flat = [each.reshape(-1, *each.shape[2:]) for each in (q, k, v)]
        if self.scope == "attention":
            mixed: torch.Tensor = checkpoint(self.scores, *flat, use_reentrant=True)
            return mixed.view(q.shape)
        return self.scores(*flat).view(q.shape)

    def scores(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1)
        return torch.bmm(self.dropout(weights), v)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.scope == "full":
            again: torch.Tensor = checkpoint(self.whole, x, use_reentrant=True)
            return again
        return self.whole(x)

    def whole(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        y = self.norms[0](x)
        q, k, v = (linear(y).view(b, s, self.heads, -1).transpose(1, 2) for linear in self.inputs)
        mixed = self.attention(q, k, v).transpose(1, 2).reshape(b, s, h)
        x = x + self.dropout(self.output(mixed))
        inner = nn.functional.gelu(self.up(self.norms[1](x)))
        result: torch.Tensor = x + self.dropout(self.down(inner))
        return result


def saved_bytes(layer: nn.Module, x: torch.Tensor) -> int:
    """Bytes of the storages that autograd keeps of one forward; weights and constants apart."""
    ledger = Ledger()
    ledger.exclude([*layer.parameters(), *layer.buffers()])
    with SavedTensors(ledger) as saved:
        output = layer(x)
    found = saved.num_bytes
    del output
    return found


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_gpt_layer_keeps_what_korthikanti_counts(rate: float, scope: str) -> None:
    """In bf16, s b h (34 + 5 a s / h) bytes, 34 s b h or 2 s b h, and each norm's statistics."""
    model = GPT.with_changes(dropout=rate > 0)
    layer = GptLayer(model, rate, scope).to(torch.bfloat16)
    x = torch.randn(2, 5, model.hidden, dtype=torch.bfloat16, requires_grad=True)
    at = Deployment(micro_batch=2, sequence=5, scope=scope)
    statistics = 0 if scope == "full" else norm_statistics(x)
    assert saved_bytes(layer, x) == layer_saved(model, at) + statistics


def norm_statistics(x: torch.Tensor) -> int:
    """Bytes of the mean and 1 / deviation of each token that two layer norms keep here."""
    mean = torch.native_layer_norm(x, [x.shape[-1]], None, None, 1e-5)[1]
    return 2 * 2 * mean.numel() * mean.element_size()


def test_a_fused_attention_keeps_one_number_for_a_head_and_token() -> None:
    model = GPT.with_changes(dropout=False)
    layer = GptLayer(model, 0.0, "fused").to(torch.bfloat16)
    x = torch.randn(2, 5, model.hidden, dtype=torch.bfloat16, requires_grad=True)
    at = Deployment(micro_batch=2, sequence=5, accounting="fused")
    in_32_bits = 2 * 2 * 2 * 5 * 4  # two norms, mean and deviation, ten tokens
    assert saved_bytes(layer, x) == layer_saved(model, at) - in_32_bits + norm_statistics(x)


def test_a_gpt_layer_has_these_weights() -> None:
    layer = GptLayer(GPT, 0.5)
    assert sum(w.numel() for w in layer.parameters()) == layer_weights(GPT, Deployment()).total


@pytest.mark.parametrize(("hidden", "heads", "kv_heads", "sequence", "batch"), SHAPES)
@pytest.mark.parametrize("kind", ["transformer", "llama"])
def test_the_reference_layers(
    kind: str, hidden: int, heads: int, kv_heads: int, sequence: int, batch: int
) -> None:
    spec = ModelSpec(
        kind=kind, hidden=hidden, heads=heads, kv_heads=kv_heads, sequence=sequence, batch=batch
    )
    layer = Stage(spec, 0).layers[0]
    model = shape_of(spec)
    at = Deployment(micro_batch=batch, sequence=sequence)
    assert sum(w.numel() for w in layer.parameters()) == layer_weights(model, at).total

    x = torch.randn(batch, sequence, hidden, dtype=torch.float64, requires_grad=True)
    forward, backward = counted_flops(layer, x)
    flops = layer_flops(model, at)
    assert forward == flops.forward
    assert backward == flops.input_backward + flops.weight_backward

    tokens = batch * sequence
    # Beside the inventory: mean and 1 / deviation of two layer norms, all in 64 bits; of two RMS
    # norms in plain torch 1 / rms, and x / rms beside the output.
    extra = 4 * tokens if kind == "transformer" else 2 * tokens * (1 + hidden)
    kept = Fraction(layer_saved(model, at)) / at.rules.element
    assert saved_bytes(Plain(layer), x) == 8 * (kept + extra)


class Plain(nn.Module):
    """A reference layer called as a whole, without a store."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x, None)
        return result


def shape_of(spec: ModelSpec) -> Transformer:
    """The shape of a reference layer: no biases, no dropout."""
    family = "llama" if spec.kind == "llama" else "general"
    return transformer(
        family,
        layers=1,
        hidden=spec.hidden,
        heads=spec.heads,
        kv_heads=spec.kv_heads if spec.kind == "llama" else spec.heads,
        feed_forward=spec.inner,
        vocabulary=1,
    )


def counted_flops(layer: nn.Module, x: torch.Tensor) -> tuple[int, int]:
    """FLOPs of forward and backward by torch's counter."""
    with FlopCounterMode(display=False) as counter:
        output = layer(x, None)
    forward = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        output.sum().backward()
    return forward, counter.get_total_flops()


def test_experts_compute_what_tokens_go_through() -> None:
    """Two of four experts for each token: their linears on twice the tokens, by torch's counter."""
    model = transformer(
        "mixture",
        layers=1,
        hidden=8,
        heads=2,
        feed_forward=12,
        vocabulary=1,
        experts=4,
        experts_per_token=2,
    )
    at = Deployment(micro_batch=1, sequence=6)
    widths = {"up": (8, 12), "gate": (8, 12), "down": (12, 8)}
    experts = [
        nn.ModuleDict({name: nn.Linear(*width, bias=False) for name, width in widths.items()})
        for _ in range(4)
    ]
    router = nn.Linear(8, 4, bias=False)
    x = torch.randn(6, 8)
    with FlopCounterMode(display=False) as counter:
        chosen = router(x).topk(2).indices
        for number, expert in enumerate(experts):
            own = x[(chosen == number).any(-1)]
            expert["down"](nn.functional.silu(expert["gate"](own)) * expert["up"](own))
    names = ("router", "up", "gate", "down")
    parts = [o for o in layer_operations(model) if o.name in names]
    assert counter.get_total_flops() == sum(operation_flops(o, model, at).forward for o in parts)
    weights = sum(w.numel() for module in (*experts, router) for w in module.parameters())
    assert weights == sum(operation.parameters for operation in parts)
