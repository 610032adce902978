"""What the model says of rows that it was not fitted to.

Rows of one node are left out shape by shape (hidden, tensor, micro-batch), rows of many nodes model
by model; what is left out is estimated by constants fitted to all that is left. So no shape of one
node, and no model of many, is on both sides. Where a model is left out its recompute scope is
chosen without it as well; one shape among many changes no such choice.

*Regret* of a job: how much slower the alternative is that the estimates choose than the best one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.costs.times.calibration import Calibration, calibrated, scope_pairs
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows that are left out together, and those that are fitted instead; by their places."""

    name: str
    is_model: bool
    out: tuple[int, ...]
    fitted: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutEstimate:
    """A row with the estimate of constants that were fitted without its fold."""

    row: JobRow
    fold: str
    estimated: float

    @property
    def error(self) -> float:
        """Estimated over measured time, less one."""
        return self.estimated / self.row.measured_ms - 1


def group_of(row: JobRow, cards_per_node: int) -> tuple[Hashable, ...]:
    """What a row is left out with.

    Parameters
    ----------
    cards_per_node
        Cards that share a node's links: a larger job is left out with its model, others with their
        shape.
    """
    if row.gpus > cards_per_node:
        return ("model", row.model.name)
    return ("shape", row.model.name, row.model.hidden, row.at.tensor, row.at.micro_batch)


def folds(rows: Sequence[JobRow], cards_per_node: int) -> Iterator[Fold]:
    """Each group of rows once, left out.

    Parameters
    ----------
    cards_per_node
        As in ``group_of``.
    """
    groups: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[group_of(row, cards_per_node)].append(place)
    for group, out in groups.items():
        rest = tuple(place for place in range(len(rows)) if place not in set(out))
        name = " ".join(map(str, group))
        yield Fold(name=name, is_model=group[0] == "model", out=tuple(out), fitted=rest)


def cross_validated(rows: Sequence[JobRow], whole: Calibration) -> list[HeldOutEstimate]:
    """Every row, estimated without its fold; searches begin at the fit to all rows."""
    judged: dict[int, HeldOutEstimate] = {}
    for fold in folds(rows, whole.card.cards_per_node):
        rest = [rows[place] for place in fold.fitted]
        scopes = [(whole.scope_one_node, whole.scope_many_nodes)]
        if fold.is_model:
            scopes = scope_pairs(rest, whole.card)
        found = calibrated(rest, whole.card, scopes, near=whole)
        out = [rows[place] for place in fold.out]
        for place, time in zip(fold.out, estimated_ms(out, found), strict=True):
            judged[place] = HeldOutEstimate(row=rows[place], fold=fold.name, estimated=time)
    return [judged[place] for place in range(len(rows))]


def mean_error(judged: Sequence[HeldOutEstimate]) -> float:
    """The mean of the errors' sizes."""
    return float(np.mean([abs(each.error) for each in judged]))


def regrets(judged: Sequence[HeldOutEstimate]) -> dict[tuple[object, ...], float]:
    """The regret of each job."""
    jobs: dict[tuple[object, ...], list[HeldOutEstimate]] = defaultdict(list)
    for each in judged:
        jobs[each.row.job].append(each)
    found = {}
    for job, alternatives in jobs.items():
        chosen = min(alternatives, key=lambda each: each.estimated).row.measured_ms
        best = min(each.row.measured_ms for each in alternatives)
        found[job] = chosen / best - 1
    return found
