"""Plans: of one pipeline, and of the deployments of a model, each within time and work.

A plan of a problem goes through the shapes of one pipeline (``pipeline_search``). That of a model
on a cluster goes through deployments, whose steps end later than their pipelines do
(``deployment_search``), and gives what is left of time and work to the search of the best one's
pipeline. Where there is one pipeline and nothing follows it, that search is all there is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import inf

from bubbleproof.costs.combinations import Combination
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.planners.cluster_planned import ANY_ORDER, ClusterPlan, NoClusterPlan
from bubbleproof.planners.counting import COUNTED, AnyListed, counted_within
from bubbleproof.planners.deployment_search import DeploymentSearch, SpaceOf
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.pipeline_search import PipelineSearch
from bubbleproof.planners.planned import NoPlanFound, Plan, PlanOptions
from bubbleproof.planners.search_budget import SearchBudget
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

SEARCHED = 0.95  # of the seconds: what is found is then judged and told


def plan(
    space: PlanSpace,
    options: PlanOptions | None = None,
    *,
    executor: Executor | None = None,
    known: Sequence[KnownSchedule] = (),
) -> Plan | NoPlanFound:
    """The best pipeline and schedule of the space, and how good it is.

    ``executor`` has workers that look at candidates side by side; without one they are looked at
    here, in turn. ``known`` are schedules to begin with. Raises ``ValueError`` for what a solver
    refuses.
    """
    options = options or PlanOptions()
    budget = SearchBudget.of(SEARCHED * options.time_limit, options.work, options.stop)
    return PipelineSearch(space, options, budget, executor, known).run()


def plan_deployments(
    file: ClusterFile,
    options: PlanOptions | None = None,
    executor: Executor | None = None,
    *,
    known: Mapping[Combination, KnownSchedule] | None = None,
) -> ClusterPlan | NoClusterPlan:
    """The best of a file's deployments, as many as have their numbers in a part of the time.

    Parameters
    ----------
    known
        Schedules to begin with: no plan is longer than one of them.

    Raises
    ------
    ValueError
        For lists of which nothing can be run.
    """
    options, began = options or PlanOptions(), time.perf_counter()
    seconds = COUNTED * options.time_limit if options.work is None else inf
    counts = counted_within(file, seconds, options.tell)
    found = plan_counted(file, counts, options.after(time.perf_counter() - began), executor, known)
    return replace(found, seconds=time.perf_counter() - began)


def plan_counted(
    file: ClusterFile,
    counts: Sequence[AnyListed],
    options: PlanOptions,
    executor: Executor | None = None,
    known: Mapping[Combination, KnownSchedule] | None = None,
) -> ClusterPlan | NoClusterPlan:
    """The best of a file's deployments that were counted.

    Parameters
    ----------
    known
        Schedules to begin with: no plan is longer than one of them.
    """
    return plan_cluster(
        counts,
        lambda one: deployed_space(file, one),
        replace(options, orders=file.orders),
        executor=executor,
        is_lazy=file.is_open,
        known=known,
        bounded=file.bounded,
    )


def plan_cluster(
    counted: Sequence[AnyListed],
    space_of: SpaceOf,
    options: PlanOptions | None = None,
    *,
    executor: Executor | None = None,
    is_lazy: bool = False,
    known: Mapping[Combination, KnownSchedule] | None = None,
    bounded: str = ANY_ORDER,
) -> ClusterPlan | NoClusterPlan:
    """The best of the combinations; ``space_of`` gives the shapes to try of each.

    Where ``is_lazy`` shapes are made of those alone that may be the best.

    Parameters
    ----------
    is_lazy
        Whether to make no shapes of what its floor already excludes.
    known
        Schedules to begin with: no plan is longer than one of them.
    bounded
        The orders that the bound is of, in words.
    """
    options = options or PlanOptions()
    budget = SearchBudget.of(SEARCHED * options.time_limit, options.work, options.stop)
    return DeploymentSearch(
        counted, space_of, options, budget, executor, is_lazy=is_lazy, known=known, bounded=bounded
    ).run()
