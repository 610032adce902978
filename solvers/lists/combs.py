"""Combs: schedules of long pipelines that repeat, a few ranks at a time from the last upwards.

On each rank n forwards and n backwards (and W) repeat every P ticks. What leaves a block of a few
ranks towards the one above are two *combs*: the starts of its forwards and the ends of its
backwards, modulo P. So the block above is a small problem of its own (``engines.cpsat_block``), and
where the combs are those that left an earlier block, the answer is that one's, moved. The work is
that of a few blocks, whatever the number of ranks and of microbatches.

A *lane* is one forward of the last rank with all that lead to it, or one backward with all that
follow. Microbatch j of v chunks takes lane v j + o_c down and v j + u_c up for chunk c: the o_c,
and the u_c, differ modulo v, and each is the first that begins when the chunk before has come
round. What a lane waits is held by every chunk before it too. So patterns are also sought in which
lane k is of chunk k modulo v alone, and one may pass another: the first chunk then waits for all.

Where memory does not allow that, h of m + h microbatches are left out, evenly; the fewest that do
are found by halving. The schedule is left-shifted, which fills the ramps at its ends: the order on
each rank remains, and with it what is held.

Periods are compared by ticks per microbatch: v P / n, or what a microbatch takes of a store
(units times ticks) over the store's room, whichever is more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from bubbleproof.solvers.engines.cycle import Block
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.lists.modulo_lists import GRAIN, ModuloLists
from bubbleproof.solvers.starts import shifted
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.schedule import Schedule

LEAST_RANKS = 4  # below, other methods see the pipeline as a whole
MOST_TASKS = 9  # of a rank in a period, and of a microbatch in a block
# Of a block whose lanes are of unlike chunks: 16, 24 and 32 hold as much (64 ranks, four chunks),
# in 0.3, 1 and 2 units of work. Of two chunks, or on 8 ranks, lanes that are alike did as well.
UNLIKE_TASKS = 16
LEAST_UNLIKE = 3
MOST_COUNT = 4  # microbatches of a period
LONG = 32  # ranks: from here on one task and one microbatch more save what they cost
LONGEST = Fraction(6, 5)  # times what a rank's work or memory asks for
PARTS = 8  # of the periods between, that are looked at first
MOST_TICKS = 10_000  # of a task or lag, in units that divide them all
WORK = 0.5  # deterministic seconds of CP-SAT for a block
RIDDEN = 2e-7  # units of work for each task that is put into a lane
SEARCHING = 0.8  # of the time, for periods; the rest is for lanes
SEEN = 2  # blocks after which what is held on rank 0 is foreseen
WORSE = 1  # periods in turn that bring nothing, until those of more microbatches are tried
GAIN = Fraction(1, 100)  # of the ticks per microbatch, that a longer search is to bring


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A loop of ranks whose chunks are alike, in units of ``unit`` ticks.

    ``rows[kind, c, r]`` is the task of microbatch 0; ``ticks[r]`` are those of each kind, ``down``
    and ``up`` the lags of the links behind the ranks, the last one's for chunks that come round.
    """

    rows: Ints
    ticks: tuple[tuple[int, ...], ...]
    down: tuple[int, ...]
    up: tuple[int, ...]
    unit: int

    @property
    def chunks(self) -> int:
        return int(self.rows.shape[1])


def line_of(lists: ModuloLists) -> Line | None:
    """The loop that a problem is; None for another shape, or fewer microbatches than ranks."""
    few, kinds = lists.few, _kinds(lists)
    tasks, ranks = few.num_tasks, few.num_ranks
    if kinds is None or tasks % (len(kinds) * ranks):
        return None
    order = np.lexsort((few.actions.stage, few.actions.kind))
    rows = order.reshape(len(kinds), -1, ranks)
    stages = np.arange(rows[0].size).reshape(rows[0].shape)
    alone = all(lists.resources[t] == [r] for r in range(ranks) for t in rows[:, :, r].flat)
    ticks = few.duration[rows]
    if not alone or (few.actions.stage[rows] != stages).any() or (ticks != ticks[:, :1]).any():
        return None
    edges = few.edges
    pairs = zip(edges.before.tolist(), edges.after.tolist(), strict=True)
    lag_of = dict(zip(pairs, edges.lag.tolist(), strict=True))
    forward, backward = rows[0].ravel().tolist(), rows[1].ravel().tolist()
    down = [lag_of.get(pair) for pair in pairwise(forward)]
    up = [lag_of.get((after, before)) for before, after in pairwise(backward)]
    lags = [lag for lag in (*down, *up) if lag is not None]
    unit = math.gcd(*ticks.ravel().tolist(), *lags)
    numbers = [*ticks.ravel().tolist(), *lags]
    is_passed = len(lags) == len(down) + len(up)
    if not is_passed or min(numbers) < 0 or not 0 < max(numbers) <= MOST_TICKS * unit:
        return None
    return Line(
        rows=rows,
        ticks=tuple(map(tuple, (ticks[:, 0].T // unit).tolist())),
        down=_by_rank(lags[: len(down)], ranks, unit),
        up=_by_rank(lags[len(down) :], ranks, unit),
        unit=unit,
    )


def _kinds(lists: ModuloLists) -> list[int] | None:
    """F and B, or F, I and W, where there is nothing else and what they hold is known."""
    if lists.heads is None or lists.members is None:
        return None
    if lists.members.shape[1] < lists.few.num_ranks:
        return None
    kinds: list[int] = np.unique(lists.few.actions.kind).tolist()
    is_meant = kinds in ([Kind.F, Kind.B], [Kind.F, Kind.I, Kind.W])
    return kinds if is_meant and lists.stays is not None else None


def _by_rank(lags: list[int], ranks: int, unit: int) -> tuple[int, ...]:
    """The longest lag of each rank's link, over chunks; 0 for one that nothing passes."""
    return tuple(max(lags[rank::ranks], default=0) // unit for rank in range(ranks))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """Starts ``[r, kind, k]`` of the n microbatches of a period of ``ticks``.

    ``chunks``: as many lanes as chunks, each of the chunk of its number; 1 where any is of any.
    """

    starts: Ints
    ticks: int
    chunks: int = 1

    def at(self, rank: int, kind: int, lane: Ints) -> Ints:
        """Starts of lanes, numbered on from those of the first period.

        Parameters
        ----------
        rank, kind
            Which of ``starts``.
        lane
            Numbers of microbatches.
        """
        return _at(self.starts[rank, kind], lane, self.ticks)


class Combs:
    """The schedules of one problem that are made of combs."""

    def __init__(self, lists: ModuloLists, line: Line, budget: Budget) -> None:
        if lists.members is None or lists.stays is None:
            raise ValueError("the lists have no microbatches alike")
        self.problem, self.line, self.budget = lists.problem, line, budget
        self.searching = budget.part(SEARCHING)
        self.members, self.stays = lists.members, lists.stays
        self.known = None if lists.rate is None else lists.rate / line.unit  # of a schedule
        self.least = Fraction(lists.least, GRAIN * line.unit * line.chunks)
        more = int(len(line.ticks) >= LONG)
        self.size = (MOST_TASKS + more) // len(line.rows)  # ranks of a block
        self.most_count = min(MOST_COUNT + more, self.size)
        place = np.cumsum(self.problem.actions.microbatch == 0) - 1
        self.place = place[self.members[:, 0]]
        self.few_ticks = lists.few.duration
        self.found: dict[tuple[Block, int], Ints | None] = {}

    def schedules(self) -> Iterator[Schedule]:
        """That of the best period for each number of microbatches, for the checker to judge.

        The shortest periods come first: of many tasks a check takes as long as finding some.
        """
        best, patterns = self.known, list[Pattern]()
        # With time enough more are as good as fewer, or better.
        alike = [(number, 1) for number in (2, *range(self.most_count, 2, -1))]
        for number, unlike in ((1, 1), *self._unlike(), *alike):
            chosen = self._best(number, best, unlike)
            if chosen is not None:
                best, pattern = chosen
                patterns.append(pattern)
        for pattern in reversed(patterns):
            yield from self._told(pattern)

    def _unlike(self) -> list[tuple[int, int]]:
        """The lanes of a period, and as many chunks, where lanes of unlike chunks may gain."""
        chunks, most = self.line.chunks, UNLIKE_TASKS // len(self.line.rows)
        is_long = len(self.line.ticks) >= LONG
        return [(chunks, chunks)] if is_long and LEAST_UNLIKE <= chunks <= most else []

    def _best(
        self, number: int, best: Fraction | None, unlike: int = 1
    ) -> tuple[Fraction, Pattern] | None:
        """The best pattern of so many microbatches and its rate, which is less than ``best``.

        Periods are shortened as long as that brings something, in steps that are halved.
        """
        least, chunks = max(1, number * max(map(sum, self.line.ticks))), self.line.chunks
        most, chosen, seen = int(LONGEST * self.least * number), None, set[int]()
        if best is not None:
            wanted = best * (1 - GAIN) if number > MOST_COUNT else best
            most = min(most, math.ceil(wanted * number / chunks) - 1)
        step = max(1, (most - least) // PARTS)
        best_ticks = most
        while step:
            worse, ticks = 0, min(most, best_ticks + step)
            while ticks >= least and worse <= WORSE and self.searching.seconds:
                if ticks not in seen:
                    seen.add(ticks)
                    pattern, worse = self.pattern(number, ticks, best, unlike), worse + 1
                    if pattern is not None and (best is None or self.rate(pattern) < best):
                        best, best_ticks, worse = self.rate(pattern), ticks, 0
                        chosen = best, pattern
                ticks -= step
            step //= 2
        return chosen

    def _told(self, pattern: Pattern) -> Iterator[Schedule]:
        start = self.within_memory(pattern)
        if start is not None:
            full = np.empty(self.problem.num_tasks, dtype=np.int64)
            full[self.members] = start[self.place] * self.line.unit
            yield from shifted(self.problem, full)

    def pattern(
        self, number: int, ticks: int, best: Fraction | None = None, unlike: int = 1
    ) -> Pattern | None:
        """So many microbatches in a period of ``ticks``, block by block, if found.

        Parameters
        ----------
        number
            Microbatches of a period, 1 or more.
        ticks
            Of a period, at least the work of every rank.
        best
            Ticks per microbatch to stay below, as far as can be foreseen; None for any.
        unlike
            The chunks that lanes are of, as many as ``number``; 1 where any is of any.
        """
        line, ranks, lives = self.line, len(self.line.ticks), [Fraction(0)]
        starts = np.empty((ranks, len(line.rows), number), dtype=np.int64)
        size = self.size if unlike == 1 else UNLIKE_TASKS // (number * len(line.rows))
        for last in range(ranks, 0, -size):
            first = max(0, last - size)
            found = self._placed(starts[last:], first, last, ticks, number, unlike)
            if found is None:
                return None
            starts[first:last] = found
            lives.append(_life(starts[first:], unlike))
            if best is not None and len(lives) > SEEN:
                foreseen = lives[-1] + (lives[-1] - lives[-2]) * Fraction(first, size)
                if self._held(foreseen) >= best:
                    return None
        return Pattern(starts=starts, ticks=ticks, chunks=unlike)

    def _held(self, life: Fraction) -> Fraction:
        """Ticks per microbatch that memory allows, of such a time from F to B on rank 0."""
        held = max(
            (Fraction(int(a.sum()), max(1, room)) for room, _, _, a in self.stays), default=0
        )
        return held * life * Fraction(self.line.chunks + 1, 2)

    def _placed(
        self, behind: Ints, first: int, last: int, ticks: int, number: int, unlike: int
    ) -> Ints | None:
        """Starts of the ranks from ``first`` to ``last`` - 1, given those behind them."""
        line, below, moved, turned = self.line, None, 0, 0
        lanes, turns = np.arange(number), np.zeros((2, number), dtype=np.int64)
        if len(behind):
            moved = int(behind[0, 0, 0])
            ends = behind[0, 1] + line.ticks[last][1] - moved
            if unlike > 1:  # how often the period has come round matters to no lane
                turns, passed = np.divmod([behind[0, 0] - moved, ends], ticks)
                below = tuple(passed[0].tolist()), tuple(passed[1].tolist())
            else:
                # Backwards are counted from the first that ends once the first forward has begun.
                turned = -number * int(ends[0] // ticks)
                while _at(ends, lanes[:1] + turned - 1, ticks) >= 0:
                    turned -= 1
                ends = _at(ends, lanes + turned, ticks)
                below = tuple((behind[0, 0] - moved).tolist()), tuple(ends.tolist())
        part = slice(first, last)
        block = Block(
            ticks=line.ticks[part],
            down=line.down[part],
            up=line.up[part],
            count=number,
            below=below,
            is_first=not first,
            chunks=unlike,
        )
        if (block, ticks) not in self.found:
            self.found[block, ticks] = _solved(block, ticks, self.searching)
        found = self.found[block, ticks]
        if found is None:
            return None
        rows = [
            [
                _at(row, lanes - (turned if kind else 0), ticks) + turns[min(kind, 1)] * ticks
                for kind, row in enumerate(rank)
            ]
            for rank in found
        ]
        return np.array(rows) + moved

    def starts(self, pattern: Pattern, base: Ints) -> Ints:
        """Starts ``[task of microbatch 0, j]`` of microbatches in lanes from v ``base[j]`` on.

        Parameters
        ----------
        base
            Numbers of lanes, one a microbatch.
        """
        self.budget.meter.spend(RIDDEN * self.line.rows.size * len(base))
        rows, chunks = self.line.rows, self.line.chunks
        start = np.empty((rows.size, len(base)), dtype=np.int64)
        for chunk, (down, up) in enumerate(self.lanes(pattern)):
            for kind, rank in np.ndindex(rows.shape[0], rows.shape[2]):
                lane = chunks * base + (up if kind else down)
                start[rows[kind, chunk, rank]] = pattern.at(rank, kind, lane)
        return np.asarray(start - start.min(), dtype=np.int64)

    def lanes(self, pattern: Pattern) -> list[tuple[int, int]]:
        """The lanes down and up of each chunk of the first microbatch."""
        chunks, line = self.line.chunks, self.line
        last, number = len(line.ticks) - 1, pattern.starts.shape[2]
        each = np.arange(number)
        ends = pattern.at(last, 0, each) + line.ticks[last][0] + line.down[last]
        returns = pattern.at(0, 1, each) + line.ticks[0][1] + line.up[last]
        begins, ticks = pattern.starts, pattern.ticks
        if pattern.chunks > 1:
            down = _own_lanes(ends, begins[0, 0], [*range(chunks)], ticks)
            back = [down[-1], *reversed(range(chunks - 1))]
            up = _own_lanes(returns, begins[last, 1], back, ticks)
        else:
            down = _lanes(ends, begins[0, 0], chunks, 0, ticks)
            up = _lanes(returns, begins[last, 1], chunks, down[-1], ticks)
        return list(zip(down, reversed(up), strict=True))

    def rate(self, pattern: Pattern) -> Fraction:
        """Ticks per microbatch that its period and the memory allow."""
        number = pattern.starts.shape[2]
        start = self.starts(pattern, np.arange(number))
        rate = Fraction(self.line.chunks * pattern.ticks, number)
        for room, first, last, amount in self.stays:
            stay = start[last] + self._ticks(last) - start[first]
            rate = max(rate, Fraction(int(amount @ stay.sum(axis=1)), number * max(1, room)))
        return rate

    def within_memory(self, pattern: Pattern) -> Ints | None:
        """Starts of all microbatches, as few left out between them as memory asks."""
        index = np.arange(self.members.shape[1])
        low, high, best = 0, len(index), None
        while low < high and self.budget.seconds:
            left_out = (low + high) // 2 if best is not None or low else 0
            start = self.starts(pattern, index + index * left_out // len(index))
            if self.is_within(start):
                high, best = left_out, start
            else:
                low = left_out + 1
        return best

    def is_within(self, start: Ints) -> bool:
        """Whether no store is ever too full.

        Parameters
        ----------
        start
            Ticks, by task and microbatch.
        """
        for room, first, last, amount in self.stays:
            ends = start[last] + self._ticks(last)
            moments = np.concatenate([ends.ravel(), start[first].ravel()])
            units = np.repeat(amount, start.shape[1])
            changes = np.concatenate([-units, units])
            if changes[np.argsort(moments, kind="stable")].cumsum().max(initial=0) > room:
                return False
        return True

    def _ticks(self, tasks: Ints) -> Ints:
        return np.asarray(self.few_ticks[tasks][:, None] // self.line.unit, dtype=np.int64)


def _at(row: Ints, lane: Ints, ticks: int) -> Ints:
    """Starts of lanes, numbered on from those of the first period, which are ``row``."""
    turns, place = np.divmod(lane, len(row))
    return np.asarray(row[place] + turns * ticks, dtype=np.int64)


def _lanes(ends: Ints, begins: Ints, chunks: int, lane: int, ticks: int) -> list[int]:
    """A lane for each chunk, from ``lane`` on, of other residues modulo ``chunks``.

    A chunk in lane k has come round at ``ends[k]``; lanes begin at ``begins``.
    """
    each = np.arange(len(ends))
    round_trip = len(ends) * (int((ends - begins).max()) // ticks)
    while (_at(begins, each + round_trip, ticks) < ends).any():
        round_trip += 1
    found = [lane]
    for _ in range(chunks - 1):
        lane += round_trip
        while lane % chunks in {taken % chunks for taken in found}:
            lane += 1
        found.append(lane)
    return found


def _own_lanes(ends: Ints, begins: Ints, places: list[int], ticks: int) -> list[int]:
    """A lane for each chunk in turn: the first of ``places``, and in those of the others.

    A chunk in lane k has come round at ``ends[k]``; lanes begin at ``begins``.
    """
    found = places[:1]
    for place in places[1:]:
        end = int(_at(ends, np.array(found[-1:]), ticks)[0])
        found.append(place - len(ends) * ((int(begins[place]) - end) // ticks))
    return found


def _life(starts: Ints, chunks: int) -> Fraction:
    """The ticks from F to B on the first of these ranks, on average over what chunks hold.

    Parameters
    ----------
    starts
        Of a ``Pattern``, from some rank to the last.
    chunks
        Of the pattern: what one that comes round does on the last rank is not counted.
    """
    shares = 1 + np.arange(starts.shape[2]) % chunks
    apart = starts[0, 1] - starts[0, 0] - (shares % chunks > 0) * (starts[-1, 1] - starts[-1, 0])
    return Fraction(int(shares @ apart), int(shares.sum()))


def _solved(block: Block, ticks: int, budget: Budget) -> Ints | None:
    """Starts by CP-SAT, which is loaded here: most problems need none of it."""
    from bubbleproof.solvers.engines.cpsat_block import search

    return search(block, ticks, replace(budget, threads=1), WORK)


def line_with_combs(lists: ModuloLists) -> Line | None:
    """The loop that a problem is, where it is long enough for combs."""
    return line_of(lists) if lists.few.num_ranks >= LEAST_RANKS else None


def comb_schedules(lists: ModuloLists, budget: Budget) -> Iterator[Schedule]:
    """Those of a long loop with at least as many microbatches as ranks; none of another problem.

    Parameters
    ----------
    lists
        The problem, with what its first microbatch is.
    """
    if (line := line_with_combs(lists)) is not None:
        yield from Combs(lists, line, budget).schedules()
