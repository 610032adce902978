"""What MEPipe's claims measure: SVPP by the printed generator or as ``svpp``, and its problem.

Parameters: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, tF tB ticks. One unit is the activation of one slice on one chunk, A/(vsp).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.theory.actions import Ints, Kind
from bubbleproof.theory.claims.claim import Params, Value
from bubbleproof.theory.claims.field_schedules import made, measures
from bubbleproof.theory.families.parameters import NAMES, make_parameters
from bubbleproof.theory.families.svpp import SVPP, most_forwards
from bubbleproof.theory.families.svpp_literal import svpp_literal
from bubbleproof.theory.measures import Measures, measure
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.recompute import Recompute, with_recompute
from bubbleproof.theory.timing import left_shift


@lru_cache(maxsize=512)
def _printed(at: tuple[tuple[str, int], ...], is_rescheduled: bool) -> Measures:
    pipeline = SVPP().pipeline(make_parameters({n: x for n, x in at if n != "f"}))
    forwards = dict(at).get("f", most_forwards(pipeline))
    problem = pipeline.problem()
    program = svpp_literal(pipeline, forwards, rescheduled=is_rescheduled)
    return measure(problem, left_shift(problem, program))


def printed(at: Params, *, is_rescheduled: bool = True) -> Measures:
    """Section 4.3's generator, with or without its last step; f is the largest unless given."""
    return _printed(tuple((n, x) for n, x in at.items() if n in NAMES), is_rescheduled)


def printed_idle_ratio(at: Params) -> Fraction:
    """The idle ratio of the printed generator's schedule."""
    return printed(at).idle_ratio


def first_rank(name: str) -> Value:
    """The most units that rank 0 holds."""
    return lambda at: Fraction(measures(name, at).peak_activations[0])


def forwards_before_backward(at: Params) -> Fraction:
    """How many forwards rank 0 of ``svpp`` runs before its first backward, counted in its order."""
    program = made("svpp", at).schedule.program
    return Fraction(int(np.argmax(program.actions.kind[program.resource == 0] == Kind.B)))


def _waits_for(problem: Problem, task: int) -> Ints:
    """All tasks that must end before the task may start, by the problem's precedences alone."""
    found = np.zeros(problem.num_tasks, dtype=bool)
    frontier = np.array([task])
    while len(frontier):
        before = problem.edges.before[np.isin(problem.edges.after, frontier)]
        frontier = np.unique(before[~found[before]])
        found[frontier] = True
    return np.flatnonzero(found)


def _problem(at: Params) -> Problem:
    return SVPP().pipeline(make_parameters({n: at[n] for n in "pmvs"})).problem()


def least_forwards(at: Params) -> Fraction:
    """The fewest forwards of rank 0 that any of its backwards depends on: a bound for any order."""
    problem = _problem(at)
    actions, mine = problem.actions, problem.rank_of_task == 0
    counts = []
    for task in np.flatnonzero(mine & actions.is_kind(Kind.B)).tolist():
        before = _waits_for(problem, task)
        counts.append(int((mine & actions.is_kind(Kind.F))[before].sum()))
    return Fraction(min(counts))


def children(at: Params) -> Fraction:
    """How many backwards of a sample on rank 0 wait for that of slice ``k`` on chunk ``c``."""
    problem = _problem(at)
    actions = problem.actions
    mine = (problem.rank_of_task == 0) & actions.is_kind(Kind.B) & (actions.microbatch == 0)
    chosen = mine & (actions.slice == at["k"]) & (actions.stage == at["c"] * at["p"])
    parent = int(np.flatnonzero(chosen)[0])
    waiting = [parent in _waits_for(problem, task) for task in np.flatnonzero(mine).tolist()]
    return Fraction(sum(waiting))


def recomputed_work(at: Params) -> Fraction:
    """The extra computation when all forwards are run again, over the computation without."""
    member = made("1f1b", at)
    stages = tuple(range(at["p"]))
    again = with_recompute(member.problem, Recompute(stages=stages))
    return Fraction(int(again.duration.sum()), int(member.problem.duration.sum())) - 1
