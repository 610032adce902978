"""``bubbleproof estimate ROWS.csv --hardware HARDWARE.toml``: iterations before they are run.

``--json`` prints ``{"hardware", "rows": [...]}``, for each row ``iteration_ms``, ``allocated_gib``
of the fullest card, whether that ``fits`` the card, and ``stages`` with the milliseconds of one
microbatch (``forward_ms``, ``backward_ms``), of the gradients and the optimizer (``step_ms``), and
``allocated_gib``. No measured column is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubbleproof.commands.output import HOLDS, print_json, print_table
from bubbleproof.costs.times.estimation import Estimate, estimates
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.formats.clusters.hardware_toml import read_hardware, read_rows


def run_estimate(rows: str, hardware: str, json: bool) -> int:
    """Print the estimate of each row."""
    by = read_hardware(hardware)
    found = estimates(read_rows(rows, measured=False), by)
    if json:
        content = [_to_json(each, by.card.memory_bytes) for each in found]
        print_json({"hardware": by.card.name, "rows": content})
    else:
        _print(found, by.card.title, by.card.memory_bytes)
    return HOLDS


def _to_json(found: Estimate, memory_bytes: int) -> Mapping[str, object]:
    return {
        **found.to_dict(),
        "fits": found.allocated_bytes <= memory_bytes,
    }


def _print(found: Sequence[Estimate], title: str, memory_bytes: int) -> None:
    print_table(
        f"estimates for {title}",
        ("row", "model", "cut", "microbatches", "iteration", "allocated"),
        [
            (
                str(each.row.number),
                f"{each.row.model.name}, {each.row.model.layers} layers",
                _cut(each.row),
                str(each.row.microbatches),
                f"{each.iteration_ms:,.1f} ms",
                f"{each.allocated_gib:.2f} GiB"
                + ("" if each.allocated_bytes <= memory_bytes else ", does not fit"),
            )
            for each in found
        ],
    )


def _cut(row: JobRow) -> str:
    """The sizes of a cut; those that are mostly 1 where they are not."""
    at = row.at
    more = {"c": at.context, "e": at.expert, "v": row.chunks}
    told = "".join(f" {name}={size}" for name, size in more.items() if size > 1)
    return f"t={at.tensor} d={at.data} p={at.pipeline} b={at.micro_batch}{told}"
