"""Certificates by propagation: does this one prove that no schedule is below its bound?

Every certificate claims ``objective >= bound`` for all schedules of one problem; the objective is
``makespan`` or ``span_idle`` (``theory.model.measures``), in ticks. The checker recomputes all it
needs from the problem and shares no code with the solvers. A proof is a list of lemmas that leave
no schedule with an objective of ``bound - 1`` or less. Suppose there were one; time 0 is the first
start of a computation, on any rank for ``makespan`` and on ``rank`` for ``span_idle``. A *lemma*
says that at least one of its literals holds:

    (">=", x, ticks)   x starts at ``ticks`` or later        ("<=", x, ticks)   ... or earlier
    ("<", a, b)        task a ends by the start of task b

x is a task or, as ``num_tasks + r``, the first start of a computation on rank r (of all ranks, with
r = 0, for ``makespan``); a and b take time, share a resource, and no path orders them.

Lemmas are believed one after the other, each only if it follows by *unit propagation* ("reverse
unit propagation", Goldberg and Novikov 2003; DRUP, Heule et al. 2013): suppose that all its
literals are false, and narrow the windows of all starts by

- the longest paths over the precedences and the index-order and memory edges of
  ``verify.certificates.index_order``, and over the spans: for makespan all computations lie within
  ``bound - 1`` ticks; for ``span_idle`` those of each rank r within work(r) + ``bound - 1``;
- one task at a time: for each two tasks of a resource one order, and if one is impossible by the
  windows, the other; what ends by the start of a also ends by the start of what follows a;
- the lemmas before: if all literals but one are false, that one holds;

until some window is empty, or the tasks of its ``crowd``, which share a resource, have less time
than they take between the first earliest start and the last latest end (Jackson 1955; with it edge
finding, Carlier and Pinson 1989), or, when the task ``full`` starts, a store is sure to hold more
than its capacity (``verify.certificates.chains``). The proof ends when nothing needs to be
supposed.

``suppose`` takes its one literal for granted until the ``absurd`` that ends it, where the windows
must be refuted; all that was learnt since is then forgotten, and the literal is false.

Proofs of SAT solvers over the order encoding, literal by literal, and of propagators, rule by rule,
have this form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.drup_replay import DrupReplay, Literal

LARGEST = 1 << 61  # ticks
MOST_PAIRS = 4_000_000  # of tasks that share a resource; more would take hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemma:
    """A step of a proof, see the module; ``rule`` is lemma, suppose or absurd."""

    literals: tuple[tuple[str, int, int], ...] = ()
    full: int | None = None
    crowd: tuple[int, ...] = ()
    rule: str = "lemma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drup:
    """Claims ``objective >= bound`` because of ``lemmas``."""

    bound: int
    lemmas: tuple[Lemma, ...]
    objective: str = "makespan"
    rank: int = 0


def drup_refusal(problem: Problem, certificate: Drup) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    if len(certificate.lemmas) == 1 and _refusal(problem, certificate, with_orders=False) is None:
        return None
    return _refusal(problem, certificate, with_orders=True)


def _refusal(problem: Problem, certificate: Drup, *, with_orders: bool) -> str | None:
    """Why the lemmas do not prove the bound, or None; orders may go where no lemma names one."""
    if certificate.objective not in ("makespan", "span_idle"):
        return f"the objective must be makespan or span_idle, got {certificate.objective!r}"
    if not 0 <= certificate.rank < problem.num_ranks:
        return f"rank {certificate.rank} is none of the problem's {problem.num_ranks}"
    if abs(certificate.bound) >= LARGEST:
        return "the bound must be below 2**61 ticks"
    if with_orders and (np.bincount(problem.occupancy.resource) ** 2).sum() > 2 * MOST_PAIRS:
        return f"more than {MOST_PAIRS} pairs of tasks share a resource, too many to check"
    claim = certificate.bound - 1, certificate.objective, certificate.rank
    replay = DrupReplay(problem, *claim, with_orders=with_orders)
    if replay.is_cyclic:
        return "the problem's precedences have a cycle"
    for number, lemma in enumerate(certificate.lemmas):
        if (why := take(replay, lemma)) is not None:
            return f"lemma {number} {why}"
    if not replay.is_refuted or replay.supposed:
        return f"the lemmas do not refute {certificate.objective} {certificate.bound - 1}"
    return None


def take(replay: DrupReplay, lemma: Lemma) -> str | None:
    """Follow one lemma; why not, or None."""
    tasks = range(replay.problem.num_tasks)
    if lemma.full is not None and (lemma.full not in tasks or not replay.ticks[lemma.full]):
        return "names no task that takes time as the one a store is full at"
    homes = [replay.homes[task] if task in tasks else set() for task in lemma.crowd]
    if lemma.crowd and not set.intersection(*homes):
        return "names a crowd that shares no resource"
    if (clause := _clause(replay, lemma)) is None:
        return "has a literal about no start or pair of the problem"
    if lemma.rule == "suppose" and len(clause) == 1:
        replay.suppose(clause[0])
    elif lemma.rule == "absurd":
        return None if replay.reject() else "comes before the supposition is refuted"
    elif lemma.rule != "lemma":
        return "is no rule, or supposes other than one literal"
    elif not replay.follows(clause, lemma.full, lemma.crowd):
        return "does not follow from those before it"
    else:
        replay.learn(clause)
    return None


def _clause(replay: DrupReplay, lemma: Lemma) -> list[Literal] | None:
    """The literals, of each node the weakest; None where one means nothing."""
    weakest: dict[int, int] = {}
    for relation, first, second in lemma.literals:
        if relation == "<" and (first, second) in replay.orders:
            node, value = replay.orders[first, second]
        elif relation not in (">=", "<=") or first not in range(replay.num_starts):
            return None
        else:
            node, value = (2 * first, second) if relation == ">=" else (2 * first + 1, -second)
        if abs(value) >= LARGEST:
            return None
        weakest[node] = min(value, weakest.get(node, value))
    return list(weakest.items())
