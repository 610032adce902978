"""Families whose order is published as a formula: tasks of a rank run in the order of their keys.

A key is base + period * place. T-Pipe and T-Recomp give them as the starts of their rounds, ZB-H1
and ZB-H2 as the turns of their delayed weights, Chimera's full units as starts at unit ticks. The
same formulas make the families' programs (``theory.families``), sorted by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bubbleproof.papers.theorems.periodic_schedule import Line
from bubbleproof.theory.families.tpipe import tpipe_starts
from bubbleproof.theory.families.trecomp import trecomp_starts
from bubbleproof.theory.model.actions import Kind

# (kind, stage, remainder of the microbatch) -> key by place
Keys = Callable[[Kind, int, int], Line]
Starts = Callable[[int, int], dict[tuple[Kind, int], int]]


def keys_of(family: str, params: Mapping[str, int], repeats: int, rest: int) -> Keys | None:
    """The keys of a family at its parameters, or None where its order is no such formula.

    ``rest`` is the remainder of m by the microbatches of a period.
    """
    p = params["p"]
    if family == "tpipe":
        return _rounds(tpipe_starts, p, 6)
    if family == "trecomp":
        return _rounds(trecomp_starts, p, 7)
    if family == "zb-h1":
        return _delayed(lambda rank: p - rank, lambda rank: rank)
    if family == "zb-h2":
        return _delayed(lambda rank: 2 * (p - rank) - 1, lambda rank: 2 * rank)
    if family == "chimera" and 2 * repeats == p and not rest:
        return _waves(2 * p)
    return None


def _require_first(remainder: int) -> None:
    if remainder:
        raise ValueError(f"a round is one microbatch, got number {remainder} of it")


def _rounds(starts: Starts, p: int, period: int) -> Keys:
    def key(kind: Kind, stage: int, remainder: int) -> Line:
        _require_first(remainder)
        return Line(starts(p, stage % p)[kind, stage // p], period)

    return key


def _delayed(warmup: Callable[[int], int], delay: Callable[[int], int]) -> Keys:
    """Step j runs I(j), W(j - delay) and F(j + warmup)."""

    def key(kind: Kind, stage: int, remainder: int) -> Line:
        _require_first(remainder)
        turn = {Kind.I: 0, Kind.W: 3 * delay(stage) + 1, Kind.F: 2 - 3 * warmup(stage)}
        return Line(turn[kind], 3)

    return key


def _waves(lifespan: int) -> Keys:
    """Units one lifespan apart, their microbatches 2 ticks apart; stage g runs g ticks in."""

    def key(kind: Kind, stage: int, remainder: int) -> Line:
        turn = stage if kind is Kind.F else lifespan - 1 - stage
        return Line(2 * remainder + turn, lifespan)

    return key
