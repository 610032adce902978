"""Bytes allocated on the fullest card of an iteration: counted, nothing in it is fitted.

What a stage g of p holds all the time: state (``costs.state``), and what its software needs
(``costs.moment_bytes``). In steady state of 1F1B it holds what min(p - g, m) microbatches saved in
its layers; of interleaved 1F1B with v chunks a rank, what min((v - 1) p + 2 (p - g - 1) + 1, m v)
passes saved in the layers of a chunk (``theory.families.interleaved``). On top comes the greatest
of what it needs for a moment. A layer that is recomputed whole holds, besides, all that one layer
saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.moment_bytes import needed_beside
from bubbleproof.costs.order_estimates import in_flight_passes
from bubbleproof.costs.saved_bytes import embedding_saved, layer_saved
from bubbleproof.costs.state import state_bytes
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    Weights,
    embedding_weights,
    head_weights,
    layer_weights,
)
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBytes:
    """What a stage holds on one card at its fullest."""

    state: int
    software: int
    saved: int
    moment: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.state + self.software + self.saved + self.moment


def allocated(
    model: Transformer,
    at: Deployment,
    runs: Software,
    microbatches: int,
    chunks: int = 1,
    cut: Cut = (),
) -> tuple[StageBytes, ...]:
    """Each rank at its fullest.

    Parameters
    ----------
    microbatches
        Those of one replica's step.
    chunks
        Stages of a rank, 1 or more.

    Returns
    -------
    tuple[StageBytes, ...]
        Bytes, one entry for each of the ``at.pipeline`` ranks.
    """
    cut = cut or usual_cut(model.layers, at.pipeline * chunks)
    before = [0, *accumulate(cut)]
    found = []
    for stage in range(at.pipeline):
        is_first, is_last = stage == 0, stage == at.pipeline - 1
        own = [model.between(before[n], cut[n]) for n in range(stage, len(cut), at.pipeline)]
        kinds = tuple(kind for each in own for kind in each)
        weights = sum((layer_weights(kind, at) * count for kind, count in kinds), Weights())
        weights += embedding_weights(model, at) if is_first else Weights()
        weights += head_weights(model, at, is_copied=not is_first) if is_last else Weights()
        in_flight = in_flight_passes(at.pipeline, stage, microbatches, chunks)
        each = Fraction(sum(count * layer_saved(kind, at) for kind, count in kinds), chunks)
        saved = in_flight * each
        if is_first and not runs.sequence_parallel:
            saved += min(in_flight, microbatches) * embedding_saved(model, at)
        whole = [layer_saved(kind, at, "none") for kind, _ in kinds]
        again = max(whole, default=0) if at.scope == "full" else 0
        software, moment = needed_beside(model, kinds, at, runs, has_head=is_last)
        found.append(
            StageBytes(
                state=state_bytes(weights, at),
                software=software,
                saved=int(saved + again),
                moment=moment,
            )
        )
    return tuple(found)


def usual_cut(layers: int, stages: int) -> Cut:
    """Layers of each stage: as many on each where that is possible, else with the embedding and
    the head counted as a layer each, and fewer on the last stages.

    Parameters
    ----------
    layers, stages
        How many there are; at most two stages more than layers.

    Raises
    ------
    ValueError
        For more stages.

    Examples
    --------
    >>> usual_cut(126, 8), usual_cut(6, 4)
    ((15, 16, 16, 16, 16, 16, 16, 15), (1, 2, 2, 1))
    """
    if layers % stages == 0:
        return (layers // stages,) * stages
    each, more = divmod(layers + 2, stages)
    found = [each + (stage < more) for stage in range(stages)]
    found[0] -= 1
    found[-1] -= 1
    if found[-1] < 0:
        raise ValueError(
            f"pipeline x chunks must be at most layers + 2 = {layers + 2}, got {stages}"
        )
    return tuple(found)
