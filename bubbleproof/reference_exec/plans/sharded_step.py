"""Collectives read back out of problems: what is sharded, and which visits they serve.

Tasks and precedences are read, never durations. RESHARDs mean ZeRO-3 and say by what they wait for
which microbatches are enqueued and dequeued together; several REDUCE_GRADs of one stage mean
ZeRO-2 and say the same of the dequeues. With one REDUCE_GRAD per stage ZeRO-1 and, where all
microbatches are dequeued together, ZeRO-2 have the same tasks; the latter has one precedence more.
Sequences that the problem does not tell are as equal as can be: nothing that is run depends on
them.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.reference_exec.plans.plan import COLLECTIVE_KINDS
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding

Visits = dict[int, tuple[int, ...]]  # by number: the microbatches that a collective waits for


def sharded(problem: Problem, step: Pipeline) -> Pipeline:
    """The step with the problem's collectives, itself where there are none.

    So it is where a problem has more than forwards and full backwards of whole samples: what its
    collectives serve is then read by ``own_collectives``. Raises ``ValueError`` where they are not
    those of whole visits, alike on all stages.
    """
    others = set(Kind) - {Kind.F, Kind.B, *COLLECTIVE_KINDS}
    has_others = problem.actions.is_kind(*others).any() or step.num_slices > 1
    is_double = len(problem.stage_to_rank) < step.num_stages
    if has_others or is_double or not problem.actions.is_kind(*COLLECTIVE_KINDS).any():
        return step
    stages = range(step.num_stages)
    zero, enqueue, dequeue = _read(problem, step, 0)
    for stage in stages[1:]:
        if (found := _read(problem, step, stage)) != (zero, enqueue, dequeue):
            raise ValueError(
                "replay needs the same collectives on all stages; by those of stage 0 e, d = "
                f"{enqueue}, {dequeue} with ZeRO-{zero}, by those of stage {stage} "
                f"{found[1]}, {found[2]} with ZeRO-{found[0]}"
            )
    if (problem.duration[problem.actions.is_kind(Kind.F, Kind.B)] < 1).any():
        raise ValueError("replay of collectives needs forwards and backwards of 1 tick or more")
    sharding = Sharding(zero=zero, gather=1, reduce=1, enqueue=enqueue, dequeue=dequeue)
    return step.with_changes(sharding=sharding)


def _read(
    problem: Problem, step: Pipeline, stage: int
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """(zero, enqueue, dequeue) by the collectives of one stage."""
    m = step.num_microbatches
    frees = _waited_for(problem, stage, Kind.RESHARD)
    reduces = _waited_for(problem, stage, Kind.REDUCE_GRAD)
    if not reduces:
        raise ValueError(f"replay needs a REDUCE_GRAD of every stage; stage {stage} has none")
    if frees:
        forward = {n: who for n, who in frees.items() if n < min(reduces)}
        backward = {n: who for n, who in frees.items() if n >= min(reduces)}
        return 3, _sizes(forward, m, stage), _sizes(backward, m, stage)
    first = min(reduces)
    if len(reduces) > 1:
        return 2, _equal(first, m), _sizes(reduces, m, stage)
    if _waits_within(problem, stage) == m - 1:
        return 2, _equal(first, m), (m,)
    count = max(1, first + 1 - m)
    return 1, _equal(first + 1 - count, m), _equal(count, m)


def _waited_for(problem: Problem, stage: int, kind: Kind) -> Visits:
    """The microbatches whose F or B each collective of a stage waits for, by number."""
    actions, edges = problem.actions, problem.edges
    own = np.flatnonzero((actions.stage == stage) & actions.is_kind(kind))
    found: Visits = {}
    for task in own[np.argsort(actions.slice[own])].tolist():
        before = edges.before[edges.after == task]
        before = before[actions.is_kind(Kind.F, Kind.B)[before]]
        found[int(actions.slice[task])] = tuple(sorted(actions.microbatch[before].tolist()))
    return found


def _sizes(visits: Visits, m: int, stage: int) -> tuple[int, ...]:
    """The sizes of visits, which must go through the microbatches one after another."""
    if [j for who in visits.values() for j in who] != list(range(m)):
        raise ValueError(
            f"replay needs collectives of visits that go through microbatches 0 to {m - 1} in "
            f"order; on stage {stage} they serve {list(visits.values())}"
        )
    return tuple(len(who) for who in visits.values())


def _equal(count: int, m: int) -> tuple[int, ...]:
    """``count`` numbers that add up to m, as equal as can be."""
    return tuple(m // count + (k < m % count) for k in range(count)) if count else ()


def _waits_within(problem: Problem, stage: int) -> int:
    """How many backwards of a stage wait for the one of its microbatch 0."""
    actions, edges = problem.actions, problem.edges
    backward = (actions.stage == stage) & actions.is_kind(Kind.B)
    first = backward & (actions.microbatch == 0)
    return int((first[edges.before] & backward[edges.after]).sum())
