"""``bubbleproof calibrate ROWS.csv -o HARDWARE.toml``: constants from measured iterations.

One iteration of one's own is enough: a row, ``JOB.toml --yours "tensor=4 ..." --took 14.7s``, or
``PLAN --took 14.7s``. It tells one number, the factor on all that a card does.
"""

from __future__ import annotations

from math import log

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, counted, print_json, print_table
from bubbleproof.formats.clusters.fitted_hardware import FittedHardware, fitted_hardware
from bubbleproof.formats.clusters.hardware_toml import hardware_path
from bubbleproof.planners.measured_job import measured_rows
from bubbleproof.report.amounts import short

MOST_CHANGES = 4  # constants that a line tells of
NEAREST = (
    "{card} is the nearest by its data sheet of the cards on which most rows fit ({fitting} of "
    "{rows}); --card names another"
)


def run_calibrate(
    rows: str,
    output: str,
    detail: Detail,
    card: str | None,
    yours: str | None,
    took: float | None,
    json: bool,
) -> int:
    """Fit the constants, write them, and print them with the error that is left."""
    hardware_path(output)  # refused before rows are read
    taken = measured_rows(rows, yours, took)
    found = fitted_hardware(
        taken.rows, output, card, "--card", source=taken.name, refused=taken.refused
    )
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found, output), detail):
        _print(found, output)
    return HOLDS


def _lines(found: FittedHardware, output: str) -> list[str]:
    of, target = found.calibration, hardware_path(output)
    lines = [
        f"{of.card.title}: the constants meet {counted(of.rows, 'row')} with a mean error of "
        f"{found.mean_error:.1%} ({found.before:.1%} before)",
        f"fitted   {', '.join(of.fitted) or 'none'}; the others are the data sheet's",
        f"changed  {_changes(found)}",
        f"wrote    {target}      next: bubbleproof plan JOB.toml --hardware {target}, or "
        f"bubbleproof estimate ROWS.csv --hardware {target}",
    ]
    if found.others is not None:
        band, pairs = found.others
        why = (
            f"nine of ten of {counted(pairs, 'pair')} of published rows"
            if pairs
            else "too few published rows"
        )
        lines.insert(-1, f"error    of other rows of this card and software ± {band:.0%} ({why})")
    if not found.is_told:
        near = NEAREST.format(card=of.card.name, fitting=found.fitting, rows=of.rows)
        lines.insert(1, f"card     {near}")
    return [*lines, *(f"{told}: not fitted" for told in found.refused)]


def _changes(found: FittedHardware) -> str:
    """The constants that the rows moved most, from where to where."""
    values = found.calibration.constants
    moved = sorted(found.changed, key=lambda each: -abs(log(values[each[0]] / each[1])))
    told = [
        f"{name} {short(start)} -> {short(values[name])} ({values[name] / start - 1:+.1%})"
        for name, start in moved[:MOST_CHANGES]
    ]
    return ", ".join(told) or "none"


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
