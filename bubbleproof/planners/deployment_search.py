"""The search of a model's deployments: the best deployment, pipeline and schedule together.

1. Every combination is counted (``combinations``): one that a number forbids, or of which a single
   microbatch does not fit, is out with its reason.
2. Every shape that the plan lists (chunks, placements, backwards) of every other one is a candidate
   and has a bound within microseconds (``looks``), or no room.
3. By rising estimate (``costs.order_estimates``), those that fit by it first, each candidate has
   its first look, unless its bound reaches the best step: then it cannot be shorter.
4. Those whose bound is below the best are searched for anything shorter; what time is left goes to
   the search of the best one's pipeline (``pipeline_search``).

Where ``is_lazy``, which is for very many combinations, step 2 is left to step 3: a combination has
the bound of its numbers alone (``floor_of``), and its shapes are made when it is its turn. One that
is never looked at is bounded away with that: with m microbatches on p ranks, whatever the cut into
stages, the chunks and the slices,

    makespan >= m (sum over layers, embedding and head of tF + tB) / p:

the ranks together do all of it, and one of them at least its p-th part. One microbatch alone is
held by all ranks together, with all the model's state, when its last forward begins; so a model
whose state and activations are more than the ranks' capacity together fits in no shape
(``verify.candidates.rank_claims`` tells both of one rank, and is what proofs are made of).

Where the options name the orders that may be run, step 4 is left out: each shape has one order. A
bound stays one on every order.

An *iteration* is a step of a deployment: the makespan and the step's end (gradients, weights,
optimizer). The answer is optimal over these choices where no combination's bound is below it.

Where ``work`` is limited, steps 3 and 4 share units of it in place of seconds, so that the answer
is the same in every run that does not meet the time limit. Where the clock ends the search, those
that have the most room are tried first as long as nothing is found, and none is looked at that
would take most of what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import inf

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import Combination, CombinationCosts
from bubbleproof.facts import extended
from bubbleproof.planners.candidate_standing import CandidateStanding
from bubbleproof.planners.cluster_planned import (
    ANY_ORDER,
    ClusterPlan,
    NearestDeployment,
    NoClusterPlan,
    row_without_numbers,
)
from bubbleproof.planners.counting import AnyListed, UncountedCombination
from bubbleproof.planners.deployment_standing import DeploymentStanding, value_of
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import first_look, look, preparation
from bubbleproof.planners.pipeline_search import PipelineSearch
from bubbleproof.planners.plan_search import PlanSearch
from bubbleproof.planners.planned import PlanOptions, place_of
from bubbleproof.planners.search_budget import LEAST_WORK, SearchBudget
from bubbleproof.solvers import Status
from bubbleproof.solvers.search_state import in_turn
from bubbleproof.theory.pipelines.limits import OversizeError
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.space_scope import cut_words

LOOKS_SHARE = 0.5  # of the time, at most, for the first looks
OTHERS_SHARE = 0.5  # of what is left then, for those that are not the best
LEAST_SECONDS = 1.0  # for any search
LOADED = 4.0  # times as long, at most, the last check takes for the pace of the looks
BOUNDS_SHARE = 0.25  # of the seconds, at most, until all that may be the best are bounded
ONE_SHARE = 0.1  # of the seconds left, at most, for one look as long as nothing is found
ROOM_SHARE = 0.15  # of the seconds until those of most room are looked at, if nothing is found
TURN = 8  # candidates of a deployment in a turn
SpaceOf = Callable[[CombinationCosts], PlanSpace]


class DeploymentSearch(PlanSearch[ClusterPlan | NoClusterPlan]):
    """The steps of the module's text; ``space_of`` gives the shapes to try.

    ``known`` are schedules to begin with, by deployment; ``bounded`` names the orders that the
    bound is of. Candidates are looked at in turn, each in the knowledge of the best so far; workers
    take part in the search of the best one's pipeline.
    """

    def __init__(
        self,
        counted: Sequence[AnyListed],
        space_of: SpaceOf,
        options: PlanOptions,
        budget: SearchBudget,
        executor: Executor | None = None,
        *,
        is_lazy: bool = False,
        known: Mapping[Combination, KnownSchedule] | None = None,
        bounded: str = ANY_ORDER,
    ) -> None:
        super().__init__(options, budget, executor)
        self.space_of, self.is_lazy, self.known = space_of, is_lazy, known or {}
        late = [one for one in counted if isinstance(one, UncountedCombination) and not one.reason]
        self.num_uncounted = len(late)
        self.precisions = list(dict.fromkeys(one.combination.precision for one in counted))
        self.is_counted = not late
        number = f"{len(counted) - len(late):,} of {len(counted):,} deployments"
        self.bounded = bounded if self.is_counted else f"{bounded} that were estimated ({number})"
        self.rows = [
            DeploymentStanding(counted=one)
            if isinstance(one, CombinationCosts)
            else row_without_numbers(one)
            for one in counted
        ]
        self.standings = [one for one in self.rows if isinstance(one, DeploymentStanding)]

    @property
    def all_of_it(self) -> float:
        """Of which ``budget.left`` is a part."""
        return self.options.time_limit if self.options.work is None else self.options.work

    @property
    def least(self) -> float:
        """For any search, in the same units."""
        return LEAST_SECONDS if self.options.work is None else LEAST_WORK

    @property
    def best(self) -> DeploymentStanding | None:
        found = [
            (self._placed(one, *place_of(one.best)), one) for one in self.standings if one.best
        ]
        return min(found, key=lambda pair: pair[0], default=(None, None))[1]

    @property
    def best_value(self) -> int | None:
        """The iteration of the best."""
        return value_of(self.best)

    @property
    def reserved(self) -> float:
        """Seconds, about, in which the best one's schedule is judged by every rule at the end."""
        best = self.best
        if best is None or best.best is None or self.options.work is not None:
            return 0.0
        pace = self.budget.pace
        return preparation(best.best.found.pipeline) * max(pace.load, min(pace.factor, LOADED))

    @property
    def open_ones(self) -> list[DeploymentStanding]:
        return [one for one in self.standings if not one.reason]

    def first_looks(self) -> int:
        """The first three steps alone; the least bound."""
        in_turn((self._begin, self._look_first), self.options.stop)
        return min((one.bound for one in self.open_ones), default=0)

    def _begin(self) -> None:
        for one in self.open_ones:
            if not self.is_lazy:
                self._open(one, self._latest)
                continue
            one.floor = floor_of(one.counted)
            one.rule_out()
        for one in self.open_ones:
            if (known := self.known.get(one.counted.combination)) is not None:
                if not one.is_opened:
                    self._open(one, inf)
                one.begin_with(known)
        self.budget.measure_load()

    def _open(self, one: DeploymentStanding, until: float) -> None:
        """Make its candidates, each with its bound, until a moment of the clock."""
        if (space := self._space(one)) is not None:
            one.open(space, until)

    @property
    def _latest(self) -> float:
        """The moment at which the best one's schedule has to be judged."""
        return self.budget.deadline - self.reserved

    def _space(self, one: DeploymentStanding) -> PlanSpace | None:
        """The shapes to try of it; None where there are none, and it is refused."""
        try:
            return self.space_of(one.counted)
        except ValueError as why:  # such as more microbatches than a problem may have
            is_too_large = isinstance(why, OversizeError) and not one.counted.reason
            one.refuse(str(why), is_too_large=is_too_large)
            return None

    def _look_first(self) -> None:
        waiting = sorted(
            self.open_ones,
            key=lambda one: (
                one.estimate.is_large,
                self._placed(one, one.estimate.iteration, one.estimate.needed),
            ),
        )
        again: list[DeploymentStanding] = []
        is_bounded = False
        while waiting:
            most, left = self.best_value, self.budget.left
            used, left = self.all_of_it - left, left - self.reserved
            is_ended = most is not None or self.options.work is None
            is_late = is_ended and used > LOOKS_SHARE * self.all_of_it
            if left <= 0 or is_late:
                return
            one = self._next(waiting, most, used)
            waiting.remove(one)
            if most is not None and not is_bounded:
                self._bound(most)
                is_bounded = True
            if not one.is_opened and (most is None or one.bound < most):
                self._open(one, self._latest)
            if one.is_opened and not one.reason and (most is None or one.bound < most):
                self._look_at(one, most)
                self._tell_of(one)
                again += [] if one.is_seen else [one]
            if not waiting:
                waiting, again = again, []

    def _placed(self, one: DeploymentStanding, ticks: int, memory: int) -> tuple[int, int, int]:
        """The shorter is better, of equals that of the precision that is listed first."""
        return ticks, self.precisions.index(one.counted.combination.precision), memory

    def _bound(self, most: int) -> None:
        """Make the candidates of all that may be below ``most``, the least bound first."""
        until = self.budget.began + BOUNDS_SHARE * self.options.time_limit
        for one in sorted(self.open_ones, key=lambda one: one.bound):
            is_late = time.perf_counter() > until
            if one.bound >= most or is_late or self.budget.is_spent:
                return
            if not one.is_opened:
                self._open(one, until)
        self._tell(f"bounded {len(self.open_ones):,} deployments; best {most:,} us")

    def _next(
        self, waiting: Sequence[DeploymentStanding], most: int | None, used: float
    ) -> DeploymentStanding:
        """The best by its estimate; as long as nothing fits and seconds go, that of most room."""
        is_in_need = most is None and used > ROOM_SHARE * self.all_of_it
        is_in_need = is_in_need and waiting[0].estimate.is_large
        if self.options.work is None and is_in_need:
            return min(waiting, key=lambda one: one.counted.needed)
        return waiting[0]

    def _look_at(self, one: DeploymentStanding, most: int | None) -> None:
        """First looks at its candidates; its bound is the least of theirs.

        Where candidates are made in turn, so many (``TURN``) of all kinds, and the others in a turn
        after those of the other deployments. As long as nothing is found, none may take more than
        a part of the seconds that are left.
        """
        for each in self._turn(one):
            each.is_looked_at = True
            if most is not None and each.least >= most:
                one.is_skipped = True
                continue
            seconds = max(0.0, self.budget.preparable - self.reserved)
            needed = preparation(each.shaped.pipeline, self.options.orders)
            share = ONE_SHARE if most is None else 1.0
            if self.options.work is None and needed > share * seconds:
                one.is_passed_over = True
                continue
            began = self.budget.taken
            seen = first_look(replace(self._first_asked(each, most), seconds=seconds))
            self.budget.spend(seen.work)
            one.take(each, seen)
            one.is_passed_over |= not seen.is_begun
            if needed <= seconds:
                self.budget.pace.measure(needed, self.budget.taken - began)
            if one.best is not None:
                most = one.best.value if most is None else min(most, one.best.value)
        self.budget.measure_load()
        is_whole = one.is_seen and not one.is_passed_over
        one.is_settled = is_whole and bool(self.options.orders)
        one.rule_out()

    def _turn(self, one: DeploymentStanding) -> list[CandidateStanding]:
        """The candidates of a turn, the least bound first."""
        left = [each for each in one.candidates if not each.is_looked_at]
        return left[:: -(-len(left) // TURN)] if self.is_lazy and left else left

    def _improve(self) -> None:
        """Search where something shorter may be, then in the pipeline of the best alone."""
        waiting = sorted(self.open_ones, key=lambda one: one.bound)
        if self.options.work is None:  # the clock ends it: what is likely to fit comes first
            waiting.sort(key=lambda one: one.counted.needed)
        for one in waiting:
            if self.best is not None or self.budget.is_spent:
                break
            self._plan(one, max(self.least, self.budget.left / len(waiting)))
        if not self.options.orders:
            self._close_others()
        if self.best is not None and not self.best.has_plan:
            self._plan(self.best, max(self.least, self.budget.left - self.reserved))

    def _close_others(self) -> None:
        """Of each other combination whose bound is below the best: something shorter, or none."""
        tried: list[DeploymentStanding] = []
        while (most := self.best_value) is not None:
            waiting = self._below(most, tried)
            if not waiting or self.budget.left - self.reserved <= self.least:
                return
            share = OTHERS_SHARE * (self.budget.left - self.reserved) / len(waiting)
            self._close(waiting[0], most, max(self.least, share))
            tried.append(waiting[0])

    def _below(self, most: int, tried: Sequence[DeploymentStanding]) -> list[DeploymentStanding]:
        """Those others that may be below ``most`` and were not tried, least bound first."""
        found = [
            one
            for one in self.open_ones
            if one is not self.best and one not in tried and one.bound < most
        ]
        return sorted(found, key=lambda one: one.bound)

    def _close(self, one: DeploymentStanding, most: int, share: float) -> None:
        """Look for an iteration below ``most`` in its candidates that are not bounded by it."""
        waiting = [each for each in one.candidates if each.least < most]
        for each in waiting:
            if self._fits(each):
                seen = look(self._asked(each, share / len(waiting), most))
                self.budget.spend(seen.work)
                one.take(each, seen)
        self._tell_of(one)

    def _plan(self, one: DeploymentStanding, share: float) -> None:
        """The search of its pipeline alone; out of time, what is known becomes its plan."""
        if (space := self._space(one)) is None:
            return
        part = self.budget.part(share, LEAST_SECONDS)
        self.budget.done += share
        options = replace(self.options, tell=None)
        known = () if one.best is None else (one.best,)
        one.take_plan(PipelineSearch(space, options, part, self.executor, known).run())
        self._tell_of(one)

    def _tell_of(self, one: DeploymentStanding) -> None:
        best = self.best_value
        found = "no schedule yet" if one.best is None else f"{one.best.value:,} us"
        shown = "none" if best is None else f"{best:,} us"
        self._tell(f"{one.counted.combination}: {found}, bound {one.bound:,} us; best {shown}")

    def _conclude(self) -> ClusterPlan | NoClusterPlan:
        best = self.best
        if best is not None and not best.has_plan:  # interrupted: what the first looks found
            self._plan(best, self.least)
        rows = tuple(
            one.row(best) if isinstance(one, DeploymentStanding) else one for one in self.rows
        )
        bundled = {str(one.counted.combination): one.bundle for one in self.standings}
        most, bounds = self.best_value, [one.bound for one in self.open_ones]
        unsettled = [one for one in self.open_ones if most is None or one.bound < most]
        unsettled = [one for one in unsettled if not one.is_settled]
        reason = self.budget.reason(len(unsettled) + self.num_uncounted, "deployment")
        lower, seconds = min(bounds, default=0), self.budget.taken
        is_unfit = any(one.is_unfit for one in self.standings)
        none = NoClusterPlan(
            status=self._unsolved_status(),
            rows=rows,
            lower_bound=lower,
            nearest=self._nearest(),
            seconds=seconds,
            bundled=bundled,
            reason=reason,
            orders=self.options.orders if is_unfit else (),
            bounded=self.bounded + self._cuts,
            cuts=self._cuts,
        )
        if best is None or best.best is None or best.plan is None:
            return none
        is_closed = self.is_counted and min(bounds, default=NEVER) >= best.best.value
        return extended(
            ClusterPlan,
            none,
            status=Status.OPTIMAL if is_closed else Status.FEASIBLE,
            winner=best.counted,
            plan=best.plan,
            value=best.best.value,
            step_end=best.step_end,
            orders=() if unsettled else self.options.orders,
        )

    @property
    def _cuts(self) -> str:
        """How layers were cut before the search, as a clause; all deployments alike."""
        parted = [one for one in self.standings if one.counted.combination.pipeline > 1]
        return f", with layers {cut_words(parted[0].counted.numbers.layers)}" if parted else ""

    def _nearest(self) -> tuple[NearestDeployment, ...]:
        """The deployment that runs on the smallest card, where one does at all."""
        legal = [one for one in self.standings if one.is_legal]
        return tuple(
            NearestDeployment(combination=one.counted.combination, memory=one.on_card)
            for one in sorted(legal, key=lambda one: one.on_card)[:1]
        )

    def _unsolved_status(self) -> Status:
        is_open = any(not one.is_unfit for one in self.open_ones)
        is_open = is_open or any(one.is_too_large for one in self.standings)
        return Status.UNKNOWN if is_open or not self.is_counted else Status.INFEASIBLE


def floor_of(one: CombinationCosts, off: int = 0) -> int:
    """No iteration of the deployment takes less ticks; ``NEVER`` where none fits.

    Parameters
    ----------
    off
        Ticks by which F, I and W of a layer, embedding or head may each be less: by a rounding to
        other shares, as where samples are not cut into slices.
    """
    numbers, ranks = one.numbers, one.combination.pipeline
    if _held(numbers) > ranks * numbers.capacity:
        return NEVER
    parts = _parts(numbers.layers)
    ticks = sum(max(0, part.forward + part.backward - 3 * off) for part in parts)
    return -(-one.microbatches * ticks // ranks) + numbers.step_end


def _held(numbers: ClusterLayers) -> int:
    return sum(part.static + part.activation for part in _parts(numbers.layers))


def _parts(layers: Layers) -> list[LayerPart]:
    return [
        layers.embedding,
        *(part for part, number in layers.runs for _ in range(number)),
        layers.head,
    ]
