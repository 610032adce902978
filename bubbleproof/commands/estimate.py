"""``bubbleproof estimate ROWS.csv --hardware HARDWARE.toml``: iterations before they are run.

``--json`` prints ``{"hardware", "rows": [...]}``, for each row ``iteration_ms``, ``allocated_gib``
of the fullest card, whether that ``fits`` the card, and ``stages`` with the milliseconds of one
microbatch (``forward_ms``, ``backward_ms``), of the gradients and the optimizer (``step_ms``), and
``allocated_gib``; the number of the ``row``, its ``card`` and ``software``, and the ``error``: the
part of the time within which nine of ten rows left out were, with what of the estimate is
``beyond`` all rows. Rows that cannot be read are ``refused``, one line each, and the others are
estimated. No measured column is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.first_lines import deployed, print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, print_json
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.estimation import Estimate, estimates
from bubbleproof.formats.clusters.hardware_toml import read_hardware, read_rows
from bubbleproof.formats.inputs import require_format
from bubbleproof.report.amounts import memory, short


def run_estimate(rows: str, hardware: str, detail: Detail, json: bool) -> int:
    """Print the estimate of each row."""
    require_format(rows, "rows of iterations")
    by, refused = read_hardware(hardware), list[str]()
    taken = read_rows(rows, measured=False, on=by.card.name, refused=refused)
    found = estimates(taken, by, refused)
    if json:
        content = [{"row": each.row.number, **each.to_dict(), "fits": each.fits} for each in found]
        told = {"refused": refused} if refused else {}
        print_json({"hardware": by.card.name, "rows": content, **told})
    elif print_answer([*_lines(found, by.card), *map(_refused, refused)], detail):
        _print(found, by.card.title, detail)
    return HOLDS


def _refused(told: str) -> str:
    return f"{told}: not estimated"


def _lines(found: Sequence[Estimate], card: Card) -> list[str]:
    """How long iterations take and whether they fit, then each row."""
    over = [each for each in found if not each.fits]
    cards = list(dict.fromkeys(each.card.title for each in found))
    title = cards[0] if len(cards) == 1 else f"{len(cards)} kinds of card"
    most = memory(card.memory_bytes) if cards == [card.title] else "its card"
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
            memory(each.allocated_bytes) + " (does not fit)" * (not each.fits),
            f"{each.row.runs.name}, {each.error.told}",
        )
        told.append("  ".join(said))
    return told


def _time(each: Estimate) -> str:
    return (
        f"{short(each.iteration_ms / 1e3)} s"
        if each.iteration_ms >= 1e3
        else (f"{short(each.iteration_ms)} ms")
    )


def _print(found: Sequence[Estimate], title: str, detail: Detail) -> None:
    print_rows(
        f"estimates for {title}",
        ("row", "model", "deployment", "microbatches", "iteration", "error", "allocated"),
        [
            (
                str(each.row.number),
                f"{each.row.model.name}, {each.row.model.layers} layers",
                deployed(each.row.at, chunks=each.row.chunks),
                str(each.row.microbatches),
                f"{each.iteration_ms:,.1f} ms",
                each.error.told,
                f"{each.allocated_gib:.2f} GiB" + ("" if each.fits else ", does not fit"),
            )
            for each in found
        ],
        detail,
    )
