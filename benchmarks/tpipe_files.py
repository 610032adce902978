"""The problem files of T-Pipe (Figure 8), ``examples/researcher/plans/tpipe-*.toml``.

    python -m benchmarks.tpipe_files            writes them

LLAMA of 48 layers (42B) and of 96 (84B) with (PP, TP) = (8, 8), global batch 128, microbatches of 2
samples of 4096 tokens; a rank is one tensor-parallel group, bytes are those of one of its GPUs.

- layers, activation and capacity as ``papers.tpipe.tpipe_memory`` says, which gives Figure 8's
  numbers (docs/measured/papers/tpipe.md); embedding and head on the first and last rank;
- ticks (us): FLOPs at half of an A100's 312 TFLOPS, since the paper prints no time;
- the host: gradients of 4 bytes a parameter over the 32 GB/s of section 6.1, quantized weights of
  one byte back; the host's step is what makes the gradients' off-load and the step as long as
  Figure 15(a) says: on 8 ranks 94.55 % of it is within Equation 5's window of 4 backwards.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.paper_files import head, path_of, plan_of, write
from bubbleproof.costs.model_costs import layer_flops
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.costs.weights import layer_weights
from bubbleproof.papers.tpipe.tpipe_memory import (
    CAPACITY,
    DEPLOYMENT,
    MICROBATCHES,
    RANKS,
    layer_bytes,
    model_of,
)

PAPER = "tpipe"
RATE = 156 * 10**6  # FLOPs of a microsecond
PCIE = 32 * 10**3  # bytes of a microsecond
STEPS = Fraction(4) / Fraction("0.9455")  # off-load and step over T_bwd, Figure 15(a) and Eq. 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A depth of Figure 8."""

    name: str
    layers: int


CONFIGURATIONS = (
    Configuration(name="llama-42b", layers=48),
    Configuration(name="llama-84b", layers=96),
)


def problem_text_of(given: Configuration) -> str:
    """The problem file."""
    model, at = model_of(given.layers), DEPLOYMENT
    layers = given.layers // RANKS
    flops = layer_flops(model, at) * layers
    forward = 2 * round(Fraction(flops.forward) / RATE / 2)
    backward = 2 * round(Fraction(flops.input_backward + flops.weight_backward) / RATE / 2)
    static = [
        state_bytes(
            stage_weights(model, at, layers=layers, is_first=rank == 0, is_last=rank == RANKS - 1),
            at,
        )
        for rank in range(RANKS)
    ]
    parameters = layers * int(layer_weights(model, at).total)
    offload = -(-at.bytes_of.gradient * parameters // PCIE)
    lines = [
        *head(
            f"T-Pipe Figure 8: LLAMA of {given.layers} layers with (PP, TP) = (8, 8), batch 128.",
            "benchmarks.tpipe_files",
            f"T-Pipe {given.name}",
            ranks=RANKS,
            microbatches=MICROBATCHES,
            ticks=(forward, backward),
        ),
        "[memory]",
        f"capacity = {CAPACITY}",
        f"activation = {layers * layer_bytes(model)}",
        f"static = {static}",
        "",
        "[choices.recompute]",
        'stages = "all"',
        f"kept = {2 * int(message_bytes(model, at))}",
        "",
        *plan_of((1, 2), 12),
        "[paper.tpipe]",
        f"state = {at.bytes_of.optimizer * parameters}",
        f"offload = {offload}",
        f"step = {int(STEPS * backward) - offload}",
        f"upload = {-(-parameters // PCIE)}",
    ]
    return "\n".join(lines) + "\n"


def files() -> list[tuple[Path, str]]:
    """Where each file lies, and its text."""
    return [(path_of(PAPER, one.name), problem_text_of(one)) for one in CONFIGURATIONS]


if __name__ == "__main__":
    sys.exit(write(files()))
