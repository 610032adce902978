"""The search for the least makespan or span_idle of one problem.

Bounds first, then published orders and list scheduling, then an exact engine; most instances need
none. An engine runs in a thread of its own, so that Ctrl-C and time limits reach it. An engine's
schedule that is refused, or a refuted limit within which a schedule is known, is a ``FaultError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING

from bubbleproof.faults import FaultError
from bubbleproof.solvers.bound_search import NARROWING, BoundSearch
from bubbleproof.solvers.demands import Demands, broken_by
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import engine, has_sat
from bubbleproof.solvers.engines.engine import Budget, EngineOutcome
from bubbleproof.solvers.engines.interruption import run_interruptibly
from bubbleproof.solvers.gate import bound_from, schedule_from, value_of
from bubbleproof.solvers.identical import IdenticalClasses, identical
from bubbleproof.solvers.lists.merging import LISTED, listed_programs
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.refutation.contradictions import contradiction, cycle, overfull
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.search_state import Incumbent, Method, in_turn
from bubbleproof.solvers.starts import joined, starts_by_task
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.certificates.certificate_rule import (
    Certificate,
    DirectCertificate,
    chosen,
    deadlines,
    without_deadlines,
)
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.check import check

if TYPE_CHECKING:  # a method that takes long is loaded when its turn comes: most problems need none
    from bubbleproof.solvers.lists.modulo_lists import ModuloLists
    from bubbleproof.solvers.window_search import WindowSearch

LEAST_IMPROVED = 300  # tasks: below, an engine sees the whole problem at a glance,
LEAST_SHARED = 60  # but for chunks that share a store, where windows find what it does not
SHARED = 0.3  # of the time left, for windows of so few tasks
GLANCING, IMPROVING = 0.1, 0.7  # of the time left, for windows: at once, and again, unless an
MOST_GLANCED = 1_200  # engine sees the whole problem: so many tasks, where no chunks share a store
MOST_SEARCHED = 10_000  # tasks: beyond, an engine has not found anything in minutes
MOST_BOUNDED_FIRST = 10_000  # tasks: beyond, bounds take longer than a first schedule
MOST_TURNS = 50_000  # tasks: beyond, checking one takes as long as finding many, and bounds longer
PRICING = 0.15  # of the time left, for prices
LOOKING = 0.3  # of the time left, for an engine before excerpts are proved about
AFRESH = 0.6  # of the time left, for one from nothing, of few tasks that come back as waves do
MOST_AFRESH = 600  # tasks: beyond, windows find more than an engine that begins from nothing
EXCERPTING = 0.45  # of the time left, for proofs about excerpts
LISTING = 0.1  # of the time left, for list scheduling once there is a schedule
# Of the time left, for long pipelines block by block; of so many tasks that little else helps.
COMBING, COMBING_MANY = 0.2, 0.4
REPEATING = 0.15  # of the time left, for schedules that repeat
SHORTENING = 0.25  # of the time left, for shorter periods
# Times the bound: so far that windows come before further bounds, and shorter periods, which take
# long to find, are looked for at all.
FAR = Fraction(21, 20)
STEADY = 8  # microbatches a rank: of fewer, what ends cost hides what a shorter period brings
NEAR = Fraction(51, 50)  # times the bound: so near that only windows improve on it
LENGTHENING = 0.15  # of the time left, for short instances that are lengthened
NARROWED = 0.2  # of the time left, for the windows that an engine begins from
# Of the time left, for the engines that "auto" calls in turn, up to so many tasks.
PARTS = (("cpsat", 0.4, MOST_SEARCHED), ("sat", 0.3, 1_000), ("cpsat", 0.9, MOST_SEARCHED))


class Search(BoundSearch):
    """The search on one problem.

    ``is_enough``: any schedule within ``options.within`` will do; ``is_certifying``: time is
    spent on certificates beyond the first. ``problem`` is the given one with the demands and
    without deadlines (``certificate_rule``), which are ``latest``, as those of demands are: only
    engines look for schedules that keep them.
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
        whole: Budget | None = None,
    ) -> None:
        super().__init__(options, objective, whole)
        demands = demands or Demands()
        asked = demands.demanding(problem)
        late = deadlines(asked)
        self.problem = without_deadlines(asked)
        self.latest = joined(demands.latest(problem), chosen(asked.edges, late))
        self.order = IndexOrder(self.problem, index_order(asked).groups) if late.any() else None
        self.is_enough, self.is_certifying = is_enough, is_certifying
        self.lists: ModuloLists | None = None
        self.is_combed = False

    def run(self, starts: Iterable[tuple[str, Program]]) -> Result:
        """Search; the starts are programs to begin from, those that do not fit are passed over.

        An engine that is named decides alone: no schedule and no bound is there before it. Its
        claim is then held against known orders, which are no part of the answer, and certified.
        """
        if self.options.engine != "auto":
            return self.alone(last=partial(self._certify, starts))
        if (found := self.begin(starts)) is not None:
            return found
        self.go_on()
        self.take(last=self._certify_claim)
        return self.conclude()

    def go_on(self) -> None:
        """The other engines that ``auto`` calls."""
        self.take(*(partial(self._call_if_open, *part) for part in PARTS[1:]))

    def _certify(self, starts: Iterable[tuple[str, Program]]) -> None:
        """Hold an engine's claim against known orders; what certificates show of its answer."""
        listed = listed_programs(self.problem, self.bounds, 0, lambda: False)
        for name, program in chain(starts, islice(listed, 1)):
            with suppress(UntimedProgram):
                measured = self._accepted(left_shift(self.problem, program))
                if measured is not None:
                    self.claimed.require(value_of(measured, self.objective), name)
        self.admit(self.bounds.best, "bounds", self.problem)
        self._certify_claim()

    def begin(self, starts: Iterable[tuple[str, Program]]) -> Result | None:
        """The methods up to the first engine that ``auto`` calls; or why there is no schedule."""
        if self.problem.num_tasks > MOST_BOUNDED_FIRST:
            self.take(self._try_repeating, self._try_combs_first)
        if (found := self._contradicted()) is not None:
            return found
        first = (
            lambda: self.admit(self.bounds.best, "bounds", self.problem),
            self._accept_crossings,
        )
        known = (partial(self._try_program, *start) for start in starts)
        further = (
            self._try_lists,
            self._try_repeating,
            self._try_combs,
            partial(self._improve, GLANCING),
            self._look_afresh,
            self._lengthen,
            self._price,
            self._improve_far,
            self._excerpt,
            partial(self._improve, IMPROVING),
            self._look,
            self._narrow_if_open,
            partial(self._call_if_open, *PARTS[0]),
        )
        in_turn(chain(first, known, further), self.options.stop, lambda: self.is_done)
        return None

    def alone(self, last: Method = lambda: None) -> Result:
        """What the engine asked for decides by itself, with no schedule to begin from.

        ``last`` follows the engine.
        """
        if (found := self._contradicted()) is not None:  # of which no engine is told
            return found
        self.take(partial(self._call_engine, self.options.engine, 1.0), last=last)
        return self.conclude()

    def _contradicted(self) -> Result | None:
        """Why there is no schedule, where that takes no search."""
        if (reason := overfull(self.problem, self.bounds.order)) is not None:
            return self.result(Status.INFEASIBLE, reason)
        if self.order is not None and (circle := contradiction(self.problem, self.latest)):
            return self.result(Status.INFEASIBLE, circle)
        if self.bounds.is_cyclic:
            reason, takes_time = cycle(self.problem, self.bounds.edges)
            return self.result(Status.INFEASIBLE if takes_time else Status.UNKNOWN, reason)
        return None

    def _narrow_if_open(self) -> None:
        if self._is_open and self.is_certifying:
            self._narrow(NARROWING)

    def _try_each(self, who: str, schedules: Iterator[Schedule]) -> None:
        """Schedules as they are found, until nothing more is wanted or the clock ends it."""
        while not (self.is_done or self._is_overdue):
            found = run_interruptibly(lambda: next(schedules, None), self.options.stop)
            if found is None:
                return
            self._try_schedule(who, found)

    def _price(self) -> None:
        """Better bounds by prices, where an engine does not see the whole problem at a glance."""
        if self.is_certifying and self.problem.num_tasks >= LEAST_IMPROVED:
            self._accept_prices(self.budget(PRICING))

    def _excerpt(self) -> None:
        """Better bounds by a few microbatches on a few ranks, each a search of its own.

        They take long, and an engine closes some of these problems in less.
        """
        is_seen = self.problem.num_tasks <= MOST_GLANCED
        if not self.is_certifying or is_seen:
            return
        self._call_if_open("cpsat", LOOKING, MOST_SEARCHED)
        if not self._is_open:
            return
        budget = self.budget(EXCERPTING)
        options = replace(self.options, within=None, certified=True, progress=None)

        def prove(short: Problem, share: float) -> DirectCertificate | None:
            found = Search(short, options, whole=budget.part(share)).narrowed()
            return None if isinstance(found, MicrobatchWindows) else found

        self._accept_excerpts(prove)

    def narrowed(self) -> Certificate | None:
        """The best certificate that lists, windows and propagation bring in all the time."""
        self.take(
            lambda: self.admit(self.bounds.best, "bounds", self.problem),
            self._try_lists,
            partial(self._improve, GLANCING),
            partial(self._narrow, inf),
        )
        return self.certificate

    def _improve(self, share: float) -> None:
        """Better schedules window by window, from the best one on."""
        is_meant = self.objective == "makespan"
        is_small, least = self.problem.num_tasks < LEAST_IMPROVED, LEAST_IMPROVED
        if is_small and self._shares_stores:
            least, share = LEAST_SHARED, min(share, SHARED)
        is_large = self.problem.num_tasks >= least and not len(self.latest)
        is_seen = self.problem.num_tasks <= MOST_GLANCED and not self._shares_stores
        is_meant = is_meant and is_large and not (is_seen and share > GLANCING)
        if not is_meant or self.best is None:
            return
        from bubbleproof.solvers.lists.large import PREPARED

        if self.whole.seconds > PREPARED * self.problem.num_tasks:
            self.improving.budget = self.budget(share)
            found = self.improving.improve(self.best.schedule, self.lower_bound)
            self._try_each("windows", found)

    def _look(self) -> None:
        """An engine before anything is proved, of few tasks whose chunks share a store."""
        is_small = self.problem.num_tasks < LEAST_IMPROVED
        if not (is_small and self._shares_stores and self._is_open):
            return
        if self._comes_back and self.options.within is None:
            self._call_engine("cpsat", AFRESH, is_fresh=True)
        else:
            self._call_engine("cpsat", LOOKING)

    def _look_afresh(self) -> None:
        """The same of some more tasks, from nothing: near a known schedule CP-SAT stays near it.

        Where a limit is asked about, proofs that are checked come first.
        """
        is_some = LEAST_IMPROVED <= self.problem.num_tasks <= MOST_AFRESH
        is_asked = self.options.within is not None
        if is_some and self._shares_stores and self._is_open and not is_asked:
            self._call_engine("cpsat", LOOKING, is_fresh=True)

    @property
    def _comes_back(self) -> bool:
        """Whether the last stage is on the rank of the first, as it is in a wave."""
        stage, rank = self.problem.actions.stage, self.problem.rank_of_task
        first, last = (set(rank[stage == each].tolist()) for each in (0, stage.max(initial=0)))
        return bool(first & last - {NONE})

    @cached_property
    def improving(self) -> WindowSearch:
        from bubbleproof.solvers.window_search import WindowSearch

        return WindowSearch(self.problem, self.bounds, self.whole)

    def _call_if_open(self, name: str, share: float, most_tasks: int) -> None:
        """An engine that ``auto`` calls; its schedule may be all that a proof by probing needs."""
        if self.problem.num_tasks <= most_tasks and self._is_open and (name != "sat" or has_sat()):
            self._call_engine(name, share)
            self._narrow_if_open()

    def _try_lists(self) -> None:
        """List scheduling, as long as there is time for one more run, or nothing was found."""
        listing, units = self.budget(LISTING), LISTED * self.problem.num_tasks

        def is_enough() -> bool:
            return self.is_done or (self.best is not None and units > listing.seconds)

        given = self.problem, self.bounds, self.lower_bound, is_enough
        for name, program in () if is_enough() else listed_programs(*given):
            self.meter.spend(units)
            self._try_program(name, program)

    def _lengthen(self) -> None:
        """For many microbatches lengthened schedules, and those that repeat."""
        is_meant = self.objective == "makespan" and self.whole.seconds
        if not is_meant:
            return
        from bubbleproof.solvers.lists.large import LEAST_MICROBATCHES, LargeSearch

        alike = identical(self.bounds.order)
        if alike is None or alike.num_microbatches < LEAST_MICROBATCHES:
            return
        budget = self.budget(LENGTHENING)
        large = LargeSearch(self.problem, alike, budget, lambda: self.value)
        self._try_each("stretch", large.by_list_scheduling())
        if self.value is not None and self.value <= self.lower_bound * NEAR:
            return
        if self._shares_stores:
            self._repeat(alike)
        elif large.has_many:
            self._try_each("stretch", large.by_engine())
        else:
            self._try_each("stretch", large.above(self.lower_bound))

    def _repeat(self, alike: IdenticalClasses) -> None:
        """Schedules that repeat, where combs look for none."""
        from bubbleproof.solvers.lists.combs import line_with_combs
        from bubbleproof.solvers.lists.modulo import periodic_schedules, shorter_schedules

        if self.lists is None or line_with_combs(self.lists) is not None:
            return
        known, turn = self.value, self.lists.best
        is_far = known is not None and known > self.lower_bound * FAR
        is_steady = alike.num_microbatches >= STEADY * self.problem.num_ranks
        if is_far and is_steady and turn is not None:
            found = shorter_schedules(self.problem, alike, turn, self.budget(SHORTENING))
            self._try_each("shorter periods", found)
        if self.value == known:
            rate = self.lists.rate
            found = periodic_schedules(self.problem, alike, self.budget(REPEATING), rate)
            self._try_each("periodic", found)

    def _improve_far(self) -> None:
        """Windows before further bounds, where much is to gain, and as much is not asked for."""
        if self.value is None:
            return
        asked = self.value if self.options.within is None else self.options.within
        if min(self.value, asked) > self.lower_bound * FAR:
            self._improve(IMPROVING)

    def _try_repeating(self) -> None:
        """Modulo lists; of a large problem the first alone."""
        if self.lists is None:
            from bubbleproof.solvers.lists.modulo_lists import ModuloLists

            self.lists = ModuloLists(self.problem)
            is_brief = self.problem.num_tasks > MOST_TURNS
            found = self.lists.schedules(is_brief=is_brief, is_over=lambda: self._is_overdue)
            self._try_each("repeating lists", found)
            self.meter.spend(self.lists.work)

    def _try_combs_first(self) -> None:
        """Combs before bounds of a large problem, which take longer.

        Not of one forward and one backward a rank: lists come nearer, as soon as bounds are there.
        """
        each = 0 if self.lists is None else self.lists.few.num_tasks
        if self.problem.num_tasks > MOST_TURNS and each > 2 * self.problem.num_ranks:
            self._try_combs()

    def _try_combs(self) -> None:
        """Schedules of long pipelines, unless what is known is near its bound."""
        is_near = self.value is not None and self.value <= self.lower_bound * NEAR
        is_meant = self.objective == "makespan" and not (is_near or self.is_combed)
        if self.lists is not None and is_meant:
            from bubbleproof.solvers.lists.combs import comb_schedules

            self.is_combed = True
            is_long = self.problem.num_tasks > MOST_BOUNDED_FIRST
            budget = self.budget(COMBING_MANY if is_long else COMBING)
            found = comb_schedules(self.lists, budget)
            self._try_each("combs", found)

    @property
    def _shares_stores(self) -> bool:
        """Whether several chunks of a rank share a store with a capacity."""
        stores = [life.store for life in self.bounds.order.lifecycles]
        capped = [s for s in stores if self.problem.stores[s].capacity is not None]
        return len(set(capped)) < len(capped)

    @property
    def _is_overdue(self) -> bool:
        """Whether the clock has run down with a schedule known; work that is counted is done."""
        return self.best is not None and not (self.whole.is_counted or self.whole.seconds)

    @property
    def _is_open(self) -> bool:
        """Whether an engine may still bring something, and the instance is not beyond it."""
        is_in_reach = self.problem.num_tasks <= MOST_SEARCHED
        return not self.is_done and is_in_reach and self.whole.seconds > 0

    @property
    def is_done(self) -> bool:
        """Whether nothing more is wanted, or it was said that it cannot be had."""
        within = self.options.within
        if within is not None and self.lower_bound > within:
            return True
        has_enough = self.value is not None and (within is None or self.value <= within)
        return super().is_done or (self.is_enough and has_enough)

    @property
    def _limit(self) -> int | None:
        """The largest value of interest: the incumbent's, or what is wanted."""
        wanted = [v for v in (self.value, self.options.within) if v is not None]
        return min(wanted, default=None)

    def _try_program(self, name: str, program: Program) -> None:
        try:
            schedule = left_shift(self.problem, program)
        except UntimedProgram:
            return
        self._try_schedule(name, schedule)

    def _try_schedule(self, name: str, schedule: Schedule) -> bool:
        """Whether the checker accepts the schedule; keep it if it is the best so far."""
        measured = self._accepted(schedule)
        if measured is None:
            return False
        self.offer(
            Incumbent(problem=self.problem, schedule=schedule, measured=measured, origin=name)
        )
        return True

    def _accepted(self, schedule: Schedule) -> Measures | None:
        """The measures of a schedule that the checker accepts and that keeps the latest starts."""
        verdict = check(self.problem, schedule)
        if not verdict.ok or (len(self.latest) and broken_by(self.problem, self.latest, schedule)):
            return None
        return verdict.measured

    def _call_engine(self, name: str, share: float, *, is_fresh: bool = False) -> None:
        """Let an engine improve the incumbent and the bound in a share of the time left.

        ``is_fresh``: of what is known it is told nothing. It improves what it has found itself,
        and below a limit that is tight it finds nothing to improve.
        """
        limit = None if is_fresh else self._limit
        encoding = Encoding(
            self.problem,
            self.bounds,
            objective=self.objective,
            limit=limit,
            least=self.lower_bound,
            extra=self.latest,
            windows=None if is_fresh else self._windows(limit),
        )
        budget = self.budget(share, lambda value, bound: self.report(name, value, bound))
        best = self.best
        hint = None if best is None or is_fresh else starts_by_task(self.problem, best.schedule)
        search = engine(name)
        self.engine = name
        outcome = run_interruptibly(lambda: search(encoding, hint, budget), budget.stop)
        self._judge(name, outcome, encoding.limit)

    def _judge(self, name: str, outcome: EngineOutcome, limit: int) -> None:
        """Take from an engine's answer what nothing contradicts."""
        if outcome.start is not None:
            found = schedule_from(name, outcome.start, self.problem)
            if not self._try_schedule(name, found):
                raise FaultError(name, "a schedule", "it does not keep the starts demanded")
        bound = 0 if outcome.bound is None else bound_from(name, outcome.bound)
        self.claim(name, max(bound, limit + 1) if outcome.is_refuted else bound)
        self.is_refuted |= outcome.is_refuted

    def _windows(self, limit: int | None) -> tuple[Ints, Ints] | None:
        """Where propagation puts every start, for an engine to begin from."""
        if limit is None or self.objective != "makespan" or len(self.latest):
            return None
        from bubbleproof.solvers.refutation.propagation import windows

        return windows(self.problem, self.bounds, limit, self.budget(NARROWED))
