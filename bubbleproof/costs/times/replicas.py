"""What replicas exchange for a part's weights: for each microbatch, and once at a step's end.

Under ZeRO 3 weights are gathered for each forward and each backward of a microbatch, under 2 and 3
gradients reduced after each; of what is shared by ``shard`` replicas (HSDP) in their group. At the
end of a step gradients are reduced once and weights gathered once, as far as that was not done
before, and the optimizer runs. Of n cards that hold the same each moves (n - 1) / n in a ring:
inside a node at ``gradient``, else over the network, which the rings of a node share.

FSDP copies what it gathers or reduces within a card's memory (``Software.copied``) in each
microbatch. Its collectives go from card to card, ``HOP`` of ``collective`` for each: hidden or not,
the next layer waits for that. It was told by eight of llm-foundry's rows on 2 to 16 nodes of A100,
factor and fixed time left free: 3.0 us, where NCCL counts 2.2 to 4.7 in nodes of eight
(``hwLat`` of its src/graph/tuning.cc; 1.9 to 3.4 by NVLink, 4 to 14 between nodes).

What of these runs beside computation is not waited for (``kernels.left``): ``exposed_shard`` of
what each microbatch moves, ``exposed_gradient`` of what the end moves, reducing beside the last
backward of one microbatch and gathering beside the next step's first forward.

A full backward is shorter than its halves, which the host launches apart; of a split one the half
for the weights takes its time, and the other what is left of the full one.

All that a card does takes ``factor`` times as long, by software, and ``straggler`` more for each
doubling of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import Generic, TypeVar

import numpy as np

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.kernels import GIGA, US, Constants, left
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import ELEMENT, Floats
from bubbleproof.costs.weights import Weights

HOP = 0.08  # of ``collective``: from one card of a ring to the next

Time = TypeVar("Time", float, Floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """A part's weights on a card, as numbers or columns: bytes that a card moves (``in_...``)
    inside its node, and that a node sends (``out_...``), in each pass (``gather``, ``reduce``)
    and at the end; ``steps`` of a collective; bytes of gradients and optimizer in memory, and those
    ``copied`` in each microbatch; doublings of nodes. ``overlaps``: at the end; ``prefetches``: in
    each pass.
    """

    in_gather: Floats
    out_gather: Floats
    in_reduce: Floats
    out_reduce: Floats
    in_end_gather: Floats
    out_end_gather: Floats
    in_end_reduce: Floats
    out_end_reduce: Floats
    steps: Floats
    optimizer: Floats
    doublings: Floats
    copied: Floats
    overlaps: Floats
    prefetches: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes(Generic[Time]):
    """One microbatch: forward, backward for the input, and for the weights; ``step`` at its end.

    Milliseconds, as numbers or columns of many. ``optimizer`` is the part of ``step`` without
    replicas' collectives; ``exchange`` are those at the step's end by themselves, nothing of them
    hidden: half for gathering, half for reducing.
    """

    forward: Time
    input_backward: Time
    weight_backward: Time
    step: Time
    optimizer: Time
    exchange: Time

    @property
    def backward(self) -> Time:
        """Both halves."""
        return self.input_backward + self.weight_backward


@lru_cache(maxsize=4096)
def replicas(weights: Weights, at: Deployment, runs: Software, cards_per_node: int) -> Replicas:
    """What the cards that hold the same weights exchange.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    """
    zero, shared = at.zero, at.sharers
    end_reduced = 0 if zero > 1 else runs.reduced
    moved = {
        "gather": (ELEMENT if zero == 3 else 0, True),
        "reduce": (runs.reduced if zero > 1 else 0, True),
        "end_gather": (runs.moved_at_the_end(zero) - end_reduced, False),
        "end_reduce": (end_reduced, False),
    }
    numbers: dict[str, float] = {}
    for name, (size, is_shared) in moved.items():
        these = weights.gathered if name == "gather" else weights
        inside, out = _moved(these, at, cards_per_node, shared if is_shared else at.replicas)
        numbers |= {f"in_{name}": size * inside, f"out_{name}": size * out}
    if zero > 1 and shared < at.replicas:  # what groups of shards reduce among them
        inside, out = _moved(weights, at, cards_per_node, at.replicas // shared, at.tensor * shared)
        numbers["in_end_reduce"] += 2 * runs.reduced * inside / shared
        numbers["out_end_reduce"] += 2 * runs.reduced * out / shared
    copies = max(1.0, float(at.expert_replicas))
    held = (float(weights.dense), float(at.replicas)), (float(weights.experts), copies)
    optimizer = sum(w * (runs.gradients + runs.optimizer / (n if zero else 1)) for w, n in held)
    return Replicas(
        **{name: np.asarray(value) for name, value in numbers.items()},
        steps=np.asarray(HOP * (shared - 1) if zero > 1 else 0.0),
        optimizer=np.asarray(optimizer),
        doublings=np.asarray(log2(max(1.0, at.devices / cards_per_node))),
        copied=np.asarray(runs.copied * (held[0][0] + held[1][0]) if zero > 1 else 0.0),
        overlaps=np.asarray(float(runs.overlaps)),
        prefetches=np.asarray(float(runs.overlaps or runs.prefetches)),
    )


def _moved(
    weights: Weights, at: Deployment, cards_per_node: int, group: int, stride: int = 0
) -> tuple[float, float]:
    """Of these weights, one byte each, what a card moves in its node, and a node to others, among
    groups of so many replicas. Cards are numbered along the tensor group, then the replicas."""
    inside, out, stride = 0.0, 0.0, stride or at.tensor
    experts = min(float(group), float(at.expert_replicas))
    apart = at.replicas * at.tensor / float(at.expert_replicas) if at.expert_replicas else 1.0
    for number, n, step in (
        (float(weights.dense), float(group), stride),
        (float(weights.experts), experts, max(stride, apart)),
    ):
        if n <= 1:
            continue
        own = number * (n - 1) / n
        if step * n <= cards_per_node:
            inside += own
        else:
            out += own * min(step, cards_per_node)
    return inside, out


def passes(
    forward: Floats, backward: Floats, weight_backward: Floats, of: Replicas, c: Constants
) -> Passes[Floats]:
    """A part's passes with what replicas exchange in each and at the end.

    Parameters
    ----------
    forward, backward, weight_backward
        Milliseconds of the passes by themselves, the whole backward and that for the weights.
    """
    late = np.minimum(weight_backward, backward)
    early = backward - late
    slow = c["factor"] * (1 + c["straggler"] * of.doublings)
    steps = of.steps * c["collective"] * US

    def moving(name: str) -> Floats:
        inside = getattr(of, f"in_{name}") / (c["gradient"] * GIGA)
        return np.asarray(inside + getattr(of, f"out_{name}") / (c["network_gradient"] * GIGA))

    def waited(collective: Floats, beside: Floats) -> Floats:
        some = left(collective, beside, of.prefetches, c, "exposed_shard")
        return np.asarray(np.where(collective > 0, some + steps, 0.0))

    gathered, reduced = moving("gather"), moving("reduce")
    end_gather, end_reduce = moving("end_gather"), moving("end_reduce")
    again = np.where(early > 0, waited(gathered, early), 0.0)
    at_the_end = left(end_reduce, backward, of.overlaps, c, "exposed_gradient")
    at_the_end = at_the_end + left(end_gather, forward, of.overlaps, c, "exposed_gradient")
    optimizer = np.asarray(of.optimizer / (c["memory"] * GIGA))
    return Passes(
        forward=slow * (forward + waited(gathered, forward)),
        input_backward=slow * (early + again),
        weight_backward=slow * (late + waited(reduced, late) + of.copied / (c["memory"] * GIGA)),
        step=slow * (at_the_end + optimizer),
        optimizer=slow * optimizer,
        exchange=slow * (end_gather + end_reduce),
    )
