"""Calls of engines in a process of their own, for those that need more than a finished model.

CP-SAT is sent away model by model (``cpsat_solver``), and CBC is a program by itself. The others
have a process of their own for the whole of their work: wherever memory is limited, and where a
problem is so large that the start (a second, for all that they import) does not matter. What they
tell on the way is passed on: values and bounds to the budget's ``report``, starts to its ``keep``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
from typing import cast

from bubbleproof.engine_process.hosted import CallLimits, call
from bubbleproof.engine_process.loss import EngineLostError
from bubbleproof.engine_process.served import CallInside
from bubbleproof.solvers.encoding import Encoding
from bubbleproof.solvers.engines.engine import Budget, Engine, EngineOutcome, Meter
from bubbleproof.theory.model.actions import Ints

CALLED = f"{__name__}:called"
NOTHING: Mapping[str, object] = {}
LARGE = 300  # tasks: from here on an engine takes seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetGiven:
    """What another process is told of a budget: work in units, none where it is not limited."""

    seed: int
    threads: int
    work: float
    is_reported: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """The best objective value and bound so far; or, alone, the starts of a better schedule."""

    value: int | None = None
    bound: int | None = None
    start: Ints | None = None


def apart(
    function: str,
    arguments: tuple[object, ...],
    budget: Budget,
    who: str,
    named: Mapping[str, object] = NOTHING,
) -> object:
    """What ``function``, ``module:name``, answers, called in a process of its own.

    It gets the arguments and the ``budget`` by that name, as far as a budget can be told. None
    where it is lost: then the budget's ``losses`` tell why.

    Parameters
    ----------
    function
        ``module:name`` of what is called.
    who
        The engine's name, for what is told of a loss.
    named
        Arguments by name, besides the budget.
    """
    given = BudgetGiven(
        seed=budget.seed,
        threads=budget.threads,
        work=budget.work - budget.meter.units if budget.is_counted else inf,
        is_reported=budget.report is not None,
    )

    def tell(told: object) -> None:
        pass_on(cast(ProgressReport, told), budget)

    found = answered(CALLED, (function, arguments, named, given), budget, who, tell)
    if found is None:
        return None
    answer, units = cast("tuple[object, float]", found)
    budget.meter.spend(units)
    return answer


def answered(
    function: str,
    arguments: tuple[object, ...],
    budget: Budget,
    who: str,
    on_told: Callable[[object], None],
) -> object | None:
    """What a function that takes a ``CallInside`` answers, called in a process of its own.

    Parameters
    ----------
    function
        ``module:name``.
    who
        The engine, for people to read where it is lost.
    on_told
        Called with each value that the function tells meanwhile.

    Returns
    -------
    object | None
        None where it was lost; the budget's ``losses`` say why.
    """
    limits = CallLimits(left=lambda: budget.seconds, memory=budget.memory)
    try:
        return call(function, arguments, limits, who=who, on_told=on_told)
    except EngineLostError as lost:
        budget.losses.append(lost.loss)
        return None


def pass_on(told: ProgressReport, budget: Budget) -> None:
    """Tell the budget what an engine has told."""
    if told.start is not None:
        if budget.keep is not None:
            budget.keep(told.start)
    elif budget.report is not None:
        budget.report(told.value, told.bound)


def called(
    inside: CallInside,
    function: str,
    arguments: tuple[object, ...],
    named: Mapping[str, object],
    given: BudgetGiven,
) -> tuple[object, float]:
    """In the other process: the function's answer, and the units of work that it took.

    Parameters
    ----------
    function
        ``module:name`` of what is called.
    named
        Arguments by name, besides the budget.
    """

    def report(value: int | None, bound: int | None) -> None:
        inside.tell(ProgressReport(value=value, bound=bound))

    budget = Budget(
        deadline=inside.deadline,
        seed=given.seed,
        threads=given.threads,
        report=report if given.is_reported else None,
        keep=lambda start: inside.tell(ProgressReport(start=start)),
        stop=inside.stop,
        work=given.work,
        meter=Meter(),
    )
    module, _, name = function.partition(":")
    answer = getattr(import_module(module), name)(*arguments, **named, budget=budget)
    return answer, budget.meter.units


@dataclass(slots=True, kw_only=True)
class _SoFar:
    """What an engine has told until it was lost."""

    start: Ints | None = None
    bound: int | None = None

    def keep(self, start: Ints) -> None:
        self.start = start


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartEngine:
    """An engine whose search, ``module:name``, may have a process of its own.

    ``is_heavy``: it has one for a large problem even where memory is not limited.
    """

    name: str
    function: str
    is_heavy: bool

    def __call__(self, encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
        is_large = self.is_heavy and encoding.problem.num_tasks >= LARGE
        if budget.memory is None and not is_large:
            module, _, name = self.function.partition(":")
            search: Engine = getattr(import_module(module), name)
            return search(encoding, hint, budget)
        return self._apart(encoding, hint, budget)

    def _apart(self, encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome:
        so_far, told = _SoFar(), budget.report

        def report(value: int | None, bound: int | None) -> None:
            so_far.bound = bound
            if told is not None:
                told(value, bound)

        heard = replace(budget, report=report, keep=so_far.keep)
        found = apart(self.function, (encoding, hint), heard, self.name)
        if found is None:
            return EngineOutcome(start=so_far.start, bound=so_far.bound)
        return cast(EngineOutcome, found)
