"""The search behind ``solvers.choices``: one menu, its incumbent and its bounds as they improve.

The steps, each only if the ones before left a gap:

1. the floor (``solvers.menu``): what holds whatever is chosen. Its certified bound holds for every
   choice, and so does what an engine claims of it;
2. the plain problem, with nothing taken, and published orders;
3. the order of computations of the best schedules of the floor, kept, with transfers put between;
4. everything in index order. Where all options are for whole stages this is exact (lemma 1 of
   ``solvers.menu_order``); else it only finds schedules;
5. options per microbatch: the relaxation that forgets whose transfer is whose gives a bound
   (``engines.cpsat_anonymous``), and last the exact model with one class in index order (lemma 2).

OPTIMAL rests on the floor's certificate where the schedule meets it, else on the engine's word.
What a model answers goes through ``solvers.gate``: where it contradicts what is checked, the search
ends with ``FaultError``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bubbleproof.faults import FaultError
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.engines.menu_frame import Choice, Frame, is_anchored, menu_engine
from bubbleproof.solvers.engines.thread import run_interruptibly
from bubbleproof.solvers.floor_order import FloorOrder, good_orders, starts_of
from bubbleproof.solvers.gate import Claim, bound_from, require_accepted, starts_from
from bubbleproof.solvers.menu import Menu
from bubbleproof.solvers.menu_order import Symmetry, can_be_anonymous, symmetry
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.search import INTERRUPTED
from bubbleproof.solvers.solve import solve
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.verify.certificates.certificate import Certificate
from bubbleproof.verify.check import check

Starts = Iterable[tuple[str, Program]]
RISE = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0)  # of the way from an order's floor to what is known
MOST_ORDERS = 3  # published and floor orders that are tried with transfers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MenuResult:
    """``result`` holds on ``problem``, the concrete problem in which ``taken`` options are taken.

    Without a schedule nothing is taken. ``floor_certificate`` proves ``result.lower_bound`` on
    ``floor``, which holds whatever is chosen.
    """

    result: Result
    taken: tuple[int, ...]
    problem: Problem
    floor: Problem
    floor_certificate: Certificate | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Incumbent:
    taken: tuple[int, ...]
    problem: Problem
    schedule: Schedule
    measured: Measures
    origin: str


class MenuSearch:
    """One search: the incumbent and the bounds as they improve."""

    def __init__(
        self, menu: Menu, options: SolveOptions, problem_of: Callable[[Collection[int]], Problem]
    ) -> None:
        self.menu, self.options, self.problem_of = menu, options, problem_of
        self.began = time.perf_counter()
        self.best: _Incumbent | None = None
        self.floor: Result | None = None
        self.certified = Claim(who="no certificate", bound=0)
        self.claimed = Claim(who="no engine", bound=0)
        self.is_refuted = False
        whole = menu.whole
        longest = int(whole.duration.sum() + np.maximum(whole.edges.lag, 0).sum())
        self.limit = longest if options.within is None else min(longest, options.within)

    def run(self, starts: tuple[tuple[str, Program], ...]) -> MenuResult:
        """The steps of the module's text."""
        if not self.menu.options:
            return self._plain_result(solve(self.problem_of(()), self.options, starts))
        try:
            if (infeasible := self._try_floor(starts)) is not None:
                return infeasible
            self._try_plain(starts)
            self._try_orders(starts)
            self._search()
        except KeyboardInterrupt:
            self.options.stop.set()
        return self._conclude()

    @property
    def value(self) -> int | None:
        """The makespan of the incumbent."""
        return None if self.best is None else self.best.measured.makespan

    @property
    def lower_bound(self) -> int:
        return self.certified.bound

    @property
    def bound(self) -> int:
        return max(self.certified.bound, self.claimed.bound)

    @property
    def done(self) -> bool:
        """Whether nothing more can be found or shown, or no time is left."""
        closed = self.value is not None and self.value <= self.bound
        return closed or self.is_refuted or self._left <= 0 or self.options.stop.is_set()

    @property
    def _left(self) -> float:
        return self.began + self.options.time_limit - time.perf_counter()

    def _share(self, part: float) -> SolveOptions:
        seconds = max(0.1, part * self._left)
        return replace(self.options, engine="auto", time_limit=seconds, within=None, progress=None)

    def _budget(self, part: float) -> Budget:
        return Budget(
            deadline=time.perf_counter() + max(0.1, part * self._left),
            seed=self.options.seed,
            threads=self.options.threads,
            stop=self.options.stop,
        )

    def _try_floor(self, starts: tuple[tuple[str, Program], ...]) -> MenuResult | None:
        """The bound of the floor; a result if the floor has no schedule at all."""
        self.floor = solve(self.menu.floor, self._share(0.25), starts)
        self.certified = Claim(who="the floor's certificate", bound=self.floor.lower_bound)
        self._claim("the floor's engine", self.floor.engine_bound or 0)
        self._report("floor")
        if self.floor.status is not Status.INFEASIBLE:
            return None
        reason = f"whatever is chosen: {self.floor.reason}"
        return self._plain_result(replace(self.floor, reason=reason, certificate=None))

    def _try_plain(self, starts: tuple[tuple[str, Program], ...]) -> None:
        """Nothing taken."""
        if self.done:
            return
        found = solve(self.menu.plain, self._share(0.1), starts)
        if found.schedule is not None:
            start = starts_of(self.menu.plain, found.schedule)
            self._accept("nothing chosen", (), start, self.menu.plain)

    def _try_orders(self, starts: tuple[tuple[str, Program], ...]) -> None:
        """Orders of computations that are good for the floor, with transfers put between.

        A tight limit is what makes the search short, so limits rise in steps from the makespan that
        the order has on the floor.
        """
        for order in self._good_orders(starts):
            top = self._wanted
            for part in RISE:
                limit = order.makespan + int((top - order.makespan) * part)
                if self.done or limit > self._wanted:
                    break
                if self._try_order(order, limit, 0.05 if part else 0.2):
                    break

    def _good_orders(self, starts: tuple[tuple[str, Program], ...]) -> list[FloorOrder]:
        known = None if self.floor is None else self.floor.schedule
        return good_orders(self.menu, known, starts)[:MOST_ORDERS]

    def _try_order(self, order: FloorOrder, limit: int, part: float) -> bool:
        """Whether transfers fit the order within the limit, as far as was seen."""
        frame = replace(self._frame(Symmetry.NONE), fixed=order.tasks, limit=limit)
        found = self._run("menu", frame, part)
        self._take(found, order.name)
        return found.start is not None

    @property
    def _wanted(self) -> int:
        """The longest makespan that would be news."""
        return self.limit if self.value is None else min(self.limit, self.value - 1)

    def _frame(self, order: Symmetry, *, fixed: tuple[tuple[int, ...], ...] = ()) -> Frame:
        return Frame(menu=self.menu, limit=self._wanted, order=order, least=self.bound, fixed=fixed)

    def _search(self) -> None:
        """Steps 4 and 5."""
        exact = symmetry(self.menu)
        if exact is Symmetry.ONE:
            if self.value is None:
                self._relax(0.3)  # else what cannot be done at all is sought for long
            if not self.done:
                self._take(self._run("menu", self._frame(Symmetry.ALL), 0.25), "index order")
            self._relax(0.75)
        if not self.done:
            self._exact(exact)

    def _relax(self, part: float) -> None:
        """The bound that forgets whose transfer is whose, where there is one."""
        if not self.done and can_be_anonymous(self.menu) and is_anchored(self.menu):
            frame = self._frame(Symmetry.ALL)
            self._conclude_from(self._run("anonymous", frame, part), frame.limit)

    def _exact(self, order: Symmetry) -> None:
        frame = self._frame(order)
        found = self._run("menu", frame, 1.0)
        self._take(found, "cpsat")
        self._conclude_from(found, frame.limit)

    def _run(self, model: Literal["menu", "anonymous"], frame: Frame, part: float) -> Choice:
        search, budget = menu_engine(model), self._budget(part)
        found = run_interruptibly(lambda: search(frame, budget), self.options.stop)
        if found.is_refuted and found.start is not None:
            raise FaultError("cpsat", "a schedule", "it says as well that there is none")
        return found

    def _conclude_from(self, found: Choice, limit: int) -> None:
        """Believe a bound of a model that loses no schedule, until a schedule contradicts it."""
        if found.is_refuted and self.value is None:
            self.is_refuted = True
        bound = bound_from("cpsat", found.bound)
        self._claim("cpsat", max(bound, limit + 1) if found.is_refuted else bound)
        self._report("bound")

    def _claim(self, who: str, bound: int) -> None:
        claim = Claim(who=who, bound=bound)
        claim.require(self.value, "" if self.best is None else self.best.origin)
        self.claimed = max(self.claimed, claim, key=lambda claim: claim.bound)

    def _take(self, found: Choice, origin: str) -> None:
        """Judge what a model found, starts per task of the whole."""
        if found.start is None or found.taken is None:
            return
        whole, taken = self.menu.whole, set(found.taken)
        unknown = taken - set(range(len(self.menu.options)))
        if unknown or any(len(taken.intersection(clash)) > 1 for clash in self.menu.clashes):
            raise FaultError("cpsat", f"the choice {found.taken}", "it is not one of the menu's")
        self._accept(origin, found.taken, starts_from("cpsat", found.start, whole), whole)

    def _accept(self, origin: str, taken: tuple[int, ...], start: Ints, named: Problem) -> None:
        """Judge starts per task of ``named`` on the concrete problem of what is taken."""
        problem = self.problem_of(taken)
        schedule = schedule_of_starts(problem, start[named.locate(problem.actions)])
        verdict = check(problem, schedule)
        require_accepted(f"cpsat ({origin})", verdict)
        if verdict.measured is None:
            raise FaultError(f"cpsat ({origin})", "a schedule", "it has no times")
        for claim in (self.certified, self.claimed):
            claim.require(verdict.measured.makespan, origin)
        if verdict.measured.makespan <= self._wanted:
            self.best = _Incumbent(
                taken=taken,
                problem=problem,
                schedule=schedule,
                measured=verdict.measured,
                origin=origin,
            )
            self._report(origin)

    def _report(self, who: str) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.began
            self.options.progress(who, self.value, self.bound, seconds)

    def _plain_result(self, result: Result) -> MenuResult:
        return MenuResult(
            result=result,
            taken=(),
            problem=self.problem_of(()),
            floor=self.menu.floor,
            floor_certificate=None if self.floor is None else self.floor.certificate,
        )

    def _verdict(self) -> tuple[Status, str]:
        """The status and its reason, where it has one."""
        plain = "" if self.floor is None else self.floor.reason
        if self.options.stop.is_set():
            plain = INTERRUPTED
        if self.value is not None:
            closed = self.value <= self.bound
            return Status.OPTIMAL if closed else Status.FEASIBLE, plain
        if self.lower_bound > self.limit:
            bound = f"{self.lower_bound} is certified whatever is chosen"
            return Status.INFEASIBLE, f"makespan <= {self.limit} cannot be: {bound}"
        if self.is_refuted or self.bound > self.limit:
            within = self.options.within
            limit = "" if within is None else f" with makespan <= {within}"
            reason = f"cpsat refuted every schedule of every choice{limit} (not certified)"
            return Status.INFEASIBLE, reason
        return Status.UNKNOWN, plain

    def _conclude(self) -> MenuResult:
        best = self.best
        status, reason = self._verdict()
        result = Result(
            status=status,
            schedule=None if best is None else best.schedule,
            measured=None if best is None else best.measured,
            lower_bound=self.lower_bound,
            certificate=None,
            engine_bound=self.claimed.bound or None,
            origin="" if best is None else best.origin,
            seconds=time.perf_counter() - self.began,
            reason=reason,
            is_claimed=status is Status.INFEASIBLE and self.lower_bound <= self.limit,
        )
        return MenuResult(
            result=result,
            taken=() if best is None else best.taken,
            problem=self.problem_of(()) if best is None else best.problem,
            floor=self.menu.floor,
            floor_certificate=None if self.floor is None else self.floor.certificate,
        )
