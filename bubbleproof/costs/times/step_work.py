"""What a stage computes and moves once in an iteration, and works of many rows as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.state import stage_weights
from bubbleproof.costs.times.kernels import Constants, bytes_in_ms, left
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import (
    Floats,
    MicrobatchWork,
    moved_around,
    rings_that_leave,
    updated,
)
from bubbleproof.costs.transformer import Transformer


def stacked(works: Sequence[MicrobatchWork]) -> MicrobatchWork:
    """The same as columns."""
    return MicrobatchWork(
        **{
            field.name: np.array([getattr(work, field.name) for work in works], dtype=np.float64)
            for field in fields(MicrobatchWork)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a stage does once in an iteration: the gradients' bytes that each card moves, those
    that its node sends to others (0 where all replicas are in one), the bytes of gradients and
    optimizer in memory."""

    moved: Floats
    sent: Floats
    optimizer: Floats
    overlaps: Floats


def step(
    model: Transformer,
    at: Deployment,
    runs: Software,
    cards_per_node: int,
    *,
    is_first: bool,
    is_last: bool,
) -> Step:
    """The step of a stage.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links.
    is_first, is_last
        Whether the stage has the embedding, and the head.

    Returns
    -------
    Step
        Bytes that the step moves, sends over the network, and reads and writes for the optimizer.
    """
    layers = model.layers // at.pipeline
    weights = stage_weights(model, at, layers=layers, is_first=is_first, is_last=is_last)
    moved = moved_around(weights, at) * runs.moved_at_the_end(at.zero)
    rings = rings_that_leave(at, cards_per_node)
    return Step(
        moved=np.asarray(0.0 if rings else moved),
        sent=np.asarray(rings * moved),
        optimizer=np.asarray(updated(weights, at, runs)),
        overlaps=np.asarray(float(runs.overlaps)),
    )


def step_times(step: Step, c: Constants, beside: float | Floats = 0.0) -> Floats:
    """Milliseconds of the gradients' all-reduce and the optimizer.

    Where the software overlaps them, gradients are reduced beside the last microbatch's backward
    and weights gathered beside the next one's first forward: ``beside`` ms of both are hidden at
    most.

    Parameters
    ----------
    beside
        Milliseconds of computation that may hide the exchange.
    """
    moved = step.moved / bytes_in_ms(c["gradient"])
    moved = np.asarray(moved + step.sent / bytes_in_ms(c["network_gradient"]))
    waited = left(moved, np.asarray(beside), step.overlaps, c, "exposed_gradient")
    return np.asarray(waited + step.optimizer / bytes_in_ms(c["memory"]))
