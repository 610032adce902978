"""Constants from measured rows: a regularised least-squares fit of the logarithms.

With e the logarithm of estimated over measured time of a row and x the logarithms of the constants,
the fit minimises

    sum over rows of u_j s^2 log(1 + (e / s)^2)   +   sum of ((x - start) / spread)^2

by Gauss-Newton steps with Levenberg's damping. The first term hardly grows where e is far beyond s
(Cauchy's): rows that are wrong do not draw the others along. u_j is ``EVIDENCE``, more for rows
that are fast for their job, since among them a planner chooses. ``start`` and ``spread`` are those
of ``constants``: what rows say nothing of stays at the data sheet's.

Rows that do not tell their recompute scope share one for all of one node and one for all of many:
those of ``Software.scopes`` with which the fit is best. A card that is not told is the one whose
data sheet is nearest to the rows, of those on which all rows fit as the fit takes them; times alone
do not tell two cards apart that differ in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.along_paths import JobColumns, paths, predicted, prepared
from bubbleproof.costs.times.card_files import cards
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import NAMES, starts
from bubbleproof.costs.times.critical_paths import Path
from bubbleproof.costs.times.fitted_constants import CONSTANTS
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.work import Floats

SPREAD_OF_ROWS = 0.05  # s: beyond it an error counts less and less
EVIDENCE = 60.0  # u: how much a row says against the starts
SLOWER = 0.5  # a row this much slower than its job's best counts 1/e, above LEAST
LEAST = 0.15
FEW_ROWS = 60  # so many rows say as much together as fewer do
ROWS_PER_CONSTANT = 5  # below it only the constants marked ``few`` are fitted
NUDGE = 1e-4
MOST_STEPS = 60
ENOUGH = 1e-4  # of the cost: a step that gains less is the last
MOST_DAMPING = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants of a card, those of them that were fitted, and how rows were taken."""

    card: Card
    constants: Mapping[str, float]
    fitted: tuple[str, ...] = ()
    rows: int = 0
    scope_one_node: str = "none"
    scope_many_nodes: str = "none"

    def taken(self, rows: Sequence[JobRow]) -> list[JobRow]:
        """The rows with the scope of their kind, where they tell none and their software may have
        run so."""
        found = []
        for row in rows:
            require_products(row, self.card)
            within = row.gpus <= self.card.cards_per_node
            scope = self.scope_one_node if within else self.scope_many_nodes
            known = scope in row.runs.scopes
            found.append(row.recomputing(scope if known else row.runs.scopes[0]))
        return found


def require_products(row: JobRow, card: Card) -> None:
    """Raise ``ValueError`` for products in numbers that the card has no rate for."""
    if row.runs.products not in {*card.tflops, "bf16"}:
        raise ValueError(
            f"row {row.number}: products must be of a type that {card.name} computes in "
            f"({', '.join(card.tflops)}), got {row.runs.products}"
        )


def uncalibrated(card: Card) -> Calibration:
    """A card by its data sheet alone."""
    return Calibration(card=card, constants=starts(card))


def calibrate(rows: Sequence[JobRow], card: Card | None = None) -> Calibration:
    """The best constants for measured rows. Raises ``ValueError`` where rows are too few."""
    if card is not None:
        return calibrated(rows, card, scope_pairs(rows, card))
    found: dict[int, Calibration] = {}  # by how many rows fit, the nearest card of each
    for each in cards_by_distance(rows):
        one = calibrated(rows, each, scope_pairs(rows, each))
        if (fitting := num_fitting(rows, one)) == len(rows):
            return one
        found.setdefault(fitting, one)
    return found[max(found)]


def num_fitting(rows: Sequence[JobRow], by: Calibration) -> int:
    """How many rows have room on the card, recomputing as the calibration takes them."""
    held = (
        allocated(row.model, row.at, row.runs, row.microbatches, row.chunks)
        for row in by.taken(rows)
    )
    return sum(max(each.total for each in stages) <= by.card.memory_bytes for stages in held)


def calibrated(
    rows: Sequence[JobRow],
    card: Card,
    scopes: Sequence[tuple[str, str]],
    near: Calibration | None = None,
) -> Calibration:
    """The best constants over these scopes (of one node, of many); the search begins ``near``, by
    default at the data sheet.

    Parameters
    ----------
    scopes
        Pairs of recompute scopes that are tried: of rows within one node, and of the others.
    near
        Where the search begins; by default at the data sheet.
    """
    best: tuple[float, Calibration] | None = None
    for one, many in scopes:
        begun = Calibration(
            card=card,
            constants=starts(card),
            rows=len(rows),
            scope_one_node=one,
            scope_many_nodes=many,
        )
        cost, found = _fit(rows, begun, near)
        if best is None or cost < best[0]:
            best = cost, found
    if best is None:
        raise ValueError("at least one pair of scopes is needed, got none")
    return best[1]


def cards_by_distance(rows: Sequence[JobRow]) -> list[Card]:
    """All cards, that whose data sheet comes nearest to the rows' times first, then by name."""

    def distance(card: Card) -> float:
        begun = uncalibrated(card)
        fit = _Fit(rows, begun, NAMES)
        return fit.cost(fit.start)

    asked = {row.runs.products for row in rows}
    able = [card for card in cards().values() if asked <= {*card.tflops, "bf16"}]
    return sorted(able, key=lambda card: (distance(card), card.name))


def scope_pairs(rows: Sequence[JobRow], card: Card) -> list[tuple[str, str]]:
    """The recompute scopes to try, for rows of one node and of many.

    Rows that tell theirs leave nothing to try; where no row is of a kind, software assumes one.
    """
    return list(product(_scopes(rows, card, is_many=False), _scopes(rows, card, is_many=True)))


def _scopes(rows: Sequence[JobRow], card: Card, *, is_many: bool) -> list[str]:
    of_kind = [row for row in rows if (row.gpus > card.cards_per_node) is is_many]
    if not of_kind:
        return sorted({row.runs.assumed[is_many] for row in rows})
    tried = ["none"]
    for row in of_kind:
        tried += [] if row.tells_scope else row.runs.scopes
    return list(dict.fromkeys(tried))


def _fit(
    rows: Sequence[JobRow], begun: Calibration, near: Calibration | None
) -> tuple[float, Calibration]:
    names = _told(rows, begun)
    if len(rows) < len(names):
        raise ValueError(
            f"rows must be at least as many as constants to fit ({len(names)}), got {len(rows)}; "
            f"give {len(names) - len(rows)} more"
        )
    fit = _Fit(rows, begun, names)
    logs, cost = fit.run(fit.logs((near or begun).constants))
    constants = {name: round(value, 6) for name, value in fit.constants(logs).items()}
    return cost, Calibration(
        card=begun.card,
        constants=constants,
        fitted=names,
        rows=begun.rows,
        scope_one_node=begun.scope_one_node,
        scope_many_nodes=begun.scope_many_nodes,
    )


def _told(rows: Sequence[JobRow], begun: Calibration) -> tuple[str, ...]:
    """The constants that some row depends on; where rows are few, those that are fitted then."""
    fit = _Fit(rows, begun, NAMES)
    along = paths(fit.of, begun.constants)
    depends = np.abs(fit.slopes(fit.start, along)[1]).max(axis=1) > NUDGE
    models = len({row.model.name for row in rows})
    told = [
        each
        for each, is_told in zip(CONSTANTS, depends, strict=True)
        if is_told and models >= each.models
    ]
    if len(rows) < ROWS_PER_CONSTANT * len(told):
        told = [each for each in told if each.few]
    return tuple(each.name for each in told)


class _Fit:
    """One fit: rows, where it starts, and the names of what it changes."""

    def __init__(self, rows: Sequence[JobRow], begun: Calibration, names: Sequence[str]) -> None:
        self.of: JobColumns = prepared(begun.taken(rows), begun.card.cards_per_node)
        self.measured = np.array([row.measured_ms for row in rows])
        self.evidence = evidence(rows)
        self.begun, self.names = begun, tuple(names)
        self.start = self.logs(begun.constants)
        spread = {each.name: each.spread for each in CONSTANTS}
        self.precision = np.array([spread[name] ** -2 for name in names])

    def logs(self, constants: Mapping[str, float]) -> Floats:
        """The logarithms of what is fitted."""
        return np.log([constants[name] for name in self.names])

    def constants(self, logs: Floats) -> dict[str, float]:
        """All constants, those that are fitted from their logarithms."""
        changed = dict(zip(self.names, np.exp(logs).tolist(), strict=True))
        return {name: changed.get(name, self.begun.constants[name]) for name in NAMES}

    def errors(self, logs: Floats, along: Sequence[Path] | None = None) -> Floats:
        """Logarithms of estimated over measured time, along the longest paths or given ones."""
        constants = self.constants(logs)
        along = along or paths(self.of, constants)
        columns = {name: np.array([[value]]) for name, value in constants.items()}
        return np.asarray(np.log(predicted(self.of, along, columns)[0] / self.measured))

    def cost(self, logs: Floats, along: Sequence[Path] | None = None) -> float:
        """What is minimised."""
        s, errors = SPREAD_OF_ROWS, self.errors(logs, along)
        rows = self.evidence @ (s**2 * np.log1p((errors / s) ** 2))
        return float(rows + self.precision @ (logs - self.start) ** 2)

    def slopes(self, logs: Floats, along: Sequence[Path]) -> tuple[Floats, Floats]:
        """Errors, and their derivatives by each logarithm, [constant, row]."""
        constants = self.constants(logs)
        sets = np.tile([constants[name] for name in NAMES], (len(self.names) + 1, 1))
        for number, name in enumerate(self.names):
            sets[number + 1, NAMES.index(name)] *= np.exp(NUDGE)
        columns = {name: sets[:, [number]] for number, name in enumerate(NAMES)}
        errors = np.log(predicted(self.of, along, columns) / self.measured)
        return errors[0], (errors[1:] - errors[0]) / NUDGE

    def run(self, logs: Floats) -> tuple[Floats, float]:
        """The logarithms at the end of a search from there, and the cost."""
        damping, before = 1e-3, float("inf")
        for _ in range(MOST_STEPS):
            along = paths(self.of, self.constants(logs))
            cost = self.cost(logs, along)
            if before - cost < ENOUGH * cost:
                break
            before = cost
            errors, slopes = self.slopes(logs, along)
            bend = self.evidence / (1 + (errors / SPREAD_OF_ROWS) ** 2)
            square = (slopes * bend) @ slopes.T + np.diag(self.precision)
            down = (slopes * bend) @ errors + self.precision * (logs - self.start)
            while damping < MOST_DAMPING:
                step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -down)
                if self.cost(logs + step, along) < cost:
                    logs, damping = logs + step, damping / 8
                    break
                damping *= 4
        return logs, self.cost(logs)


def evidence(rows: Sequence[JobRow]) -> Floats:
    """u of each row: more for rows that are fast for their job."""
    best: dict[object, float] = {}
    for row in rows:
        best[row.job] = min(best.get(row.job, row.measured_ms), row.measured_ms)
    slower = np.array([row.measured_ms / best[row.job] - 1 for row in rows])
    each = EVIDENCE * max(1.0, FEW_ROWS / len(rows))
    return np.asarray(each * (LEAST + np.exp(-slower / SLOWER)))
