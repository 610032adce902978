"""Families whose order is published as a formula: tasks of a rank run in the order of their keys.

A key is base + period * place. T-Recomp gives them as the starts of its rounds, Chimera's full
units as starts at unit ticks. The same formulas make the families' programs (``theory.families``),
sorted by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bubbleproof.papers.theorems.periodic_schedule import LinearForm
from bubbleproof.theory.families import member
from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.trecomp import recomputed_chunks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline

# (kind, stage, remainder of the microbatch) -> key by place
Keys = Callable[[Kind, int, int], LinearForm]


def keys_of(family: str, params: Mapping[str, int], repeats: int, rest: int) -> Keys | None:
    """The keys of a family at its parameters, or None where its order is no such formula.

    ``rest`` is the remainder of m by the microbatches of a period.
    """
    p = params["p"]
    if family == "trecomp":
        return _rounds(member(family, **{**params, "m": 1}).pipeline)
    if family == "chimera" and 2 * repeats == p and not rest:
        return _waves(2 * p)
    return None


def _require_first(remainder: int) -> None:
    if remainder:
        raise ValueError(f"a round is one microbatch, got number {remainder} of it")


def _rounds(pipeline: Pipeline) -> Keys:
    p, v, again = pipeline.num_ranks, pipeline.num_chunks, recomputed_chunks(pipeline)

    def key(kind: Kind, stage: int, remainder: int) -> LinearForm:
        _require_first(remainder)
        starts = round_starts(p, stage % p, chunks=v, recomputed=again)
        return LinearForm(starts[kind, stage // p], 3 * v + again)

    return key


def _waves(lifespan: int) -> Keys:
    """Units one lifespan apart, their microbatches 2 ticks apart; stage g runs g ticks in."""

    def key(kind: Kind, stage: int, remainder: int) -> LinearForm:
        turn = stage if kind is Kind.F else lifespan - 1 - stage
        return LinearForm(2 * remainder + turn, lifespan)

    return key
