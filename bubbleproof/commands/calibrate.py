"""``bubbleproof calibrate ROWS.csv -o HARDWARE.toml``: constants from measured iterations."""

from __future__ import annotations

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, counted, print_json, print_table
from bubbleproof.formats.clusters.fitted_hardware import FittedHardware, fitted_hardware
from bubbleproof.formats.clusters.hardware_toml import hardware_path
from bubbleproof.formats.inputs import require_format

NEAREST = (
    "{card} is the nearest by its data sheet of the cards on which most rows fit ({fitting} of "
    "{rows}); --card names another"
)


def run_calibrate(rows: str, output: str, detail: Detail, card: str | None, json: bool) -> int:
    """Fit the constants, write them, and print them with the error that is left."""
    require_format(rows, "rows of iterations")
    found = fitted_hardware(rows, output, card, "--card")
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found, output), detail):
        _print(found, output)
    return HOLDS


def _lines(found: FittedHardware, output: str) -> list[str]:
    of, target = found.calibration, hardware_path(output)
    lines = [
        f"{of.card.title}: the constants meet {counted(of.rows, 'row')} with a mean error of "
        f"{found.mean_error:.1%}",
        f"fitted   {', '.join(of.fitted) or 'none'}; the others are the data sheet's",
        f"wrote    {target}      next: bubbleproof estimate ROWS.csv --hardware {target}",
    ]
    if not found.is_told:
        near = NEAREST.format(card=of.card.name, fitting=found.fitting, rows=of.rows)
        lines.insert(1, f"card     {near}")
    return [*lines, *(f"{told}: not fitted" for told in found.refused)]


def _print(found: FittedHardware, output: str) -> None:
    of, left = found.calibration, found.mean_error
    print_table(
        f"{output}: {of.card.title}, {of.rows} rows, met with a mean error of {left:.1%}",
        ("constant", "value", "unit", "meaning", "from"),
        [
            (fact.label, fact.told, fact.unit, fact.wanted, fact.verdict)
            for fact in found.facts()
            if fact.label
        ],
    )
