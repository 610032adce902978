"""What a search for a plan does: looks at candidates within a budget, and takes what they bring.

1. The candidates begin: shaped, and bounded by what the numbers of one rank show.
2. First looks: a certified bound, and the best published order, in milliseconds.
3. Those whose bound is below the best step so far are looked at for anything shorter than that.

A search says in which order it goes through candidates, and how it shares what is left: that of one
pipeline (``pipeline_search``) gives each the same in round after round, that of the deployments of
a model (``deployment_search``) narrows down to one of them. A step is what a pipeline takes and the
end of the step of its deployment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from typing import Generic, TypeVar

from bubbleproof.planners.candidate_standing import CandidateStanding
from bubbleproof.planners.looks import CandidateSearch, FirstSearch, preparation
from bubbleproof.planners.planned import PlanOptions
from bubbleproof.planners.search_budget import SearchBudget
from bubbleproof.solvers.search_state import in_turn
from bubbleproof.theory.model.schedule import Program

AnyAnswer = TypeVar("AnyAnswer")


class PlanSearch(ABC, Generic[AnyAnswer]):
    """The steps of the module's text; ``executor`` has workers, without one all is done here."""

    def __init__(
        self, options: PlanOptions, budget: SearchBudget, executor: Executor | None = None
    ) -> None:
        self.options, self.budget, self.executor = options, budget, executor

    def run(self) -> AnyAnswer:
        """What was found until the budget is spent, or a Ctrl-C."""
        in_turn((self._begin, self._look_first, self._improve), self.options.stop)
        return self._conclude()

    @abstractmethod
    def _begin(self) -> None: ...
    @abstractmethod
    def _look_first(self) -> None: ...
    @abstractmethod
    def _improve(self) -> None: ...
    @abstractmethod
    def _conclude(self) -> AnyAnswer: ...

    @property
    @abstractmethod
    def best_value(self) -> int | None:
        """The shortest step found, in ticks."""

    def _fits(self, one: CandidateStanding) -> bool:
        """Whether a look at it can be prepared in the time left."""
        return preparation(one.shaped.pipeline) <= self.budget.preparable

    def _first_asked(self, one: CandidateStanding, most: int | None) -> FirstSearch:
        """A first look; a step of ``most`` ticks or more needs no schedule."""
        return FirstSearch(
            shaped=one.shaped,
            most=None if most is None else most - one.step_end,
            seconds=max(0.0, self.budget.preparable),
            orders=self.options.orders,
        )

    def _asked(
        self,
        one: CandidateStanding,
        share: float,
        most: int | None,
        *,
        least: float = 0.0,
        known: Program | None = None,
    ) -> CandidateSearch:
        """A look for a step below ``most`` ticks, that begins with a ``known`` order.

        It has that share of what is left, and of the clock what its preparation takes and so many
        seconds at least.
        """
        part = self.budget.part(share, least)
        seconds = max(preparation(one.shaped.pipeline), part.seconds)
        within = None if most is None else most - one.step_end - 1
        options = self.options.solving(seconds, part.work, within)
        return CandidateSearch(shaped=one.shaped, options=options, known=known)

    def _tell(self, line: str) -> None:
        if self.options.tell is not None:
            self.options.tell(f"{self.budget.taken:7.2f} s  {line}")
