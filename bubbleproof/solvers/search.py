"""One search: the least makespan or span_idle of one problem.

Bounds first, then published orders and list scheduling, then an exact engine; most instances need
none. Everything is judged by ``verify`` before it counts: a schedule by the checker, a bound by its
certificate. An engine runs in a thread of its own, so that Ctrl-C and time limits reach it.

An answer that contradicts what is checked (``solvers.gate``) ends the search with ``FaultError``:
a schedule that is refused, a bound above a checked schedule's value, whichever came first, a
refuted limit within which a schedule is known. What remains is the engine's word, and the result
calls it that (``Result.proof``). A certificate that its checker refuses is left out, and
``Result.reason`` tells of it: it proves nothing, and what was accepted before stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from bubbleproof.faults import FaultError
from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.contradictions import cycle, overfull
from bubbleproof.solvers.demands import Demands, broken_by
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import Budget, engine, has_sat
from bubbleproof.solvers.engines.engine import Outcome, Report
from bubbleproof.solvers.engines.thread import run_interruptibly
from bubbleproof.solvers.gate import Claim, bound_from, refusal, schedule_from
from bubbleproof.solvers.greedy import greedy_programs
from bubbleproof.solvers.large import LEAST_MICROBATCHES, LargeSearch
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.propagation import narrow, windows
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.starts import schedule_of_starts, starts_by_task
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.certificates.certificate import Certificate, Drup
from bubbleproof.verify.check import check

MOST_LISTED = 5_000  # tasks: beyond, list scheduling takes seconds for each of its orders
MOST_SEARCHED = 10_000  # tasks: beyond, an engine has not found anything in minutes
MOST_REFUTED = 2_000  # tasks: beyond, a DRUP certificate takes minutes
NARROWING, CERTIFYING = 4.0, 3.0  # seconds at most, unless a certificate is asked for
# Of the time left, for the engines that "auto" calls in turn, up to so many tasks.
PARTS = (("cpsat", 0.4, MOST_SEARCHED), ("sat", 0.3, 1_000), ("cpsat", 0.9, MOST_SEARCHED))
INTERRUPTED = "interrupted: the best so far"


class Search:
    """The incumbent and the bounds of one problem as they improve.

    ``is_enough``: any schedule within ``options.within`` will do; ``is_certifying``: time is
    spent on certificates beyond the first. ``problem`` is the given one with the demands.
    """

    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        objective: Objective = "makespan",
        *,
        demands: Demands | None = None,
        is_enough: bool = False,
        is_certifying: bool = True,
    ) -> None:
        demands = demands or Demands()
        self.problem, self.latest = demands.demanding(problem), demands.latest(problem)
        problem = self.problem
        self.options, self.objective = options, objective
        self.is_enough, self.is_certifying = is_enough, is_certifying
        self.began = time.perf_counter()
        self.schedule: Schedule | None = None
        self.measured: Measures | None = None
        self.origin = ""
        self.bounds: Bounds = lower_bounds(problem, objective)
        self.certificate: Certificate | None = None
        self.certified = Claim(who="no certificate", bound=0)
        self.refusals: dict[str, None] = {}  # a line for each certificate that was refused
        self.claimed: Claim | None = None  # by an engine alone
        self.is_refuted = False
        self.engine = ""  # the one that was called last

    def run(self, starts: Iterable[tuple[str, Program]]) -> Result:
        """Search; the starts are programs to begin from, those that do not fit are passed over."""
        if (reason := overfull(self.problem, self.bounds.order)) is not None:
            return self._result(Status.INFEASIBLE, reason)
        if self.bounds.is_cyclic:
            reason, takes_time = cycle(self.problem, self.bounds.edges)
            return self._result(Status.INFEASIBLE if takes_time else Status.UNKNOWN, reason)
        try:
            self._certify()
            self._try_programs(starts)
            if self._is_open and self.is_certifying:
                self._narrow(NARROWING)
            self._search()
        except KeyboardInterrupt:
            self.options.stop.set()
        return self._conclude(INTERRUPTED if self.options.stop.is_set() else "")

    def _search(self) -> None:
        """Engines in turn; after each, its schedule may be all that a proof by probing needs."""
        if self.options.engine != "auto":
            self._call_engine(self.options.engine, 1.0)
        else:
            for name, share, most_tasks in PARTS:
                if self.problem.num_tasks > most_tasks or (name == "sat" and not has_sat()):
                    continue
                if self._is_open and not self.is_refuted:
                    self._call_engine(name, share)
                if self._is_open and not self.is_refuted and self.is_certifying:
                    self._narrow(NARROWING)
        self._certify_claim()

    def _conclude(self, reason: str) -> Result:
        within = self.options.within
        if self._value is not None and (within is None or self._value <= within):
            return self._result(Status.OPTIMAL if self._closed else Status.FEASIBLE, reason)
        self.schedule = self.measured = None
        if within is not None and self._lower_bound > within:
            reason = f"{self.objective} <= {within} cannot be: {self._lower_bound} is certified"
            return self._result(Status.INFEASIBLE, reason)
        if self.is_refuted:
            limit = "" if within is None else f" with {self.objective} <= {within}"
            reason = f"{self.engine} refuted every schedule{limit} (not certified)"
            return self._result(Status.INFEASIBLE, reason)
        return self._result(Status.UNKNOWN, reason)

    def _try_programs(self, starts: Iterable[tuple[str, Program]]) -> None:
        """Published orders, list scheduling and, for many microbatches, lengthened schedules."""
        for name, program in starts:
            self._try_program(name, program)
        large = self._large_search()
        if large is not None:
            self._try_stretched(large, large.by_list_scheduling())
        if self.problem.num_tasks <= MOST_LISTED:
            for program in greedy_programs(self.problem, self.bounds):
                if self._done or self.options.stop.is_set():
                    break
                self._try_program("greedy", program)
        if large is not None and large.has_many:
            self._try_stretched(large, large.by_engine())
        elif large is not None:
            self._try_stretched(large, large.above(self._lower_bound))

    def _large_search(self) -> LargeSearch | None:
        order = self.bounds.order
        if self.objective != "makespan" or self.options.engine != "auto":
            return None
        if order is None or order.num_microbatches < LEAST_MICROBATCHES:
            return None
        return LargeSearch(self.problem, order, self._budget(report=None))

    def _try_stretched(self, large: LargeSearch, schedules: Iterator[Schedule]) -> None:
        large.best = self._value
        while not self._done and (schedule := next(schedules, None)) is not None:
            self._try_schedule("stretch", schedule)
            large.best = self._value

    def _budget(self, report: Report | None) -> Budget:
        options = self.options
        return Budget(
            deadline=self.began + options.time_limit,
            seed=options.seed,
            threads=options.threads,
            report=report,
            stop=options.stop,
        )

    @property
    def _is_open(self) -> bool:
        """Whether an engine may still bring something, and the instance is not beyond it."""
        is_in_reach = self.problem.num_tasks <= MOST_SEARCHED
        return not self._done and is_in_reach and self._budget(None).seconds > 0

    @property
    def _done(self) -> bool:
        """Whether nothing more is wanted, or a certificate says that it cannot be had."""
        within = self.options.within
        if within is not None and self._lower_bound > within:
            return True
        has_enough = self._value is not None and (within is None or self._value <= within)
        return self._closed or (self.is_enough and has_enough)

    @property
    def _value(self) -> int | None:
        """The objective's value of the incumbent."""
        return None if self.measured is None else self._value_of(self.measured)

    def _value_of(self, measured: Measures) -> int:
        is_makespan = self.objective == "makespan"
        return measured.makespan if is_makespan else measured.span_idle

    @property
    def _closed(self) -> bool:
        """Whether the checked schedule meets a bound."""
        return self._value is not None and self._value <= max(
            self._lower_bound, self.engine_bound or 0
        )

    @property
    def _lower_bound(self) -> int:
        return self.certified.bound

    @property
    def engine_bound(self) -> int | None:
        """The best bound that is only an engine's word."""
        return None if self.claimed is None else self.claimed.bound

    def _certify(self) -> None:
        """The one-machine bound, checked."""
        self._admit(self.bounds.best, "bounds")

    def _narrow(self, seconds: float) -> None:
        """A better bound by propagation and probing, and the schedules met on the way."""
        upper = self._limit
        if upper is not None and self._value is None:
            upper += 1  # beyond it lies nothing that is wanted
        deadline = time.perf_counter() + min(seconds, self._budget(None).seconds)
        found = narrow(self.problem, self.bounds, upper, deadline, known=self._lower_bound)
        if found.schedule is not None:
            self._try_schedule("probing", found.schedule)
        self._accept(found.certificate, "propagation")

    def _certify_claim(self) -> None:
        """A certificate for what so far is only an engine's word."""
        if not self.is_certifying or not (self._closed or self.is_refuted):
            return
        seconds = self._budget(None).seconds
        end = time.perf_counter() + (
            seconds if self.options.certified else min(CERTIFYING, seconds)
        )
        for attempt, share in ((self._narrow, 0.6), (self._refute, 1.0)):
            left = min(end - time.perf_counter(), self._budget(None).seconds)
            if left > 0 and self.engine_bound is not None and self.engine_bound > self._lower_bound:
                attempt(share * left)

    def _refute(self, seconds: float) -> None:
        """A DRUP certificate of the engine's bound, or a schedule that gives it the lie."""
        claim = self.engine_bound
        if claim is None or self.problem.num_tasks > MOST_REFUTED or not has_sat():
            return
        from bubbleproof.solvers.proofs import settle

        found = run_interruptibly(
            lambda: settle(
                self.problem,
                self.bounds,
                claim,
                objective=self.objective,
                deadline=time.perf_counter() + seconds,
                stop=self.options.stop,
            ),
            self.options.stop,
        )
        if found is None or isinstance(found, Drup):
            self._accept(found, "sat")
        else:  # starts that stay below the claim, unless the checker refuses them
            self._try_schedule("sat", schedule_of_starts(self.problem, found))

    def _accept(self, certificate: Certificate | None, who: str) -> None:
        """Keep a certificate that proves more, if its checker accepts it."""
        if certificate is not None and certificate.bound > self._lower_bound:
            self._admit(certificate, who)

    def _admit(self, certificate: Certificate, who: str) -> None:
        if (refused := refusal(who, certificate, self.problem, self.objective)) is not None:
            self.refusals[refused] = None
            return
        certified = Claim(who=f"the certificate of {who}", bound=certificate.bound)
        certified.require(self._value, self.origin)
        self.certified, self.certificate = certified, certificate
        self._report(who)

    @property
    def _limit(self) -> int | None:
        """The largest value of interest: the incumbent's, or what is wanted."""
        wanted = [v for v in (self._value, self.options.within) if v is not None]
        return min(wanted, default=None)

    def _try_program(self, name: str, program: Program) -> None:
        try:
            schedule = left_shift(self.problem, program)
        except UntimedProgram:
            return
        self._try_schedule(name, schedule)

    def _try_schedule(self, name: str, schedule: Schedule) -> bool:
        """Whether the checker accepts the schedule; keep it if it is the best so far."""
        verdict = check(self.problem, schedule)
        if not verdict.ok or verdict.measured is None:
            return False
        if len(self.latest) and broken_by(self.problem, self.latest, schedule):
            return False
        for claim in (self.certified, self.claimed):
            if claim is not None:
                claim.require(self._value_of(verdict.measured), name)
        if self._value is None or self._value_of(verdict.measured) < self._value:
            self.schedule, self.measured, self.origin = schedule, verdict.measured, name
            self._report(name)
        return True

    def _call_engine(self, name: str, share: float) -> None:
        """Let an engine improve the incumbent and the bound in a share of the time left."""
        limit = self._limit
        encoding = Encoding(
            self.problem,
            self.bounds,
            objective=self.objective,
            limit=limit,
            least=self._lower_bound,
            extra=self.latest,
            windows=self._windows(limit),
        )
        budget = self._budget(self._engine_progress)
        budget = replace(budget, deadline=time.perf_counter() + share * budget.seconds)
        hint = None if self.schedule is None else starts_by_task(self.problem, self.schedule)
        search = engine(name)
        self.engine = name
        outcome = run_interruptibly(lambda: search(encoding, hint, budget), budget.stop)
        self._judge(name, outcome, encoding.limit)

    def _judge(self, name: str, outcome: Outcome, limit: int) -> None:
        """Take from an engine's answer what nothing contradicts."""
        if outcome.start is not None:
            found = schedule_from(name, outcome.start, self.problem)
            if not self._try_schedule(name, found):
                raise FaultError(name, "a schedule", "it does not keep the starts demanded")
        bound = 0 if outcome.bound is None else bound_from(name, outcome.bound)
        claim = Claim(who=name, bound=max(bound, limit + 1) if outcome.is_refuted else bound)
        claim.require(self._value, self.origin)
        self.is_refuted |= outcome.is_refuted
        if claim.bound > max(self._lower_bound, self.engine_bound or 0):
            self.claimed = claim

    def _windows(self, limit: int | None) -> tuple[Ints, Ints] | None:
        """Where propagation puts every start, for an engine to begin from."""
        if limit is None or self.objective != "makespan" or len(self.latest):
            return None
        return windows(self.problem, self.bounds, limit)

    def _engine_progress(self, value: int | None, bound: int | None) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.began
            best = self._value if value is None else value
            known = max(bound or 0, self._lower_bound)
            self.options.progress(self.engine, best, known, seconds)

    def _report(self, who: str) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.began
            self.options.progress(who, self._value, self._lower_bound, seconds)

    def _result(self, status: Status, reason: str = "") -> Result:
        return Result(
            status=status,
            schedule=self.schedule,
            measured=self.measured,
            lower_bound=self._lower_bound,
            certificate=self.certificate,
            engine_bound=self.engine_bound,
            origin=self.origin,
            seconds=time.perf_counter() - self.began,
            reason="; ".join(line for line in (reason, *self.refusals) if line),
            objective=self.objective,
            is_claimed=self.is_refuted and self.schedule is None,
        )
