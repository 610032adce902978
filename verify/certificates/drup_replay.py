"""The windows, orders and clauses that a certificate is replayed on; see ``certificate``.

Every variable is a whole number in a window: the start of a task or of a span (in ticks), and for
each pair of tasks the precedences leave open, 1 or 0 for which of the two ends first. A *node* is
one end of a window: node 2x is the least value of x, node 2x + 1 the negated greatest. A literal
(node, value) says that the node is ``value`` or more, and its negation is (node ^ 1, 1 - value).
A window is empty once its two nodes add up to more than 0. With a before c, a taking 3 ticks, and b
on the resource of a:

                   least value (even nodes)         negated greatest value (odd nodes)

    start of a     2a: 4       a >= 4               2a+1: -9       a <= 9
                    |                                 ^
                    | arc of 3 ticks                  | the same arc, reversed in time
                    v                                 |
    start of c     2c: 7       c >= 7               2c+1: -12      c <= 12

    order of a, b   n: 0       undecided            n+1: -1        undecided
                   (n, 1): a ends by the start      (n+1, 0): b ends by the start
                           of b                               of a, the negation of (n, 1)

    Options of 3 ticks under the literal (n, 1): from 2a to 2b, and from 2b+1 to 2a+1.
    If 2a + 3 ticks were beyond the greatest start of b, (n, 1) is false: n+1 is raised to 0.

So nodes only ever rise, and whatever is sure stays sure. What a node leads to is found when it
rises, and a supposition is undone by setting back the nodes that it raised (``trail``), the last
first. Time reversal, negation and the two orders of a pair are one rule each:

- an *arc* (from, to, ticks): to >= from + ticks, whatever else holds;
- an *option* (from, to, ticks, literal): the same if the literal holds. If it would leave some
  window empty, the literal does not hold;
- a *clause*: if all of its literals but one are false, that one holds. Two literals that are not
  false are watched (Moskewicz et al. 2001).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import combinations

from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.chains import LifecycleMoment, in_order, is_too_full
from bubbleproof.verify.certificates.index_order import index_order, sure_edges

UNKNOWN = -(1 << 80)  # no path gives this end; all durations and lags add up to less than 2**60
MOST_RAISES = 100_000  # and 8 per end, for one lemma: a cycle of orders would raise them for ever

Literal = tuple[int, int]


class DrupReplay:
    """All that is sure if an objective is at most ``limit``; ``rank`` is where time 0 is set.

    ``supposed`` are the suppositions in force: the literal, how much had changed, what was refuted.
    """

    def __init__(
        self, problem: Problem, limit: int, objective: str, rank: int, *, with_orders: bool = True
    ) -> None:
        self.problem, self.num_starts = problem, problem.num_tasks + problem.num_ranks
        self.ticks: list[int] = problem.duration.tolist()
        self.ends, self.trail = [UNKNOWN] * (2 * self.num_starts), list[Literal]()
        # By node: arcs (to, ticks); options (to, ticks, literal) by the node that they lead from,
        # and again (value, from, to, ticks) by the node of their literal (``asked``); clauses by
        # the node that makes a watched literal false when it rises.
        self.arcs: list[list[tuple[int, int]]] = [[] for _ in self.ends]
        self.options: list[list[tuple[int, int, int, int]]] = [[] for _ in self.ends]
        self.asked: list[list[tuple[int, int, int, int]]] = [[] for _ in self.ends]
        self.watches: list[list[list[Literal]]] = [[] for _ in self.ends]
        # Of a and b that no path orders: the literal that a ends by the start of b. And of each
        # task, as bits, those that end by its start whatever is supposed.
        self.orders: dict[tuple[int, int], Literal] = {}
        self.earlier = [0] * problem.num_tasks
        self.homes: list[set[int]] = [set() for _ in self.ticks]
        places = problem.occupancy.task.tolist(), problem.occupancy.resource.tolist()
        for task, resource in zip(*places, strict=True):
            self.homes[task].add(resource)
        self.is_refuted, self.supposed = False, list[tuple[Literal, int, bool]]()
        order = index_order(problem)
        edges = sure_edges(problem, order)
        tasks = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
        self.is_cyclic = len(tasks) < problem.num_tasks
        self._add_edges(edges, tasks if with_orders else [])
        self.chains = order.chains if with_orders else {}
        if with_orders:
            self._add_pairs()
        self._add_spans(limit, objective == "span_idle")
        origin = 2 * (problem.num_tasks + (rank if objective == "span_idle" else 0))
        self.ends[origin] = self.ends[origin + 1] = 0  # both, or a path too long has no end
        for node, path in ((origin, tasks), (origin + 1, tasks[::-1])):
            queue = [node, *(2 * task + node % 2 for task in path)]
            self.is_refuted = self.is_refuted or not self._raise([], queue)
        self.trail.clear()
        self._settle()

    def _add_edges(self, edges: Edges, tasks: list[int]) -> None:
        """Take in edges that are sure, and what must end before each of the ``tasks``, in order."""
        rows = zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)
        for task, after, lag in rows:
            self._add_arc(2 * task, 2 * after, self.ticks[task] + lag)
        for task in tasks:
            for node, ticks in self.arcs[2 * task]:
                if ticks >= self.ticks[task]:
                    self.earlier[node // 2] |= self.earlier[task] | 1 << task

    def _add_spans(self, limit: int, is_span: bool) -> None:
        """Computations start at the node of their span or later, and end within its length:
        ``limit`` ticks, or for the span of each rank r work(r) + ``limit``."""
        ranks = range(self.problem.num_ranks)
        rows = [(task, r) for task, homes in enumerate(self.homes) for r in homes if r in ranks]
        length = [limit for _ in ranks]
        for task, rank in rows:
            length[rank] += self.ticks[task] if is_span else 0
        for task, rank in rows:
            node = self.problem.num_tasks + (rank if is_span else 0)
            self._add_arc(2 * node, 2 * task, 0)
            self._add_arc(2 * task, 2 * node, self.ticks[task] - length[rank])

    def _add_arc(self, source: int, target: int, ticks: int) -> None:
        self.arcs[source].append((target, ticks))
        self.arcs[target ^ 1].append((source ^ 1, ticks))

    def _add_pairs(self) -> None:
        """A variable for each two tasks of a resource that take time and that no path orders."""
        for resource in range(len(self.problem.resources)):
            tasks = [t for t, homes in enumerate(self.homes) if resource in homes and self.ticks[t]]
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
            left = [o for o in options if self.ends[o[2]] < o[3] and not self.is_false(o[2:])]
            self.options[node] = left

    def is_false(self, literal: Literal) -> bool:
        """Whether the windows as they are exclude the literal."""
        return literal[1] + self.ends[literal[0] ^ 1] > 0

    def follows(
        self, literals: Iterable[Literal], full: int | None = None, crowd: Sequence[int] = ()
    ) -> bool:
        """Whether the negations of all literals leave some window empty, or the ``crowd`` too
        little time, or, at the start of the task ``full``, some store too full.

        Parameters
        ----------
        full
            A task of the problem, or None.
        crowd
            Tasks of one resource, or none.
        """
        mark = len(self.trail)
        refuted = (
            self.is_refuted
            or not self._raise([(node ^ 1, 1 - value) for node, value in literals])
            or (full is not None and self._is_too_full(full))
            or (bool(crowd) and self._is_too_long(set(crowd)))
        )
        self._undo(mark)
        return refuted

    def _undo(self, mark: int) -> None:
        for node, end in reversed(self.trail[mark:]):
            self.ends[node] = end
        del self.trail[mark:]

    def learn(self, literals: Iterable[Literal]) -> None:
        """From now on one of the literals holds; while something is supposed, only the last open
        one is remembered."""
        open_ = [literal for literal in literals if not self.is_false(literal)]
        if len(open_) < 2:
            self.is_refuted = self.is_refuted or not open_ or not self._raise(open_)
            if not self.supposed:
                self.trail.clear()
        elif not self.supposed and all(self.ends[node] < value for node, value in open_):
            for node, _ in open_[:2]:
                self.watches[node ^ 1].append(open_)

    def suppose(self, literal: Literal) -> None:
        """Take the literal for granted until it is rejected."""
        self.supposed.append((literal, len(self.trail), self.is_refuted))
        self.learn([literal])

    def reject(self) -> bool:
        """Undo the last supposition, whose negation holds; False unless it is refuted."""
        if not self.supposed or not self.is_refuted:
            return False
        (node, value), mark, self.is_refuted = self.supposed.pop()
        self._undo(mark)
        self.learn([(node ^ 1, 1 - value)])
        return True

    def _raise(self, literals: list[Literal], first: Iterable[int] = ()) -> bool:
        """Raise ends and all that follows, ``first`` nodes first; False once a window is empty."""
        ends, queue, found = self.ends, OrderedDict.fromkeys(first), literals
        most = len(self.trail) + 8 * len(ends) + MOST_RAISES
        while len(self.trail) < most:
            for node, end in found:
                if end > ends[node]:
                    self.trail.append((node, ends[node]))
                    ends[node] = end
                    if end + ends[node ^ 1] > 0:
                        return False
                    queue[node] = None
            if not queue:
                break
            node, _ = queue.popitem(last=False)
            found = self._found(node) if ends[node] != UNKNOWN else []
        return True

    def _is_too_long(self, crowd: set[int]) -> bool:
        """Whether tasks of one resource take longer than from their first start to last end."""
        first = min(self.ends[2 * task] for task in crowd)
        last = -min(self.ends[2 * task + 1] - self.ticks[task] for task in crowd)
        return first + sum(self.ticks[task] for task in crowd) > last

    def _found(self, node: int) -> list[Literal]:
        """What the new end of a node leads to."""
        ends, end = self.ends, self.ends[node]
        found = [(to, end + ticks) for to, ticks in self.arcs[node] if end + ticks > ends[to]]
        for to, ticks, guard, least in self.options[node]:
            if ends[guard] >= least:
                if end + ticks > ends[to]:
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
            spare, is_unit = None, self.is_false(clause[1])
            if is_unit and self.ends[clause[0][0]] < clause[0][1]:
                spare = next(
                    (i for i, c in enumerate(clause) if i > 1 and not self.is_false(c)), None
                )
            if spare is None:
                kept.append(clause)
                found += [clause[0]] if is_unit else []
            else:
                clause[1], clause[spare] = clause[spare], clause[1]
                self.watches[clause[1][0] ^ 1].append(clause)
        self.watches[node] = kept

    def _is_before(self, a: int, b: int) -> bool:
        node, value = self.orders.get((a, b), (0, -UNKNOWN))
        return bool(self.earlier[b] >> a & 1) or self.ends[node] >= value

    def _is_too_full(self, task: int) -> bool:
        """Whether some store holds too much at the start of a task that takes time."""
        ends, past, later = self.ends, 0, 0
        for other in range(self.problem.num_tasks):
            if self._is_before(other, task):
                past |= self.earlier[other] | 1 << other
            elif other == task or self._is_before(task, other):
                later |= 1 << other

        def passed(moment: LifecycleMoment) -> tuple[bool, bool]:
            other, at_end = moment
            shift = self.ticks[other] if at_end else 0
            known = past if at_end else past | 1 << task
            is_over = bool(known >> other & 1) or shift - ends[2 * other + 1] <= ends[2 * task]
            is_later = later >> other & 1 and (at_end or other != task)
            is_open = ends[2 * other] + shift <= -ends[2 * task + 1]
            return is_over, is_open and not (is_later or later & self.earlier[other])

        return is_too_full(self.problem, self.chains, passed)
