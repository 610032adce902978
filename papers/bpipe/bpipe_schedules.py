"""What BPipe's claims measure on schedules: each function builds one and asks ``measure``.

Parameters: ``p`` ranks, ``m`` microbatches, ``v`` chunks, ``s`` a stage (rank), ``tF`` ``tB`` ``t``
ticks of a forward, a backward and a transfer, ``W`` ``A`` memory units of a stage's weights and of
one activation. ``mu`` is the peak number of activations of a rank.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bubbleproof.papers.bpipe.bpipe_literal import dense, literal, replay
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import makespan as makespan_of
from bubbleproof.papers.claims.measured_pipelines import measures, on_pipeline, peaks_of
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.theory.families import member
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.evicting.bpipe import BalancedFamily, BPipe, BPipeInterleaved
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline

BPIPE, INTERLEAVED = BPipe(), BPipeInterleaved()


@lru_cache(maxsize=32)  # megabytes each
def made(name: str, p: int, m: int, v: int = 1) -> FamilyMember:
    """The family's schedule at the default ticks."""
    return member(name, p=p, m=m) if v == 1 else member(name, p=p, m=m, v=v)


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


@lru_cache(maxsize=8192)  # numbers only, for three claims
def _on_acceptor(p: int, m: int, s: int) -> int:
    schedule = made("bpipe", p, m)
    actions, events = schedule.problem.actions, schedule.problem.events
    rows = actions.is_kind(Kind.EVICT, Kind.LOAD)[events.task]
    rows &= (actions.stage[events.task] == s) & (events.store != s)
    return peaks_of(schedule, rows)[p - 1 - s]


def evictions(at: Params) -> int:
    """How many EVICTs stage s has in its schedule."""
    return _moves(at["p"], at["m"])[Kind.EVICT][at["s"]]


def loads(at: Params) -> int:
    """How many LOADs it has."""
    return _moves(at["p"], at["m"])[Kind.LOAD][at["s"]]


@lru_cache(maxsize=4096)  # numbers only: the schedules themselves are not kept
def _moves(p: int, m: int) -> dict[Kind, list[int]]:
    """How many EVICTs and how many LOADs each stage has."""
    actions = made("bpipe", p, m).schedule.program.actions
    return {
        kind: np.bincount(actions.stage[actions.is_kind(kind)], minlength=p).tolist()
        for kind in (Kind.EVICT, Kind.LOAD)
    }


def evicting_stages(at: Params) -> int:
    """How many stages have an EVICT."""
    return sum(n > 0 for n in _moves(at["p"], at["m"])[Kind.EVICT])


def warm_up_evictions(family: BalancedFamily, at: Params) -> int:
    """How many evictions stage s plans beside slots before its first backward."""
    p, m, v = at["p"], at["m"], at.get("v", 1)
    slots = computation_slots(family.base, p, m, v)[at["s"]]
    first = next(i for i, action in enumerate(slots) if action and action.kind is Kind.B)
    planned = family.transfers(p, m, v).get(at["s"], ())
    return sum(t.kind is Kind.EVICT and t.slot < first for t in planned)


def peak_printed(at: Params, *, is_dense: bool = False) -> int:
    """mu(s) of Algorithm 1 as printed, on C of earliest forwards, with or without its bubbles."""
    p, m, s = at["p"], at["m"], at["s"]
    slots = computation_slots(BPIPE.base, p, m)[s]
    slots = dense(slots) if is_dense else slots
    return replay(slots, literal(slots, p, s, m)).peak


def makespan(at: Params, transfer: int) -> int:
    """The makespan of BPipe at tF, tB and a transfer of the given ticks."""
    return _makespan(at["p"], at["m"], at["tF"], at["tB"], transfer)


@lru_cache(maxsize=4096)  # numbers only; several claims ask for the same transfer
def _makespan(p: int, m: int, forward: int, backward: int, transfer: int) -> int:
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, forward=forward, backward=backward)
    return on_pipeline(BPIPE, BPIPE.balanced(pipeline, transfer=transfer)).makespan


makespan_1f1b = makespan_of("1f1b")


def longest_free_transfer(at: Params) -> int:
    """The most ticks a transfer may take without a longer makespan than 1F1B's."""
    ticks, plain = 0, makespan_1f1b(at)
    while makespan(at, ticks + 1) == plain:
        ticks += 1
    return ticks
