"""Integer variables as clauses: the order encoding (Crawford and Baker 1994; Tamura et al. 2009).

A variable x with the window low..high has one boolean ``x <= v`` for each v from low to high - 1,
and clauses ``x <= v implies x <= v + 1``. Literals are non-zero integers; ``TRUE`` and its negation
stand for constants and leave a clause before it is stored. A difference ``y >= x + d`` is, for each
v, the clause ``y <= v implies x <= v - d``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

TRUE = 1
FALSE = -TRUE


class TooLargeError(Exception):
    """More clauses than allowed, or no time left to write them."""


class OrderClauses:
    """A growing set of clauses; ``clauses`` is for a SAT solver.

    ``is_over`` tells when to give up; ``most`` is the largest number of clauses.
    """

    def __init__(self, *, most: int, is_over: Callable[[], bool]) -> None:
        self.clauses: list[list[int]] = [[TRUE]]
        self.top = TRUE
        self.most, self.is_over = most, is_over
        self.low: list[int] = []
        self.high: list[int] = []
        self.base: list[int] = []  # base[x] + v is the literal x <= v

    def boolean(self) -> int:
        """A new literal."""
        self.top += 1
        return self.top

    def variable(self, low: int, high: int) -> int:
        """A new variable; a window without values makes the clauses contradictory.

        Parameters
        ----------
        low, high
            Its least and greatest value.
        """
        if high < low:
            self.add([])
            high = low
        self._make_room(high - low)
        self.low.append(low)
        self.high.append(high)
        self.base.append(self.top + 1 - low)
        first = self.top + 1
        self.top += high - low
        self.clauses += [[-x, x + 1] for x in range(first, self.top)]
        return len(self.low) - 1

    def at_most(self, variable: int, value: int) -> int:
        """The literal ``variable <= value``.

        Parameters
        ----------
        variable
            Its number.
        value
            Any whole number; outside of the window the literal is ``TRUE`` or
            ``FALSE``.
        """
        if value < self.low[variable]:
            return FALSE
        return TRUE if value >= self.high[variable] else self.base[variable] + value

    def add(self, literals: Iterable[int]) -> None:
        """At least one of the literals.

        Parameters
        ----------
        literals
            Numbers of variables of the formula, negative ones negated.
        """
        clause = list(literals)
        if TRUE not in clause:
            # A solver may pass over a clause without literals; FALSE alone contradicts TRUE.
            self.clauses.append([literal for literal in clause if literal != FALSE] or [FALSE])

    def differ(self, before: int, after: int, ticks: int, unless: int = FALSE) -> None:
        """``after >= before + ticks``, or the literal ``unless`` holds.

        Parameters
        ----------
        before, after
            Numbers of variables.
        ticks
            By how much, in the units of their values.
        unless
            A literal.
        """
        if unless == TRUE or self.must_differ(before, after, ticks):
            return
        if not self.can_differ(before, after, ticks):
            self.add([unless])
            return
        first = max(self.low[after], self.low[before] + ticks - 1)
        last = min(self.high[after], self.high[before] + ticks - 1)
        self._make_room(last - first + 1)
        for value in dict.fromkeys((first, last)):
            self.add([-self.at_most(after, value), self.at_most(before, value - ticks), unless])
        start, goal = self.base[after], self.base[before] - ticks
        inside = range(first + 1, last)
        if unless == FALSE:
            self.clauses += [[-start - v, goal + v] for v in inside]
        else:
            self.clauses += [[-start - v, goal + v, unless] for v in inside]

    def can_differ(self, before: int, after: int, ticks: int) -> bool:
        """Whether the windows leave ``after >= before + ticks`` open.

        Parameters
        ----------
        before, after
            Numbers of variables.
        ticks
            By how much, in the units of their values.
        """
        return self.low[before] + ticks <= self.high[after]

    def must_differ(self, before: int, after: int, ticks: int) -> bool:
        """Whether the windows alone say ``after >= before + ticks``.

        Parameters
        ----------
        before, after
            Numbers of variables.
        ticks
            By how much, in the units of their values.
        """
        return self.high[before] + ticks <= self.low[after]

    def add_sum(self, terms: Iterable[tuple[int, int]], most: int) -> None:
        """The weights of the true literals, (literal, weight) each, add up to ``most`` or less.

        A decision diagram, shared where as much is left for the same rest: exact, and of n * most
        nodes for n equal weights (a sequential counter).

        Parameters
        ----------
        terms
            Weights may be negative.
        most
            The greatest sum.
        """
        given = list(terms)
        most -= sum(w for _, w in given if w < 0)
        if most < 0:
            self.add([])
        lifted = [(x, w) if w > 0 else (-x, -w) for x, w in given]
        lifted.sort(key=lambda term: -term[1])
        rest = [0]
        for _, weight in reversed(lifted):
            rest.append(rest[-1] + weight)
        rest.reverse()
        level = {most: TRUE}  # what is left for the terms from here on, and who asks whether it is
        for index, (literal, weight) in enumerate(lifted):
            below: dict[int, int] = {}
            self._make_room(2 * len(level))
            for left, asks in level.items():
                for without, spent in ((TRUE, left), (literal, left - weight)):
                    if spent < rest[index + 1]:
                        if spent >= 0 and spent not in below:
                            below[spent] = self.boolean()
                        self.add([-asks, -without, below.get(spent, FALSE)])
            level = below

    def _make_room(self, more: int) -> None:
        if len(self.clauses) + more > self.most or self.is_over():
            raise TooLargeError
