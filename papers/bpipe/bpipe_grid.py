"""BPipe's grid (section 4.2, Table 2): which deployments fit, with the least recomputation.

Symbols: t tensor, p pipeline, d data parallelism, b samples of a microbatch, B of a batch, m = B/(b
d) microbatches, G GPUs. A point of the grid has t p d = G; t divides the heads and the GPUs of a
node, p the layers, b d the batch. Table 2 has powers of two for b alone, although for a batch of
192 the rules admit b = 3 and 6; so has this grid.

For each point the recomputation scopes are tried, none, attention, layer; the first that fits ends
that (more recomputation is slower). 1F1B fits where W_0 + A_0 min(p, m) does; BPipe, from p = 4 on,
where W_0 + A_0 min(p, m, ceil((p+2)/2)) does (Eq. 1 to 3) and its transfers hide. A_0 is that of
Eq. 4 to 6, the accounting ``bpipe``, times a stage's layers; W_0 by a ``MemoryReading``, since the
paper does not print how it counts: its own 20 bytes a weight (section 1) on stages that are alike,
optimizer state shared among replicas (ZeRO 1); or otherwise.

A transfer takes A_0 over the bandwidth of its link: a GPU's within its node, else its share of what
joins nodes (Appendix B divides that by the GPUs of a node). An evict and a load hide within a
backward and a forward, the backward of two forwards: a transfer has 3/2 of a forward (Eq. 10 to
12; Eq. 7 to 9 grant one). A forward takes ``pace`` b/(t p): one is printed of each model, and the
others compute at the same rate.

Source: Kim et al., "BPipe" (ICML 2023) sections 3.1 to 3.3 and 4.2, Appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from bubbleproof.costs.deployment import SCOPES, Deployment
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.papers.bpipe.node_places import DeviceMesh
from bubbleproof.papers.bpipe.pair_placement import pair_placement

GIGA = 10**9
LEAST_RANKS = 4  # below, no stage moves anything


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class GridPoint:
    """One deployment of the grid; a batch has m = ``microbatches`` on each replica."""

    tensor: int
    pipeline: int
    data: int
    micro_batch: int
    microbatches: int

    def deployment(self, scope: str, precision: str, sequence: int) -> Deployment:
        """It in the accounting of Eq. 4 to 6."""
        return Deployment(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            micro_batch=self.micro_batch,
            sequence=sequence,
            scope=scope,
            accounting="bpipe",
            precision=precision,
            zero=1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """How W_0 is counted: ``precision`` names the bytes of a weight.

    ``has_embedding``: with that of the first stage. ``has_workspace``: with what a layer that is
    recomputed does not keep, while it is made again. ``reserve`` bytes are for libraries.
    """

    precision: str = "bpipe"
    has_embedding: bool = False
    has_workspace: bool = False
    reserve: int = 0


PRINTED = MemoryReading()
NEAREST = MemoryReading(precision="bf16", has_embedding=True, has_workspace=True, reserve=2 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A model on GPUs: ``memory`` bytes of each, ``node`` GPUs of a node, ``batch`` samples.

    ``pace`` are seconds of the forward of one sample through all layers on one GPU; ``within`` is
    what a GPU sends within its node, ``between`` a node to others, in bytes per second. Without a
    pace bandwidth is no condition.
    """

    model: Transformer
    gpus: int
    batch: int
    sequence: int = 2048
    node: int = 8
    memory: int = 80 << 30
    pace: Fraction | None = None
    within: int = 300 * GIGA
    between: int = 100 * GIGA


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What runs at a point: a scope, and whether with transfers."""

    point: GridPoint
    scope: str
    is_balanced: bool


def grid(setting: Setting) -> Iterator[GridPoint]:
    """All points, by tensor, then pipeline parallelism, then microbatch."""
    model, gpus = setting.model, setting.gpus
    sizes = [2**power for power in range(setting.batch.bit_length())]
    for t, p, b in product(range(1, setting.node + 1), range(1, gpus + 1), sizes):
        if setting.node % t or model.heads % t or model.layers % p or gpus % (t * p):
            continue
        d = gpus // (t * p)
        if setting.batch % (b * d) == 0:
            m = setting.batch // (b * d)
            yield GridPoint(tensor=t, pipeline=p, data=d, micro_batch=b, microbatches=m)


def saved_bytes(setting: Setting, point: GridPoint, scope: str) -> Fraction:
    """A_0 of Eq. 4 to 6, of one rank."""
    at = point.deployment(scope, "bpipe", setting.sequence)
    return Fraction(layer_saved(setting.model, at)) * setting.model.layers / point.pipeline


def static_bytes(
    setting: Setting, point: GridPoint, scope: str, reading: MemoryReading
) -> Fraction:
    """W_0 of the fullest stage, with the room for what is made again and for libraries."""
    at = point.deployment(scope, reading.precision, setting.sequence)
    layers = setting.model.layers // point.pipeline
    weights = stage_weights(
        setting.model, at, layers=layers, is_first=reading.has_embedding, is_last=False
    )
    found = Fraction(state_bytes(weights, at) + reading.reserve)
    if reading.has_workspace and scope != "none":
        found += Fraction(layer_saved(setting.model, at, "none") - layer_saved(setting.model, at))
    return found


def memory_bytes(
    setting: Setting,
    point: GridPoint,
    scope: str,
    reading: MemoryReading = PRINTED,
    *,
    is_balanced: bool,
) -> Fraction:
    """W_0 + A_0 mu (Eq. 1), with mu_opt where transfers balance it."""
    saved = min(point.pipeline, point.microbatches)
    if is_balanced:
        saved = min(saved, -(-(point.pipeline + 2) // 2))
    static = static_bytes(setting, point, scope, reading)
    return static + saved * saved_bytes(setting, point, scope)


def least_recomputed(
    setting: Setting, point: GridPoint, reading: MemoryReading = PRINTED
) -> Fit | None:
    """The least recomputation that fits, without transfers where those are not needed."""
    for scope, is_balanced in product(SCOPES, (False, True)):
        if is_balanced and not (point.pipeline >= LEAST_RANKS and is_hidden(setting, point, scope)):
            continue
        need = memory_bytes(setting, point, scope, reading, is_balanced=is_balanced)
        if need <= setting.memory:
            return Fit(point=point, scope=scope, is_balanced=is_balanced)
    return None


def forward_seconds(pace: Fraction, point: GridPoint) -> Fraction:
    """Of one microbatch on one stage, at that pace."""
    return pace * point.micro_batch / (point.tensor * point.pipeline)


def is_hidden(setting: Setting, point: GridPoint, scope: str) -> bool:
    """Whether transfers hide behind computation (Eq. 10 to 12)."""
    if setting.pace is None:
        return True
    needed = bandwidth(setting, point, scope, forward_seconds(setting.pace, point), is_relaxed=True)
    return needed * GIGA <= link(setting, point)


def link(setting: Setting, point: GridPoint) -> Fraction:
    """Bytes per second that a GPU has for the slowest of its transfers."""
    mesh = DeviceMesh(
        stages=point.pipeline, tensor=point.tensor, replicas=point.data, node=setting.node
    )
    if pair_placement(mesh, point.microbatches).crossing:
        return Fraction(setting.between, setting.node)
    return Fraction(setting.within)


def bandwidth(
    setting: Setting, point: GridPoint, scope: str, forward: Fraction, *, is_relaxed: bool = False
) -> Fraction:
    """GB/s that a GPU needs (Eq. 7 to 9; relaxed 10 to 12); ``forward`` in seconds."""
    window = Fraction(3, 2) * forward if is_relaxed else forward
    return saved_bytes(setting, point, scope) / window / GIGA
