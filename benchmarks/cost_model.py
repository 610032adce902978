"""What the model of times says of rows it was not fitted to, as a page and a picture.

``python -m benchmarks.cost_model ROWS.csv... --write docs/measured/cost-model.md``: the rows of
each card's files are fitted and cross-validated (``held_out_rows``); files of the
same software are taken together. The picture stands beside the page. Takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cost_model_page import page
from benchmarks.held_out_rows import HeldOutEstimate, cross_validated
from bubbleproof.costs.times.calibration import Calibration, calibrate
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.estimation import estimated_ms, estimates
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.formats.clusters.hardware_toml import read_rows

CARDS = {"megatron-2021": "a100-80gb", "megatron-core": "b200"}
PICTURE = "cost-model.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Rows of one software: the fit to all, and each row by it and without its fold.

    ``memory`` are allocated GiB, estimated and measured, where the rows have them.
    """

    found: Calibration
    fitted: tuple[HeldOutEstimate, ...]
    judged: tuple[HeldOutEstimate, ...]
    memory: tuple[tuple[float, float], ...]


def studies(paths: Iterable[Path]) -> list[Study]:
    """One study of each software among the files."""
    rows: dict[str, list[JobRow]] = defaultdict(list)
    memory: dict[str, list[float]] = defaultdict(list)
    for path in paths:
        found = read_rows(path, measured=True)
        for row, peak in zip(found, peaks(path), strict=True):
            rows[row.runs.name].append(row)
            memory[row.runs.name].append(peak)
    return [study(name, rows[name], memory[name]) for name in CARDS if rows[name]]


def study(software: str, rows: Sequence[JobRow], memory: Sequence[float]) -> Study:
    """Fit and cross-validate rows of one software."""
    found = calibrate(rows, card(CARDS[software]))
    judged = cross_validated(rows, found)
    held = [each.allocated_gib for each in estimates(rows, found)] if any(memory) else []
    return Study(
        found=found,
        fitted=_judged(rows, found, "all rows"),
        judged=tuple(judged),
        memory=tuple((gib, peak) for gib, peak in zip(held, memory, strict=False) if peak),
    )


def _judged(rows: Sequence[JobRow], by: Calibration, fold: str) -> tuple[HeldOutEstimate, ...]:
    times = estimated_ms(rows, by)
    return tuple(
        HeldOutEstimate(row=row, fold=fold, estimated=time)
        for row, time in zip(rows, times, strict=True)
    )


def peaks(path: Path) -> list[float]:
    """The column ``allocated_gib``, 0 where a row has none."""
    with path.open(newline="", encoding="utf-8") as file:
        return [float(row.get("allocated_gib") or 0) for row in csv.DictReader(file)]


def main(words: Sequence[str] | None = None) -> int:
    """Print the page, or write it with its picture."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.cost_model")
    parser.add_argument("rows", nargs="+", type=Path, metavar="ROWS.csv")
    parser.add_argument("--write", type=Path, metavar="PAGE.md")
    given = parser.parse_args(words)
    found = studies(given.rows)
    parts = [(each.found, each.fitted, each.judged, each.memory) for each in found]
    text = page(parts, PICTURE)
    if given.write is None:
        sys.stdout.write(text)
        return 0
    given.write.write_text(text, encoding="utf-8")
    everything = [each for study in found for each in study.judged]
    from benchmarks.cost_model_picture import draw  # the only user of matplotlib

    draw(everything, given.write.parent / "pictures" / PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
