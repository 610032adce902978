"""Estimates of rows: the iteration's milliseconds, and the bytes of the fullest card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.estimate_errors import EstimateError, error_of
from bubbleproof.costs.times.iteration import IterationPlan, iteration_plan
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.facts import Fact, FactSource, keyed

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(FactSource):
    """What a row's iteration takes; ``stages`` tell each stage's milliseconds and GiB."""

    row: JobRow
    iteration_ms: float
    allocated_bytes: int
    error: EstimateError
    card: Card
    stages: tuple[Mapping[str, float], ...]

    def __repr__(self) -> str:
        took, held = f"{self.iteration_ms:,.1f} ms", f"{self.allocated_gib:.2f} GiB"
        return f"<Estimate: row {self.row.number}, {self.row.model.name}, {took}, {held}>"

    def facts(self) -> list[Fact]:
        """Time, memory, and both by stage."""
        times = self.iteration_ms, f"{self.iteration_ms:,.1f}"
        held, error = (self.allocated_gib, f"{self.allocated_gib:.2f}"), self.error
        return [
            Fact(key="iteration_ms", label="iteration", value=times[0], told=times[1], unit="ms"),
            Fact(key="allocated_gib", label="allocated", value=held[0], told=held[1], unit="GiB"),
            Fact(key="error", label="error", value=error.band, told=error.told),
            *keyed(beyond=[*error.beyond]),
            Fact(key="software", label="software", value=self.row.runs.name),
            Fact(key="card", label="card", value=self.card.name),
            *keyed(stages=[*self.stages]),
        ]

    @property
    def fits(self) -> bool:
        """Whether the fullest card has room."""
        return self.allocated_bytes <= self.card.memory_bytes

    @property
    def allocated_gib(self) -> float:
        """Of the fullest card."""
        return self.allocated_bytes / GIB


def row_cluster(row: JobRow, by: Calibration) -> Cluster:
    """The cards of a row, with the software that ran."""
    card = row.card or by.card
    return Cluster(
        card=card,
        cards=row.gpus,
        constants=by.constants_of(card, row.runs),
        runs=row.runs,
        reserve=0,
    )


def row_plan(row: JobRow, by: Calibration) -> IterationPlan:
    """The iteration of a row whose scope is settled (``Calibration.taken``)."""
    return iteration_plan(
        row.model,
        row.at,
        row_cluster(row, by),
        microbatches=row.microbatches,
        chunks=row.chunks,
        cut=row.cut,
    )


def estimates(
    rows: Sequence[JobRow], by: Calibration, refused: list[str] | None = None
) -> list[Estimate]:
    """Every row, estimated; nothing measured is looked at.

    Parameters
    ----------
    refused
        Takes what is wrong with rows that cannot be estimated, one line each; without it the first
        such row raises ``ValueError``.
    """
    found = []
    for row in rows:
        try:
            found += [_estimate(one, by) for one in by.taken([row])]
        except ValueError as error:
            if refused is None:
                raise
            told, where = str(error), f"row {row.number}"
            refused.append(told if told.startswith(where) else f"{where}: {told}")
    return found


def estimated_ms(rows: Sequence[JobRow], by: Calibration) -> list[float]:
    """The iterations of rows, each the makespan of its schedule."""
    return [row_plan(row, by).milliseconds() for row in by.taken(rows)]


def _estimate(row: JobRow, by: Calibration) -> Estimate:
    plan = row_plan(row, by)
    held = allocated(row.model, row.at, row.runs, row.microbatches, row.chunks, row.cut)
    return Estimate(
        row=row,
        card=row.card or by.card,
        error=error_of(row.model, row.card or by.card, row.runs, row.gpus),
        iteration_ms=plan.milliseconds(),
        allocated_bytes=max(stage.total for stage in held),
        stages=tuple(
            {**times, "allocated_gib": stage.total / GIB}
            for times, stage in zip(plan.stages, held, strict=True)
        ),
    )
