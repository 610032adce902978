"""Calibration in one call: constants fitted to measured rows, written as a hardware file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from bubbleproof.costs.times.calibration import (
    Calibration,
    calibrate,
    num_fitting,
    require_products,
)
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.cross_validation import HeldOutEstimate, mean_error
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.fitted_constants import CONSTANTS
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.facts import Fact, FactCells, FactSource
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.clusters.hardware_toml import (
    hardware_path,
    hardware_text,
    known_card,
    read_rows,
)
from bubbleproof.formats.files import write_text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedHardware(FactSource):
    """A card's constants by ``calibration``, with the mean error that is left on its rows.

    ``fitting`` rows fit on the card; ``is_told`` says that the card was told and not found;
    ``refused`` tells what is wrong with rows that nothing is fitted to.
    """

    calibration: Calibration
    mean_error: float
    fitting: int
    is_told: bool
    refused: tuple[str, ...] = ()
    columns: ClassVar[FactCells] = ("constant", "meaning", "found", "from")

    def facts(self) -> list[Fact]:
        """The card, how well its rows are met, and every constant."""
        found = self.calibration
        constants = [
            {
                "name": each.name,
                "value": found.constants[each.name],
                "unit": each.unit,
                "meaning": each.meaning,
                "fitted": each.name in found.fitted,
            }
            for each in CONSTANTS
        ]
        return [
            Fact(key="card", value=found.card.name),
            Fact(key="rows", value=found.rows),
            Fact(key="mean_error", value=self.mean_error),
            Fact(key="scope_one_node", value=found.scope_one_node),
            Fact(key="scope_many_nodes", value=found.scope_many_nodes),
            Fact(key="constants", value=constants),
            *(
                Fact(
                    label=each.name,
                    value=found.constants[each.name],
                    told=f"{found.constants[each.name]:.4g}",
                    unit=each.unit,
                    wanted=each.meaning,
                    verdict="rows" if each.name in found.fitted else "data sheet",
                )
                for each in CONSTANTS
            ),
            Fact(key="card_told", value=self.is_told),
            *([Fact(key="refused", value=[*self.refused])] if self.refused else []),
        ]


def fitted_hardware(rows: str, output: str, card: str | None, asker: str) -> FittedHardware:
    """Fit the constants to measured rows and write them; a row that cannot be used is left out.

    Parameters
    ----------
    rows
        A CSV file of measured iterations (``costs.times.job_rows``).
    output
        The hardware file (.toml) to write.
    card
        The card of the rows; None: the nearest by its data sheet.
    asker
        What names the card, for the error where there is none of that name.

    Raises
    ------
    UnusableInput, ValueError
        For a card or a file that cannot be used, and for rows of which too few can be.
    """
    target = hardware_path(output)
    told = None if card is None else known_card(card, asker)
    refused: list[str] = []
    measured = read_rows(rows, measured=True, refused=refused)
    if told is not None:
        measured = _computed(measured, told, refused)
    try:
        found = calibrate(measured, told)
    except ValueError as error:  # the rows that were refused are why, where there are any
        raise ValueError("; ".join([str(error), *refused])) from None
    note = f"bubbleproof calibrate {Path(rows).name}, {datetime.now(UTC).date().isoformat()}"
    with written_together(None, str(target)) as (_, new):
        write_text(new, hardware_text(found, note))
    times = estimated_ms(measured, found)
    left = mean_error(
        [
            HeldOutEstimate(row=row, fold="", estimated=time)
            for row, time in zip(measured, times, strict=True)
        ]
    )
    fitting = num_fitting(measured, found)
    return FittedHardware(
        calibration=found,
        mean_error=left,
        fitting=fitting,
        is_told=told is not None,
        refused=tuple(refused),
    )


def _computed(rows: Sequence[JobRow], card: Card, refused: list[str]) -> list[JobRow]:
    """The rows whose products the card computes; what is wrong with the others is told."""
    found = []
    for row in rows:
        try:
            require_products(row, row.card or card)
            found.append(row)
        except ValueError as error:
            refused.append(str(error))
    return found
