"""What MEPipe's claims measure: SVPP's orders and its problem.

Parameters: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, tF tB ticks. One unit is the activation of one slice on one chunk, A/(vsp).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.claim import Params, Value
from bubbleproof.papers.claims.field_schedules import made, measures
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.svpp import SVPP
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.recompute import Recompute, with_recompute
from bubbleproof.theory.pipelines.timing import earliest_starts


def first_rank(name: str) -> Value:
    """The most units that rank 0 holds."""
    return lambda at: Fraction(measures(name, at).peak_activations[0])


def forwards_before_backward(at: Params) -> Fraction:
    """How many forwards rank 0 of ``svpp`` runs before its first backward, counted in its order."""
    program = made("svpp", at).schedule.program
    return Fraction(int(np.argmax(program.actions.kind[program.resource == 0] == Kind.B)))


def _ancestors(problem: Problem, counted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    """Which counted tasks must end before each task may start, by the precedences alone.

    Bit i stands for the i-th counted task; of a counted task its own bit is set, too.
    """
    edges = problem.edges
    start = earliest_starts(problem.duration, edges.before, edges.after, edges.lag)
    assert start is not None, "precedences have no cycle"
    bit = np.full(problem.num_tasks, NONE)
    bit[counted] = np.arange(int(counted.sum()))
    masks = [1 << place if place >= 0 else 0 for place in bit.tolist()]
    by_start = np.argsort(start[edges.after], kind="stable")
    columns = edges.before[by_start].tolist(), edges.after[by_start].tolist()
    for before, after in zip(*columns, strict=True):
        masks[after] |= masks[before]
    return masks


def _problem(at: Params) -> Problem:
    return SVPP().pipeline(make_parameters({n: at[n] for n in "pmvs"})).problem()


def least_forwards(at: Params) -> Fraction:
    """The fewest forwards of rank 0 that any of its backwards depends on: a bound for any order."""
    problem = _problem(at)
    actions, mine = problem.actions, problem.rank_of_task == 0
    before = _ancestors(problem, mine & actions.is_kind(Kind.F))
    backwards = np.flatnonzero(mine & actions.is_kind(Kind.B)).tolist()
    return Fraction(min(before[task].bit_count() for task in backwards))


def children(at: Params) -> Fraction:
    """How many backwards of a sample on rank 0 wait for that of slice ``k`` on chunk ``c``."""
    return Fraction(_children(at["p"], at["m"], at["v"], at["s"])[at["c"], at["k"]])


@lru_cache(maxsize=16)
def _children(p: int, m: int, v: int, s: int) -> Counter[tuple[int, int]]:
    """The children of each backward of microbatch 0 on rank 0, by (chunk, slice)."""
    problem = _problem({"p": p, "m": m, "v": v, "s": s})
    actions = problem.actions
    mine = (problem.rank_of_task == 0) & actions.is_kind(Kind.B) & (actions.microbatch == 0)
    places = [
        (stage // p, slice_)
        for stage, slice_ in zip(
            actions.stage[mine].tolist(), actions.slice[mine].tolist(), strict=True
        )
    ]
    before = _ancestors(problem, mine)
    found: Counter[tuple[int, int]] = Counter()
    for task in np.flatnonzero(mine).tolist():
        found.update(place for i, place in enumerate(places) if before[task] >> i & 1)
    return Counter({place: count - 1 for place, count in found.items()})


def recomputed_work(at: Params) -> Fraction:
    """The extra computation when all forwards are run again, over the computation without."""
    member = made("1f1b", at)
    stages = tuple(range(at["p"]))
    again = with_recompute(member.problem, Recompute(stages=stages))
    return Fraction(int(again.duration.sum()), int(member.problem.duration.sum())) - 1
