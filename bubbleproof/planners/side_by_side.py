"""Configurations of one's own (``own_run``): one alone, or two compared.

The difference of two is given by term of the time and by kind of the memory; its causes are the
changes from the longer to the shorter one that save most, each made alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import ClassVar

from bubbleproof.costs.utilisation import utilisation
from bubbleproof.facts import Fact, FactCells, FactSource, keyed
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.formats.clusters.own_files import own_of
from bubbleproof.planners.cluster_results import UNIT, AnyOwn, estimate_error, fits_text, room_text
from bubbleproof.planners.configuration_words import (
    amount_of,
    deployment_parts,
    in_words,
    more,
)
from bubbleproof.planners.fitting_changes import own_with_fits
from bubbleproof.planners.own_run import NotLegalRun, OwnRun, changed, own_run
from bubbleproof.planners.own_savings import savings
from bubbleproof.report.amounts import time

NAMES = ("first", "second")
LEAST = 0.001  # of the longer iteration: a term that differs less is not named


def own_asked(file: ClusterFile, text: str | None, seconds: float = inf) -> AnyOwn:
    """The run of a configuration, or why it is none.

    Parameters
    ----------
    text
        Words such as ``tensor=4 pipeline=4``, or the name of a file; None where nobody asks.
    seconds
        For which is looked at most by what it fits, where it does not.

    Raises
    ------
    ValueError
        For other words.
    """
    if text is None:
        return None
    began, own = perf_counter(), _precise(file, own_of(text, file.training))
    try:
        run = own_run(file, own)
        return own_with_fits(file, run, seconds, perf_counter() - began)
    except NotLegalRun as why:
        return why


def _precise(file: ClusterFile, own: OwnConfiguration) -> OwnConfiguration:
    """With its precision told, where it is not that of all deployments."""
    usual = file.training.deployment.precision
    told = own.combination.precision or usual
    precision = told if file.lists.precision[0] or told != usual else ""
    return replace(own, combination=replace(own.combination, precision=precision))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideBySide(FactSource):
    """Two runs of one job."""

    file: ClusterFile
    first: OwnRun
    second: OwnRun
    columns: ClassVar[FactCells] = ("of an iteration", "first", "second", "second less first")

    def __repr__(self) -> str:
        return f"<SideBySide: {self.lines[0]}>"

    @property
    def name(self) -> str:
        """That of the job."""
        return self.file.name

    @property
    def both(self) -> tuple[OwnRun, OwnRun]:
        """In the order in which they were given."""
        return self.first, self.second

    @property
    def times(self) -> Mapping[str, tuple[int, int]]:
        """Microseconds of each term, of both."""
        return _beside(self.first.parts.named, self.second.parts.named)

    @property
    def kinds(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of the fullest card by kind, of both."""
        return _beside(self.first.memory.named, self.second.memory.named)

    @property
    def causes(self) -> tuple[tuple[str, int], ...]:
        """What makes the shorter one so: changes of the longer, and what each alone saves."""
        best, other = sorted(self.both, key=lambda run: run.iteration)
        saved = savings(self.file, other, best.combination, best.candidate)
        return tuple((each.change, each.saves) for each in saved)

    def facts(self) -> list[Fact]:
        """Both with their terms, and the difference."""
        value = {
            name: {**run.to_json(), "mfu": round(utilisation(self.file.training, run.iteration), 4)}
            for name, run in zip(NAMES, self.both, strict=True)
        }
        causes = [{"change": change, "value": saves} for change, saves in self.causes]
        terms = {"time": self.times, "memory": self.kinds}
        difference = {
            key: {name: b - a for name, (a, b) in each.items()} for key, each in terms.items()
        }
        return [
            *keyed(name=self.name, unit=UNIT, **value),
            _fact("iteration", (self.first.iteration, self.second.iteration), UNIT),
            *(_fact(name, each, UNIT) for name, each in self.times.items()),
            _fact("memory", (self.first.on_card, self.second.on_card), "bytes"),
            *(_fact(name, each, "bytes") for name, each in self.kinds.items()),
            *keyed(difference=difference, causes=causes, error=estimate_error(self.file).band),
        ]

    @property
    def lines(self) -> list[str]:
        """What is said of them, the answer first."""
        one, two = self.both
        error = estimate_error(self.file)
        best, other = sorted(run.iteration for run in self.both)
        even = f"; even: {error.told}" if error.is_even(other, best) else f"; {error.told}"
        which = "longer" if two.iteration > one.iteration else "shorter"
        told = f"{time(abs(two.iteration - one.iteration), UNIT)} {which}"
        verdict = (
            "EVEN     both take as long"
            if best == other
            else f"SECOND   {told} than the first ({more(two.iteration, one.iteration)}){even}"
        )
        lines = [verdict]
        lines += [f"{name:<8} {self._run(run)}" for name, run in zip(NAMES, self.both, strict=True)]
        pairs = self.times.items()
        terms = [(n, b - a) for n, (a, b) in pairs if abs(b - a) > LEAST * other]
        lines += _differences("time", terms, UNIT)
        kinds = [(n, b - a) for n, (a, b) in self.kinds.items() if abs(b - a) > 1 << 20]
        lines += _differences("memory", kinds, "bytes")
        settings = ", ".join(changed(one, two.combination, two.candidate))
        lines += [f"settings {settings}"] if settings else []
        alone = [f"{change} saves {time(saves, UNIT)}" for change, saves in self.causes]
        return [*lines, f"cause    by itself {', '.join(alone)}"] if alone else lines

    def _run(self, run: OwnRun) -> str:
        job = self.file.training
        name = in_words(deployment_parts(run.combination, run.candidate))
        mfu = f"MFU {100 * utilisation(job, run.iteration):.1f} %"
        held = amount_of(run.on_card, job.cluster.memory, "bytes")
        room = held if run.fits else room_text(self.file, run)
        told = [name, time(run.iteration, UNIT), mfu, room]
        told += [f"fits with {fits_text(run.fits_as)}"] if run.fits_as else []
        return " · ".join(told)


def side_by_side(file: ClusterFile, first: str, second: str) -> SideBySide:
    """Two configurations.

    Parameters
    ----------
    first, second
        As ``own_asked`` takes them.

    Raises
    ------
    ValueError
        For one that is none, or that does not run.
    """
    runs = []
    for text in (first, second):
        run = own_asked(file, text)
        if not isinstance(run, OwnRun):
            raise ValueError(f"{run}; use another, to put it beside one that runs")
        runs.append(run)
    return SideBySide(file=file, first=runs[0], second=runs[1])


def _beside(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (one[name], two[name]) for name in one}


def _fact(name: str, both: tuple[int, int], unit: str) -> Fact:
    """A row of the table."""
    wanted, told = (_amount(each, unit) for each in both)
    return Fact(label=name, wanted=wanted, told=told, verdict=_signed(both[1] - both[0], unit))


def _amount(value: int, unit: str) -> str:
    return time(value, unit) if unit == UNIT else amount_of(value, None, unit)


def _signed(value: int, unit: str) -> str:
    return f"{'-' if value < 0 else '+' if value else ''}{_amount(abs(value), unit)}"


def _differences(label: str, of: list[tuple[str, int]], unit: str) -> list[str]:
    """The second less the first, the most first."""
    told = [f"{n} {_signed(by, unit)}" for n, by in sorted(of, key=lambda each: -abs(each[1]))]
    return [f"{label:<8} {', '.join(told)}"] if told else []
