"""``bubbleproof calibrate ROWS.csv -o HARDWARE.toml``: constants from measured iterations."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import HOLDS, counted, print_json, print_table
from bubbleproof.costs.times.calibration import Calibration, calibrate, num_fitting
from bubbleproof.costs.times.cross_validation import HeldOutEstimate, mean_error
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.fitted_constants import CONSTANTS
from bubbleproof.formats.clusters.hardware_toml import (
    hardware_path,
    hardware_text,
    known_card,
    read_rows,
)
from bubbleproof.formats.files import write_text
from bubbleproof.formats.inputs import require_format

NEAREST = (
    "{card} is the nearest by its data sheet of the cards on which most rows fit ({fitting} of "
    "{rows}); --card names another"
)


def run_calibrate(rows: str, output: str, detail: Detail, card: str | None, json: bool) -> int:
    """Fit the constants, write them, and print them with the error that is left."""
    require_format(rows, "rows of iterations")
    target = hardware_path(output)
    told = None if card is None else known_card(card, "--card")
    measured = read_rows(rows, measured=True)
    found = calibrate(measured, told)
    with written_together(None, str(target)) as (_, new):
        write_text(new, hardware_text(found, _note(rows)))
    times = estimated_ms(measured, found)
    left = mean_error(
        [
            HeldOutEstimate(row=row, fold="", estimated=time)
            for row, time in zip(measured, times, strict=True)
        ]
    )
    if json:
        print_json({**_to_json(found, left), "card_told": told is not None})
    else:
        lines = [
            f"{found.card.title}: the constants meet {counted(found.rows, 'row')} with a "
            f"mean error of {left:.1%}",
            f"fitted   {', '.join(found.fitted) or 'none'}; the others are the data sheet's",
            f"wrote    {target}      next: bubbleproof estimate ROWS.csv --hardware {target}",
        ]
        if told is None:
            fitting = num_fitting(measured, found)
            near = NEAREST.format(card=found.card.name, fitting=fitting, rows=found.rows)
            lines.insert(1, f"card     {near}")
        if print_answer(lines, detail):
            _print(found, left, output)
    return HOLDS


def _note(rows: str) -> str:
    day = datetime.now(UTC).date().isoformat()
    return f"bubbleproof calibrate {Path(rows).name}, {day}"


def _to_json(found: Calibration, left: float) -> dict[str, object]:
    return {
        "card": found.card.name,
        "rows": found.rows,
        "mean_error": left,
        "scope_one_node": found.scope_one_node,
        "scope_many_nodes": found.scope_many_nodes,
        "constants": [
            {
                "name": each.name,
                "value": found.constants[each.name],
                "unit": each.unit,
                "meaning": each.meaning,
                "fitted": each.name in found.fitted,
            }
            for each in CONSTANTS
        ],
    }


def _print(found: Calibration, left: float, output: str) -> None:
    print_table(
        f"{output}: {found.card.title}, {found.rows} rows, met with a mean error of {left:.1%}",
        ("constant", "value", "unit", "meaning", "from"),
        [
            (
                each.name,
                f"{found.constants[each.name]:.4g}",
                each.unit,
                each.meaning,
                "rows" if each.name in found.fitted else "data sheet",
            )
            for each in CONSTANTS
        ],
    )
