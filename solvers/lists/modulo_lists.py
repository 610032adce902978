"""Modulo list scheduling: schedules that repeat with every microbatch, in milliseconds.

The tasks of one microbatch are put one after another into a *period* of P ticks, each at the first
moment from its inputs on at which its resources are free, all its repetitions P ticks apart counted
(Rau 1994, "Iterative modulo scheduling", without its evictions). Microbatch j does the same j P
ticks later. Two orders of placing: along the longest path, or from its turn (the last forward)
outwards, where forwards are placed as late as what follows them allows; and with a split backward
W behind everything else, or behind its I. Periods rise from the period bound until what is held at
once fits every store, so that a tight capacity costs a longer period and not a schedule.

Why that gives schedules: two tasks of a resource, or two repetitions of one, never overlap in the
period taken as a circle, so they never overlap in time; a precedence holds for microbatch 0 and so,
all starts moved by j P, for microbatch j. What a store holds once the period has come round
(``_excess``) is what it holds at most, since while filling and draining it lacks some repetitions.

P may be a fraction, of ``GRAIN`` parts to a tick: starts rounded down keep every precedence between
whole ticks, and every order. Microbatches are taken to be alike; the checker judges whether that
was right. The work does not depend on their number.

This is no list scheduling in the sense of ``theory.orders``: nothing is ready and no time moves on.
Tasks are put, in an order given from the beginning, into places of a circle, and what stores hold
is known only when all are placed: so a period is tried as a whole, and then a longer one.

The constants were measured on 16 problems (p = 4, 6, 8 with v = 2, 3, 4, split, from tight to ample
capacities, at ticks of 1 and at 7, 9, 5): the period found over the least there can be, on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from bubbleproof.solvers.lists.stretch import first_microbatches
from bubbleproof.solvers.memory_rules import LimitedStore, behind_within_stage, lifetimes_of
from bubbleproof.solvers.starts import rows, schedule_of_starts
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import UntimedProgram, earliest_starts, left_shift

# Parts of a tick: 1, 2, 6, 12 give 1.105, 1.105, 1.111, 1.111, so it hardly matters there; halves
# and thirds are what the period bound of a store is made of.
GRAIN = 6
# A period is followed by one longer by this part of itself: 8, 32, 64, 128, 512 give 1.165, 1.115,
# 1.111, 1.105, 1.105 with 7, 17, 28, 49 and 114 thousand tasks placed.
STEP = 64
LONGEST = 4  # times the work of the busiest resource: beyond, nothing overlaps
# In local search a period is followed by one shorter by this part of itself: 10, 100 and 1000 give
# 1.089, 1.090 and 1.094 where 20,000 tasks are placed for each period.
SHORTER = 100
MOST_PLACED = 100_000  # tasks placed for one period, about a third of a second
FULL = 1 << 60  # more units than any store has
PLACED = 3e-6  # units of work for each task that is placed
MOST_TASKS = 2_000  # of one microbatch
TriedOrder = tuple[list[int], frozenset[int]]  # the order of placing, and what is placed late
Stay = tuple[int, Ints, Ints, Ints]  # room; first and last tasks, and units, of what is held


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """Starts of one microbatch (``GRAIN`` parts of ticks), repeated every ``period`` parts.

    ``members[c, j]`` is the task of microbatch j that is named as the c-th of microbatch 0.
    """

    members: Ints
    period: int
    starts: Ints
    way: TriedOrder

    @property
    def rate(self) -> Fraction:
        """Ticks per microbatch."""
        return Fraction(self.period, GRAIN)


class ModuloLists:
    """The placements of one problem's microbatch."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.few = problem, first_microbatches(problem, 1)
        self.placed = 0  # tasks
        self.best: Turn | None = None  # of all that were given the one of the shortest period
        self.ticks: list[int] = (self.few.duration * GRAIN).tolist()
        count = self.few.num_tasks
        self.resources: list[list[int]] = [[] for _ in range(count)]
        for task, resource in zip(
            self.few.occupancy.task.tolist(), self.few.occupancy.resource.tolist(), strict=True
        ):
            self.resources[task].append(resource)
        self.before: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for before, after, lag in rows(self.few.edges):
            self.before[after].append((before, lag * GRAIN))
            self.after[before].append((after, lag * GRAIN))

    @property
    def rate(self) -> Fraction | None:
        """The least ticks per microbatch of any schedule given."""
        return None if self.best is None else self.best.rate

    @property
    def work(self) -> float:
        """Units of work done."""
        return PLACED * self.placed

    @cached_property
    def members(self) -> Ints | None:
        """``[c, j]``: the task of microbatch j that is named as the c-th of microbatch 0."""
        actions = self.problem.actions
        names = actions.part, actions.slice, actions.stage, actions.kind
        tasks, count = np.lexsort((actions.microbatch, *names)), self.few.num_tasks
        if not count or len(tasks) % count or (actions.partner_stage != NONE).any():
            return None
        members = tasks.reshape(count, -1)
        index = np.arange(members.shape[1])
        same = all((column[members] == column[members[:, :1]]).all() for column in names)
        return members if same and (actions.microbatch[members] == index).all() else None

    @cached_property
    def heads(self) -> list[int] | None:
        edges = self.few.edges
        heads = earliest_starts(self.few.duration, edges.before, edges.after, edges.lag)
        return None if heads is None else heads.tolist()

    @cached_property
    def stays(self) -> list[Stay] | None:
        """What one microbatch holds in each store with a capacity; None for other shapes."""
        behind, found = behind_within_stage(self.few), list[Stay]()
        count = int(self.problem.actions.microbatch.max(initial=0)) + 1
        for number, store in enumerate(self.few.stores):
            if store.capacity is None:
                continue
            held = lifetimes_of(self.few, number, behind)
            if held is None:
                return None
            room = store.capacity - store.base
            coarse = LimitedStore(store=number, room=room, lifetimes=held).coarse(count)
            table = np.array([(h.first, h.last, h.amount) for h in coarse.lifetimes])
            if len(table):
                found.append((coarse.room, *table.T))
        return found

    @cached_property
    def least(self) -> int:
        """A period below which the work of some resource, or what a store holds, is too much."""
        occupancy = self.few.occupancy
        work = np.bincount(occupancy.resource, self.few.duration[occupancy.task])
        least = max(1, int(work.max())) * GRAIN
        heads = np.array(self.heads)
        for room, first, last, amount in self.stays or ():
            stay = heads[last] + self.few.duration[last] - heads[first]
            least = max(least, -(-int((stay * amount).sum()) * GRAIN // max(room, 1)))
        return least

    def schedules(
        self, *, is_brief: bool = False, is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[Schedule]:
        """Those of all turns and of the best one shortened, as they are and left-shifted.

        Parameters
        ----------
        is_brief
            Whether only the first turn is wanted, which has the shortest period but for what is
            shortened.
        is_over
            Whether no more time is to be spent on a shorter one.
        """
        best: Turn | None = None
        for turn in self.turns():
            best = best or turn
            yield from self._told(turn)
            if is_brief:
                return
        if best is not None and (shorter := self.shortened(best, is_over=is_over)) is not best:
            yield from self._told(shorter)

    def _told(self, turn: Turn) -> Iterator[Schedule]:
        if self.best is None or turn.period < self.best.period:
            self.best = turn
        schedule = self.schedule(turn)
        yield schedule
        with suppress(UntimedProgram):  # microbatches that are not alike, or ordered among them
            yield left_shift(self.problem, schedule.program)

    def turns(self) -> Iterator[Turn]:
        """For each way of placing, from the first period on that fits, up to ``STEP``th parts."""
        heads, members = self.heads, self.members
        if heads is None or self.stays is None or members is None:
            return
        if self.few.num_tasks > MOST_TASKS:
            return
        ways = list(self._ways(heads))
        period, longest = self.least, LONGEST * self.least + max(self.ticks) * len(self.ticks)
        while ways and period <= longest:
            for way in [*ways]:
                starts = self._placed(period, way)
                if starts is not None and self._excess(starts, period) == (0, 0):
                    ways.remove(way)
                    yield Turn(members=members, period=period, starts=starts, way=way)
            period += max(1, period // STEP)

    def shortened(
        self, turn: Turn, most: int = MOST_PLACED, is_over: Callable[[], bool] = lambda: False
    ) -> Turn:
        """A turn of shorter period, by local search: some tasks are placed later than they could.

        The period is made shorter by a ``SHORTER``th part; then delays are changed, one to three at
        a time, as long as the stores do not exceed their room by more, until they fit. It ends
        where as many as ``most`` tasks were placed for one period.

        Parameters
        ----------
        most
            Tasks that are placed for one period.
        is_over
            Whether to end with what is found.
        """
        rng, delays = Random(0), [0] * len(self.ticks)
        while (
            period := max(self.least, turn.period - max(1, turn.period // SHORTER))
        ) < turn.period:
            end, starts = self.placed + most, self._placed(period, turn.way, delays)
            excess = (FULL, 0) if starts is None else self._excess(starts, period)
            while excess != (0, 0) and self.placed < end and not is_over():
                changed = delays.copy()
                for task in rng.choices(range(len(delays)), k=rng.choice((1, 1, 2, 3))):
                    is_reset = changed[task] and rng.random() < 0.5
                    changed[task] = 0 if is_reset else rng.randrange(period // 2)
                placed = self._placed(period, turn.way, changed)
                if placed is not None and (found := self._excess(placed, period)) <= excess:
                    starts, delays, excess = placed, changed, found
            if starts is None or excess != (0, 0):
                return turn
            turn = replace(turn, period=period, starts=starts)
        return turn

    def schedule(self, turn: Turn) -> Schedule:
        """All microbatches, for the checker to judge. Precondition: ``turn`` is one of these."""
        members = turn.members
        place = np.cumsum(self.problem.actions.microbatch == 0) - 1
        shift = turn.period * np.arange(members.shape[1])
        start = np.empty(self.problem.num_tasks, dtype=np.int64)
        start[members] = (turn.starts[place[members[:, 0]], None] + shift) // GRAIN
        return schedule_of_starts(self.problem, start)

    def _ways(self, heads: list[int]) -> Iterator[TriedOrder]:
        kind = self.few.actions.kind
        along = sorted(range(len(heads)), key=lambda task: (heads[task], task))
        weights = [task for task in along if kind[task] == Kind.W]
        spine = [task for task in along if kind[task] != Kind.W]
        forwards = [task for task in along if kind[task] == Kind.F]
        late, middle = frozenset[int](), 0
        if forwards:
            late, middle = self._up_to(forwards[-1]), heads[forwards[-1]]
        nested = sorted(spine, key=lambda task: (abs(heads[task] - middle), task in late))
        for order, last in ((spine, frozenset[int]()), (nested, late)):
            yield [*order, *weights], last
            if weights:
                yield self._with_weights(order, weights), last

    def _up_to(self, last: int) -> frozenset[int]:
        """The task and all that it waits for."""
        found, fresh = {last}, [last]
        while fresh:
            earlier = [task for task, _ in self.before[fresh.pop()] if task not in found]
            found.update(earlier)
            fresh += earlier
        return frozenset(found)

    def _with_weights(self, order: Sequence[int], weights: list[int]) -> list[int]:
        """Each W behind the last task that it waits for."""
        place = {task: number for number, task in enumerate(order)}
        behind: dict[int, list[int]] = {}
        for task in weights:
            inputs = [place[t] for t, _ in self.before[task] if t in place]
            behind.setdefault(max(inputs, default=len(order) - 1), []).append(task)
        return [t for number, task in enumerate(order) for t in (task, *behind.get(number, ()))]

    def _placed(
        self, period: int, way: TriedOrder, delays: Sequence[int] | None = None
    ) -> Ints | None:
        """Starts, the first at 0; None where some task finds no room in the period."""
        order, late = way
        delays = delays or [0] * len(order)
        self.placed += len(order)
        taken: list[list[tuple[int, int]]] = [[] for _ in self.few.resources]
        start: dict[int, int] = {}
        for task in order:
            size, is_late = self.ticks[task], task in late
            if is_late:
                known = (start[t] - lag for t, lag in self.after[task] if t in start)
                wanted = min(known, default=0) - size - delays[task]
            else:
                inputs = self.before[task]
                known = (start[t] + self.ticks[t] + lag for t, lag in inputs if t in start)
                wanted = max(known, default=0) + delays[task]
            used = [taken[resource] for resource in self.resources[task]]
            found = _free(used, wanted, size, period, is_late=is_late)
            if found is None:
                return None
            start[task] = found
            for row in used:
                row.append((found % period, size))
        starts = np.array([start[task] for task in range(len(start))], dtype=np.int64)
        return np.asarray(starts - starts.min() // GRAIN * GRAIN, dtype=np.int64)

    def _excess(self, starts: Ints, period: int) -> tuple[int, int]:
        """By how much stores are too full once the period has come round: at worst, on average."""
        worst, average = 0, 0
        ends = starts + np.array(self.ticks)
        # Of all repetitions of [begin, end), one every period, as many hold at a moment t as
        # floor((t - begin) / period) - floor((t - end) / period). The load is greatest at a start.
        for room, first, last, amount in self.stays or ():
            begin, end = starts[first], ends[last]
            at = begin[:, None]
            load = ((at - begin) // period - (at - end) // period) @ amount
            worst += max(0, int(load.max()) - room)
            average += max(0, int((end - begin) @ amount) - room * period)
        return worst, average


def _free(
    used: list[list[tuple[int, int]]], wanted: int, size: int, period: int, *, is_late: bool
) -> int | None:
    """The first moment from ``wanted`` on (or the last up to it) free in all rows, if any."""
    if size > period:
        return None
    moment, is_free = wanted, False
    while not is_free:
        is_free = True
        for row in used:
            for begin, length in row:
                # On the circle of one period: it begins within a row that is taken, or one begins
                # within it. Then it moves past that one; once round there is no room at all.
                if (moment - begin) % period < length or (begin - moment) % period < size:
                    if is_late:
                        moment -= (moment + size - begin) % period or period
                    else:
                        moment += (begin + length - moment) % period or period
                    is_free = False
                    if abs(moment - wanted) >= period:
                        return None
    return moment
