"""What it costs that a plan is for one framework: beside what any order of ours could do.

The deployments of the plan's shortest iterations are looked at again, at every level of ZeRO, with
all that a schedule of ours may be, for a part of the plan's time: every published order, without a
search for others. What is found is a plan that the framework does not run. The bound is that of all
deployments' numbers (``planners.deployment_search``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from bubbleproof.costs.combinations import CombinationCosts, combinations, legal
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.frameworks import ANY
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.counting import UncountedCombination, counted_within
from bubbleproof.planners.deployment_search import DeploymentSearch, floor_of
from bubbleproof.planners.deployment_standing import DeploymentStanding
from bubbleproof.planners.own_run import OwnRun, own_run
from bubbleproof.planners.planned import PlanOptions
from bubbleproof.planners.search_budget import SearchBudget
from bubbleproof.theory.families import families

SHARE = 0.15  # of the plan's time, or work, at most for an analysis beside it
AKIN = 3  # of the shortest iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """What the framework does not run: ``left_out`` deployments of the file's lists.

    ``value`` is the best iteration found without it, of ``run``; None where it found none. Of
    ``deployments`` that any framework may run no iteration is below ``bound``, in whatever order
    and however the layers are cut.
    """

    framework: str
    left_out: int
    value: int | None
    run: str
    deployments: int
    bound: int

    @property
    def bounded(self) -> str:
        """What the bound is of, in words."""
        return f"any framework: any order and any cut of these {self.deployments:,} deployments"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRestriction:
    """That it was not looked at what the ``framework`` costs, and why."""

    framework: str
    why: str


AnyRestriction = Restriction | UnknownRestriction | None


def restriction_of(
    file: ClusterFile,
    found: ClusterPlan,
    own: OwnRun | None,
    options: PlanOptions,
    seconds: float,
    pace: float = 0.0,
) -> AnyRestriction:
    """What the file's framework costs.

    One's own run is a candidate here, though the framework may not have it. None where any order
    may be run, all is as it is listed, or any framework has more deployments than a plan may.

    Parameters
    ----------
    seconds
        For which is looked at most.
    pace
        Seconds, about, that the numbers of a deployment take.
    """
    if file.opened is None or file.opened.framework == ANY:
        return None
    free = cluster_file_of_text(file.text, name=file.name, framework=ANY)
    try:
        listed = combinations(free.training, free.lists)
    except ValueError as many:  # than a plan goes through
        return UnknownRestriction(framework=file.opened.framework, why=str(many))
    if options.work is None and (needed := pace * len(listed)) > seconds:
        why = f"the numbers of {len(listed):,} deployments take about {needed:.0f} s more"
        return UnknownRestriction(framework=file.opened.framework, why=why)
    deadline = time.perf_counter() + seconds
    if own is not None:
        own = replace(own, reason=own_run(free, own.own).reason)  # of any framework
        free = own.beside(free)
    every = counted_within(free, inf if options.work is not None else seconds)
    if left := sum(isinstance(one, UncountedCombination) for one in every):
        why = f"the numbers of {left:,} of {len(every):,} deployments are left"
        return UnknownRestriction(framework=file.opened.framework, why=why)
    counts = legal(every)
    work = None if options.work is None else SHARE * options.work
    budget = SearchBudget.of(deadline - time.perf_counter(), work, options.stop)
    limits = replace(options, orders=tuple(families()), tell=None, time_limit=max(seconds, 1e-9))
    search = DeploymentSearch(
        _akin(counts, found, own),
        lambda one: deployed_space(free, one),
        limits,
        budget,
        is_lazy=True,
    )
    search.first_looks()
    value, run = _best(search.best, own)
    off = 0 if free.training.shares == file.training.shares else free.training.shares // 2
    return Restriction(
        framework=file.opened.framework,
        left_out=sum(not file.runs(one) for one in listed),
        value=value,
        run=run,
        deployments=len(counts),
        bound=min([*(floor_of(one, off) for one in counts), found.value]),
    )


def _best(best: DeploymentStanding | None, own: OwnRun | None) -> tuple[int | None, str]:
    """The shortest iteration, of what was found and one's own, and what runs so."""
    found = []
    if best is not None and best.best is not None:
        found = [(best.best.value, f"{best.counted.combination}, {best.best.candidate}")]
    if own is not None and not own.reason:
        found.append((own.known.value, f"{own.combination}, {own.known.candidate}"))
    return min(found, key=lambda each: each[0], default=(None, ""))


def _akin(
    counts: Sequence[CombinationCosts], found: ClusterPlan, own: OwnRun | None
) -> list[CombinationCosts]:
    """The deployments of the plan's shortest iterations at every level of ZeRO, and one's own."""
    solved = sorted(found.solved, key=lambda row: row.value)[:AKIN]
    like = {replace(row.combination, zero=0) for row in solved}
    if own is not None:
        like.add(replace(own.combination, zero=0))
    return [one for one in counts if replace(one.combination, zero=0) in like]
