"""The problem files of PipeMesh (Table IV), ``examples/researcher/plans/pipemesh-*.toml``.

    python -m benchmarks.pipemesh_files            writes them

What a file says is derived from what the paper prints, and where that tells nothing as follows:

- a rank is one tensor-parallel group of 8 GPUs, bytes are those of one of its GPUs; microbatches
  are B/D (``benchmarks.pipemesh_tables``); ticks are microseconds;
- forward and backward: Megatron's computation of Table IV over its microbatches: PipeMesh's own row
  has recomputation and contention in it; both are rounded to a number that all chunks divide;
- activation, operations and parameters: ``costs`` with the paper's accounting (Tables I, II), of
  the layers alone. What may be recomputed are norms, dropout masks, queries, keys and values, and
  the feed-forward block but for its last product; a linear takes its share of the forward's FLOPs,
  what is no product the time to read and write its output at the GPU's memory bandwidth;
- capacity: Megatron's M_GPU, the budget of section VI, the most that prints so; static: (12/D + 4)
  psi bytes, and what the printed M_GPU holds beside those and its M_a;
- own_shard: gathered parameters have no room for what a device holds anyway. So M_p is (2/D + 8/M
  (1 - 1/D)) psi_p and what is not sharded: Table IV's M_p to the digit, and no less than 2 psi for
  M <= 4 exactly, as section IV-A says; its own formula, with 8/M, contradicts both;
- communication: M times half of PipeMesh's T_DP_crit, which is 2 C_DP where all but the first
  chunk's is hidden (section VI-D);
- latency of a message: the least C_PP with which the rule C_PP <= C_comp^fwd stops at the printed
  M. Bytes over bandwidth are 1 to 6 ms, with which it would not.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm
from pathlib import Path

from benchmarks.paper_files import head, path_of, plan_of, write
from benchmarks.pipemesh_tables import TABLE
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.costs.weights import layer_weights
from bubbleproof.papers.pipemesh.mesh_operations import layer_again

PAPER = "pipemesh"
GIB, ROUNDED = 1 << 30, Fraction("0.05")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A model and cluster of Table IV: the row of PipeMesh, and chunks that a user would list.

    ``bandwidth`` of a GPU's memory in bytes per second (data sheets: V100 900 GB/s, A100 1555).
    """

    name: str
    model: str
    row: int
    chunks: tuple[int, ...]
    bandwidth: int


CONFIGURATIONS = (
    Configuration(name="gpt3-58b-a100", model="pipemesh-gpt3-58b", row=0,
                  chunks=(1, 2, 3, 4, 6, 8), bandwidth=1_555 * 10**9),
    Configuration(name="gpt3-58b-v100", model="pipemesh-gpt3-58b", row=4,
                  chunks=(1, 2, 3, 6, 9), bandwidth=900 * 10**9),
    Configuration(name="llama2-55b-v100", model="pipemesh-llama2-55b", row=8,
                  chunks=(1, 2, 4, 5, 10), bandwidth=900 * 10**9),
    Configuration(name="falcon-66b-v100", model="pipemesh-falcon-66b", row=12,
                  chunks=(1, 2, 3, 4, 6, 8, 12), bandwidth=900 * 10**9),
)  # fmt: skip


def deployment(given: Configuration) -> Deployment:
    """The parallel sizes of Table IV with the paper's accounting, attention computed again."""
    row = TABLE[given.row]
    return Deployment(
        tensor=8,
        pipeline=int(row["P"]),
        data=int(row["D"]),
        zero=1,
        sequence=known_model(given.model).sequence,
        accounting="pipemesh",
    )


def operations(given: Configuration, forward: int) -> list[tuple[str, int, int]]:
    """(name, bytes, ticks) of what may be recomputed of a layer whose forward has so many ticks."""
    model = known_model(given.model).model
    return layer_again(model, deployment(given), forward, given.bandwidth)


def parameters(given: Configuration) -> int:
    """psi: of the layers of a rank, on one GPU."""
    model, row = known_model(given.model).model, TABLE[given.row]
    layers = model.layers // int(row["P"])
    return layers * ceil(layer_weights(model, deployment(given)).total)


def problem_text_of(given: Configuration) -> str:
    """The problem file."""
    model, at, row, megatron = (
        known_model(given.model).model,
        deployment(given),
        TABLE[given.row],
        TABLE[given.row + 1],
    )
    microbatches = int(row["B"] / row["D"])
    layers = model.layers // at.pipeline
    step = lcm(*given.chunks)
    forward, backward = (
        step * round(megatron[key] * 1000 / microbatches / step) for key in ("forward", "backward")
    )
    psi = parameters(given)
    states = ceil((Fraction(12, at.data) + 4) * psi)
    beside = int((megatron["gpu"] - megatron["activations"]) * GIB) - states
    stops = min(c for c in given.chunks if c > row["M"])
    lines = [
        *head(
            f"PipeMesh Table IV: {given.model} with T, P, D = 8, {at.pipeline}, {at.data}.",
            "benchmarks.pipemesh_files",
            f"PipeMesh {given.name}",
            ranks=at.pipeline,
            microbatches=microbatches,
            ticks=(forward, backward),
        ),
        "[memory]",
        f"capacity = {int((megatron['gpu'] + ROUNDED) * GIB)}",
        f"activation = {layers * ceil(layer_saved(model, at, 'none'))}",
        f"static = {states + beside}",
        "",
        "[links]",
        f"latency = {forward // stops + 1}",
        "",
        *plan_of(given.chunks, 10),
        "[paper.pipemesh]",
        f"parameters = {psi}",
        f"replicas = {at.data}",
        f"communication = {round(row['M'] * row['dp'] * 1000 / 2)}",
        "own_shard = false",
        "operations = [",
    ]
    for name, saved, ticks in operations(given, forward // layers):
        lines.append(
            f'  {{ name = "{name}", activation = {saved}, ticks = {ticks}, count = {layers} }},'
        )
    return "\n".join([*lines, "]"]) + "\n"


def files() -> list[tuple[Path, str]]:
    """Where each file lies, and its text."""
    return [(path_of(PAPER, one.name), problem_text_of(one)) for one in CONFIGURATIONS]


if __name__ == "__main__":
    sys.exit(write(files()))
