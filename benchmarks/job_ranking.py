"""How alternatives of one job are ranked: pairs in the right order, and the regret of the choice.

Alternatives have one card, software, products, model, batch and number of cards, and differ in
their cut, microbatch or recompute; of one that was measured in several releases the mean counts.
The *regret* is how much longer than the best the one took that the estimates choose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from benchmarks.markdown import markdown_table
from bubbleproof.costs.times.job_rows import JobRow

APART = 0.05  # of the shorter time: pairs nearer than that may be noise


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedJob:
    """A job's alternatives; of each pair whether it is in order, and whether it is far apart."""

    name: str
    rows: int
    pairs: tuple[tuple[bool, bool], ...]
    regret: float


def ranked_jobs(estimated: Iterable[tuple[JobRow, float]]) -> list[RankedJob]:
    """Every job of two rows or more.

    Parameters
    ----------
    estimated
        Rows with their estimates, in milliseconds.
    """
    jobs: dict[str, dict[object, list[tuple[float, float]]]] = defaultdict(dict)
    for row, time in estimated:
        card = "cards" if row.card is None else row.card.name
        told = f"{row.model.name}, {row.model.layers} layers, {row.gpus} {card}"
        told += f", {row.global_batch} x {row.at.sequence}, {row.runs.name}, {row.runs.products}"
        cut = row.at, row.chunks, row.cut
        jobs[told].setdefault(cut, []).append((row.measured_ms, time))
    return [
        _ranked(name, [(mean(m for m, _ in each), each[0][1]) for each in cuts.values()])
        for name, cuts in jobs.items()
        if len(cuts) > 1
    ]


def _ranked(name: str, times: Sequence[tuple[float, float]]) -> RankedJob:
    """Of one job: (measured, estimated) milliseconds of each alternative."""
    best = min(measured for measured, _ in times)
    chosen = min(times, key=lambda each: each[1])[0]
    return RankedJob(
        name=name,
        rows=len(times),
        pairs=tuple(
            ((a[0] - b[0]) * (a[1] - b[1]) > 0, abs(a[0] - b[0]) > APART * min(a[0], b[0]))
            for a, b in combinations(times, 2)
            if a[0] != b[0]
        ),
        regret=chosen / best - 1,
    )


def ranking_table(jobs: Sequence[RankedJob]) -> str:
    """A line for each job, and one for all."""
    lines = []
    for name, own in [*((job.name, [job]) for job in jobs), ("all", list(jobs))]:
        pairs = [pair for job in own for pair in job.pairs]
        far = [right for right, is_far in pairs if is_far]
        lines.append(
            (
                name,
                sum(job.rows for job in own),
                f"{sum(right for right, _ in pairs)} of {len(pairs)}",
                f"{sum(far)} of {len(far)}",
                f"{100 * max((job.regret for job in own), default=0.0):.1f} %",
            )
        )
    header = ("job", "rows", "pairs in order", "of those 5 % apart and more", "regret, largest")
    return markdown_table(header, lines)
