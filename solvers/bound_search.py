"""The part of a search that makes its bounds better: proofs of its own, and of engines' claims."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, cast

from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.engines import has_sat
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.interruption import run_interruptibly
from bubbleproof.solvers.refutation.store_bounds import first_crossings
from bubbleproof.solvers.search_state import SearchState
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.index_order import IndexOrder
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows

if TYPE_CHECKING:  # what is proved beyond first bounds is loaded when its turn comes
    from bubbleproof.solvers.refutation.excerpt_search import ProveExcerpt

MOST_REFUTED = 2_000  # tasks: beyond, a DRUP certificate takes minutes
BEFORE_CHECK = 0.5  # of the time left, for what a checker has to follow afterwards
CHECKED, FEW_LEMMAS = 60_000, 20  # lemmas times tasks that are checked in a second
NARROWING, CERTIFYING = 4.0, 6.0  # seconds at most, unless a certificate is asked for


class BoundSearch(SearchState):
    """A search of one ``problem``; ``is_certifying``: see ``Search``."""

    problem: Problem
    order: IndexOrder | None  # the problem's own, unless deadlines make for smaller groups
    is_certifying: bool

    @cached_property
    def bounds(self) -> Bounds:
        """What resources and stores show, in an order that deadlines allow."""
        return lower_bounds(self.problem, self.objective, self.order)

    @cached_property
    def provable(self) -> Bounds:
        """The same in the order that certificates go by, which know of no deadlines."""
        return self.bounds if self.order is None else lower_bounds(self.problem, self.objective)

    @property
    @abstractmethod
    def _limit(self) -> int | None:
        """The largest value of interest: the incumbent's, or what is wanted."""

    @abstractmethod
    def _try_schedule(self, name: str, schedule: Schedule) -> bool:
        """Whether the checker accepts the schedule; keep it if it is the best so far."""

    def _accept_crossings(self) -> None:
        """The bound by what crosses behind a rank."""
        known = self.provable
        if self.objective == "makespan" and not known.is_cyclic:
            found = first_crossings(self.problem, known.order, known.heads, known.tails)
            self._accept(found, "crossings")

    def _accept_prices(self, budget: Budget) -> None:
        """Bounds by prices."""
        if self.objective == "makespan":
            from bubbleproof.solvers.refutation.price_search import prices_beyond

            claims = prices_beyond(self.lower_bound, self.problem, self.provable, budget)
            self._accept_each(claims, "prices")

    def _accept_excerpts(self, prove: ProveExcerpt) -> None:
        """Bounds by windows of microbatches, each of which ``prove`` proves about."""
        if self.objective == "makespan":
            from bubbleproof.solvers.refutation.excerpt_search import excerpts_beyond

            claims = excerpts_beyond(self.lower_bound, self.problem, self.provable, prove)
            self._accept_each(claims, "excerpts")

    def _accept_each(self, claims: Iterator[Certificate], who: str) -> None:
        while not self.is_done:
            claim = run_interruptibly(lambda: next(claims, None), self.options.stop)
            if claim is None:
                return
            self._accept(claim, who)

    def _narrow(self, seconds: float) -> None:
        """A better bound by propagation and probing, and the schedules met on the way."""
        from bubbleproof.solvers.refutation.propagation import narrow

        upper = self._limit
        if upper is not None and self.value is None:
            upper += 1  # beyond it lies nothing that is wanted
        budget = self.whole
        found = narrow(
            self.problem,
            self.provable,
            upper,
            budget.after(min(seconds, BEFORE_CHECK * (budget.after(inf) - budget.now()))),
            known=self.lower_bound,
            budget=budget,
        )
        if found.schedule is not None:
            self._try_schedule("probing", found.schedule)
        self._accept(found.certificate, "propagation")

    def _certify_claim(self) -> None:
        """A certificate for what so far is only a solver's claim."""
        if not self.is_certifying or not (self.is_closed or self.is_refuted):
            return
        budget = self.whole
        end = budget.after(inf if self.options.certified else CERTIFYING)
        for attempt, share in ((self._refute, 0.6), (self._narrow, 0.6), (self._refute, 1.0)):
            left = end - budget.now()
            if left > 0 and budget.seconds and self.claimed.bound > self.lower_bound:
                attempt(share * left)

    def _refute(self, seconds: float) -> None:
        """A DRUP certificate of the engine's bound, or a schedule that gives it the lie."""
        claim = self.claimed.bound
        if self.problem.num_tasks > MOST_REFUTED or not has_sat():
            return
        budget = self.whole.until(self.whole.after(seconds))
        found = run_interruptibly(partial(self._settled, claim, budget), self.options.stop)
        if found is None or isinstance(found, Drup):
            self._accept(found, "sat")
        else:  # starts that stay below the claim, unless the checker refuses them
            self._try_schedule("sat", schedule_of_starts(self.problem, found))

    def _settled(self, claim: int, budget: Budget) -> Drup | Ints | None:
        """What ``settle`` finds, in a process of its own where memory is limited."""
        from bubbleproof.solvers.engines.apart import apart
        from bubbleproof.solvers.refutation.proofs import settle

        given, named = (self.problem, self.provable, claim), {"objective": self.objective}
        if budget.memory is None:
            return settle(*given, objective=self.objective, budget=budget)
        found = apart(f"{settle.__module__}:settle", given, budget, "sat", named)
        return cast("Drup | Ints | None", found)

    def _accept(self, certificate: Certificate | None, who: str) -> None:
        """Keep a certificate that proves more, if its checker accepts it.

        The checker cannot be stopped, so that it is not asked what would take it beyond the end.
        """
        if certificate is None or certificate.bound <= self.lower_bound:
            return
        budget, units = self.whole, _work_of(certificate, self.problem.num_tasks) / CHECKED
        few = FEW_LEMMAS * self.problem.num_tasks / CHECKED
        if budget.now() + units <= budget.after(inf) or units <= few:
            self.meter.spend(units)
            self.admit(certificate, who, self.problem)


def _work_of(certificate: Certificate, num_tasks: int) -> int:
    """Lemmas times the tasks that each is about, at most."""
    if isinstance(certificate, MicrobatchWindows):
        from bubbleproof.solvers.refutation.excerpt_search import MOST_ON_MORE

        most = min(num_tasks, MOST_ON_MORE)
        return sum(_work_of(window.proof, most) for window in certificate.windows)
    return (len(certificate.lemmas) if isinstance(certificate, Drup) else 1) * num_tasks
