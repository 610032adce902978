"""DRUP certificates from a SAT solver (Glucose 4, proof logging).

The formula is ``engines.sat_model`` without what no certificate can say: memory beyond the memory
edges enters as clauses of orders (``proof_memory``), capacities that a solution breaks one by one.
The solver's lemmas are translated literal by literal and shortened (``proof_core``); the checker
judges the whole before it counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from pysat.solvers import Solver

from bubbleproof.solvers.bounds import Bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines.engine import UNLIMITED, Budget
from bubbleproof.solvers.engines.sat import solved
from bubbleproof.solvers.engines.sat_clauses import FALSE, TRUE, TooLargeError
from bubbleproof.solvers.engines.sat_model import SatModel
from bubbleproof.solvers.refutation.proof_core import Clause, TracedReplay, core
from bubbleproof.solvers.refutation.proof_memory import (
    FullStore,
    Orders,
    meet_in_stores,
    overloads,
    release_clauses,
)
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.drup_replay import DrupReplay, Literal

FEW_LEMMAS = 300  # are gone over once more, which costs about what a check does


def refute(
    problem: Problem,
    bounds: Bounds,
    bound: int,
    *,
    objective: Objective = "makespan",
    deadline: float,
) -> Drup | None:
    """A checked certificate that the objective is ``bound`` or more, or None; see ``settle``.

    Parameters
    ----------
    bound
        Ticks.
    deadline
        Seconds of ``time.perf_counter``.
    """
    found = settle(problem, bounds, bound, objective=objective, deadline=deadline)
    if isinstance(found, Drup) and check_certificate(problem, found).ok:
        return found
    return None


def settle(
    problem: Problem,
    bounds: Bounds,
    bound: int,
    *,
    objective: Objective = "makespan",
    deadline: float = inf,
    budget: Budget = UNLIMITED,
) -> Drup | Ints | None:
    """A certificate that the objective is ``bound`` or more, or starts (ticks per task) below it.

    Both are for ``verify`` to judge. None for a formula that would be too large, and when
    ``deadline`` (``time.perf_counter`` seconds) passes or the budget is spent. ``bounds`` are the
    problem's.

    Parameters
    ----------
    bound
        Ticks.
    deadline
        Seconds of ``time.perf_counter``.
    """
    encoding = Encoding(problem, bounds, objective=objective, limit=bound - 1)
    budget = replace(budget, deadline=min(deadline, budget.deadline), threads=1)
    try:
        found = _Proof(encoding, budget).lemmas()
    except TooLargeError:
        return None
    if not isinstance(found, list):
        return found
    if not budget.seconds:
        return None
    return Drup(bound=bound, lemmas=tuple(found), objective=objective)


class _OrderModel(SatModel):
    """The model with orders of tasks that take time, and without memory beyond its edges."""

    def add_pair(self, a: int, b: int) -> None:
        """Either order of two tasks that both take time."""
        if self.duration[a] and self.duration[b]:
            super().add_pair(a, b)

    def add_memory(self) -> None:
        """The memory edges."""
        self.precede_all(self.encoding.memory_edges)

    def literal(self, literal: Literal, pairs: dict[Literal, tuple[int, int]]) -> int:
        """The SAT literal of an order or of a start."""
        node, value = literal
        if literal not in pairs:
            if node & 1:
                return self.cnf.at_most(node // 2, -value // self.size)
            return -self.cnf.at_most(node // 2, -(-value // self.size) - 1)
        before, after = pairs[literal]
        if (before, after) in self.before:
            return self.before[before, after]
        return TRUE if self.encoding.is_ordered(before, after) else FALSE


class _Proof:
    """One refutation: the solver's formula and its meaning in the checker's literals."""

    def __init__(self, encoding: Encoding, budget: Budget) -> None:
        self.encoding, self.budget = encoding, budget
        size = 1 if meet_in_stores(encoding) else None
        self.model = _OrderModel(encoding, encoding.limit, budget, size=size)
        self.model.build()
        self.replay = DrupReplay(encoding.problem, encoding.limit, encoding.objective, 0)
        self.pairs = {literal: pair for pair, literal in self.replay.orders.items()}
        self.by_number = {
            number: self.replay.orders[pair]
            for pair, number in self.model.before.items()
            if abs(number) != TRUE
        }
        cnf = self.model.cnf
        self.bases = [base + low for base, low in zip(cnf.base, cnf.low, strict=True)]
        self.full: list[FullStore] = []

    def is_over(self) -> bool:
        return self.budget.is_past(self.budget.after(inf)) or not self.budget.seconds

    def lemmas(self) -> list[Lemma] | Ints | None:
        """The lemmas of the refutation, memory first, or starts; None without an answer."""
        if self.replay.is_refuted:
            return []
        orders = Orders(self.replay)
        with Solver(name="glucose4", bootstrap_with=self.model.cnf.clauses, with_proof=True) as sat:
            new = list(release_clauses(self.encoding, orders))
            while True:
                self._state(sat, new)
                answer = solved(sat, self.budget)
                if answer is None:
                    return None
                if not answer:
                    break
                found = sat.get_model()
                known, start = set(self.full), self.model.values(found)
                new = list(dict.fromkeys(overloads(self.encoding, orders, start)))
                if known.issuperset(new):
                    return self.model.starts(found)
            proof: list[str] = sat.get_proof()
        return self._shortened(proof)

    def _state(self, sat: Solver, new: list[FullStore]) -> None:
        for full in new:
            clause = [self.model.literal(literal, self.pairs) for literal in full.literals]
            if TRUE not in clause:
                sat.add_clause([literal for literal in clause if literal != FALSE])
        self.full += new

    def _shortened(self, proof: list[str]) -> list[Lemma] | None:
        found = self._core(self.full, list(self._clauses(proof)))
        if found is not None and len(found[1]) <= FEW_LEMMAS:
            found = self._core(*found)
        if found is None:
            return None
        memory = [self._lemma(list(full.literals), full.task) for full in found[0]]
        return memory + [self._lemma(clause) for clause in found[1]]

    def _core(
        self, memory: list[FullStore], clauses: list[Clause]
    ) -> tuple[list[FullStore], list[Clause]] | None:
        encoding = self.encoding
        traced = TracedReplay(encoding.problem, encoding.limit, encoding.objective, 0)
        axioms = [list(full.literals) for full in memory]
        found = core(traced, axioms, clauses, self.is_over)
        return None if found is None else ([memory[place] for place in found[0]], found[1])

    def _clauses(self, proof: list[str]) -> Iterator[Clause]:
        """The lemmas of the proof in the checker's literals, of each node the weakest."""
        for line in proof:
            if line.startswith("d"):
                continue
            weakest: dict[int, int] = {}
            for number in map(int, line.split()[:-1]):
                if number != FALSE:
                    node, value = self._meaning(number)
                    weakest[node] = min(value, weakest.get(node, value))
            yield list(weakest.items())

    def _meaning(self, number: int) -> Literal:
        """The checker's literal of a SAT literal."""
        if number in self.by_number:
            return self.by_number[number]
        variable = bisect_right(self.bases, abs(number)) - 1
        value = abs(number) - self.model.cnf.base[variable]
        size = self.model.size  # x <= value in steps: start <= value * size + size - 1 in ticks
        if number > 0:
            return 2 * variable + 1, -(value * size + size - 1)
        return 2 * variable, (value + 1) * size

    def _lemma(self, clause: Clause, full: int | None = None) -> Lemma:
        literals = []
        for node, value in clause:
            if (node, value) in self.pairs:
                literals.append(("<", *self.pairs[node, value]))
            elif node & 1:
                literals.append(("<=", node // 2, -value))
            else:
                literals.append((">=", node // 2, value))
        return Lemma(literals=tuple(literals), full=full)
