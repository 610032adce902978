"""Calibration in one call: constants fitted to measured rows, written as a hardware file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np

from bubbleproof.costs.times.calibration import (
    SCALE,
    Calibration,
    calibrate,
    num_fitting,
    require_products,
)
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import CONSTANTS, starts
from bubbleproof.costs.times.estimate_errors import error_of_one
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.profiles import software
from bubbleproof.facts import Fact, FactCells, FactSource, valued
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.clusters.hardware_toml import (
    hardware_path,
    hardware_text,
    known_card,
)
from bubbleproof.formats.files import write_text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedHardware(FactSource):
    """A card's constants by ``calibration``, with the mean error that is left on its rows.

    ``fitting`` rows fit on the card; ``is_told``: the card was given, not found by the fit;
    ``refused`` says what is wrong with rows that nothing is fitted to. ``before`` is the mean
    error without the fit; ``changed`` has each constant that was fitted, and where its fit starts;
    ``others`` how far other rows may be off where one factor is all that was fitted, and of how
    many pairs of published rows that is.
    """

    calibration: Calibration
    mean_error: float
    fitting: int
    is_told: bool
    refused: tuple[str, ...] = ()
    before: float = 0.0
    changed: tuple[tuple[str, float], ...] = ()
    others: tuple[float, int] | None = None
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
            *valued("", card=found.card.name, rows=found.rows, mean_error=self.mean_error),
            Fact(key="mean_error_before", value=self.before),
            *([Fact(key="error_of_others", value=self.others[0])] if self.others else []),
            *valued("", scope_one_node=found.scope_one_node),
            *valued("", scope_many_nodes=found.scope_many_nodes, constants=constants),
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


def fitted_hardware(
    rows: Sequence[JobRow],
    output: str,
    card: str | None,
    asker: str,
    *,
    source: str = "rows",
    refused: Sequence[str] = (),
) -> FittedHardware:
    """Fit the constants to measured rows and write them; a row that cannot be used is left out.

    Parameters
    ----------
    rows
        Measured iterations.
    output
        The hardware file (.toml) to write.
    card
        The card of the rows; None: that which they name, or the nearest by its data sheet.
    asker
        What names the card, for the error where there is none of that name.
    source, refused
        Where the rows are from, and what is wrong with others there, one line each.

    Raises
    ------
    UnusableInput, ValueError
        For a card or a file that cannot be used, and where no row can be.
    """
    target, left_out = hardware_path(output), [*refused]
    told = _card_of(rows) if card is None else known_card(card, asker)
    measured = rows if told is None else _computed(rows, told, left_out)
    try:
        found = calibrate(measured, told)
    except ValueError as error:  # the rows that were refused are why, where there are any
        raise ValueError("; ".join([str(error), *left_out])) from None
    if found.fitted == (SCALE,) and told is None:
        raise ValueError(f"{asker} must be told for so few rows, got none; use such as h100")
    note = f"bubbleproof calibrate {source}, {datetime.now(UTC).date().isoformat()}"
    with written_together(None, str(target)) as (_, new):
        write_text(new, hardware_text(found, note))
    begun = starts(found.card, software(found.software[0]))
    one, is_scaled = measured[0], found.fitted == (SCALE,)
    fitting = num_fitting(measured, found)
    return FittedHardware(
        calibration=found,
        mean_error=_left(measured, found),
        before=_left(measured, replace(found, constants=begun)),
        changed=tuple((name, begun[name]) for name in found.fitted),
        others=error_of_one(one.model, found.card, one.runs, one.gpus) if is_scaled else None,
        fitting=fitting,
        is_told=told is not None,
        refused=tuple(left_out),
    )


def _left(rows: Sequence[JobRow], by: Calibration) -> float:
    """The mean error of the rows' estimates."""
    pairs = zip(rows, estimated_ms(rows, by), strict=True)
    return float(np.mean([abs(time / row.measured_ms - 1) for row, time in pairs]))


def _card_of(rows: Sequence[JobRow]) -> Card | None:
    """The card that all rows name; None where they name none, or several."""
    names = {"" if row.card is None else row.card.name for row in rows}
    name = names.pop() if len(names) == 1 else ""
    return known_card(name, "card") if name else None


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
