"""The search over all that is left open, for the least makespan.

The steps, each only if the ones before left a gap:

1. the plain problem, with nothing taken: the search without choices up to its first engine, with
   the budget that it has there, so that freedom does not cost what is found without it; its other
   engines follow behind step 3. Where work is limited the plain problem has all of it, as it has
   without choices, and the other steps have as much again: what is found without choices is found;
2. the floor (``solvers.choices.variants``): what holds whatever is chosen. Its certified bound
   holds for every choice, and so does what an engine claims of it;
3. the order of computations of the best schedules of the floor, kept, with transfers put between:
   it says in which order to compute if transfers were free, and published orders often need few of
   them, so that what remains to be found is where transfers go;
4. everything in index order. Where all options are for whole stages this is exact (lemma 1 of
   ``solvers.choices.choices_symmetry``); else it only finds schedules;
5. options per microbatch: the relaxation that forgets whose transfer is whose gives a bound
   (``engines.cpsat_anonymous``), and last the exact model with one class in index order (lemma 2).

OPTIMAL rests on the floor's certificate where the schedule meets it, else on an uncertified bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bubbleproof.faults import FaultError
from bubbleproof.solvers.choices.choices_symmetry import Symmetry, can_be_anonymous, symmetry
from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.encoding import longest_makespan
from bubbleproof.solvers.engines.choices_frame import Choice, Frame, choices_engine, is_anchored
from bubbleproof.solvers.engines.interruption import run_interruptibly
from bubbleproof.solvers.gate import BoundClaim, bound_from, require_accepted, starts_from
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.search_state import Incumbent, SearchState
from bubbleproof.solvers.solving import solve
from bubbleproof.solvers.starts import schedule_of_starts, starts_by_task
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.check import check

ChoiceStarts = Sequence[tuple[str, Program]]
CPSAT = "cpsat"
WITHOUT, MOST_WITHOUT = 0.6, 1_000  # of the time left, for its other engines; up to so many tasks
FLOOR = 0.25  # of the time left goes to the search of the floor
RISE = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0)  # of the way from an order's floor to what is known
MOST_ORDERS = 3  # published and floor orders that are tried with transfers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VariantsResult:
    """``result`` holds on ``problem``, the concrete problem in which ``taken`` options are taken.

    Without a schedule nothing is taken. ``floor_certificate`` proves ``result.lower_bound`` on
    ``floor``, which holds whatever is chosen.
    """

    result: Result
    taken: tuple[int, ...]
    problem: Problem
    floor: Problem
    floor_certificate: Certificate | None


class ChoicesSearch(SearchState):
    """The search over variants; ``problem_of`` builds the concrete problem of what is taken."""

    ALL_SCHEDULES: ClassVar[str] = "every schedule of every choice"
    ALL_CHOICES: ClassVar[str] = " whatever is chosen"

    def __init__(
        self,
        variants: Variants,
        options: SolveOptions,
        problem_of: Callable[[Collection[int]], Problem],
    ) -> None:
        super().__init__(options)
        self.variants, self.problem_of = variants, problem_of
        inner = replace(options, engine="auto", within=None, progress=None)
        self.plain = Search(
            variants.plain, inner, whole=None if self.whole.is_counted else self.whole
        )
        self.is_possible = False  # without choices, as far as is known at once
        self.floor: Result | None = None
        longest = longest_makespan(variants.whole)
        self.limit = longest if options.within is None else min(longest, options.within)

    def run(self, starts: ChoiceStarts) -> VariantsResult:
        """The steps of the module's text."""
        if not self.variants.options:
            return self._whole(solve(self.problem_of(()), self.options, starts))
        self.take(
            lambda: self._try_plain(starts),
            lambda: self._try_floor(starts),
            lambda: self._try_orders(starts),
            self._go_on_plain,
            self._search,
        )
        floor = self.floor
        if floor is None or floor.status is not Status.INFEASIBLE:
            return self._whole(self.conclude("" if floor is None else floor.reason))
        reason = f"whatever is chosen: {floor.reason}"
        return self._whole(replace(floor, reason=reason, certificate=None))

    @property
    def work(self) -> float:
        """Units that were done, those for the plain problem included."""
        own = self.plain.work if self.whole.is_counted else 0.0
        return super().work + own

    @property
    def is_done(self) -> bool:
        """Whether nothing more can be found or shown, or no time is left."""
        is_over = self.whole.seconds <= 0 and self.floor is not None
        return super().is_done or self.bound > self.limit or is_over

    def _try_plain(self, starts: ChoiceStarts) -> None:
        """Nothing taken: what is found with choices is no worse than what is found without."""
        if self.whole.is_counted:
            self.plain.run(starts)
        else:
            self.is_possible = self.plain.begin(starts) is None
        self._take_plain()

    def _go_on_plain(self) -> None:
        """The engines that follow there, unless what is known is below their reach."""
        is_open = self.value is None or self.value > self.plain.bound
        if is_open and self.is_possible and self.variants.plain.num_tasks <= MOST_WITHOUT:
            self.plain.whole = self.budget(WITHOUT)
            self.plain.go_on()
            self._take_plain()

    def _take_plain(self) -> None:
        if (best := self.plain.best) is not None:
            start = starts_by_task(self.variants.plain, best.schedule)
            self._accept("nothing chosen", (), start, self.variants.plain)

    def _try_floor(self, starts: ChoiceStarts) -> None:
        """The bound of the floor."""
        self.floor = solve(
            self.variants.floor, self.plain.options, starts, whole=self.budget(FLOOR)
        )
        self.certified = BoundClaim(who="the floor's certificate", bound=self.floor.lower_bound)
        self.require(self.certified)
        self.claim("the floor's engine", self.floor.engine_bound or 0)
        self.is_refuted = self.floor.status is Status.INFEASIBLE
        self.report("floor")

    def _try_orders(self, starts: ChoiceStarts) -> None:
        """Orders of computations that are good for the floor, with transfers put between.

        A tight limit is what makes the search short, so limits rise in steps from the makespan that
        the order has on the floor.
        """
        known = None if self.floor is None else self.floor.schedule
        for order in good_orders(self.variants, known, starts)[:MOST_ORDERS]:
            top = self._wanted
            for part in RISE:
                limit = order.makespan + int((top - order.makespan) * part)
                if self.is_done or limit > self._wanted:
                    break
                if self._try_order(order, limit, 0.05 if part else 0.2):
                    break

    def _try_order(self, order: FloorOrder, limit: int, part: float) -> bool:
        """Whether transfers fit the order within the limit, as far as was seen."""
        frame = replace(self._frame(Symmetry.NONE), fixed=order.tasks, limit=limit)
        return self._run("choices", frame, part, order.name).start is not None

    @property
    def _wanted(self) -> int:
        """The longest makespan that would be news."""
        return self.limit if self.value is None else min(self.limit, self.value - 1)

    def _frame(self, order: Symmetry) -> Frame:
        return Frame(variants=self.variants, limit=self._wanted, order=order, least=self.bound)

    def _search(self) -> None:
        """Steps 4 and 5."""
        exact = symmetry(self.variants)
        if exact is Symmetry.ONE:
            if self.value is None:
                self._relax(0.3)  # else what cannot be done at all is sought for long
            if not self.is_done:
                self._run("choices", self._frame(Symmetry.ALL), 0.25, "index order")
            self._relax(0.75)
        if not self.is_done:
            self._exact(exact)

    def _relax(self, part: float) -> None:
        """The bound that forgets whose transfer is whose, where there is one."""
        if not self.is_done and can_be_anonymous(self.variants) and is_anchored(self.variants):
            frame = self._frame(Symmetry.ALL)
            self._believe(self._run("anonymous", frame, part, ""), frame.limit)

    def _exact(self, order: Symmetry) -> None:
        frame = self._frame(order)
        self._believe(self._run("choices", frame, 1.0, CPSAT), frame.limit)

    def _run(
        self, model: Literal["choices", "anonymous"], frame: Frame, part: float, origin: str
    ) -> Choice:
        """What a model answers; the schedule that it found, if any, is judged."""
        search, budget = choices_engine(model), self.budget(part)
        self.engine = CPSAT
        found = run_interruptibly(lambda: search(frame, budget), self.options.stop)
        if found.start is None or found.taken is None:
            return found
        if found.is_refuted:
            raise FaultError(CPSAT, "a schedule", "it says as well that there is none")
        whole, taken = self.variants.whole, set(found.taken)
        unknown = taken - set(range(len(self.variants.options)))
        if unknown or any(len(taken.intersection(clash)) > 1 for clash in self.variants.clashes):
            raise FaultError(CPSAT, f"the choice {found.taken}", "it is not one of the variants")
        self._accept(origin, found.taken, starts_from(CPSAT, found.start, whole), whole)
        return found

    def _believe(self, found: Choice, limit: int) -> None:
        """Believe a bound of a model that loses no schedule, until a schedule contradicts it."""
        self.is_refuted |= found.is_refuted and self.value is None
        bound = bound_from(CPSAT, found.bound)
        self.claim(CPSAT, max(bound, limit + 1) if found.is_refuted else bound)
        self.report("bound")

    def _accept(self, origin: str, taken: tuple[int, ...], start: Ints, named: Problem) -> None:
        """Judge starts per task of ``named`` on the concrete problem of what is taken."""
        problem = self.problem_of(taken)
        schedule = schedule_of_starts(problem, start[named.locate(problem.actions)])
        who = f"{CPSAT} ({origin})"
        measured = require_accepted(who, check(problem, schedule))
        self.offer(
            Incumbent(
                problem=problem, schedule=schedule, measured=measured, origin=origin, taken=taken
            )
        )

    def _whole(self, result: Result) -> VariantsResult:
        best = self.best
        return VariantsResult(
            result=result,
            taken=() if best is None else best.taken,
            problem=self.problem_of(()) if best is None else best.problem,
            floor=self.variants.floor,
            floor_certificate=None if self.floor is None else self.floor.certificate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorOrder:
    """An order per rank, as ``tasks`` of the whole problem, and its ``makespan`` on the floor.

    ``excess``: by how many units its peaks exceed the capacities of all ranks if nothing is taken.
    """

    name: str
    makespan: int
    excess: int
    tasks: tuple[tuple[int, ...], ...]


def good_orders(
    variants: Variants, known: Schedule | None, starts: Iterable[tuple[str, Program]]
) -> list[FloorOrder]:
    """The orders of a ``known`` schedule of the floor and of the named programs that fit it.

    The shortest on the floor first, and of equals the one that needs the least help.
    """
    floor = variants.floor
    schedules = [] if known is None else [("the floor's order", known)]
    for name, program in starts:
        try:
            schedules.append((f"{name}'s order", left_shift(floor, program)))
        except UntimedProgram:
            continue
    found = []
    for name, schedule in schedules:
        verdict = check(floor, schedule)
        if verdict.ok and verdict.measured is not None:
            found.append(
                FloorOrder(
                    name=name,
                    makespan=verdict.measured.makespan,
                    excess=_excess(variants.plain, schedule),
                    tasks=_orders(variants, starts_by_task(floor, schedule)),
                )
            )
    return sorted(found, key=lambda order: (order.makespan, order.excess))


def _orders(variants: Variants, start: Ints) -> tuple[tuple[int, ...], ...]:
    """The tasks of each rank by their start in a schedule of the floor (ticks per task)."""
    floor, always = variants.floor, np.flatnonzero(variants.task_option == NONE)
    orders = []
    for rank in range(floor.num_ranks):
        tasks = floor.occupancy.task[floor.occupancy.resource == rank]
        ends = start[tasks] + floor.duration[tasks]
        orders.append(tuple(always[tasks[np.lexsort((ends, start[tasks]))]].tolist()))
    return tuple(orders)


def _excess(problem: Problem, schedule: Schedule) -> int:
    """By how many units the schedule's peaks exceed the capacities, all ranks together."""
    measured = check(problem, schedule).measured
    if measured is None:  # it names other tasks, and is the last to be tried
        return sum(store.capacity or 0 for store in problem.stores)
    return sum(
        max(0, peak - store.capacity)
        for peak, store in zip(measured.peak_memory, problem.stores, strict=False)
        if store.capacity is not None
    )
