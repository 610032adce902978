"""Proofs made short: the lemmas, and of each the literals, that the refutation really needs.

The lemmas are replayed forward, each raise of a window remembering what it came from: earlier
raises, a lemma, or a literal supposed to be false. A lemma keeps the literals that its conflict
goes back to, and in the end only those lemmas stay that the last conflict goes back to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.drup_replay import MOST_RAISES, UNKNOWN, DrupReplay, Literal

Clause = list[Literal]
Causes = tuple[int, ...]  # raises by their place in the log; lemma k as -1 - k; see SUPPOSED
SUPPOSED = 1 << 48  # literal i of the lemma in question, supposed to be false, is SUPPOSED + i
GIVEN: Causes = ()


class TracedReplay(DrupReplay):
    """A replay that knows why each window is as it is."""

    def __init__(self, problem: Problem, limit: int, objective: str, rank: int) -> None:
        self.log: list[Causes] = [GIVEN]
        self.last: dict[int, int] = {}
        self.origins: dict[int, Causes] = {}
        self.clauses: list[Clause] = []
        self.refuted_by: Causes = GIVEN
        super().__init__(problem, limit, objective, rank)

    def reasons(self, clause: Sequence[Literal]) -> tuple[set[int], list[int]] | None:
        """The lemmas and the places of the literals behind the conflict that proves a clause.

        None where the clause does not follow.
        """
        begin, kept = len(self.log), dict(self.last)
        conflict = self._trace(
            [(node ^ 1, 1 - value, (SUPPOSED + i,)) for i, (node, value) in enumerate(clause)]
        )
        found = None if conflict is None else self.behind(conflict)
        for node, end in reversed(self.trail):
            self.ends[node] = end
        self.trail.clear()
        del self.log[begin:]
        self.last = kept
        if found is None:
            return None
        places = sorted(cause - SUPPOSED for cause in found if cause >= SUPPOSED)
        return {-1 - cause for cause in found if cause < 0}, places

    def behind(self, causes: Causes) -> set[int]:
        """The lemmas and suppositions that the causes go back to."""
        open_, seen, found = list(causes), set(causes), set()
        while open_:
            cause = open_.pop()
            if cause < 0 or cause >= SUPPOSED:
                found.add(cause)
                continue
            new = [other for other in self.log[cause] if other not in seen]
            seen.update(new)
            open_ += new
        return found

    def learn(self, literals: Iterable[Literal], number: int | None = None) -> None:
        """From now on one of the literals holds, by lemma ``number``.

        Parameters
        ----------
        number
            The place of the lemma among all clauses; None for what follows by itself.
        """
        given = list(literals)
        open_ = [literal for literal in given if not self.is_false(literal)]
        origin = () if number is None else (-1 - number,)
        causes = (*origin, *(self._why(lit[0] ^ 1) for lit in given if self.is_false(lit)))
        if len(open_) < 2:
            conflict = self._trace([(*literal, causes) for literal in open_]) if open_ else causes
            if conflict is not None:
                self.is_refuted, self.refuted_by = True, conflict
            self.trail.clear()
        elif all(self.ends[node] < value for node, value in open_):
            self.clauses.append(open_)
            self.origins[id(open_)] = causes
            for node, _ in open_[:2]:
                self.watches[node ^ 1].append(open_)

    def _why(self, node: int) -> int:
        return self.last.get(node, 0)

    def _trace(self, found: list[tuple[int, int, Causes]]) -> Causes | None:
        """Raise ends and all that follows; the causes of an empty window, or None."""
        ends, last, queue = self.ends, self.last, dict[int, None]()
        while True:
            for node, end, causes in found:
                if end > ends[node]:
                    self.trail.append((node, ends[node]))
                    ends[node] = end
                    last[node] = len(self.log)
                    self.log.append(causes)
                    if end + ends[node ^ 1] > 0:
                        return last[node], self._why(node ^ 1)
                    queue[node] = None
            if not queue or len(self.trail) > MOST_RAISES:
                return None
            node = next(iter(queue))
            del queue[node]
            found = self._traced(node)

    def _traced(self, node: int) -> list[tuple[int, int, Causes]]:
        """What the new end of a node leads to."""
        ends, end, own = self.ends, self.ends[node], self.last[node]
        found: list[tuple[int, int, Causes]] = [
            (to, end + ticks, (own,)) for to, ticks in self.arcs[node] if end + ticks > ends[to]
        ]
        for to, ticks, guard, least in self.options[node]:
            if ends[guard] >= least:
                if end + ticks > ends[to]:
                    found.append((to, end + ticks, (own, self._why(guard))))
            elif end + ticks + ends[to ^ 1] > 0:
                found.append((guard ^ 1, 1 - least, (own, self._why(to ^ 1))))
        for least, source, to, ticks in self.asked[node]:
            if end >= least and ends[source] != UNKNOWN:
                found.append((to, ends[source] + ticks, (own, self._why(source))))
        if self.watches[node]:
            self._watch(node, found)
        return found

    def _watch(self, node: int, found: list[tuple[int, int, Causes]]) -> None:
        kept = []
        for clause in self.watches[node]:
            if clause[0][0] == node ^ 1:
                clause[0], clause[1] = clause[1], clause[0]
            other = clause[0]
            if not self.is_false(clause[1]) or self.ends[other[0]] >= other[1]:
                kept.append(clause)
                continue
            spare = next((i for i in range(2, len(clause)) if not self.is_false(clause[i])), None)
            if spare is None:
                kept.append(clause)
                causes = (*self.origins[id(clause)], *(self._why(n ^ 1) for n, _ in clause[1:]))
                found.append((*other, causes))
            else:
                clause[1], clause[spare] = clause[spare], clause[1]
                self.watches[clause[1][0] ^ 1].append(clause)
        self.watches[node] = kept


def core(
    replay: TracedReplay,
    axioms: Sequence[Clause],
    lemmas: Iterable[Clause],
    is_over: Callable[[], bool],
) -> tuple[list[int], list[Clause]] | None:
    """The axioms (by their place) and the shortened lemmas that the refutation needs.

    None where a lemma does not follow, the lemmas refute nothing, or time is over.

    Parameters
    ----------
    is_over
        Whether the time is spent, asked before each lemma.
    """
    needs: list[set[int]] = [set() for _ in axioms]
    clauses = list(axioms)
    for number, axiom in enumerate(axioms):
        replay.learn(axiom, number)
    for lemma in lemmas:
        if replay.is_refuted:
            break
        if is_over():
            return None
        if any(replay.ends[node] >= value for node, value in lemma):
            continue
        found = replay.reasons(lemma)
        if found is None:
            return None
        short = [lemma[place] for place in found[1]]
        replay.learn(short, len(clauses))
        clauses.append(short)
        needs.append(found[0])
    if not replay.is_refuted:
        return None
    needed = {-1 - cause for cause in replay.behind(replay.refuted_by)}
    for number in range(len(clauses) - 1, -1, -1):
        if number in needed:
            needed |= needs[number]
    numbers = sorted(needed)
    split = len(axioms)
    return [n for n in numbers if n < split], [clauses[n] for n in numbers if n >= split]
