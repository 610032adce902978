"""Bounds by clauses: lemmas that leave no schedule with an objective of ``bound - 1`` or less.

Suppose there were one; time 0 is the first start of a computation, on any rank for ``makespan`` and
on ``rank`` for ``span_idle``. A *lemma* says that at least one of its literals holds:

    (">=", x, ticks)   x starts at ``ticks`` or later        ("<=", x, ticks)   ... or earlier
    ("<", a, b)        task a ends by the start of task b

x is a task or, as ``num_tasks + r``, the first start of a computation on rank r (of all ranks, with
r = 0, for ``makespan``); a and b take time, share a resource, and no path orders them.

Lemmas are believed one after the other, each only if it follows by *unit propagation* ("reverse
unit propagation", Goldberg and Novikov 2003; DRUP, Heule et al. 2013): suppose that all its
literals are false, and narrow the windows of all starts by

- the longest paths over the precedences and the index-order and memory edges of
  ``theory.index_order``, and over the spans: for makespan all computations lie within ``bound - 1``
  ticks; for ``span_idle`` those of each rank r within work(r) + ``bound - 1``;
- one task at a time: for each two tasks of a resource one order, and if one is impossible by the
  windows, the other; what ends by the start of a also ends by the start of what follows a;
- the lemmas before: if all literals but one are false, that one holds;

until some window is empty or, for a lemma with a task ``full``, a store is sure to hold more than
its capacity when ``full`` starts (``verify.certificate_memory``). The proof ends when nothing needs
to be supposed. A SAT solver's proof over the order encoding of this model has this form, literal by
literal. Nothing here is shared with the solvers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.problem import Problem
from bubbleproof.verify.drup_replay import Literal, Replay

LARGEST = 1 << 61  # ticks
MOST_PAIRS = 4_000_000  # of tasks that share a resource; more would take hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemma:
    """At least one of ``literals`` holds, see the module; ``full`` is a task or None."""

    literals: tuple[tuple[str, int, int], ...]
    full: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drup:
    """Claims ``objective >= bound`` because of ``lemmas``."""

    bound: int
    lemmas: tuple[Lemma, ...]
    objective: str = "makespan"
    rank: int = 0


def drup_refusal(problem: Problem, certificate: Drup) -> str | None:
    """Why the certificate does not prove its bound, or None."""
    if (why := _hopeless(problem, certificate)) is not None:
        return why
    replay = Replay(problem, certificate.bound - 1, certificate.objective, certificate.rank)
    if replay.is_cyclic:
        return "the problem's precedences have a cycle"
    for number, lemma in enumerate(certificate.lemmas):
        if replay.is_refuted:
            return None
        if lemma.full is not None and not _takes_time(problem, lemma.full):
            return f"lemma {number} names no task that takes time as the one a store is full at"
        clause = _clause(replay, lemma)
        if clause is None:
            return f"lemma {number} has a literal about no start or pair of the problem"
        if not replay.follows(clause, lemma.full):
            return f"lemma {number} does not follow from those before it"
        replay.learn(clause)
    if not replay.is_refuted:
        return f"the lemmas do not refute {certificate.objective} {certificate.bound - 1}"
    return None


def _hopeless(problem: Problem, certificate: Drup) -> str | None:
    if not 0 <= certificate.rank < problem.num_ranks:
        return f"rank {certificate.rank} is none of the problem's {problem.num_ranks}"
    if abs(certificate.bound) >= LARGEST:
        return "the bound must be below 2**61 ticks"
    users = np.bincount(problem.occupancy.resource)
    if int((users * (users - 1) // 2).sum()) > MOST_PAIRS:
        return f"more than {MOST_PAIRS} pairs of tasks share a resource, too many to check"
    return None


def _takes_time(problem: Problem, task: int) -> bool:
    return 0 <= task < problem.num_tasks and bool(problem.duration[task])


def _clause(replay: Replay, lemma: Lemma) -> list[Literal] | None:
    """The literals, of each node the weakest; None where one means nothing."""
    weakest: dict[int, int] = {}
    for relation, first, second in lemma.literals:
        node, value = replay.orders.get((first, second), (-1, 0))
        if relation in (">=", "<="):
            if not 0 <= first < replay.num_starts or abs(second) >= LARGEST:
                return None
            node, value = (2 * first, second) if relation == ">=" else (2 * first + 1, -second)
        if node < 0 or relation not in (">=", "<=", "<"):
            return None
        weakest[node] = min(value, weakest.get(node, value))
    return list(weakest.items())
