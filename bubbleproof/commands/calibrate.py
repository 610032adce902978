"""``bubbleproof calibrate ROWS.csv -o HARDWARE.toml``: constants from measured iterations."""

from __future__ import annotations

from bubbleproof.commands.output import HOLDS, print_json, print_table, print_text
from bubbleproof.formats.clusters.fitted_hardware import FittedHardware, fitted_hardware

NEAREST = (
    "{card} is the nearest by its data sheet of the cards on which most rows fit ({fitting} of "
    "{rows}); --card tells another"
)


def run_calibrate(rows: str, output: str, card: str | None, json: bool) -> int:
    """Fit the constants, write them, and print them with the error that is left."""
    found = fitted_hardware(rows, output, card, "--card")
    if json:
        print_json(found.to_dict())
        return HOLDS
    _print(found, output)
    if not found.is_told:
        of = found.calibration
        print_text(NEAREST.format(card=of.card.name, fitting=found.fitting, rows=of.rows))
    return HOLDS


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
