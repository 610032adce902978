"""The gate between engines and results: what an answer must survive before any of it counts.

Each function returns what may be used, or raises ``FaultError`` with the engine's name, what it
gave and what the checker found. None of it is an ``assert``: those are gone under ``python -O``.
What cannot be contradicted (a bound above which no schedule is known) stays the engine's word. A
certificate that is refused contradicts nothing, and proves nothing: it is left out, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.faults import FaultError
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate_decision import check_certificate
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.check import check
from bubbleproof.verify.verdict import Verdict

LATEST = 1 << 61  # ticks: sums of two starts still fit 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundClaim:
    """``who`` says that no schedule has an objective value below ``bound``."""

    who: str
    bound: int

    def require(self, value: int | None, holder: str) -> None:
        """Raise ``FaultError`` where a checked schedule, by ``holder``, is below the bound.

        Parameters
        ----------
        value
            The schedule's value of the objective; None where there is none.
        holder
            Who found the schedule.
        """
        if value is not None and value < self.bound:
            raise FaultError(
                self.who,
                f"the bound {self.bound}",
                f"the checker accepts a schedule of {value} ({holder})",
            )


def starts_from(who: str, start: Ints, problem: Problem) -> Ints:
    """The starts of an engine, one per task in ticks, as numbers that the checker can take.

    Parameters
    ----------
    who
        The engine's name.
    start
        Ticks, as the engine gave them.

    Returns
    -------
    Ints
        Ticks, shape (num_tasks,), of type int64.
    """
    given = np.asarray(start)
    if given.shape != (problem.num_tasks,) or given.dtype.kind not in "iu":
        raise FaultError(
            who,
            f"{given.dtype} starts of shape {given.shape}",
            f"the problem has {problem.num_tasks} tasks, with a whole number of ticks each",
        )
    if len(given) and max(-int(given.min()), int(given.max())) > LATEST:
        raise FaultError(
            who, "starts beyond 2**61 ticks", "no schedule of the problem takes that long"
        )
    return given.astype(np.int64)


def schedule_from(who: str, start: Ints, problem: Problem) -> Schedule:
    """The schedule of an engine's starts, which the checker accepts.

    Parameters
    ----------
    who
        The engine's name.
    start
        Ticks per task, as the engine gave them.

    Raises
    ------
    FaultError
        Where these are no starts, or the checker refuses the schedule.
    """
    schedule = schedule_of_starts(problem, starts_from(who, start, problem))
    require_accepted(who, check(problem, schedule))
    return schedule


def value_of(measured: Measures, objective: Objective) -> int:
    """The objective's value in ticks."""
    return measured.makespan if objective == "makespan" else measured.span_idle


def checked_value(encoding: Encoding, start: Ints) -> int | None:
    """The objective's value of starts (ticks), or None where the checker refuses the schedule.

    Parameters
    ----------
    start
        Ticks per task, shape (num_tasks,).
    """
    verdict = check(encoding.problem, schedule_of_starts(encoding.problem, start))
    if not verdict.ok or verdict.measured is None:
        return None
    return value_of(verdict.measured, encoding.objective)


def require_accepted(who: str, verdict: Verdict) -> Measures:
    """The measures of a schedule that the checker accepted.

    Parameters
    ----------
    who
        Whose schedule was checked.

    Raises
    ------
    FaultError
        With the first violation of a refused schedule.
    """
    if not verdict.ok or verdict.measured is None:
        first = next(iter(verdict.violations), None)
        why = "" if first is None else f" ({first.message})"
        raise FaultError(who, "a schedule", f"the checker refuses it{why}")
    return verdict.measured


def bound_from(who: str, bound: object) -> int:
    """An engine's bound, a whole number of ticks.

    Parameters
    ----------
    who
        The engine's name.
    bound
        What the engine gave.

    Raises
    ------
    FaultError
        For what is no whole number.
    """
    if isinstance(bound, bool) or not isinstance(bound, int | np.integer):
        raise FaultError(who, f"the bound {bound!r}", "a bound is a whole number of ticks")
    return int(bound)


def refusal(who: str, certificate: Certificate, problem: Problem, objective: str) -> str | None:
    """None for a certificate of the objective that its checker accepts, else a line to report.

    Parameters
    ----------
    who
        Who made the certificate.
    objective
        ``makespan`` or ``span_idle``.
    """
    if certificate.objective != objective:
        why = f"it is about {certificate.objective}"
    else:
        finding = check_certificate(problem, certificate)
        if finding.ok:
            return None
        why = "; ".join(violation.message for violation in finding.violations)
    given = f"a certificate of {objective} >= {certificate.bound} ({who})"
    return f"{given} was refused and is not used: {why}; please report this"
