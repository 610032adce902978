"""Rows of models and cuts that no constant was fitted to: a section of the page.

``b200_other_rows.csv`` beside this file has the other rows of the table from which the B200's rows
are: SimuMax (MooreThreads/SimuMax, Apache-2.0), docs/b200/b200_release_v1.2_summary.md, ``case`` as
there, and the one interleaved row of docs/release_v1.2.md. They are facts to judge by; nothing
reads them to calibrate. What the runs had other than the published models stands in columns: 16
heads of keys and values in Llama 3 405B (``simu_tools/megatron_scripts``), one dense layer of
DeepSeek-V3's three, and a word more than the vocabulary, the tokenizer's end of text.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.markdown import markdown_table
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.estimate import Estimate, estimates
from bubbleproof.costs.times.job_rows import Row
from bubbleproof.formats.iteration_rows import read_rows

FILE = Path(__file__).with_name("b200_other_rows.csv")
CARD = "b200"
HEAD = """
## Models and cuts without a row

The rows of the same release table that no constant was fitted to: other models, context parallelism
(the sequence over several cards), experts, chunks (interleaved 1F1B). `kv_heads`, `vocabulary` and
`dense_layers` are told where the run had others than the published model. Estimated by the
constants below, which the 12 rows of Llama 3 70B gave.

"""
BEFORE = """
These rows are no longer unseen in the strict sense: what the model said *first*, before anything
was changed after a look at them, was

| rows | mean error | largest | memory, mean | memory, largest |
| --- | --- | --- | --- | --- |
| Llama 3 405B with the published 8 heads of keys and values | 3.5 % | 7.2 % | 0.92 % | 1.05 % |
| the same with the 16 that ran | 3.0 % | 6.4 % | 0.16 % | 0.29 % |
| context parallelism, its exchanges not yet counted | 10.7 % | 25.4 % | 1.04 % | 2.28 % |
| chunks | 0.9 % | 0.9 % | | |
| DeepSeek-V2 and V3: experts, latent attention | 8.5 % | 14.1 % | 0.85 % | 0.91 % |

Then were added, each with no constant of its own: what context parallelism sends all to all, and
keeps twice; that a fused loss makes its gradient in the logits' place; that a fused attention's
scores do not leave the chip, which makes it faster than two products of its sides; the bytes that
gradients are zeroed, scaled and looked at with, and all of the optimizer's; for each exchange as
many waits as its group has doublings; the operations that choose and sort. The two rows beyond 8 %
are DeepSeek-V2 over 4 expert ranks, 614 rows for each expert's product. SimuMax itself, from
kernels measured on the machine, is within 13.5 % (time) and 1.4 % (memory) of these rows without
the interleaved one, on average 5.7 % and 0.5 %.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A row that was not fitted, its estimate, and its measured GiB (0 where not told)."""

    found: Estimate
    peak: float

    @property
    def row(self) -> Row:
        """What was estimated."""
        return self.found.row

    @property
    def error(self) -> float:
        """Estimated over measured time, less one."""
        return self.found.iteration_ms / self.row.measured_ms - 1

    @property
    def memory_error(self) -> float | None:
        """Counted over measured memory, less one."""
        return self.found.allocated_gib / self.peak - 1 if self.peak else None


def unseen(by: Calibration, file: Path = FILE) -> list[Unseen]:
    """Every row of a file by a calibration that has not seen them."""
    with file.open(newline="", encoding="utf-8") as stream:
        peaks = [float(row.get("allocated_gib") or 0) for row in csv.DictReader(stream)]
    found = estimates(read_rows(file, measured=True), by)
    return [Unseen(found=one, peak=peak) for one, peak in zip(found, peaks, strict=True)]


def section(by: Calibration) -> str:
    """The section: each cut of each model, with the mean over its numbers of microbatches."""
    groups: dict[tuple[str, ...], list[Unseen]] = defaultdict(list)
    for each in unseen(by):
        groups[_cut(each.row)].append(each)
    rows = [(*cut, len(own), *_judged(own)) for cut, own in groups.items()]
    rows += [("all", "", "", len(flat := [e for own in groups.values() for e in own]),
              *_judged(flat))]  # fmt: skip
    header = ("model", "cut", "tokens", "rows", "mean error", "mean signed error", "largest",
              "memory, mean", "memory, largest")  # fmt: skip
    return HEAD + markdown_table(header, rows) + BEFORE


def _cut(row: Row) -> tuple[str, ...]:
    at = row.at
    sizes = {"t": at.tensor, "c": at.context, "e": at.expert, "d": at.data, "p": at.pipeline,
             "v": row.chunks}  # fmt: skip
    cut = " ".join(f"{name}={size}" for name, size in sizes.items() if size > 1)
    return f"{row.model.name}, {row.model.layers} layers", cut, f"{at.sequence}"


def _judged(own: list[Unseen]) -> tuple[str, ...]:
    errors = np.array([each.error for each in own])
    memory = np.array([e.memory_error for e in own if e.memory_error is not None] or [np.nan])
    values = (np.abs(errors).mean(), errors.mean(), np.abs(errors).max())
    sizes = () if np.isnan(memory).any() else (np.abs(memory).mean(), np.abs(memory).max())
    held = tuple(f"{100 * value:.2f} %" for value in sizes) or ("", "")
    return (*(f"{100 * value:.1f} %" for value in values), *held)
