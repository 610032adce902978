"""Published iterations: those that the model of times is fitted to, and those that it is not.

``published_rows.csv`` says of each row where it is from, and which are left out of the fit, and
why. ``untouched_rows.csv`` are all rows of the tables of llm-foundry, torchtitan, Megatron-Bridge
and of other releases of the DGX Cloud recipes that are not among those: nothing was fitted to them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bubbleproof.costs.times.calibration import uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, rows_of
from bubbleproof.costs.times.work import Floats

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(?=[ @]|$)")
ROWS = Path(__file__).with_name("published_rows.csv")
UNTOUCHED = Path(__file__).with_name("untouched_rows.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row with its source, and what the model said before its terms were told apart.

    ``unknown`` says what of its settings is not told.
    """

    row: JobRow
    source: str
    before: float | None = None
    unknown: str = ""

    @property
    def kind(self) -> str:
        """Dense, or a mixture."""
        return "mixture" if any(k.experts for k, _ in self.row.model.layer_runs) else "dense"


def published() -> list[Published]:
    """All rows that are not left out."""
    head, *lines = ROWS.read_text(encoding="utf-8").splitlines()
    told = list(csv.DictReader([head, *lines]))
    kept = [(line, one) for line, one in zip(lines, told, strict=True) if not one["left_out"]]
    rows = rows_of("\n".join([head, *(line for line, _ in kept)]), measured=True)
    return [
        Published(
            row=row,
            source=one["source"],
            before=float(one["before_ms"]) / row.measured_ms - 1 if one["before_ms"] else None,
        )
        for row, (_, one) in zip(rows, kept, strict=True)
    ]


def untouched() -> list[Published]:
    """All rows that nothing was fitted to."""
    text = UNTOUCHED.read_text(encoding="utf-8")
    told = csv.DictReader(text.splitlines())
    return [
        Published(row=row, source=one["source"], unknown=one["settings"])
        for row, one in zip(rows_of(text, measured=True), told, strict=True)
    ]


def errors_as_kept(rows: Sequence[Published]) -> Floats:
    """Estimated over measured time less one, by the constants that the package has."""
    own = [each.row for each in rows]
    times = np.array(estimated_ms(own, uncalibrated(card("h100"))))
    return np.asarray(times / np.array([row.measured_ms for row in own]) - 1)


def source_of(each: Published) -> str:
    """What is left out together: a repository, or a paper."""
    repository = REPOSITORY.match(each.source)
    return repository.group() if repository else each.source


def card_of(each: Published) -> str:
    """The card of a row, of any memory."""
    return "" if each.row.card is None else each.row.card.name.partition("-")[0]


def size_of(errors: Floats) -> tuple[str, str, str]:
    large = np.quantile(np.abs(errors), 0.9)
    return percent(np.abs(errors).mean()), f"{100 * errors.mean():+.1f} %", percent(large)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"
