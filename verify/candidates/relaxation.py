"""What every schedule of a pipeline obeys, whatever is chosen of what it leaves open.

A choice adds: the tasks of a recomputation, of an eviction or of an off-load, their precedences and
their memory events. It takes away no task, no precedence and no resource of the pipeline without
choices. So each schedule of a choice, less what was added, keeps all of these; only memory needs an
argument, store by store:

- a rank that recomputes or off-loads may hold less than without: nothing is said of its memory,
  but where it off-loads to a host of limited memory, the two together;
- ranks that evict to one another hold together what they held without: an eviction holds its bytes
  on the source until it ends and on the target from its start, and so does the way back. So the sum
  of their loads is never below the sum without, and it has the sum of their capacities. The same is
  true of a rank and its host. If one of them has no limit, nothing is said.

What is stated so is a ``Problem`` of the pipeline's own tasks, and a certificate of it bounds every
schedule of every choice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.extension import subset
from bubbleproof.theory.pipelines.pipeline import Pipeline


def relaxation(pipeline: Pipeline, allowed: AllowedChoices | None) -> Problem:
    """The pipeline's tasks with the memory that no choice of ``allowed`` escapes.

    Precondition: the pipeline has none of these choices made.
    """
    problem, open_ = pipeline.problem(), allowed or AllowedChoices()
    stores, into = list(problem.stores), np.arange(len(problem.stores))
    again, offload = open_.recompute, open_.offload
    recomputing = _ranks(pipeline, () if again is None else again.stages)
    off_loading = _ranks(pipeline, () if offload is None else offload.stages)
    for pool in _pools(pipeline, open_, recomputing | off_loading):
        host = None if offload is None else offload.host_capacity
        hosts = [host] * len(pool & off_loading)
        joint = None if pool & recomputing else _joint([stores[r] for r in sorted(pool)], hosts)
        for rank in pool:
            stores[rank] = replace(stores[rank], capacity=None)
            into[rank] = NONE if joint is None else min(pool)
        if joint is not None:
            stores[min(pool)] = joint
    moved = replace(problem.events, store=into[problem.events.store])
    kept = subset(moved, moved.store != NONE)
    return replace(problem, stores=tuple(stores), events=kept)


def _pools(
    pipeline: Pipeline, allowed: AllowedChoices, changed: frozenset[int]
) -> set[frozenset[int]]:
    """Ranks whose memory choices change, with those that they evict to or from."""
    pool = {rank: frozenset((rank,)) for rank in range(pipeline.num_ranks)}
    pairs = () if allowed.evict is None else allowed.evict.pairs
    for one, other in pairs:
        joined = pool[one] | pool[other]
        pool |= dict.fromkeys(joined, joined)
    changed |= {rank for pair in pairs for rank in pair}
    return {ranks for ranks in pool.values() if ranks & changed}


def _joint(stores: list[Store], hosts: list[int | None]) -> Store | None:
    """One store with the capacity of all and of their hosts; None where one has no limit."""
    capacities = [*(store.capacity for store in stores), *hosts]
    known = [capacity for capacity in capacities if capacity is not None]
    if len(known) < len(capacities):
        return None
    return Store(
        name=" and ".join(store.name for store in stores),
        base=sum(store.base for store in stores),
        capacity=sum(known),
    )


def _ranks(pipeline: Pipeline, stages: tuple[int, ...]) -> frozenset[int]:
    return frozenset(pipeline.stage_ranks[stage] for stage in stages)
