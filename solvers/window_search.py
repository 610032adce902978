"""Large neighbourhood search: a schedule improved window by window.

All but the tasks of a window of time keep their order, and CP-SAT arranges the window anew
(``engines.cpsat_window``) in one of several ways (``Rearrangement``). Windows sweep over the
schedule, those of the next sweep cut in the middle of these. Those of one round are apart and are
arranged side by side; their orders are put together, since the order of each resource is cut at the
same places. ``STEPS`` are taken in turn, the cheap ones first, and from the first again once one
has gained. A window that failed is not tried again before all steps have more time for each.

Why windows of one round do not disturb each other: every resource does its tasks group by group
(before, in and behind each window), and only the order within a window changes. A window knows the
rest by numbers: the *head* of a task (when what precedes it from outside lets it start) and its
*tail* (ticks from its end to the end of the schedule, along what follows outside). With the other
windows as they were, a window within its limit makes no longer schedule. With the others changed it
may, for tails and memory were those of the old order: so what is put together is timed anew and
checked, and dropped where it is longer or wrong (``_put_together``). No claim rests on this search.

The constants were tried on three problems (p = 4, 4, 6, v = 2, split, tight, m = 16, 18) with 3
units of work each: the makespan over the lower bound, on average, from 1.30 at first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import pairwise
from math import inf

import numpy as np

from bubbleproof.solvers.bounds import Bounds, critical_set
from bubbleproof.solvers.engines.engine import SMALL, Budget, Meter
from bubbleproof.solvers.engines.window import FOREVER, Window
from bubbleproof.solvers.memory_rules import memory_rules
from bubbleproof.solvers.starts import places, schedule_of_starts, starts_by_task
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.check import check

# Deterministic seconds of CP-SAT per task of a window, the first time: 1/10,000, 1/3,000, 1/1,000
# give 1.053, 1.053 and 1.046, so it hardly matters within a factor of three.
EACH = 1 / 3000
# Times as much, once no step has gained (2 and 4 give the same, 1.053), and up to so much.
MORE, MOST = 4, 64

TaskRow = tuple[int, int, int]  # a precedence between tasks of a window, and its lag


class Rearrangement(Enum):
    """How a window is arranged anew."""

    MERGE = "the tasks of each kind on a resource keep their order, and shorter ones are sought"
    FORWARDS = "the same, with forwards in any order"
    BACKWARDS = "the same, with backwards, or I, in any order"
    WEIGHTS = "the same, with W in any order"
    ORDER = "any order, and shorter ones are sought"
    SUM = "any order, as long at most, and shorter in sum over the ranks"


FREE = {
    Rearrangement.MERGE: frozenset[Kind](),
    Rearrangement.FORWARDS: frozenset({Kind.F}),
    Rearrangement.BACKWARDS: frozenset({Kind.B, Kind.I}),
    Rearrangement.WEIGHTS: frozenset({Kind.W}),
}
# How, and the tasks of a window.
STEPS = (
    *(
        (Rearrangement.MERGE, 120),
        (Rearrangement.ORDER, 120),
        (Rearrangement.MERGE, 240),
        (Rearrangement.SUM, 120),
    ),
    *(
        (way, 240)
        for way in (
            Rearrangement.FORWARDS,
            Rearrangement.BACKWARDS,
            Rearrangement.WEIGHTS,
            Rearrangement.ORDER,
            Rearrangement.SUM,
        )
    ),
    *((way, size) for size in (480, 960) for way in Rearrangement),
)


class WindowSearch:
    """Improves schedules of one problem."""

    def __init__(self, problem: Problem, bounds: Bounds, budget: Budget) -> None:
        self.problem, self.budget, self.edges = problem, budget, bounds.edges
        self.groups = bounds.order.groups
        rules = memory_rules(problem, bounds.order)
        self.held = [
            (held.room, np.array([(h.first, h.last, h.amount) for h in held.lifetimes]).T)
            for held in rules.held
            if held.lifetimes
        ]
        self.either: dict[int, list[tuple[int, ...]]] = {}
        for clause in rules.clauses:
            self.either.setdefault(clause.later, []).append(clause.either)
        self.ticks, self.place = problem.duration, places(problem, bounds.edges)
        self.effort = 1
        self.failed: set[int] = set()  # windows, by hash: a clash loses a window, no more

    def improve(self, schedule: Schedule, least: int = 0) -> Iterator[Schedule]:
        """Ever better schedules, down to ``least`` ticks; the given one is one of the problem.

        Parameters
        ----------
        least
            Ticks at which it ends, such as a lower bound.
        """
        start = starts_by_task(self.problem, schedule)
        for group in self.groups:  # in index order, as the edges are: as good by lemma 1
            start[group] = np.sort(start[group], axis=1)
        tails, best = self._tails(start), int((start + self.ticks).max())
        step = 0
        with ThreadPoolExecutor(self.budget.threads) as pool:
            while self.effort <= MOST and best > least:
                if step == len(STEPS) or STEPS[step][1] > 2 * self.problem.num_tasks:
                    step, self.effort = 0, self.effort * MORE
                    self.failed.clear()
                way, size = STEPS[step]
                step += 1
                for shift in (0, 1):
                    rounds = -(-(len(_cuts(start, size, shift)) - 1) // self.budget.threads)
                    for number in range(rounds):
                        if not self.budget.seconds:
                            return
                        pairs = list(pairwise(_cuts(start, size, shift)))[number::rounds]
                        found = self._arranged(start, tails, pairs, way, pool)
                        if found is None:
                            continue
                        start = starts_by_task(self.problem, found)
                        tails = self._tails(start)
                        if (value := int((start + self.ticks).max())) < best:
                            best, step = value, 0
                            yield found

    def _arranged(
        self,
        start: Ints,
        tails: Ints,
        spans: Sequence[tuple[int, int]],
        way: Rearrangement,
        pool: ThreadPoolExecutor,
    ) -> Schedule | None:
        """The schedule with the spans of time arranged anew, unless it is longer or refused."""
        # Odd groups are the windows, even ones what lies before, between and behind them.
        group = np.searchsorted(np.array(spans).ravel(), start, side="right")
        limit = int((start + self.ticks).max())
        numbers = range(1, 2 * len(spans), 2)
        windows = [self._window(start, tails, limit, group, number, way) for number in numbers]
        found = start.copy()
        meters = [Meter() for _ in windows]  # of their own: one must not see how far another is
        answers = [*pool.map(partial(self._answer, way=way), windows, meters)]
        self.budget.meter.spend(SMALL + sum(meter.units for meter in meters))
        for number, answer, window in zip(numbers, answers, windows, strict=True):
            if answer is not None:
                found[group == number] = answer
            elif window is not None:
                self.failed.add(window.key)
        if (found == start).all():
            return None
        return self._put_together(found, group, limit)

    def _answer(self, window: Window | None, meter: Meter, way: Rearrangement) -> list[int] | None:
        """Starts within the least limit; if that is refuted, in the middle of what is open."""
        from bubbleproof.solvers.engines.cpsat_window import search  # it loads OR-Tools

        if window is None:
            return None
        budget = replace(self.budget, threads=1, report=None, work=inf, meter=meter)
        work = EACH * self.effort * len(window.head)
        if way is Rearrangement.SUM:
            return search(window, budget, work, limit=None).start
        limit, longest = window.least, window.limit - 1
        while limit <= longest:
            found = search(window, budget, work, limit=limit)
            if not found.is_refuted:
                return found.start
            limit = limit + 1 if limit == longest else (limit + window.limit) // 2
        return None

    def _put_together(self, start: Ints, group: Ints, limit: int) -> Schedule | None:
        """The order of each resource by groups, then starts, as a schedule that is checked."""
        occupancy = self.problem.occupancy
        task, resource = occupancy.task, occupancy.resource
        rows = np.lexsort(
            (self.place[task], (start + self.ticks)[task], start[task], group[task], resource)
        )
        program = schedule_of_starts(self.problem, start).program
        program = replace(
            program,
            actions=self.problem.actions.take(task[rows]),
            resource=occupancy.resource[rows],
        )
        try:
            schedule = left_shift(self.problem, program)
        except UntimedProgram:
            return None
        verdict = check(self.problem, schedule)
        is_better = verdict.measured is not None and verdict.measured.makespan <= limit
        return schedule if verdict.ok and is_better else None

    def _tails(self, start: Ints) -> Ints:
        """The longest path from each task's end, the orders of all resources included."""
        occupancy = self.problem.occupancy
        task = occupancy.task
        ends = start + self.ticks
        rows = np.lexsort((self.place[task], ends[task], start[task], occupancy.resource))
        task, resource = task[rows], occupancy.resource[rows]
        follows = resource[1:] == resource[:-1]
        before = np.concatenate([self.edges.before, task[:-1][follows]])
        after = np.concatenate([self.edges.after, task[1:][follows]])
        lag = np.concatenate([self.edges.lag, np.zeros(int(follows.sum()), dtype=np.int64)])
        return acyclic_starts(self.ticks, after, before, lag)

    def _window(
        self, start: Ints, tails: Ints, limit: int, group: Ints, number: int, way: Rearrangement
    ) -> Window | None:
        """The window of one group; None where nothing can be gained.

        Heads come from edges into the window and from what its resources do before; tails from
        edges out of it and from what they do behind. A path from before to behind that misses the
        window and is as long as the schedule leaves nothing to gain.
        """
        inside, earlier, later = group == number, group < number, group > number
        tasks = np.flatnonzero(inside)
        if not len(tasks):
            return None
        place = np.full(len(start), NONE)
        place[tasks] = np.arange(len(tasks))
        edges, occupancy, ends = self.edges, self.problem.occupancy, start + self.ticks
        behind = self.ticks + tails
        head, tail = np.zeros(len(start), dtype=np.int64), np.zeros(len(start), dtype=np.int64)
        into = earlier[edges.before] & inside[edges.after]
        np.maximum.at(head, edges.after[into], (ends[edges.before] + edges.lag)[into])
        out = inside[edges.before] & later[edges.after]
        np.maximum.at(tail, edges.before[out], (behind[edges.after] + edges.lag)[out])
        past = earlier[edges.before] & later[edges.after]
        past_it = (ends[edges.before] + edges.lag + behind[edges.after])[past]
        if past_it.max(initial=0) >= limit:
            return None
        for column, side, values in ((head, earlier, ends), (tail, later, behind)):
            most = np.zeros(len(self.problem.resources), dtype=np.int64)
            rows = side[occupancy.task]
            np.maximum.at(most, occupancy.resource[rows], values[occupancy.task[rows]])
            rows = inside[occupancy.task]
            np.maximum.at(column, occupancy.task[rows], most[occupancy.resource[rows]])
        within = inside[edges.before] & inside[edges.after]
        rows = inside[occupancy.task]
        groups: dict[int, list[int]] = {}
        for task, resource in zip(
            place[occupancy.task[rows]].tolist(), occupancy.resource[rows].tolist(), strict=True
        ):
            groups.setdefault(resource, []).append(task)
        within = list(
            zip(
                place[edges.before[within]].tolist(),
                place[edges.after[within]].tolist(),
                edges.lag[within].tolist(),
                strict=True,
            )
        )
        if way in FREE:
            within += self._chains(tasks, start, groups, FREE[way])
        head, tail, least = _tightened(head[tasks], self.ticks[tasks], tail[tasks], within, groups)
        opened = int(head.min())
        key = hash(
            (way, (head - opened).tobytes(), (limit - tail - opened).tobytes(), tasks.tobytes())
        )
        if (least >= limit and way is not Rearrangement.SUM) or key in self.failed:
            return None
        return Window(
            head=head.tolist(),
            duration=self.ticks[tasks].tolist(),
            tail=tail.tolist(),
            start=start[tasks].tolist(),
            edges=within,
            groups=list(groups.values()),
            rooms=[
                (room, self._held(lifetimes, place, group, number, ends, opened))
                for room, lifetimes in self.held
            ],
            either=[
                (int(place[task]), [int(place[other]) for other in others if inside[other]])
                for task in tasks.tolist()
                for others in self.either.get(task, ())
                if not earlier[list(others)].any()
            ],
            limit=limit,
            least=least,
            key=key,
        )

    def _chains(
        self, tasks: Ints, start: Ints, groups: dict[int, list[int]], free: frozenset[Kind]
    ) -> Iterator[TaskRow]:
        """Of each resource the tasks of one kind, but for ``free`` ones, in the order they have."""
        kind, place = self.problem.actions.kind[tasks].tolist(), self.place[tasks].tolist()
        begin, end = start[tasks].tolist(), (start + self.ticks)[tasks].tolist()
        for group in groups.values():
            row = sorted(group, key=lambda t: (kind[t], begin[t], end[t], place[t]))
            yield from ((a, b, 0) for a, b in pairwise(row) if kind[a] == kind[b] not in free)

    def _held(
        self, lifetimes: Ints, place: Ints, group: Ints, number: int, ends: Ints, opened: int
    ) -> list[tuple[int, int, int]]:
        """What a store holds within the window: (first, last, units); see ``Window.rooms``."""
        first, last, amount = lifetimes
        rows = (group[first] <= number) & ((group[last] >= number) | (ends[last] > opened))
        first, last, amount = first[rows], last[rows], amount[rows]
        begin = np.where(group[first] == number, place[first], FOREVER)
        end = np.where(group[last] == number, place[last], FOREVER)
        gone = group[last] < number  # it ends within the window, though its task began before
        end[gone] = -2 - ends[last[gone]]
        return list(zip(begin.tolist(), end.tolist(), amount.tolist(), strict=True))


def _tightened(
    head: Ints, ticks: Ints, tail: Ints, edges: list[TaskRow], groups: dict[int, list[int]]
) -> tuple[Ints, Ints, int]:
    """Heads and tails over the edges of a window, and its one-machine bound on the makespan."""
    before, after, lag = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    heads = acyclic_starts(ticks, before, after, lag, head)
    tails = acyclic_starts(ticks, after, before, lag, tail)
    least = 0
    for group in groups.values():
        row = np.array(group)[np.argsort(heads[group], kind="stable")]
        columns = (heads[row].tolist(), ticks[row].tolist(), tails[row].tolist())
        least = max(least, critical_set(*columns)[0])
    return heads, tails, least


def _cuts(start: Ints, size: int, shift: int) -> list[int]:
    """Times that cut the tasks into windows of ``size`` or so, or (``shift``) halfway between."""
    places = np.arange(size // (1 + shift), len(start), size)
    inner = np.unique(np.sort(start)[places]).tolist()
    return [-1, *inner, int(start.max()) + 1]
