"""Certificates by propagation in the words of ``proofs/Trail.v``.

Each lemma is written with the steps by which it follows (``trail_reasons``). What is supposed for
several lemmas is made part of each: a lemma that follows under a supposition is one that says so.
Stores are judged by their lifecycles: which stops are over for sure, and which is yet to come. A
certificate that needs more than that has no words here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from bubbleproof.formats.coq.coq_words import homes_of, list_text, task_text
from bubbleproof.formats.coq.free_edges import Life, lives_of
from bubbleproof.formats.coq.trail_reasons import (
    AHEAD,
    LOW,
    Literal,
    RememberedReasons,
    clause_text,
    negation,
)
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup, Lemma

Reason = tuple[str, tuple[int, ...]]  # what is absurd, and the facts that it needs


class TrailWords:
    """The items of a certificate's trail.

    Raises
    ------
    ValueError
        For another objective than the makespan.
    """

    def __init__(self, problem: Problem, certificate: Drup) -> None:
        if certificate.objective != "makespan":
            raise ValueError("--coq writes proofs by propagation of the makespan alone")
        self.problem, self.certificate = problem, certificate
        self.reasons = RememberedReasons(problem, certificate.bound - 1)
        self.homes, self.lives = homes_of(problem), lives_of(problem, every_chain=True)

    def items(self) -> Iterator[str]:
        """Lemma by lemma; ``ValueError`` where one does not follow by these steps."""
        supposed = list[Literal]()
        for number, lemma in enumerate(self.certificate.lemmas):
            if self.reasons.contradiction is not None:
                break
            literals = self._literals(lemma)
            if literals is None:
                continue
            if lemma.rule == "suppose":
                supposed += literals
                continue
            if lemma.rule == "absurd":
                literals = [negation(supposed.pop())]
            literals += [negation(one) for one in supposed if negation(one) not in literals]
            yield from self._item(number, lemma, literals)
        if (found := self.reasons.contradiction) is not None:
            yield from self._learnt([], found)

    def _literals(self, lemma: Lemma) -> list[Literal] | None:
        """Those about tasks; None where one about the span's beginning, tick 0, is true."""
        found = list[Literal]()
        for relation, a, n in lemma.literals:
            if relation == AHEAD or a < self.problem.num_tasks:
                found.append((relation, a, n))
            elif a > self.problem.num_tasks:
                raise ValueError("--coq has no words for the start of one rank's span")
            elif (n <= 0) if relation == LOW else (n >= 0):
                return None
        return found

    def _item(self, number: int, lemma: Lemma, literals: list[Literal]) -> Iterator[str]:
        reasons = self.reasons
        known = dict(reasons.known)
        for literal in literals:
            reasons.suppose(negation(literal))
        reasons.propagate()
        found = reasons.contradiction or self._crowd(lemma.crowd) or self._full(lemma.full)
        if found is None:
            raise ValueError(f"--coq has no words for why lemma {number} follows")
        yield from self._learnt(literals, found)
        reasons.go_back(known)
        if literals:
            reasons.learn(literals)

    def _learnt(self, literals: list[Literal], found: Reason) -> Iterator[str]:
        why, needs = found
        sure, steps = self.reasons.steps_to(needs)
        yield from (f"Follow ({step})" for step in sure)
        yield f"Learn {clause_text(literals)} {list_text(steps)} ({why})"

    def _crowd(self, tasks: tuple[int, ...]) -> Reason | None:
        """That the tasks, which share a resource, take longer than there is time for them."""
        bounds = [(self.reasons.least(task), self.reasons.greatest(task)) for task in tasks]
        known = [(low, high) for low, high in bounds if low is not None and high is not None]
        if not tasks or len(known) < len(tasks):
            return None
        ends = (high[0] + self.reasons.ticks[t] for t, (_, high) in zip(tasks, known, strict=True))
        least = min(low[0] for low, _ in known)
        if max(ends) >= least + sum(self.reasons.ticks[task] for task in tasks):
            return None
        shared = min(set.intersection(*(set(self.homes[task]) for task in tasks)))
        needs = tuple(fact for low, high in known for fact in (low[1], high[1]))
        return f"Crowd {shared} {list_text(map(task_text, tasks))}", needs

    def _full(self, task: int | None) -> Reason | None:
        """That some store is sure to hold more than it has room for when the task starts."""
        if task is None:
            return None
        for place, store in enumerate(self.problem.stores):
            lives = [life for life in self.lives if life.store == place]
            held, uses, needs = store.base, list[str](), list[int]()
            for at, life in enumerate(lives):
                for number in range(len(life.begins)):
                    sure = self._sure_of(life, number, task)
                    if sure is not None:
                        level, (low, high), facts = sure
                        held += level
                        needs += facts
                        use = f"({at}%nat, {number}%nat)"
                        uses.append(f"({use}, ({low}%nat, {high}%nat))")
            if store.capacity is not None and held > store.capacity:
                return f"Full {task_text(task)} {place}%nat {list_text(uses)}", tuple(needs)
        return None

    def _sure_of(
        self, life: Life, number: int, task: int
    ) -> tuple[int, tuple[int, int], tuple[int, ...]] | None:
        """What a use holds at least when the task starts; of its stops how many are over for sure,
        and the first that is yet to come; and the facts. None for nothing."""
        begun = self._passed((life.begins[number], False), task)
        if life.begins[number] == task:
            return life.acquired, (0, 0), ()
        if begun is None:
            return None
        stops = [(stop.row[number], stop.at_end) for stop in life.stops]
        passed = {at + 1: self._passed(one, task) for at, one in enumerate(stops)}
        over = {at: facts for at, facts in passed.items() if facts is not None}
        low = max(over, default=0)
        coming = {at: self._coming(one, task) for at, one in enumerate(stops) if at >= low}
        known = {at: facts for at, facts in coming.items() if facts is not None}
        high = min(known, default=len(stops))
        levels = [*accumulate((stop.delta for stop in life.stops), initial=life.acquired)]
        facts = begun + over.get(low, ()) + known.get(high, ())
        return min(levels[low : high + 1]), (low, high), facts

    def _passed(self, moment: tuple[int, bool], task: int) -> tuple[int, ...] | None:
        """The facts by which a moment is over when the task has started, or None."""
        other, at_end = moment
        if other == task and not at_end:
            return ()
        if (ahead := self._ahead(other, task)) is not None:
            return ahead
        later = self.reasons.ticks[other] if at_end else 0
        latest, start = self.reasons.greatest(other), self.reasons.least(task)
        if latest and start and latest[0] + later <= start[0]:
            return latest[1], start[1]
        return None

    def _coming(self, moment: tuple[int, bool], task: int) -> tuple[int, ...] | None:
        """The facts by which a moment is yet to come when the task has started, or None."""
        other, at_end = moment
        ticks = self.reasons.ticks
        later = ticks[other] if at_end else 0
        if other == task and at_end and later:
            return ()
        ahead = self._ahead(task, other) if ticks[task] + later else None
        if ahead is not None:
            return ahead
        latest, start = self.reasons.greatest(task), self.reasons.least(other)
        if latest and start and latest[0] < start[0] + later:
            return latest[1], start[1]
        return None

    def _ahead(self, a: int, b: int) -> tuple[int, ...] | None:
        """The fact that a ends by the start of b, by what is known or by paths before and after."""
        known, hop = self.reasons.known, self.reasons.hop
        if (AHEAD, a, b) in known:
            return (known[AHEAD, a, b],)
        if a in hop[b]:
            return (self.reasons.path(a, b),)
        for kind, c, d in [*known]:
            if kind == AHEAD and d == b and a in hop[c]:
                return (self._carried(a, c, b, self.reasons.path(a, c), known[kind, c, d]),)
            if kind == AHEAD and c == a and d in hop[b]:
                return (self._carried(a, d, b, known[kind, c, d], self.reasons.path(d, b)),)
        return None

    def _carried(self, a: int, b: int, c: int, first: int, then: int) -> int:
        step = f"Carry {task_text(a)} {task_text(b)} {task_text(c)}"
        self.reasons.add((AHEAD, a, c), 1, step, (first, then))
        return self.reasons.known[AHEAD, a, c]
