"""Rows that a page shows as it is told them: words, and a verdict among them."""

from __future__ import annotations

from typing import NamedTuple

from bubbleproof.facts import FactSource, rows


class VerdictRow(NamedTuple):
    """One rule and what became of it; ``verdict`` is a word such as ``holds`` or ``violated``."""

    rule: str
    verdict: str
    detail: str = ""


class ReplayRow(NamedTuple):
    """One piece of evidence from running a schedule: predicted, measured, and the verdict on it."""

    quantity: str
    predicted: str
    measured: str
    verdict: str


def replay_rows(result: FactSource) -> tuple[ReplayRow, ...]:
    """The evidence that a result of running a schedule states."""
    return tuple(ReplayRow(*cells) for cells in rows(result.facts()))
