"""Certificates by what crosses: forwards and backwards of neighbouring ranks make each other wait.

Ranks q ... q + R each run n forwards of f ticks and n backwards of b, and nothing else. Of the i-th
forwards of rank r and of r + 1, by their starts, the second starts f + d ticks after the first or
later, and of backwards that of r starts b + u after that of r + 1 or later, d and u being the least
lags of these *links*: precedences put each forward before one of its own on the next rank, and a
sorted row stays before a sorted row. What both are later than that is waited; W_r is the sum over
the link between r and r + 1. H_r(t) is how many more forwards than backwards rank r has begun, Q_r
the sum of H_r over the whole ticks in which r is idle. Let M = max(f, b), m = min(f, b), and

    a = least of (M - x(t)) g(t) + t over all whole t,    x(t) = min(max(t + b + u, 0), f),
    E = (f + b) (a + b + u) - M (f + b + d + u),          g(t) = max(0, ceil((f + d - t) / b)).

Lemma 1. M W_r >= n E - m (Q_r - Q_(r+1)).
Proof. Forward i and backward j *cross* where i is first on r and j on r + 1; nothing crosses the
other way, as links forbid it. Let c_i backwards cross forward i, d_j forwards cross backward j, and
A be all pairs. A start is the idle ticks before it, I, and the work before it. So with
D = I on r + 1 less I on r, forward i waits D_i + b c_i - (f + d), and backward j waits
f d_j - D_j - (b + u). Neither is below 0: c_i >= g(D_i), and d_j >= (D_j + b + u) / f. Where i and
j cross, D_i >= D_j: idle ticks between them count for D_i on r + 1, and against D_j on r. Let a
pair give M - x(D_i) parts of M to i, and x(D_j) to j; it gives M at most, since x does not fall. So
M A is at least the sum of (M - x(D_i)) c_i, which is a - D_i or more, and of x(D_j) d_j, which is
D_j + b + u or more: 0 if that is below 0, d_j >= 1 where it is at most f, and f d_j beyond. So
M A >= n (a + b + u) - S, S being the sum of D_i less that of D_j; and W_r = (f + b) A -
n (f + b + d + u) + S. Now an idle tick counts for each forward behind it, and against each
backward: as many more are the backwards as were the forwards before it, and S = Q_r - Q_(r+1).

Let a store have room for K activations of rank q: all its uses are lifecycles
(``verify.certificates.index_order``) of ``held`` or more from a forward of q to its backward, and
K = (capacity - base) div held. Let each backward of the last rank follow its forward on paths of
their microbatch, V_c ticks from start to end for chunk c, and h and l be the least head and tail
(``verify.certificates.one_machine``) of rank q's forwards and backwards.

Lemma 2. Let Y = makespan - h - l and V = R n (f + b + d + u) + the sum of V_c over all microbatches
+ (f + b) K (K - 1) / 2, the last only if n >= K. Then

    K (f + b) Y >= M V + R n E + m K n (f + b).

Proof. H_q is at most K, and 0 before h and in the last l ticks; on the last rank it is never below
0. Its sum over time is that of all times from a forward's start to its backward's end on q, and
from rank to rank that grows by W_r + n (f + b + d + u). Add up lemma 1: with Q_q <= K (Y -
n (f + b)), M times the sum is at least R n E - m K (Y - n (f + b)) and M times what is in V but the
last. It is at most M K Y, less what is missing at both ends, where the i-th forward begins
(i - 1) f ticks after h or later, and the same of backwards from behind: (f + b) K (K - 1) / 2 where
the two ends do not meet, since Y >= n (f + b). As M + m = f + b, that is the claim.

Hypotheses, each of which is checked: one group of identical microbatches has all tasks; f, b >= 1
and d, u >= 0; and those above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from bubbleproof.verify.certificates.one_machine import longest_paths, users_of
from bubbleproof.verify.certificates.volume import lasting

MOST_CROSSED = 1 << 16  # backwards that cross a forward

Chunks = list[list[int]]  # of each rank the forwards, or backwards, of a microbatch, by stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossings:
    """Claims ``makespan >= bound`` because of what crosses behind the rank of a ``store``
    (index)."""

    store: int
    bound: int
    objective: str = "makespan"


def crossings_refusal(problem: Problem, certificate: Crossings) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    store = certificate.store
    if certificate.objective != "makespan":
        return f"crossings bound the makespan, not {certificate.objective!r}"
    if not 0 <= store < len(problem.stores):
        return f"store {store} is none of the problem's {len(problem.stores)}"
    if (paths := longest_paths(problem, "makespan", 0)) is None:
        return "the problem's precedences have a cycle"
    least = crossings_bound(problem, index_order(problem), store, *paths)
    if least is None:
        return f"store {store} has no room, or the ranks from its own on do not work alike"
    if least < certificate.bound:
        return f"the crossings do not prove a bound of {certificate.bound}"
    return None


def crossings_bound(
    problem: Problem, order: IndexOrder, store: int, heads: Sequence[int], tails: Sequence[int]
) -> int | None:
    """The least makespan (ticks), or None where a hypothesis fails.

    Parameters
    ----------
    store
        Its number.
    heads, tails
        Of each task the longest paths before and after it, in ticks; below 0 where there is
        none.
    """
    home = problem.stores[store]
    lives = [life for life in order.lifecycles if life.store == store]
    if not lives or home.capacity is None or [g.size for g in order.groups] != [problem.num_tasks]:
        return None
    alone, first = order.groups[0][:, 0], int(problem.rank_of_task[lives[0].first])
    forwards, backwards = _chunks(problem, alone, first)
    if not forwards or sorted((life.first, life.last) for life in lives) != sorted(
        zip(forwards[0], backwards[0], strict=True)
    ):
        return None
    sizes: list[list[int]] = [
        np.unique(problem.duration[np.array(rows)]).tolist() for rows in (forwards, backwards)
    ]
    down, up = _least_lag(problem, forwards), _least_lag(problem, backwards[::-1])
    ends = zip(forwards[-1], backwards[-1], strict=True)
    stays = [lasting(problem, task, other) for task, other in ends]
    room = (home.capacity - home.base) // min(life.held for life in lives)
    begin: int = min(heads[task] for life in lives for task in order.row_of[life.first].tolist())
    end: int = min(tails[task] for life in lives for task in order.row_of[life.last].tolist())
    if [len(size) for size in sizes] != [1, 1] or min(down, up, begin, end) < 0 or room < 1:
        return None
    (forward,), (backward,) = sizes
    if forward < 1 or min(stays) < backward or backward < 1:
        return None
    microbatches: int = order.groups[0].shape[1]
    count, links = len(forwards[0]) * microbatches, len(forwards) - 1
    work, most = forward + backward, max(forward, backward)
    volume = links * count * (work + down + up) + microbatches * sum(stays)
    if count >= room:
        volume += work * room * (room - 1) // 2
    if (gain := _gain(forward, backward, down, up)) is None:
        return None
    least = most * volume + links * count * gain + (work - most) * room * count * work
    return begin + end - (-least // (room * work))


def _chunks(problem: Problem, tasks: Ints, first: int) -> tuple[Chunks, Chunks]:
    """The forwards and backwards on each rank from ``first`` on; none where there is more."""
    kind, stage = problem.actions.kind, problem.actions.stage
    found: list[list[list[int]]] = [[], []]
    for rank in range(max(first, 0), problem.num_ranks):
        users = np.intersect1d(users_of(problem, rank), tasks)
        users = users[np.argsort(stage[users], kind="stable")]
        sides = [users[kind[users] == each] for each in (Kind.F, Kind.B)]
        if not len(users) or 2 * len(sides[0]) != len(users):
            return [], []
        if stage[sides[0]].tolist() != stage[sides[1]].tolist():
            return [], []
        for rows, side in zip(found, sides, strict=True):
            rows.append(side.tolist())
    is_even = len({len(row) for row in found[0]}) == 1
    return (found[0], found[1]) if is_even else ([], [])


def _least_lag(problem: Problem, rows: Chunks) -> int:
    """The least lag from a row's tasks to those of the next; -1 where some link is missing."""
    edges, found = problem.edges, list[int]()
    for before, after in pairwise(rows):
        for task, other in zip(before, after, strict=True):
            lags = edges.lag[(edges.before == task) & (edges.after == other)]
            found.append(int(lags.max(initial=-1)))
    return min(found, default=0)


def _gain(forward: int, backward: int, down: int, up: int) -> int | None:
    """E, in ticks times M; None where it is too far to look."""
    most, ready = max(forward, backward), backward + up

    def parts(late: int) -> int:
        crossed = max(0, -((late - forward - down) // backward))
        return (most - min(max(late + ready, 0), forward)) * crossed + late

    # Where g is 0 this grows. Below -ready x is 0, and ``backward`` ticks earlier it is no less.
    # Where neither g nor the slope of x changes it is a line: least at an end.
    steps = range(forward + down, -ready - 2 * backward, -backward)
    if len(steps) > MOST_CROSSED:
        return None
    least = min(map(parts, (*steps, *(late - 1 for late in steps), -ready, forward - ready)))
    return (forward + backward) * (least + ready) - most * (forward + ready + down)
