"""Certificates by one store: what is held, times how long, has to fit.

Heads and tails (ticks) are those of ``verify.certificates.one_machine``. Let every use of a store
with a capacity be a lifecycle (``verify.certificates.index_order``): it holds nothing before the
start of its first task and after the end of its last, and ``held`` or more between. The *volume* of
a use is ``held`` times the longest path from the one to the other, V the sum over all uses. Let

- room be the capacity less the base load, and ``most`` the highest level of a use;
- h the least head of a first task, l the least tail of a last one, both 0 or more;
- d the shortest of the first tasks, if they share a resource, else 0; e likewise of the last ones;
- n = (room - 1) div most, and missing = (d + e) times the sum of room - k most for k = 1 ... n.

Lemma. room (makespan - h - l) >= V, and if V >= room n (d + e), then V + missing.
Proof. Let the makespan be T, and look at the load above the base load, from h to T - l; outside
there is none. It is never more than room, which is the first part: in all it is V or more. The k-th
use to begin begins at h + (k - 1) d or later, for the first tasks before took d each, one at a
time; so until h + k d the load is k most or less, which is room - k most too little. From T - l
back, the same is true of ends and e. If V >= room n (d + e), then T - h - l >= n (d + e) by the
first part, the two do not meet, and what is missing of room (T - h - l) adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from bubbleproof.verify.certificates.one_machine import NO_PATH, longest, longest_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Claims ``makespan >= bound`` because of what a ``store`` (index) must hold."""

    store: int
    bound: int
    objective: str = "makespan"


def volume_refusal(problem: Problem, certificate: Volume) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    if certificate.objective != "makespan":
        return f"a volume bounds the makespan, not {certificate.objective!r}"
    if not 0 <= certificate.store < len(problem.stores):
        return f"store {certificate.store} is none of the problem's {len(problem.stores)}"
    if (paths := longest_paths(problem, "makespan", 0)) is None:
        return "the problem's precedences have a cycle"
    least = volume_bound(problem, index_order(problem), certificate.store, *paths)
    if least is None:
        return f"store {certificate.store} has no room, or a use that is no lifecycle"
    if least < certificate.bound:
        return f"the volume does not prove a bound of {certificate.bound}"
    return None


def volume_bound(
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
    lives = [life for life in order.lifecycles if life.store == store]
    home = problem.stores[store]
    if not lives or home.capacity is None or home.capacity <= home.base:
        return None
    room = home.capacity - home.base
    firsts = np.concatenate([order.row_of[life.first] for life in lives])
    lasts = np.concatenate([order.row_of[life.last] for life in lives])
    begin: int = min(heads[t] for t in firsts.tolist())
    end: int = min(tails[t] for t in lasts.tolist())
    if begin < 0 or end < 0:
        return None
    counts = [len(order.row_of[life.first]) for life in lives]
    stays = [life.held * lasting(problem, life.first, life.last) for life in lives]
    volume = sum(count * each for count, each in zip(counts, stays, strict=True))
    most = max(int(level) for chain in order.chains[store] for _, level in chain)
    steps, slow = (room - 1) // most, _alone(problem, firsts) + _alone(problem, lasts)
    missing = slow * (steps * room - most * (steps * (steps + 1) // 2))
    if volume >= room * steps * slow:
        volume += missing
    return begin + end - (-volume // room)


def _alone(problem: Problem, tasks: Ints) -> int:
    """The ticks of the shortest of the tasks, if they share a resource, else 0."""
    occupancy = problem.occupancy
    used = np.bincount(occupancy.resource[np.isin(occupancy.task, tasks)])
    return int(problem.duration[tasks].min()) if used.max() == len(tasks) else 0


def lasting(problem: Problem, first: int, last: int) -> int:
    """From the start of one task to the end of another by paths within their microbatch (ticks).

    Below 0 where there is none.

    Parameters
    ----------
    first, last
        Tasks of one microbatch.
    """
    microbatch, edges = problem.actions.microbatch, problem.edges
    tasks = np.flatnonzero(microbatch == microbatch[first])
    inside = np.isin(edges.before, tasks) & np.isin(edges.after, tasks)
    before, after = (np.searchsorted(tasks, c[inside]) for c in (edges.before, edges.after))
    place = np.empty(len(tasks), dtype=np.int64)
    place[in_order(len(tasks), before.tolist(), after.tolist())] = np.arange(len(tasks))
    rows = np.argsort(place[before])
    columns = (column[rows].tolist() for column in (before, after, edges.lag[inside]))
    nothing = [0 if task == first else NO_PATH for task in tasks.tolist()]
    found = longest(zip(*columns, strict=True), problem.duration[tasks].tolist(), nothing)
    return found[int(np.searchsorted(tasks, last))] + int(problem.duration[last])
