"""Deadlines: precedences that close a circle and take no time, which a bound can do without.

``B`` after ``F`` and, with a lag of -12 ticks, ``F`` after ``B``: so ``B``, of 2 ticks, starts at
most 10 after ``F``. Rule 3 knows no difference between such a precedence and any other, and a
schedule may keep both. But longest paths, on which certificates rest, want an order of the tasks.

Lemma. What bounds every schedule of a problem without some of its precedences bounds every schedule
of the problem: that is one of the other as well.

So where precedences have a circle, a certificate is about the problem without those that let a task
start as soon as another starts, or sooner. A circle that is left takes time, and no schedule keeps
it; ``without_deadlines`` leaves it for others to refuse.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.theory.model.actions import Bools
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.chains import in_order


def without_deadlines(problem: Problem) -> Problem:
    """The problem itself where its precedences have no circle, else without its deadlines."""
    found = deadlines(problem)
    return replace(problem, edges=chosen(problem.edges, ~found)) if found.any() else problem


def deadlines(problem: Problem) -> Bools:
    """Which precedences are deadlines: none where there is no circle."""
    edges = problem.edges
    found: Bools = problem.duration[edges.before] + edges.lag <= 0
    if found.any():
        done = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
        found &= len(done) < problem.num_tasks
    return found


def chosen(edges: Edges, rows: Bools) -> Edges:
    """These of the precedences.

    Parameters
    ----------
    rows
        Of each precedence whether it is kept.
    """
    return Edges(before=edges.before[rows], after=edges.after[rows], lag=edges.lag[rows])
