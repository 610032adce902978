"""Why each lemma of a proof by propagation follows, step by step, as ``proofs/Trail.v`` asks.

A certificate names its lemmas (``verify.certificates.certificate``); that each follows its checker
finds by propagation. Coq is told which edge, order or lemma moves which bound.
``RememberedReasons`` propagates as the checker does and keeps of each fact where it comes from; of
each lemma what its contradiction rests on is written, and nothing else.

A fact is about a least start, a greatest one, which is kept negated, or an order. So values only
rise, and an edge from a to b is an arc from the least start of a to that of b, and one from the
greatest of b to that of a.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bubbleproof.formats.coq.coq_words import (
    certificate_edges,
    homes_of,
    list_text,
    task_text,
)
from bubbleproof.theory.model.problem import Problem

LOW, HIGH, AHEAD = ">=", "<=", "<"
Literal = tuple[str, int, int]  # as a lemma of a certificate has it
Key = tuple[str, int, int]  # what a fact is about: (LOW, t, 0), (HIGH, t, 0) or (AHEAD, a, b)
Arc = tuple[Key, int, str]  # where it leads to, by how many ticks, by which step


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFact:
    """Something known, with its value (ticks, or 1), the step that shows it, and what that needs.

    ``step`` is empty for what is supposed, or what a lemma of one literal says.
    """

    value: int
    step: str
    needs: tuple[int, ...]
    is_sure: bool  # whatever is supposed


class RememberedReasons:
    """All that follows if whatever counts lay within ``limit`` ticks, with the reasons.

    Parameters
    ----------
    problem
        Any problem.
    limit
        Ticks.
    """

    def __init__(self, problem: Problem, limit: int) -> None:
        self.ticks: list[int] = problem.duration.tolist()
        self.facts, self.known = list[TrailFact](), dict[Key, int]()
        self.clauses: list[tuple[Literal, ...]] = []
        self.clauses_of: dict[int, set[int]] = defaultdict(set)  # by task
        self.contradiction: tuple[str, tuple[int, ...]] | None = None
        self.queue: deque[Key] = deque()
        self.told = set[int]()  # sure facts that Coq has been told
        self.paths: dict[tuple[int, int], int] = {}
        homes = homes_of(problem)
        self._take_edges(problem)
        self._take_rivals(homes)
        for task, places in enumerate(homes):
            if any(place < problem.num_ranks for place in places):
                step = f"Inside {task_text(task)}"
                self.add((LOW, task, 0), 0, step, ())
                self.add((HIGH, task, 0), self.ticks[task] - limit, step, ())
        self.propagate()

    def _take_edges(self, problem: Problem) -> None:
        self.arcs: dict[Key, list[Arc]] = defaultdict(list)
        before: dict[int, list[int]] = defaultdict(list)
        lags: dict[tuple[int, int], int] = {}
        for a, b, lag in certificate_edges(problem):
            lags[a, b] = max(lag, lags.get((a, b), lag))
        for (a, b), lag in lags.items():
            for source, target, ticks, step in self._ways(a, b, lag, "Along", "Against"):
                self.arcs[source].append((target, ticks, step))
            if lag >= 0:
                before[b].append(a)
        # by task: of each that ends before it, where the way to it goes on
        self.hop: list[dict[int, int]] = []
        for task in range(problem.num_tasks):
            found, waiting = dict[int, int](), deque([task])
            while waiting:
                at = waiting.popleft()
                for other in before[at]:
                    if other not in found and other != task:
                        found[other] = at
                        waiting.append(other)
            self.hop.append(found)

    def _ways(
        self, a: int, b: int, lag: int, forth: str, back: str
    ) -> Iterator[tuple[Key, Key, int, str]]:
        """The two arcs of it that a ends ``lag`` ticks before the start of b, by their steps."""
        ticks, tasks = self.ticks[a] + lag, f"{task_text(a)} {task_text(b)}"
        yield (LOW, a, 0), (LOW, b, 0), ticks, f"{forth} {tasks}"
        yield (HIGH, b, 0), (HIGH, a, 0), ticks, f"{back} {tasks}"

    def _take_rivals(self, homes: Sequence[Sequence[int]]) -> None:
        """Tasks that take time, share a resource, and are ordered by no path."""
        on: dict[int, list[int]] = defaultdict(list)
        for task, places in enumerate(homes):
            for place in places if self.ticks[task] else ():
                on[place].append(task)
        self.rivals: list[set[int]] = [set() for _ in self.ticks]
        for tasks in on.values():
            for a in tasks:
                apart = (b for b in tasks if b != a)
                self.rivals[a] |= {
                    b for b in apart if b not in self.hop[a] and a not in self.hop[b]
                }

    def add(
        self, key: Key, value: int, step: str, needs: tuple[int, ...], *, sure: bool = True
    ) -> None:
        """Take in a fact, unless as much is known."""
        old = self.known.get(key)
        if old is not None and value <= self.facts[old].value:
            return
        sure = sure and all(self.facts[each].is_sure for each in needs)
        self.facts.append(TrailFact(value=value, step=step, needs=needs, is_sure=sure))
        self.known[key] = len(self.facts) - 1
        self.queue.append(key)

    def go_back(self, known: dict[Key, int]) -> None:
        """Forget what was taken in since this was known."""
        self.known = known
        self.queue.clear()
        self.contradiction = None

    def least(self, task: int) -> tuple[int, int] | None:
        """The least start of a task, and the fact that says so."""
        return self._value((LOW, task, 0), 1)

    def greatest(self, task: int) -> tuple[int, int] | None:
        """The greatest start of a task, and the fact that says so."""
        return self._value((HIGH, task, 0), -1)

    def _value(self, key: Key, sign: int) -> tuple[int, int] | None:
        at = self.known.get(key)
        return None if at is None else (sign * self.facts[at].value, at)

    # ---- What follows. ----

    def propagate(self) -> None:
        """All that follows, until something is absurd."""
        while self.queue and self.contradiction is None:
            kind, a, b = self.queue.popleft()
            if kind == AHEAD:
                self._order(a, b)
            else:
                self._bound((kind, a, b))
            for number in sorted(
                {*self.clauses_of[a], *(self.clauses_of[b] if kind == AHEAD else ())}
            ):
                self._clause(number)

    def _bound(self, key: Key) -> None:
        kind, task, _ = key
        least, greatest = self.least(task), self.greatest(task)
        if least and greatest and least[0] > greatest[0]:
            self.contradiction = f"Gone {task_text(task)}", (least[1], greatest[1])
            return
        at = self.known[key]
        for target, ticks, step in self.arcs[key]:
            self.add(target, self.facts[at].value + ticks, step, (at,))
        for other in self.rivals[task]:
            a, b = (task, other) if kind == LOW else (other, task)
            self._turn(task, other)
            self._turn(other, task)
            if (late := self.too_late(a, b)) is not None:
                self.add((AHEAD, b, a), 1, f"Decide {task_text(a)} {task_text(b)}", late)

    def too_late(self, a: int, b: int) -> tuple[int, int] | None:
        """The facts by which a ends after the greatest start of b, or None."""
        least, greatest = self.least(a), self.greatest(b)
        if least and greatest and least[0] + self.ticks[a] > greatest[0]:
            return least[1], greatest[1]
        return None

    def _turn(self, a: int, b: int) -> None:
        """What it moves that a ends by the start of b."""
        at = self.known.get((AHEAD, a, b))
        for source, target, ticks, step in self._ways(a, b, 0, "Turn", "Unturn"):
            if at is not None and (bound := self.known.get(source)) is not None:
                self.add(target, self.facts[bound].value + ticks, step, (at, bound))

    def _order(self, a: int, b: int) -> None:
        self._turn(a, b)
        at = self.known[AHEAD, a, b]
        for c in self.rivals[b] & self.hop[a].keys():
            step = f"Carry {task_text(c)} {task_text(a)} {task_text(b)}"
            self.add((AHEAD, c, b), 1, step, (self.path(c, a), at))
        for c in self.rivals[a]:
            if b in self.hop[c]:
                step = f"Carry {task_text(a)} {task_text(b)} {task_text(c)}"
                self.add((AHEAD, a, c), 1, step, (at, self.path(b, c)))

    def path(self, a: int, b: int) -> int:
        """The fact that a path of edges lets a end by the start of b. Precondition: it does."""
        if (a, b) in self.paths:
            return self.paths[a, b]
        onward = self.hop[b][a]
        step, needs = f"Sure {task_text(a)} {task_text(b)}", tuple[int, ...]()
        if onward != b:
            step = f"Carry {task_text(a)} {task_text(onward)} {task_text(b)}"
            needs = self.path(a, onward), self.path(onward, b)
        self.facts.append(TrailFact(value=1, step=step, needs=needs, is_sure=True))
        self.paths[a, b] = len(self.facts) - 1
        return self.paths[a, b]

    # ---- Lemmas. ----

    def falsehood(self, literal: Literal) -> tuple[int, ...] | None:
        """The facts that exclude a literal, or None."""
        relation, a, n = literal
        if relation == AHEAD:
            at = self.known.get((AHEAD, n, a))
            return (at,) if at is not None else self.too_late(a, n)
        found = self.greatest(a) if relation == LOW else self.least(a)
        if found and (found[0] < n if relation == LOW else found[0] > n):
            return (found[1],)
        return None

    def _clause(self, number: int) -> None:
        literals = self.clauses[number]
        why = [self.falsehood(literal) for literal in literals]
        open_ = [at for at, each in enumerate(why) if each is None]
        needs = tuple(each for some in why if some is not None for each in some)
        if not open_:
            self.contradiction = f"Spent {number + 1}", needs
        elif len(open_) == 1:
            self.suppose(literals[open_[0]], f"Unit {number + 1} {open_[0]}", needs)

    def suppose(self, literal: Literal, step: str = "", needs: tuple[int, ...] = ()) -> None:
        """Take in a literal, which is supposed unless a step shows it."""
        self.add(*self._meant(literal), step, needs, sure=bool(step))

    def learn(self, literals: Sequence[Literal]) -> None:
        """From now on one of the literals is true."""
        self.clauses.append(tuple(literals))
        number = len(self.clauses) - 1
        for relation, a, b in literals:
            for task in (a, b) if relation == AHEAD else (a,):
                self.clauses_of[task].add(number)
        if len(literals) == 1:
            self.add(*self._meant(literals[0]), "", ())
            self.told.add(len(self.facts) - 1)
        self._clause(number)
        self.propagate()

    @staticmethod
    def _meant(literal: Literal) -> tuple[Key, int]:
        """What a literal is about, and the value that it says."""
        relation, a, n = literal
        if relation == AHEAD:
            return (AHEAD, a, n), 1
        return (relation, a, 0), n if relation == LOW else -n

    def steps_to(self, needs: Iterable[int]) -> tuple[list[str], list[str]]:
        """The steps that lead to some facts: those of sure ones not told before, and the others."""
        waiting, found = [*needs], set[int]()
        while waiting:
            at = waiting.pop()
            if at not in found and at not in self.told:
                found.add(at)
                waiting += self.facts[at].needs
        sure, supposed = list[str](), list[str]()
        for at in sorted(found):
            fact = self.facts[at]
            if fact.is_sure:
                self.told.add(at)
            if fact.step:
                (sure if fact.is_sure else supposed).append(fact.step)
        return sure, supposed


def literal_text(literal: Literal) -> str:
    """A literal in Coq's words."""
    relation, a, n = literal
    if relation == AHEAD:
        return f"Ahead {task_text(a)} {task_text(n)}"
    return f"{'AtLeast' if relation == LOW else 'AtMost'} {task_text(a)} ({n})"


def clause_text(literals: Iterable[Literal]) -> str:
    """A lemma's literals in Coq's words."""
    return list_text(map(literal_text, literals))


def negation(literal: Literal) -> Literal:
    """What is true where the literal is not."""
    relation, a, n = literal
    if relation == AHEAD:
        return AHEAD, n, a
    return (HIGH, a, n - 1) if relation == LOW else (LOW, a, n + 1)
