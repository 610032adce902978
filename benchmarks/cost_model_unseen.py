"""Rows of models and cuts that no constant was fitted to: sections of the page, one for a card.

``b200_other_rows.csv`` beside this file has the other rows of the table from which the B200's rows
are: SimuMax (MooreThreads/SimuMax, Apache-2.0), docs/b200/b200_release_v1.2_summary.md, ``case`` as
there, and the one interleaved row of docs/release_v1.2.md. What the runs had other than the
published models stands in columns: 16 heads of keys and values in Llama 3 405B
(``simu_tools/megatron_scripts``), one dense layer of DeepSeek-V3's three, and a word more than the
vocabulary, the tokenizer's end of text.

``a100_other_rows.csv`` has published iterations of Megatron-LM on A100: Korthikanti et al. (MLSys
2023), Tables 3 and 5, and BPipe (ICML 2023), Table 7, without the rows of BPipe itself. Those are
told as model FLOPs utilization u, of the FLOPs of Korthikanti et al., appendix A: an iteration of B
samples of s tokens on G cards took 72 B L s h^2 (1 + s / 6 h + V / 12 h L) / (312 TFLOP/s G u).

All are facts to judge by; nothing reads them to calibrate.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.markdown import markdown_table
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.estimation import Estimate, estimates
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.formats.clusters.hardware_toml import read_rows

FOLDER = Path(__file__).parent
B200 = """
## Models and cuts without a row: B200

The rows of the same release table that no constant was fitted to: other models, context parallelism
(the sequence over several cards), experts, chunks (interleaved 1F1B). `kv_heads`, `vocabulary` and
`dense_layers` are told where the run had others than the published model. Estimated by the
constants below, which the 12 rows of Llama 3 70B gave.

"""
B200_FIRST = """
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
A100 = """
## Models and cuts without a row: A100

Iterations of Megatron-LM that its authors (Korthikanti et al., MLSys 2023, Tables 3 and 5: 22 B to
1 T) and BPipe's (ICML 2023, Table 7: 96 B and 134 B, from model FLOPs utilization) published, on
other clusters than those of the rows that constants were fitted to.

"""
A100_FIRST = """
What the model said *first* of the 1 T to 22 B: 3.5 % mean error, 6.5 % at most, and nothing was
changed for them. Of BPipe's rows: 12.8 % and 31.3 %. They fell into three kinds: of some our
estimates were 17 to 23 % low, of five 15 to 31 %, of all others 2 % low to 5 % high. The first are
those whose heads on a card, times the micro-batch, are no multiple of four: there Megatron-LM has
no kernel for the softmax (`costs/times/work.py`). Counted, with no constant of its own, they
are 1 to 5 % high as the others. The five are each of a cut's largest micro-batch; of such ones
BPipe's authors say that PyTorch's allocator gave memory back and asked for it again. That is no
term of the model. The median says what it does without them.
"""
TEXTS = {"b200": (B200, B200_FIRST), "a100-80gb": (A100, A100_FIRST)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A row that was not fitted, its estimate, and its measured GiB (0 where not told)."""

    found: Estimate
    peak: float

    @property
    def row(self) -> JobRow:
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


def unseen(by: Calibration) -> list[Unseen]:
    """Every other row of a card by a calibration that has not seen them."""
    file = FOLDER / f"{by.card.name.partition('-')[0]}_other_rows.csv"
    with file.open(newline="", encoding="utf-8") as stream:
        peaks = [float(row.get("allocated_gib") or 0) for row in csv.DictReader(stream)]
    found = estimates(read_rows(file, measured=True), by)
    return [Unseen(found=one, peak=peak) for one, peak in zip(found, peaks, strict=True)]


def section(by: Calibration) -> str:
    """The section of a card; empty where it has no other rows. Each cut of each model is a line,
    with the mean over its numbers of microbatches and its micro-batches."""
    if by.card.name not in TEXTS:
        return ""
    groups: dict[tuple[str, ...], list[Unseen]] = defaultdict(list)
    for each in unseen(by):
        groups[_cut(each.row)].append(each)
    flat = [each for own in groups.values() for each in own]
    rows = [(*cut, len(own), *_judged(own)) for cut, own in groups.items()]
    rows += [("all", "", "", len(flat), *_judged(flat))]
    header = (
        "model",
        "cut",
        "tokens",
        "rows",
        "mean error",
        "mean signed error",
        "largest",
        "memory, mean",
        "memory, largest",
    )
    head, first = TEXTS[by.card.name]
    median = 100 * float(np.median([abs(each.error) for each in flat]))
    table = markdown_table(header, rows)
    return f"{head}{table}\nThe median error of all is {median:.1f} %.\n{first}"


def _cut(row: JobRow) -> tuple[str, ...]:
    at = row.at
    sizes = {
        "t": at.tensor,
        "c": at.context,
        "e": at.expert,
        "d": at.data,
        "p": at.pipeline,
        "v": row.chunks,
    }
    told = [f"{name}={size}" for name, size in sizes.items() if size > 1]
    told += [f"recomputes {at.scope}"] if row.tells_scope else []
    return f"{row.model.name}, {row.model.layers} layers", " ".join(told), f"{at.sequence}"


def _judged(own: list[Unseen]) -> tuple[str, ...]:
    errors = np.array([each.error for each in own])
    memory = np.array([e.memory_error for e in own if e.memory_error is not None] or [np.nan])
    values = (np.abs(errors).mean(), errors.mean(), np.abs(errors).max())
    sizes = () if np.isnan(memory).any() else (np.abs(memory).mean(), np.abs(memory).max())
    held = tuple(f"{100 * value:.2f} %" for value in sizes) or ("", "")
    return (*(f"{100 * value:.1f} %" for value in values), *held)
