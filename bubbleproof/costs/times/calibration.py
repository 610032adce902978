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

Fewer rows than constants, as one iteration of one's own, tell one number: the factor on all that a
card does (``SCALE``), with which the mean error of the logarithms is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.along_paths import JobColumns, Start, paths, predicted, prepared
from bubbleproof.costs.times.card_files import cards
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import CONSTANTS, NAMES, starts
from bubbleproof.costs.times.critical_paths import Path
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import Floats

SPREAD_OF_ROWS = 0.05  # s: beyond it an error counts less and less
EVIDENCE = 60.0  # u: how much a row says against the starts
SLOWER = 0.5  # a row this much slower than its job's best counts 1/e, above LEAST
LEAST = 0.15
FEW_ROWS = 60  # so many rows say as much together as fewer do
ROWS_PER_CONSTANT = 5  # below it only the constants marked ``few`` are fitted
NUDGE = 1e-4
NODE = 8
SCALE = "factor"
HELD = (SCALE,)  # what rows of one card and software do not tell apart from its rates
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
    software: tuple[str, ...] = ()

    def constants_of(self, card: Card, runs: Software) -> dict[str, float]:
        """The constants of a card under software: of that whose rows were fitted as far from where
        the fit starts as ``constants`` are, of other software where it starts.

        Parameters
        ----------
        card
            The card that ran.
        runs
            What ran on it.
        """
        begun = starts(card, runs)
        if self.software and runs.name not in self.software:
            return begun
        reference = starts(self.card, software(self.software[0]) if self.software else None)
        return {name: begun[name] * self.constants[name] / reference[name] for name in NAMES}

    def taken(self, rows: Sequence[JobRow]) -> list[JobRow]:
        """The rows with the scope of their kind, where they tell none and their software may have
        run so."""
        found = []
        for row in rows:
            card = row.card or self.card
            require_products(row, card)
            within = row.gpus <= card.cards_per_node
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
    """The best constants for measured rows. Raises ``ValueError`` without rows, and where so few
    rows do not tell their card."""
    if not rows:
        raise ValueError("rows must be at least one, got none that can be used")
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
        allocated(row.model, row.at, row.runs, row.microbatches, row.chunks, row.cut)
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
        names = tuple(dict.fromkeys(row.runs.name for row in rows))
        begun = Calibration(
            card=card,
            constants=starts(card, software(names[0])),
            rows=len(rows),
            scope_one_node=one,
            scope_many_nodes=many,
            software=names,
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
        fit = Fit(rows, begun, NAMES)
        return fit.cost(np.zeros(len(NAMES)))

    asked = {row.runs.products for row in rows}
    able = [card for card in cards().values() if asked <= {*card.tflops, "bf16"}]
    most = max(row.gpus for row in rows)  # a rack's card is not guessed from a part of a rack
    able = [card for card in able if card.cards_per_node <= max(NODE, most)]
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
        return _scaled(rows, begun)
    fit = Fit(rows, begun, names)
    told = (near or begun).constants
    logs, cost = fit.run(np.array([np.log(told[name] / begun.constants[name]) for name in names]))
    factors = dict(zip(names, np.exp(logs).tolist(), strict=True))
    found = {
        name: round(value * factors.get(name, 1.0), 6) for name, value in begun.constants.items()
    }
    return cost, replace(begun, constants=found, fitted=names)


def _scaled(rows: Sequence[JobRow], begun: Calibration) -> tuple[float, Calibration]:
    """The one factor that few rows tell."""
    fit, logs = Fit(rows, begun, (SCALE,)), np.zeros(1)
    for _ in range(MOST_STEPS):
        off = float(fit.errors(logs).mean())
        logs = logs - off
        if abs(off) < NUDGE * NUDGE:
            break
    found = {**begun.constants, SCALE: round(begun.constants[SCALE] * float(np.exp(logs[0])), 6)}
    return fit.cost(logs), replace(begun, constants=found, fitted=(SCALE,))


def _told(rows: Sequence[JobRow], begun: Calibration) -> tuple[str, ...]:
    """The constants that some row depends on; where rows are few, those that are fitted then."""
    fit = Fit(rows, begun, NAMES)
    start = np.zeros(len(NAMES))
    along = paths(fit.of, fit.factors(start))
    depends = np.abs(fit.slopes(start, along)[1]).max(axis=1) > NUDGE
    models = len({row.model.name for row in rows})
    told = [
        each
        for each, is_told in zip(CONSTANTS, depends, strict=True)
        if is_told and models >= each.models and each.name not in HELD
    ]
    if len(rows) < ROWS_PER_CONSTANT * len(told):
        told = [each for each in told if each.few]
    return tuple(each.name for each in told)


class Fit:
    """One fit: rows, and what it changes: constants, each by a factor on where the fit of each row
    starts. Its logarithm is sought. ``where``: 1 for the rows that a factor is of, [name, row]."""

    def __init__(
        self,
        rows: Sequence[JobRow],
        begun: Calibration,
        names: Sequence[str],
        where: Floats | None = None,
        begin: Start = starts,
    ) -> None:
        self.of: JobColumns = prepared(begun.taken(rows), begun.card, begin)
        self.measured = np.array([row.measured_ms for row in rows])
        self.evidence = evidence(rows)
        self.names = tuple(names)
        self.where = np.ones((len(names), len(rows))) if where is None else where
        spread = {each.name: each.spread for each in CONSTANTS}
        self.precision = np.array([spread[name] ** -2 for name in names])

    def factors(self, logs: Floats) -> dict[str, Floats]:
        """The factor of each constant on each row; of several sets of logarithms, [set, row].

        Parameters
        ----------
        logs
            The logarithm of each constant's factor, in the order of ``names``.
        """
        found = {name: np.ones((*logs.shape[:-1], len(self.measured))) for name in NAMES}
        for number, name in enumerate(self.names):
            found[name] = found[name] * np.exp(logs[..., [number]] * self.where[number])
        return found

    def errors(self, logs: Floats, along: Sequence[Path] | None = None) -> Floats:
        """Logarithms of estimated over measured time, along the longest paths or given ones.

        Parameters
        ----------
        logs
            The logarithm of each constant's factor, in the order of ``names``.
        """
        along = along or paths(self.of, self.factors(logs))
        return np.asarray(np.log(predicted(self.of, along, self.factors(logs)) / self.measured))

    def cost(self, logs: Floats, along: Sequence[Path] | None = None) -> float:
        """What is minimised.

        Parameters
        ----------
        logs
            The logarithm of each constant's factor, in the order of ``names``.
        """
        s, errors = SPREAD_OF_ROWS, self.errors(logs, along)
        rows = self.evidence @ (s**2 * np.log1p((errors / s) ** 2))
        return float(rows + self.precision @ logs**2)

    def slopes(self, logs: Floats, along: Sequence[Path]) -> tuple[Floats, Floats]:
        """Errors, and their derivatives by each logarithm, [constant, row].

        Parameters
        ----------
        logs
            The logarithm of each constant's factor, in the order of ``names``.
        """
        sets = np.vstack([logs, logs + NUDGE * np.eye(len(logs))])
        errors = self.errors(sets, along)
        return errors[0], (errors[1:] - errors[0]) / NUDGE

    def run(self, logs: Floats, known: Sequence[Path] | None = None) -> tuple[Floats, float]:
        """The logarithms at the end of a search from there, and the cost; on ``known`` paths.

        Parameters
        ----------
        logs
            Where the search starts: a logarithm of each factor, in the order of ``names``.
        """
        damping, before = 1e-3, float("inf")
        for _ in range(MOST_STEPS):
            along = known or paths(self.of, self.factors(logs))
            cost = self.cost(logs, along)
            if before - cost < ENOUGH * cost:
                break
            before = cost
            errors, slopes = self.slopes(logs, along)
            bend = self.evidence / (1 + (errors / SPREAD_OF_ROWS) ** 2)
            square = (slopes * bend) @ slopes.T + np.diag(self.precision)
            down = (slopes * bend) @ errors + self.precision * logs
            while damping < MOST_DAMPING:
                step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -down)
                if self.cost(logs + step, along) < cost:
                    logs, damping = logs + step, damping / 8
                    break
                damping *= 4
        return logs, self.cost(logs, known)


def evidence(rows: Sequence[JobRow]) -> Floats:
    """u of each row: more for rows that are fast for their job."""
    best: dict[object, float] = {}
    for row in rows:
        best[row.job] = min(best.get(row.job, row.measured_ms), row.measured_ms)
    slower = np.array([row.measured_ms / best[row.job] - 1 for row in rows])
    each = EVIDENCE * max(1.0, FEW_ROWS / len(rows))
    return np.asarray(each * (LEAST + np.exp(-slower / SLOWER)))
