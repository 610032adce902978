"""``bubbleproof estimate ROWS.csv --hardware HARDWARE.toml``: iterations before they are run.

``--json`` prints ``{"hardware", "rows": [...]}``, for each row ``iteration_ms``, ``allocated_gib``
of the fullest card, whether that ``fits`` the card, and ``stages`` with the milliseconds of one
microbatch (``forward_ms``, ``backward_ms``), of the gradients and the optimizer (``step_ms``), and
``allocated_gib``. No measured column is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubbleproof.commands.first_lines import deployed, print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, print_json
from bubbleproof.costs.times.estimation import Estimate, estimates
from bubbleproof.formats.clusters.hardware_toml import read_hardware, read_rows
from bubbleproof.formats.inputs import require_format
from bubbleproof.report.amounts import memory, short


def run_estimate(rows: str, hardware: str, detail: Detail, json: bool) -> int:
    """Print the estimate of each row."""
    require_format(rows, "rows of iterations")
    by = read_hardware(hardware)
    found = estimates(read_rows(rows, measured=False), by)
    if json:
        content = [_to_json(each, by.card.memory_bytes) for each in found]
        print_json({"hardware": by.card.name, "rows": content})
    elif print_answer(_lines(found, by.card.title, by.card.memory_bytes), detail):
        _print(found, by.card.title, by.card.memory_bytes, detail)
    return HOLDS


def _to_json(found: Estimate, memory_bytes: int) -> Mapping[str, object]:
    return {
        **found.to_dict(),
        "fits": found.allocated_bytes <= memory_bytes,
    }


def _lines(found: Sequence[Estimate], title: str, memory_bytes: int) -> list[str]:
    """How long iterations take and whether they fit, then each row."""
    over = [each for each in found if each.allocated_bytes > memory_bytes]
    most = memory(memory_bytes)
    fit = f"{len(over)} of {len(found)} do not fit {most}" if over else f"fits {most}"
    times = [_time(each) for each in sorted(found, key=lambda each: each.iteration_ms)]
    span = times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}"
    told = [f"{span} an iteration on {title}, {fit}"]
    for each in found:
        row, at = each.row, each.row.at
        batches = f"{row.microbatches} micro-batch{'es' * (row.microbatches > 1)}"
        said = (
            f"row {row.number}",
            row.model.name,
            f"{deployed(at, chunks=row.chunks)} · {batches}",
            _time(each),
            memory(each.allocated_bytes) + " (does not fit)" * (each in over),
        )
        told.append("  ".join(said))
    return told


def _time(each: Estimate) -> str:
    return (
        f"{short(each.iteration_ms / 1e3)} s"
        if each.iteration_ms >= 1e3
        else (f"{short(each.iteration_ms)} ms")
    )


def _print(found: Sequence[Estimate], title: str, memory_bytes: int, detail: Detail) -> None:
    print_rows(
        f"estimates for {title}",
        ("row", "model", "deployment", "microbatches", "iteration", "allocated"),
        [
            (
                str(each.row.number),
                f"{each.row.model.name}, {each.row.model.layers} layers",
                deployed(each.row.at, chunks=each.row.chunks),
                str(each.row.microbatches),
                f"{each.iteration_ms:,.1f} ms",
                f"{each.allocated_gib:.2f} GiB"
                + ("" if each.allocated_bytes <= memory_bytes else ", does not fit"),
            )
            for each in found
        ],
        detail,
    )
