"""Bounds by propagation: steps that leave no schedule with an objective of ``bound - 1`` or less.

Suppose there were one. Time 0 is the first start of a computation, on any rank for ``makespan`` and
on ``rank`` for ``span_idle``. Each task t then has an earliest start and a latest end, the longest
paths over the precedences, the index-order and memory edges of ``theory.index_order``, and

    start(t) >= end(u) - length   for computations t, u of one span: all of them, length bound - 1,
                                  for makespan; those of rank r, work(r) + bound - 1, for span_idle

A step is believed only if its premise holds in the windows reached so far (i = ``task``, S =
``tasks``; all on one resource but for ``wait`` and ``release``; est, lct, p: earliest start, latest
end, duration; of a set the least, the greatest, the sum). Paths are followed after every step.

``after``    i runs after each s of S, since a path says so, or est(i) + p(i) + p(s) > lct(s), or s
             lies in O = ``others`` and est(O + i) + p(O) + p(i) > lct(O) (edge finding, Carlier and
             Pinson 1989). So start(i) >= est(S) + p(S).
``before``   the same with time reversed.
``wait``     start(i) >= ``value``, since earlier its store would hold too much.
``release``  the task of S ends by the start of i, since otherwise i's store would hold too much.
``defer``    the task of S runs after i, since otherwise i's store would hold too much.
``suppose``  from here i runs before the task of S, until
``absurd``   which needs an empty window, undoes all since its ``suppose``, and reverses the two.

A proof ends with an empty window and no open supposition. ``verify.certificate_memory`` says what a
store holds at least. Nothing here is shared with the solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate_memory import Moment, chains, least_level
from bubbleproof.verify.certificate_paths import in_order, occupied, span_edges, sure_edges

UNKNOWN = -(1 << 62)  # no path gives this bound; all durations and lags add up to less than 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One deduction, see the module; all but ``rule`` and ``value`` (ticks) are task indices."""

    rule: str
    task: int
    tasks: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """Claims ``objective >= bound``, because ``steps`` refute every smaller value."""

    bound: int
    steps: tuple[Step, ...]
    objective: str = "makespan"
    rank: int = 0


def propagation_refusal(problem: Problem, certificate: Propagation) -> str | None:
    """Why the certificate does not prove its bound, or None."""
    if not 0 <= certificate.rank < problem.num_ranks:
        return f"rank {certificate.rank} is none of the problem's {problem.num_ranks}"
    replay = _Replay(problem)
    if not replay.close():
        return "the problem's precedences have a cycle"
    replay.add_spans(certificate)
    for number, step in enumerate(certificate.steps):
        if (why := replay.take(step)) is not None:
            return f"step {number} ({step.rule}) {why}"
    if not replay.is_refuted or replay.supposed:
        return f"the steps do not refute {certificate.objective} {certificate.bound - 1}"
    return None


class _Replay:
    """Windows and orders, as the steps narrow them.

    ``bounds`` are the earliest starts and the negated latest ends; ``paths[0][a]`` lists (b, ticks)
    with start(b) >= start(a) + ticks and ``paths[1]`` is its mirror image; ``earlier[b]`` are the
    tasks known to end by the start of b, as bits. ``supposed`` keeps what to return to.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.is_refuted = problem, False
        self.supposed: list[tuple[Step, tuple[list[int], list[int]], list[int], bool, int]] = []
        self.learnt: list[tuple[int, int]] = []
        num_nodes = problem.num_tasks + problem.num_ranks  # each rank's span has a node of its own
        self.ticks: list[int] = problem.duration.tolist() + [0] * problem.num_ranks
        self.place = [0] * num_nodes
        self.bounds = ([UNKNOWN] * num_nodes, [UNKNOWN] * num_nodes)
        self.paths: tuple[list[list[tuple[int, int]]], ...] = tuple(
            [[] for _ in range(num_nodes)] for _ in range(2)
        )
        self.earlier = [0] * problem.num_tasks
        self.homes: list[set[int]] = [set() for _ in self.earlier]
        for task, resource in occupied(problem):
            self.homes[task].add(resource)
        self.chains = chains(problem)

    def close(self) -> bool:
        """Take in all edges that are sure; whether they have no cycle."""
        tasks = in_order(self.problem.num_tasks, sure_edges(self.problem))
        for place, (task, out) in enumerate(tasks or (), start=1):
            self.place[task] = place
            for _, after, lag in out:
                self._add_path(task, after, self.ticks[task] + lag)
                if lag >= 0:
                    self.earlier[after] |= self.earlier[task] | 1 << task
        return tasks is not None

    def add_spans(self, claim: Propagation) -> None:
        """The computations of one span lie within its length after its node."""
        for edge in span_edges(self.problem, claim.objective, claim.bound - 1):
            self._add_path(*edge)
        origin = self.problem.num_tasks + (claim.rank if claim.objective == "span_idle" else 0)
        self.bounds[1][origin] = 0
        self._raise(0, origin, 0)
        self.bounds[1][origin] = UNKNOWN
        self._raise(1, origin, 0)

    def _add_path(self, before: int, after: int, ticks: int) -> None:
        self.paths[0][before].append((after, ticks))
        self.paths[1][after].append((before, ticks + self.ticks[after] - self.ticks[before]))

    def _raise(self, way: int, node: int, value: int) -> None:
        """Move the near end of a window and whatever it pushes; a path in a circle refutes."""
        near, far, work = self.bounds[way], self.bounds[1 - way], [(0, -value, node, 0)]
        while work and not self.is_refuted:
            _, negated, node, hops = heappop(work)  # in the order of paths, the greatest first
            if -negated > max(near[node], UNKNOWN // 2):
                near[node] = -negated
                is_empty = far[node] != UNKNOWN and near[node] + self.ticks[node] + far[node] > 0
                self.is_refuted = is_empty or hops > len(near)
                for other, ticks in self.paths[way][node]:
                    place = self.place[other] * (1 - 2 * way)
                    heappush(work, (place, negated - ticks, other, hops + 1))

    def _learn(self, before: int, after: int) -> None:
        """``before`` ends by the start of ``after``."""
        if not self._is_before(before, after):
            self.learnt.append((before, after))
            self._add_path(before, after, self.ticks[before])
            self.earlier[after] |= self.earlier[before] | 1 << before
            for way, source, target in ((0, before, after), (1, after, before)):
                if self.bounds[way][source] != UNKNOWN:
                    value = self.bounds[way][source] + self.ticks[source]
                    self._raise(way, target, value)

    def _is_before(self, before: int, after: int) -> bool:
        return bool(self.earlier[after] >> before & 1)

    def take(self, step: Step) -> str | None:
        """Follow one step; why not, or None."""
        named = (step.task, *step.tasks, *step.others)
        if any(not 0 <= task < len(self.earlier) or not self.ticks[task] for task in named):
            return "names no task, or one that takes no time"
        if step.rule not in ("after", "before", "wait") and len(step.tasks) != 1:
            return "must name one task"
        if step.rule not in ("wait", "release") and (
            not set.intersection(*(self.homes[task] for task in named))
            or step.task in named[1:]
            or not step.tasks
        ):
            return "must name other tasks of the task's resource"
        if step.rule == "absurd":
            return self._reject(step)
        if step.rule == "suppose":
            bounds = self.bounds[0].copy(), self.bounds[1].copy()
            state = (step, bounds, self.earlier.copy(), self.is_refuted, len(self.learnt))
            self.supposed.append(state)
            self._learn(step.task, step.tasks[0])
            return None
        if self.is_refuted:
            return None
        if step.rule in ("after", "before"):
            return self._push(int(step.rule == "before"), step)
        return self._hold(step)

    def _reject(self, step: Step) -> str | None:
        if not self.is_refuted or not self.supposed:
            return "comes before the supposition is refuted"
        start, bounds, earlier, is_refuted, count = self.supposed.pop()
        if (start.task, start.tasks) != (step.task, step.tasks):
            return "closes another supposition than the last"
        self.bounds, self.earlier, self.is_refuted = bounds, earlier, is_refuted
        for before, after in reversed(self.learnt[count:]):
            self.paths[0][before].pop()
            self.paths[1][after].pop()
        del self.learnt[count:]
        self._learn(step.tasks[0], step.task)
        return None

    def _push(self, way: int, step: Step) -> str | None:
        near, far, others = self.bounds[way], self.bounds[1 - way], set(step.others)
        ticks, least = self.ticks, near[step.task] + self.ticks[step.task]
        if others:
            first = min(near[task] for task in (step.task, *others)) + ticks[step.task]
            if first + sum(ticks[task] for task in others) + min(far[o] for o in others) <= 0:
                others = set()
        for task in step.tasks:
            pair = (task, step.task) if way == 0 else (step.task, task)
            is_late = task in others or least + ticks[task] + far[task] > 0
            if not is_late and not self._is_before(*pair):
                return f"does not show the order of tasks {pair[0]} and {pair[1]}"
        first = min(near[task] for task in step.tasks) + sum(ticks[t] for t in set(step.tasks))
        for task in step.tasks:
            self._learn(*((task, step.task) if way == 0 else (step.task, task)))
        self._raise(way, step.task, first)
        return None

    def _hold(self, step: Step) -> str | None:
        latest = -self.bounds[1][step.task] - self.ticks[step.task]
        unfinished = begun = None
        if step.rule == "wait":
            latest = step.value - 1
        elif step.rule == "release":
            unfinished = step.tasks[0]
        elif step.rule == "defer":
            begun = step.tasks[0]
        else:
            return "is no rule"
        if not self._is_too_full(step.task, latest, unfinished, begun):
            return "does not show that a store is too full"
        if step.rule == "wait":
            self._raise(0, step.task, step.value)
        elif unfinished is not None:
            self._learn(unfinished, step.task)
        elif begun is not None:
            self._learn(step.task, begun)
        return None

    def _is_too_full(
        self, task: int, latest: int, unfinished: int | None, begun: int | None
    ) -> bool:
        """Whether some store overflows if ``task`` starts by ``latest``, and before the end of
        ``unfinished`` or not before the start of ``begun``."""
        starts, ends = self.bounds
        past = self.earlier[task] | (0 if begun is None else self.earlier[begun])
        entered = past | 1 << task | (0 if begun is None else 1 << begun)

        def is_over(moment: Moment) -> bool:
            other, at_end = moment
            gone = -ends[other] - (0 if at_end else self.ticks[other])
            return bool((past if at_end else entered) >> other & 1) or (
                ends[other] != UNKNOWN and gone <= starts[task]
            )

        def may_be_over(moment: Moment) -> bool:
            other, at_end = moment
            blocked = self.earlier[other] >> task & 1 or (at_end and other in (task, unfinished))
            if unfinished is not None:
                blocked = blocked or self.earlier[other] >> unfinished & 1
            return not blocked and starts[other] + (self.ticks[other] if at_end else 0) <= latest

        for store, owners in self.chains.items():
            held = self.problem.stores[store].base + sum(
                least_level(chain, is_over, may_be_over) for chain in owners
            )
            capacity = self.problem.stores[store].capacity
            if capacity is not None and held > capacity:
                return True
        return False
