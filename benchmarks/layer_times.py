"""Times of one transformer layer on a GPU: forward, and backward for inputs and for weights.

    python -m benchmarks.layer_times [-o layers.csv] [--repeats 20]

A GPT layer in bfloat16 as one of ``tensor`` ranks computes it, without its all-reduces: layer norm,
queries, keys and values, causal attention by torch's fused kernel, projection, layer norm, two
linears of 4 x hidden with GELU between them; a rank has ``heads / tensor`` heads and the inner
units in the same proportion. Dropout is off. A row of the file:

``hidden, heads, sequence, micro_batch, tensor``
    the shape; sequence in tokens, micro_batch in samples;
``forward_ms, backward_ms, input_ms, weight_ms``
    medians of ``--repeats`` runs after five that do not count, by events of the device: F; B, all
    gradients at once; I, the gradient of the input alone; W, the products of the linears' weight
    gradients alone, each from an input and an output gradient that lie ready;
``spread``
    (largest - smallest) / median of the forward.

Inputs are random. A judge of time models: nothing of the package reads what this writes.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import torch
import typer
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

WARMUP = 5
MODELS = (
    (1024, 16, 1024),
    (2048, 32, 1024),
    (3072, 32, 2048),
    (4096, 32, 2048),
    (5120, 40, 2048),
    (8192, 64, 4096),
)
TENSOR = (1, 2, 4, 8)
MICRO_BATCHES = (1, 2, 4, 8)
MOST_TOKENS = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A layer as one tensor-parallel rank has it."""

    hidden: int
    heads: int
    sequence: int
    micro_batch: int
    tensor: int


class Layer(nn.Module):
    """One rank's part of a GPT layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        hidden, part = shape.hidden, shape.hidden // shape.tensor
        self.heads = shape.heads // shape.tensor
        self.before_attention = nn.LayerNorm(hidden)
        self.attention_in = nn.Linear(hidden, 3 * part)
        self.attention_out = nn.Linear(part, hidden)
        self.before_inner = nn.LayerNorm(hidden)
        self.inner_in = nn.Linear(hidden, 4 * part)
        self.inner_out = nn.Linear(4 * part, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        joined = self.attention_in(self.before_attention(x))
        parts = joined.view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, tokens, -1))
        result: torch.Tensor = x + self.inner_out(gelu(self.inner_in(self.before_inner(x))))
        return result

    def linears(self) -> list[nn.Linear]:
        """Those whose weight gradients W computes."""
        return [self.attention_in, self.attention_out, self.inner_in, self.inner_out]


def shapes() -> Iterator[Shape]:
    """Every shape that is measured."""
    for hidden, heads, sequence in MODELS:
        for tensor in TENSOR:
            for micro_batch in MICRO_BATCHES:
                if micro_batch * sequence <= MOST_TOKENS:
                    yield Shape(
                        hidden=hidden,
                        heads=heads,
                        sequence=sequence,
                        micro_batch=micro_batch,
                        tensor=tensor,
                    )


def timed(run: Callable[[], object], repeats: int) -> list[float]:
    """Milliseconds of each run on the device."""
    for _ in range(WARMUP):
        run()
    events = [(_event(), _event()) for _ in range(repeats)]
    for begin, end in events:
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in events]


def measured(shape: Shape, repeats: int) -> tuple[float, ...]:
    """Forward, backward, input and weight milliseconds, and the spread."""
    layer = Layer(shape).to("cuda", torch.bfloat16)
    size = (shape.micro_batch, shape.sequence, shape.hidden)
    x = torch.randn(size, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    down = torch.randn_like(x)
    forward = timed(lambda: layer(x), repeats)
    y = layer(x)
    wanted = [x, *layer.parameters()]
    backward = timed(lambda: torch.autograd.grad(y, wanted, down, retain_graph=True), repeats)
    inputs = timed(lambda: torch.autograd.grad(y, x, down, retain_graph=True), repeats)
    tokens = shape.micro_batch * shape.sequence
    pairs = [
        (_random(tokens, linear.out_features), _random(tokens, linear.in_features))
        for linear in layer.linears()
    ]
    weights = timed(lambda: [down.t() @ up for down, up in pairs], repeats)
    middle = statistics.median(forward)
    spread = (max(forward) - min(forward)) / middle
    return (middle, *map(statistics.median, (backward, inputs, weights)), spread)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _random(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)


def main(output: Path = Path("layers.csv"), repeats: int = 20) -> None:
    """Measure and write; see the module's text."""
    with output.open("w", newline="") as file:
        rows = csv.writer(file)
        names = [field.name for field in fields(Shape)]
        rows.writerow([*names, "forward_ms", "backward_ms", "input_ms", "weight_ms", "spread"])
        for shape in shapes():
            times = measured(shape, repeats)
            rows.writerow([*astuple(shape), *(f"{time:.4f}" for time in times)])
            sys.stdout.write(f"{shape}: F {times[0]:.3f} B {times[1]:.3f} ms\n")
    sys.stdout.write(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")


if __name__ == "__main__":
    typer.run(main)
