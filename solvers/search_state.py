"""What every search is: its incumbent, its bounds, its budget, its report, its loop, its answer.

A search (``search``, ``choices_search``, ``repair``) is this and a list of methods, which are run
in turn until nothing more is wanted. A search within another has a part of its budget, and counts
its work there. Everything is judged by ``verify`` before it counts: a schedule by the checker, a
bound by its certificate. What contradicts it (``solvers.gate``) ends the search with
``FaultError``: a bound above a checked schedule's value, whichever came first. What remains is the
solver's claim, and the result calls it that (``Result.proof``). A certificate that its checker
refuses is left out, and ``Result.reason`` says so: it proves nothing, and what was accepted
before remains valid.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from bubbleproof.platforms import has_memory_limits
from bubbleproof.solvers.encoding import Objective
from bubbleproof.solvers.engines.engine import Budget, ReportProgress
from bubbleproof.solvers.gate import BoundClaim, refusal, strongest, value_of
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import MeasuredSchedule, Result, Status
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate_rule import Certificate

INTERRUPTED = "interrupted: the best so far"
LATE = "the clock ended the search before its work was done: another run may find more"
SPENT = "the limit of work ended the search: more work may find more"
Method = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Incumbent:
    """A schedule of ``problem`` that the checker accepts, and who found it.

    Where choices are left to the search, ``problem`` is the one in which the options ``taken`` are.
    """

    problem: Problem
    schedule: Schedule
    measured: Measures
    origin: str
    taken: tuple[int, ...] = ()

    @property
    def found(self) -> MeasuredSchedule:
        """The schedule with its measures, as a result holds them."""
        return MeasuredSchedule(schedule=self.schedule, measured=self.measured)


def whole_of(options: SolveOptions) -> Budget:
    """All that the options grant, from now on."""
    return Budget(
        deadline=time.perf_counter() + options.time_limit,
        work=inf if options.work is None else options.work,
        seed=options.seed,
        threads=options.threads,
        stop=options.stop,
        memory=options.memory,
    )


def in_turn(
    methods: Iterable[Method],
    stop: threading.Event,
    is_done: Callable[[], bool] = lambda: False,
    last: Method = lambda: None,
) -> None:
    """The methods, each as it is asked for, until all is done, then the last.

    Ctrl-C ends them with what is there, and sets ``stop``.

    Parameters
    ----------
    stop
        What Ctrl-C sets.
    is_done
        Whether nothing more is wanted, asked before each method.
    """
    try:
        for method in methods:
            if is_done():
                break
            method()
        last()
    except KeyboardInterrupt:
        stop.set()


class SearchState:
    """The incumbent and the bounds as they improve."""

    ALL_SCHEDULES: ClassVar[str] = "every schedule"  # what an engine refutes
    ALL_CHOICES: ClassVar[str] = ""  # what a certified bound is about, beyond that

    def __init__(
        self,
        options: SolveOptions,
        objective: Objective = "makespan",
        whole: Budget | None = None,
    ) -> None:
        self.options, self.objective = options, objective
        self.began, self.whole = time.perf_counter(), whole or whole_of(options)
        self.meter = self.whole.meter
        self.done_before = self.meter.units
        self.best: Incumbent | None = None
        self.certificate: Certificate | None = None
        self.certified = BoundClaim(who="no certificate", bound=0)
        self.claimed = BoundClaim(who="no engine", bound=0)
        self.refusals: dict[str, None] = {}  # a line for each certificate that was refused
        self.is_refuted = False
        self.engine = ""  # the one that was called last

    @property
    def value(self) -> int | None:
        """The objective's value of the incumbent."""
        return None if self.best is None else value_of(self.best.measured, self.objective)

    @property
    def lower_bound(self) -> int:
        """The best certified bound."""
        return self.certified.bound

    @property
    def bound(self) -> int:
        """The best bound, certified or claimed by a solver."""
        return max(self.certified.bound, self.claimed.bound)

    @property
    def is_closed(self) -> bool:
        """Whether the incumbent meets a bound."""
        return self.value is not None and self.value <= self.bound

    @property
    def is_done(self) -> bool:
        """Whether nothing more is wanted, or can be had."""
        return self.is_closed or self.is_refuted

    @property
    def work(self) -> float:
        """Units that were done."""
        return self.meter.units - self.done_before

    def budget(self, share: float = 1.0, report: ReportProgress | None = None) -> Budget:
        """A share of what is left.

        Parameters
        ----------
        share
            Between 0 and 1, of the work where that is limited, else of the time.
        report
            Who hears of an engine's progress.
        """
        return self.whole.part(share, report)

    def take(self, *methods: Method, last: Method = lambda: None) -> None:
        """The methods in turn until all is done, then the last."""
        in_turn(methods, self.options.stop, lambda: self.is_done, last)

    def offer(self, found: Incumbent) -> None:
        """Keep a schedule that the checker accepts if it is the best so far."""
        value = value_of(found.measured, self.objective)
        for claim in (self.certified, self.claimed):
            claim.require(value, found.origin)
        if self.value is None or value < self.value:
            self.best = found
            self.report(found.origin)

    def admit(self, certificate: Certificate, who: str, problem: Problem) -> None:
        """Keep a certificate, if its checker accepts it, with the most that its proof shows.

        Parameters
        ----------
        who
            Who made the certificate.
        problem
            What it is about.
        """
        if (refused := refusal(who, certificate, problem, self.objective)) is not None:
            self.refusals[refused] = None
            return
        certificate = strongest(certificate, problem, self.value)
        certified = BoundClaim(who=f"the certificate of {who}", bound=certificate.bound)
        self.require(certified)
        self.certified, self.certificate = certified, certificate
        self.report(who)

    def claim(self, who: str, bound: int) -> None:
        """Keep an engine's bound if it is the best, unless a schedule contradicts it.

        Parameters
        ----------
        who
            The engine's name.
        bound
            Ticks.

        Raises
        ------
        FaultError
            Where a schedule that was checked is below the bound.
        """
        claim = BoundClaim(who=who, bound=bound)
        self.require(claim)
        if bound > self.bound:
            self.claimed = claim

    def require(self, claim: BoundClaim) -> None:
        """Raise ``FaultError`` where the incumbent contradicts the claim."""
        claim.require(self.value, "" if self.best is None else self.best.origin)

    def report(self, who: str, value: int | None = None, bound: int | None = None) -> None:
        """Tell the caller what is known, or what an engine says that it knows.

        Parameters
        ----------
        who
            The method or the engine.
        value
            The best value that it has; None for the best that was checked.
        bound
            The best bound that it has, in ticks; None for the best that is kept.
        """
        if self.options.progress is not None:
            best = self.value if value is None else value
            seconds = time.perf_counter() - self.began
            self.options.progress(who, best, max(bound or 0, self.bound), seconds)

    def conclude(self, reason: str = "") -> Result:
        """The answer; a schedule beyond ``options.within`` is none.

        Parameters
        ----------
        reason
            What the result says where nothing else is to be said.
        """
        within, objective = self.options.within, self.objective
        if self.options.stop.is_set():
            reason = INTERRUPTED
        elif not self.is_done:
            reason = reason or self._ended_by
        if self.value is not None and (within is None or self.value <= within):
            return self.result(Status.OPTIMAL if self.is_closed else Status.FEASIBLE, reason)
        self.best = None
        if within is not None and self.lower_bound > within:
            bound = f"{self.lower_bound} is certified{self.ALL_CHOICES}"
            return self.result(Status.INFEASIBLE, f"{objective} <= {within} cannot be: {bound}")
        if self.is_refuted or (within is not None and self.bound > within):
            limit = "" if within is None else f" with {objective} <= {within}"
            reason = f"{self.engine} refuted {self.ALL_SCHEDULES}{limit} (not certified)"
            return self.result(Status.INFEASIBLE, reason, is_claimed=True)
        return self.result(Status.UNKNOWN, reason)

    @property
    def _ended_by(self) -> str:
        """Which limit ended the search, where one of work was set."""
        if self.whole.is_late:
            return LATE
        return SPENT if self.meter.units >= self.whole.work else ""

    def result(self, status: Status, reason: str = "", *, is_claimed: bool = False) -> Result:
        """The answer as it stands.

        Parameters
        ----------
        reason
            What goes before the refusals of certificates.
        is_claimed
            Whether a solver's claim is all that INFEASIBLE rests on.
        """
        best, losses = self.best, tuple(dict.fromkeys(self.whole.losses))
        told = [str(loss) for loss in losses]
        if self.options.memory is not None and not has_memory_limits():
            told.append(f"{sys.platform} limits no memory of a process: engines had no limit")
        return Result(
            status=status,
            found=None if best is None else best.found,
            lower_bound=self.lower_bound,
            certificate=self.certificate,
            engine_bound=self.claimed.bound or None,
            origin="" if best is None else best.origin,
            seconds=time.perf_counter() - self.began,
            work=self.work,
            reason="; ".join(line for line in (reason, *self.refusals, *told) if line),
            objective=self.objective,
            is_claimed=is_claimed,
            losses=losses,
        )
