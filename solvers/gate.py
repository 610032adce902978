"""The gate between engines and results: what an answer must survive before any of it counts.

Each function returns what may be used, or raises ``FaultError`` with the engine's name, what it
gave and what the checker found. None of it is an ``assert``: those are gone under ``python -O``.
What cannot be contradicted (a bound above which no schedule is known) stays uncertified. A
certificate that is refused contradicts nothing, and proves nothing: it is left out, and said to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.faults import FaultError
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.certificate_rule import refusal as certificate_refusal
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


def strongest(certificate: Certificate, problem: Problem, most: int | None) -> Certificate:
    """The certificate with the greatest bound that its checker accepts of the same proof.

    What a search set out to show may be less than what it found. Precondition: the checker accepts
    the certificate as it is.

    Parameters
    ----------
    most
        The value of a checked schedule, beyond which nothing is proved; None where none is known.
        Then it is the ticks in which all is done one after the other: what takes longer does not
        exist, and any proof of it proves everything.
    """
    if most is None:
        most = int(problem.duration.sum() + np.maximum(problem.edges.lag, 0).sum())

    def proves(bound: int) -> bool:
        return certificate_refusal(problem, replace(certificate, bound=bound)) is None

    return replace(certificate, bound=greatest(certificate.bound, most, proves))


def greatest(least: int, most: int, proves: Callable[[int], bool]) -> int:
    """The greatest bound up to ``most`` that is proved, by steps that double and then by halving.

    The bound above it is not proved, or it is ``most``.

    Parameters
    ----------
    least
        A bound in ticks that is proved.
    most
        A bound that nothing exceeds.
    proves
        Whether a bound is proved.
    """
    step = 1
    while least < most and proves(min(least + step, most)):
        least, step = min(least + step, most), 2 * step
    beyond = min(least + step, most)
    while beyond - least > 1:
        half = (least + beyond) // 2
        least, beyond = (half, beyond) if proves(half) else (least, half)
    return least
