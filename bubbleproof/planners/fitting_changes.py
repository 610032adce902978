"""What would make a job fit where nothing does: each change is planned before it is named.

From the deployment that needs the least of a card, one thing is changed at a time: gradients in 16
bits, a wider recompute scope, twice the tensor or the pipeline ranks over half the replicas. A
change is named where the framework runs it and a schedule of it fits. What is among the lists was
tried already. Of a configuration of one's own that has no room the same changes are timed as it
runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from bubbleproof.costs.combinations import Combination, CombinationCosts
from bubbleproof.costs.deployment import SCOPES
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.configuration_words import deployment_parts, difference
from bubbleproof.planners.own_run import FittingChange, NotLegalRun, OwnRun, own_run
from bubbleproof.planners.planned import PlanOptions
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.planners.search_budget import timely
from bubbleproof.solvers import Status

SHORT_GRADIENTS = {"bf16": "bf16-gradients"}  # the same precision with gradients of 16 bits


def changes_that_fit(
    file: ClusterFile, found: NoClusterPlan, options: PlanOptions, seconds: float
) -> tuple[FittingChange, ...]:
    """Those that were found to fit, in so many seconds, of a plan that is infeasible.

    Parameters
    ----------
    options
        As of the plan itself.
    seconds
        For all of them together.
    """
    if found.status is not Status.INFEASIBLE or not found.nearest:
        return ()
    at, ends = found.nearest[0].combination, time.perf_counter() + seconds
    tried, fit = {row.combination for row in found.rows}, []
    waiting = [one for one in _changes(file, at) if one not in tried]
    for number, each in enumerate(waiting):
        part = (ends - time.perf_counter()) / (len(waiting) - number)
        one = file.counted(each)
        if part <= 0 or not isinstance(one, CombinationCosts) or one.reason:
            continue
        limits = replace(options, time_limit=part, orders=file.orders, tell=None)
        plan = plan_cluster([one], lambda c: deployed_space(file, c), limits)
        if isinstance(plan, ClusterPlan):
            change = difference(deployment_parts(each), deployment_parts(at))
            fit.append(FittingChange(combination=each, change=change, iteration=plan.value))
    return tuple(fit)


def own_with_fits(file: ClusterFile, own: OwnRun, seconds: float, each: float) -> OwnRun:
    """With the changes by which it fits, where it does not.

    Parameters
    ----------
    seconds
        For which is looked at most.
    each
        Seconds, about, that one takes.
    """
    if own.fits:
        return own
    fits = []
    for at in timely(_changes(file, own.combination), seconds, each):
        with suppress(NotLegalRun):
            run = own_run(file, replace(own.own.plain, combination=at))
            change = difference(deployment_parts(at), deployment_parts(own.combination))
            one = FittingChange(combination=at, change=change, iteration=run.iteration)
            fits += [one] if run.fits else []
    return replace(own, fits_as=tuple(fits))


def _changes(file: ClusterFile, at: Combination) -> Iterator[Combination]:
    """One change each, those that the framework runs."""
    short = SHORT_GRADIENTS.get(at.precision or file.training.deployment.precision, "")
    every = [replace(at, precision=short)] if short else []
    every += [replace(at, scope=each) for each in SCOPES[SCOPES.index(at.scope) + 1 :]]
    if at.data % 2 == 0:
        for name in ("tensor", "pipeline"):
            every.append(replace(at, data=at.data // 2, **{name: 2 * getattr(at, name)}))
    for one in every:
        is_run = file.opened is None or not file.opened.refused(one)
        if is_run and one.tensor <= file.training.cluster.card.cards_per_node:
            yield one
