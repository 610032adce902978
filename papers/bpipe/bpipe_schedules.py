"""What BPipe's claims measure on schedules: each function builds one and asks ``measure``.

Parameters: ``p`` ranks, ``m`` microbatches, ``v`` chunks, ``s`` a stage (rank), ``tF`` ``tB`` ``t``
ticks of a forward, a backward and a transfer, ``W`` ``A`` memory units of a stage's weights and of
one activation. ``mu`` is the peak number of activations of a rank.

``printed`` is what Algorithm 1 gives to the letter: every slot takes one tick, T_i starts beside
C_i. It is an ordinary schedule with evictions, so the checker says whether it breaks a rule (a
backward without its activation, a transfer of what is not there); activations on the move count on
both ends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bubbleproof.papers.bpipe.bpipe_literal import literal, paired
from bubbleproof.papers.claims.domain import CaseValues, Params
from bubbleproof.papers.claims.measured_pipelines import makespan as makespan_of
from bubbleproof.papers.claims.measured_pipelines import measures, on_pipeline, peaks_of
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.theory.families import member
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.evicting.bpipe import BPipe
from bubbleproof.theory.families.evicting.bpipe_plan import Slots, computation_slots
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import check

BPIPE = BPipe()
makespan_1f1b = makespan_of("1f1b")


@lru_cache(maxsize=32)  # megabytes each
def _made(p: int, m: int) -> FamilyMember:
    return member("bpipe", p=p, m=m)


def mu(name: str) -> NumberOf:
    """mu(s) of the family's schedule."""
    return lambda at: measures(name, at).peak_activations[at["s"]]


def of_pair(at: Params) -> Params:
    """The case of stage p-1-s."""
    return {**at, "s": at["p"] - 1 - at["s"]}


@lru_cache(maxsize=256)
def _bytes_1f1b(p: int, m: int, weights: int, activation: int) -> tuple[int, ...]:
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, static=weights, activation=activation)
    return on_pipeline(OneForwardOneBackward(), pipeline).peak_memory


def memory_1f1b(at: Params) -> int:
    """M(s) of 1F1B with weights W and activations A."""
    return _bytes_1f1b(at["p"], at["m"], at["W"], at["A"])[at["s"]]


def on_acceptor(at: Params) -> int:
    """The most activations of stage s that lie on its acceptor at once, those in flight included.

    The schedule's own memory events, less those that are no transfer, measured on the acceptor.
    """
    return _on_acceptor(at["p"], at["m"], at["s"])


@lru_cache(maxsize=8192)  # numbers only, for several claims
def _on_acceptor(p: int, m: int, s: int) -> int:
    schedule = _made(p, m)
    actions, events = schedule.problem.actions, schedule.problem.events
    rows = actions.is_kind(Kind.EVICT, Kind.LOAD)[events.task]
    rows &= (actions.stage[events.task] == s) & (events.store != s)
    return peaks_of(schedule, rows)[p - 1 - s]


@lru_cache(maxsize=4096)  # numbers only: the schedules themselves are not kept
def moves(p: int, m: int, kind: Kind) -> tuple[int, ...]:
    """How many EVICTs, or LOADs, each stage has in its schedule."""
    actions = _made(p, m).schedule.program.actions
    return tuple(np.bincount(actions.stage[actions.is_kind(kind)], minlength=p).tolist())


def evictions(at: Params) -> int:
    """How many EVICTs stage s has."""
    return moves(at["p"], at["m"], Kind.EVICT)[at["s"]]


def warm_up_evictions(at: Params) -> int:
    """How many evictions stage s plans beside slots before its first backward."""
    p, m = at["p"], at["m"]
    slots = computation_slots(BPIPE.base, p, m)[at["s"]]
    first = next(i for i, action in enumerate(slots) if action and action.kind is Kind.B)
    planned = BPIPE.transfers(p, m).get(at["s"], ())
    return sum(t.kind is Kind.EVICT and t.slot < first for t in planned)


def makespan(at: Params, transfer: int) -> int:
    """The makespan of BPipe at tF, tB and a transfer of the given ticks."""
    return _makespan(at["p"], at["m"], at["tF"], at["tB"], transfer)


@lru_cache(maxsize=4096)  # numbers only; several claims ask for the same transfer
def _makespan(p: int, m: int, forward: int, backward: int, transfer: int) -> int:
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, forward=forward, backward=backward)
    return on_pipeline(BPIPE, BPIPE.balanced(pipeline, transfer=transfer)).makespan


def longest_free_transfer(at: Params) -> int:
    """The most ticks a transfer may take without a longer makespan than 1F1B's."""
    ticks, plain = 0, makespan_1f1b(at)
    while makespan(at, ticks + 1) == plain:
        ticks += 1
    return ticks


class PrintedOutcome(NamedTuple):
    """How many rules the schedule breaks, and the most activations that each rank holds."""

    violations: int
    peaks: CaseValues


def pairs(p: int, m: int) -> tuple[Slots, ...]:
    """C of each rank, drawn in pairs."""
    return paired(computation_slots(BPIPE.base, p, m))


@lru_cache(maxsize=4096)  # numbers only
def printed(p: int, m: int) -> PrintedOutcome:
    """The schedule of all ranks by Algorithm 1 on C drawn in pairs.

    Raises ``ValueError`` where a decision names the microbatch of a bubble: that is no transfer.
    """
    drawn = pairs(p, m)
    moved = [(s, each) for s in range(p // 2) for each in literal(drawn[s], p, s, m)]
    if any(each.microbatch is None for _, each in moved):
        raise ValueError(f"at p={p} m={m} Algorithm 1 names the microbatch of a bubble")
    actions = [
        (each.slot, Action(stage=s, kind=each.kind, microbatch=each.microbatch or 0))
        for s, each in moved
    ]
    evictions = tuple(
        Eviction(
            stage=a.stage,
            microbatch=a.microbatch,
            source=a.stage,
            target=p - 1 - a.stage,
            duration=1,
        )
        for _, a in actions
        if a.kind is Kind.EVICT
    )
    plain = Pipeline(num_ranks=p, num_microbatches=m, forward=1, backward=1)
    pipeline = plain.with_changes(evictions=evictions)
    problem = pipeline.problem()
    names = {resource.name: i for i, resource in enumerate(problem.resources)}
    orders: list[list[tuple[int, Action]]] = [[] for _ in names]
    for s, slots in enumerate(drawn):
        orders[s] += [(i, action) for i, action in enumerate(slots) if action is not None]
    for slot, action in actions:
        ends = (action.stage, p - 1 - action.stage)
        way = ends if action.kind is Kind.EVICT else ends[::-1]
        orders[names[pipeline.all_links.name(*way)]].append((slot, action))
    program = Program.from_orders([[action for _, action in order] for order in orders])
    start = np.array([slot for order in orders for slot, _ in order], dtype=np.int64)
    verdict = check(problem, Schedule(program=program, start=start))
    if verdict.measured is None:
        raise ValueError(f"the printed algorithm's decisions leave tasks out: {verdict}")
    return PrintedOutcome(len(verdict.violations), verdict.measured.peak_activations)


def pair_peak(at: Params) -> int:
    """The most activations that stage s or its acceptor holds, by ``printed``."""
    peaks = printed(at["p"], at["m"]).peaks
    return max(peaks[at["s"]], peaks[at["p"] - 1 - at["s"]])
