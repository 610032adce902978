"""The windows, orders and clauses that a DRUP certificate is replayed on; see ``verify.drup``.

Every variable is a whole number in a window: the start of a task or of a span (in ticks), and for
each pair of tasks the precedences leave open, 1 or 0 for which of the two ends first. A *node* is
one end of a window: node 2x is the least value of x, node 2x + 1 the negated greatest. A literal
(node, value) says that the node is ``value`` or more, and its negation is (node ^ 1, 1 - value).
Time reversal, negation and the two orders of a pair are then one rule each:

- an *arc* (from, to, ticks): to >= from + ticks, whatever else holds;
- an *option* (from, to, ticks, literal): the same if the literal holds. If it would leave some
  window empty, the literal does not hold;
- a *clause*: if all of its literals but one are false, that one holds. Two literals that are not
  false are watched (Moskewicz et al. 2001).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate_memory import Moment, chains, least_level
from bubbleproof.verify.certificate_paths import in_order, occupied, span_edges, sure_edges

UNKNOWN = -(1 << 62)  # no path gives this end; all durations and lags add up to less than 2**60
MOST_RAISES = 100_000  # for one lemma; a cycle of orders would raise windows without end for ever

Literal = tuple[int, int]


class Replay:
    """All that is sure if an objective is at most ``limit``; ``rank`` is where time 0 is set."""

    def __init__(self, problem: Problem, limit: int, objective: str, rank: int) -> None:
        self.problem, self.num_starts = problem, problem.num_tasks + problem.num_ranks
        self.ticks: list[int] = problem.duration.tolist()
        self.ends, self.trail = [UNKNOWN] * (2 * self.num_starts), list[Literal]()
        self.arcs: list[list[tuple[int, int]]] = [[] for _ in self.ends]
        self.options: list[list[tuple[int, int, int, int]]] = [[] for _ in self.ends]
        self.asked: list[list[tuple[int, int, int, int]]] = [[] for _ in self.ends]
        self.watches: list[list[list[Literal]]] = [[] for _ in self.ends]
        self.orders: dict[tuple[int, int], Literal] = {}
        self.earlier, self.chains = [0] * problem.num_tasks, chains(problem)
        self.is_refuted = False
        tasks = in_order(problem.num_tasks, sure_edges(problem))
        self.is_cyclic = tasks is None
        for task, out in tasks or ():
            for _, after, lag in out:
                self._add_arc(2 * task, 2 * after, self.ticks[task] + lag)
                if lag >= 0:
                    self.earlier[after] |= self.earlier[task] | 1 << task
        self._add_pairs()
        origin = 2 * (problem.num_tasks + (rank if objective == "span_idle" else 0))
        for before, after, ticks in span_edges(problem, objective, limit):
            self._add_arc(2 * before, 2 * after, ticks)
        self.learn([(origin, 0)])
        self.learn([(origin + 1, 0)])
        self._settle()

    def _add_arc(self, source: int, target: int, ticks: int) -> None:
        self.arcs[source].append((target, ticks))
        self.arcs[target ^ 1].append((source ^ 1, ticks))

    def _add_pairs(self) -> None:
        """A variable for each two tasks of a resource that take time and that no path orders."""
        homes: dict[int, list[int]] = {}
        for task, resource in occupied(self.problem):
            if self.ticks[task]:
                homes.setdefault(resource, []).append(task)
        for tasks in homes.values():
            for a, b in combinations(tasks, 2):
                if not ((self.earlier[b] >> a | self.earlier[a] >> b) & 1 or (a, b) in self.orders):
                    self._add_pair(a, b)
        self._add_orders_of_three()

    def _add_orders_of_three(self) -> None:
        """If c ends by the start of a, and a by the start of b, then c by the start of b."""
        rivals: dict[int, list[int]] = {}
        for a, b in self.orders:
            rivals.setdefault(b, []).append(a)
        for (a, b), (node, value) in self.orders.items():
            past = [c for c in rivals[b] if self.earlier[a] >> c & 1]
            covered = 0
            for c in past:
                covered |= self.earlier[c]
            for c in past:  # the others follow from these
                if not covered >> c & 1:
                    other, least = self.orders[c, b]
                    self._add_arc(node, other, least - value)

    def _add_pair(self, a: int, b: int) -> None:
        node = len(self.ends)
        for table in (self.arcs, self.options, self.asked, self.watches):
            table.extend(([], []))
        self.ends += [0, -1]
        self.orders[a, b], self.orders[b, a] = (node, 1), (node + 1, 0)
        for first, later in ((a, b), (b, a)):
            guard, least = self.orders[first, later]
            for source, target in ((2 * first, 2 * later), (2 * later + 1, 2 * first + 1)):
                self.options[source].append((target, self.ticks[first], guard, least))
                self.asked[guard].append((least, source, target, self.ticks[first]))

    def _settle(self) -> None:
        """Options whose literal is decided for good become arcs, or nothing."""
        for node, options in enumerate(self.options):
            self.arcs[node] += [(to, t) for to, t, at, least in options if self.ends[at] >= least]
            self.options[node] = [
                option
                for option in options
                if self.ends[option[2]] < option[3] and not self.is_false(option[2:])
            ]

    def is_false(self, literal: Literal) -> bool:
        return literal[1] + self.ends[literal[0] ^ 1] > 0

    def follows(self, literals: Iterable[Literal], full: int | None = None) -> bool:
        """Whether the negations of all literals leave some window empty, or, at the start of the
        task ``full``, some store too full."""
        refuted = not self._raise([(node ^ 1, 1 - value) for node, value in literals])
        refuted = refuted or (full is not None and self._is_too_full(full))
        for node, end in reversed(self.trail):
            self.ends[node] = end
        self.trail.clear()
        return refuted

    def learn(self, literals: Iterable[Literal]) -> None:
        """From now on one of the literals holds."""
        open_ = [literal for literal in literals if not self.is_false(literal)]
        if len(open_) < 2:
            self.is_refuted = self.is_refuted or not open_ or not self._raise(open_)
            self.trail.clear()
        elif all(self.ends[node] < value for node, value in open_):
            for node, _ in open_[:2]:
                self.watches[node ^ 1].append(open_)

    def _raise(self, literals: list[Literal]) -> bool:
        """Raise ends and all that follows; False once a window is empty."""
        ends, queue, found = self.ends, dict[int, None](), literals
        while len(self.trail) < MOST_RAISES:
            for node, end in found:
                if end > ends[node]:
                    self.trail.append((node, ends[node]))
                    ends[node] = end
                    if end + ends[node ^ 1] > 0:
                        return False
                    queue[node] = None
            if not queue:
                break
            node = next(iter(queue))
            del queue[node]
            found = self._found(node)
        return True

    def _found(self, node: int) -> list[Literal]:
        """What the new end of a node leads to."""
        ends, end = self.ends, self.ends[node]
        found = [(to, end + ticks) for to, ticks in self.arcs[node] if end + ticks > ends[to]]
        for to, ticks, guard, least in self.options[node]:
            if ends[guard] >= least:
                found.append((to, end + ticks))
            elif end + ticks + ends[to ^ 1] > 0:
                found.append((guard ^ 1, 1 - least))
        for least, source, to, ticks in self.asked[node]:
            if end >= least and ends[source] != UNKNOWN:
                found.append((to, ends[source] + ticks))
        if self.watches[node]:
            self._visit(node, found)
        return found

    def _visit(self, node: int, found: list[Literal]) -> None:
        """The clauses that watch a literal which the new end of ``node`` may make false."""
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
                found.append(other)
            else:
                clause[1], clause[spare] = clause[spare], clause[1]
                self.watches[clause[1][0] ^ 1].append(clause)
        self.watches[node] = kept

    def _is_before(self, a: int, b: int) -> bool:
        node, value = self.orders.get((a, b), (0, 1 << 62))
        return bool(self.earlier[b] >> a & 1) or self.ends[node] >= value

    def _is_too_full(self, task: int) -> bool:
        """Whether some store holds too much at the start of a task that takes time."""
        starts = range(self.problem.num_tasks)
        past = later = 0
        for other in starts:
            if self._is_before(other, task):
                past |= self.earlier[other] | 1 << other
            elif other == task or self._is_before(task, other):
                later |= 1 << other

        def is_over(moment: Moment) -> bool:
            other, at_end = moment
            shift = self.ticks[other] if at_end else 0
            known = past if at_end else past | 1 << task
            return (
                bool(known >> other & 1) or shift - self.ends[2 * other + 1] <= self.ends[2 * task]
            )

        def may_be_over(moment: Moment) -> bool:
            other, at_end = moment
            shift = self.ticks[other] if at_end else 0
            if (later >> other & 1 and (at_end or other != task)) or later & self.earlier[other]:
                return False
            return self.ends[2 * other] + shift <= -self.ends[2 * task + 1]

        for store, owners in self.chains.items():
            held = sum(least_level(chain, is_over, may_be_over) for chain in owners)
            capacity = self.problem.stores[store].capacity
            if capacity is not None and self.problem.stores[store].base + held > capacity:
                return True
        return False
