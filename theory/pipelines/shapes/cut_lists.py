"""Which cuts of a model's layers are tried: the ways that a file may name.

``even`` is the cut whose stages have as many layers each, where there is one. ``balanced`` are up
to three: the one whose heaviest rank takes least time, of those the one whose next takes least, and
so on; the one of which that is true of time and of what the rank waits for; and where the last
stage's rank is the heaviest of the first, that with one of its layers on the lightest rank, since
all wait for the last stage. Of unlike layers the heaviest is exact, and the next as light as moves
of one layer make it. ``any`` are all cuts: so many are looked at of those that ranks show least of,
and what all others take at least is known (``verify.candidates.other_cuts``). Beside them stands
``spread``: every cut whose stages have so many layers more or less than the even share.

>>> [cut for cut in spread_cuts(layers=5, stages=2, spread=1)]
[(1, 4), (2, 3), (3, 2), (4, 1)]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappush, heapreplace
from itertools import chain, islice, pairwise, permutations

from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER, CutBounds
from bubbleproof.theory.pipelines.shapes.layer_cuts import COUNTLESS, Cut, Layers

EVEN, BALANCED, ANY_CUT = "even", "balanced", "any"
MOST_CUTS = 100  # of those that are looked at where any is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCuts:
    """The cuts of these ``kinds``, or of a ``spread`` where it is no None."""

    kinds: tuple[str, ...] = (EVEN,)
    spread: int | None = None

    @property
    def is_uneven(self) -> bool:
        """Whether layers need not divide by the stages."""
        return self.spread is not None or self.kinds != (EVEN,)

    def number(self, layers: Layers, stages: int) -> int:
        """How many cuts there are at most, without making them.

        Parameters
        ----------
        stages
            Those of the whole pipeline.
        """
        if self.spread is None:
            return len(self.kinds) + MOST_CUTS * self.is_any
        return num_cuts(layers=layers.number, stages=stages, spread=self.spread) or 1

    @property
    def is_any(self) -> bool:
        """Whether all other cuts are meant too."""
        return ANY_CUT in self.kinds

    def cuts(
        self, layers: Layers, stage_ranks: Sequence[int], microbatches: int, room: int | None = None
    ) -> tuple[Cut, ...]:
        """Those of stages on these ranks of so much memory; none where there is none.

        Parameters
        ----------
        stage_ranks
            The rank of each stage.
        microbatches
            Those of one step.
        room
            Memory units of each rank; None: without limit.
        """
        number, stages = layers.number, len(stage_ranks)
        if self.spread is not None:
            return tuple(spread_cuts(layers=number, stages=stages, spread=self.spread))
        found = [even_cut(layers=number, stages=stages)] if EVEN in self.kinds else []
        if BALANCED in self.kinds or self.is_any:
            found += balanced_cuts(layers, stage_ranks, microbatches, room)
        if self.is_any:
            found += shortest_cuts(layers, tuple(stage_ranks), microbatches, room)
        return tuple(dict.fromkeys(cut for cut in found if cut))


def even_cut(*, layers: int, stages: int) -> Cut:
    """As many layers for each stage; empty where there is no such cut.

    Parameters
    ----------
    layers
        How many there are to deal out.
    stages
        How many stages share them, 1 or more.
    """
    each, left = divmod(layers, stages)
    return (each,) * stages if each and not left else ()


@lru_cache(maxsize=256)
def shortest_cuts(
    layers: Layers, stage_ranks: tuple[int, ...], microbatches: int, room: int | None
) -> list[Cut]:
    """So many cuts as are looked at, of those whose bounds are least (``cut_bounds``), least first.

    All, where there are few. Where ranks have several stages, those that are one move of a layer
    away from a balanced cut; none of very many stages.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    microbatches
        Those of one step.
    room
        Memory units of each rank; None: without limit.
    """
    stages = len(stage_ranks)
    bounds = CutBounds(
        layers=layers,
        stage_ranks=stage_ranks,
        microbatches=microbatches,
        capacity=() if room is None else (room,) * (1 + max(stage_ranks)),
    )
    every = replace(bounds, stage_ranks=range(stages), capacity=())
    found: list[Cut] = []
    if every.is_counted and _number_below(every, NEVER) <= MOST_CUTS:
        found = list(cuts_below(every, NEVER))
    elif bounds.is_counted:
        most = bisect_right(range(NEVER), MOST_CUTS, key=lambda most: _number_below(bounds, most))
        below = chain(cuts_below(bounds, most - 1), cuts_below(bounds, most))  # the first are few
        found = list(dict.fromkeys(islice(below, 2 * MOST_CUTS)))
    elif every.is_counted:
        found = _beside(layers, balanced_cuts(layers, stage_ranks, microbatches))
    return sorted(found, key=lambda cut: _shown(layers, cut, stage_ranks, microbatches))[:MOST_CUTS]


def cuts_below(bounds: CutBounds, bound: int) -> Iterator[Cut]:
    """The cuts that do not show the bound. Precondition: ``bounds.is_counted``.

    Parameters
    ----------
    bound
        Ticks.
    """
    ends, ways = bounds.ways(bound)

    def cuts(stage: int, first: int) -> Iterator[Cut]:
        if stage == len(ends):
            yield ()
            return
        for end in ends[stage][first]:
            if ways[stage + 1][end]:
                yield from ((end - first, *rest) for rest in cuts(stage + 1, end))

    yield from cuts(0, 0)


def _number_below(bounds: CutBounds, bound: int) -> int:
    return bounds.ways(bound)[1][0][0]


def _beside(layers: Layers, balanced: Sequence[Cut]) -> list[Cut]:
    """The cuts that have one layer of one stage in another."""
    least = layers.least(len(balanced[0]))
    return [
        tuple(count + (g == to) - (g == of) for g, count in enumerate(cut))
        for cut in balanced
        for of, to in permutations(range(len(cut)), 2)
        if cut[of] > least[of]
    ]


def _shown(
    layers: Layers,
    cut: Cut,
    stage_ranks: Sequence[int],
    microbatches: int,
    slices: int = 1,
) -> tuple[int, ...]:
    """What each rank shows that the cut takes (``cut_bounds``), the most first."""
    ticks, marks = layers.sums["ticks"], layers.marks(cut)
    found: dict[int, int] = {}
    for rank, (begin, end) in zip(stage_ranks, pairwise(marks), strict=True):
        work = microbatches * (ticks[end] - ticks[begin])
        found[rank] = found.get(rank, ticks[begin] // slices) + work
    return tuple(sorted(found.values(), reverse=True))


def balanced_cuts(
    layers: Layers, stage_ranks: Sequence[int], microbatches: int, room: int | None = None
) -> list[Cut]:
    """The balanced cut, that of ``microbatches`` on ranks that wait for the stages before, and
    where the last rank is the heaviest the first with a layer less there.

    A rank computes nothing before its first stage's first forward, nor after its last backward:
    with m microbatches it is done no earlier than if each took 1 / m of that more. The last stage
    takes each microbatch forward and back at once, and all others wait for it. None where there are
    too few layers. Of unlike layers no stage holds more than the ``room``, where that may be.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    microbatches
        Those of one step.
    room
        Memory units of each rank; None: without limit.
    """
    if layers.number < sum(layers.least(len(stage_ranks))):
        return []
    if len(layers.runs) > 1:
        waiting = CutBounds(layers=layers, stage_ranks=stage_ranks, microbatches=microbatches)
        found = [_lightest(each, room) for each in (replace(waiting, slices=NEVER), waiting)]
        return [*found, *_with_less_at_last(layers, found[0], stage_ranks)]
    plain = balanced_cut(layers, stage_ranks)
    ticks, marks = layers.sums["ticks"], layers.marks(plain)
    first = {rank: ticks[marks[stage_ranks.index(rank)]] for rank in set(stage_ranks)}
    found = [plain, balanced_cut(layers, stage_ranks, first, microbatches)]
    return [*found, *_with_less_at_last(layers, plain, stage_ranks)]


def _with_less_at_last(layers: Layers, cut: Cut, stage_ranks: Sequence[int]) -> Iterator[Cut]:
    """Where the last stage's rank is the heaviest: with one of its layers on the lightest."""
    ticks, last = layers.of_stages("ticks", cut), len(cut) - 1
    work = dict.fromkeys(stage_ranks, 0)
    for rank, each in zip(stage_ranks, ticks, strict=True):
        work[rank] += each
    is_heaviest = work[stage_ranks[last]] == max(work.values())
    if last and is_heaviest and cut[last] > layers.least(len(cut))[last]:
        to = min(range(last), key=lambda stage: (work[stage_ranks[stage]], ticks[stage]))
        yield tuple(count + (g == to) - (g == last) for g, count in enumerate(cut))


def _furthest(bounds: CutBounds, least: Cut, bound: int, room: int) -> tuple[Cut, int]:
    """Each stage as long as it shows no bound and holds no more than the room; empty where layers
    are left. No cut has fewer left: one that begins later and ends there shows and holds no more.

    Beside it the least that a stage shows with a layer more: up to there no bound has another cut.
    """
    layers, slices, m = bounds.layers, bounds.slices, bounds.microbatches
    ticks, held, number = layers.sums["ticks"], layers.sums["held"], layers.number
    found, end, rest, more = list[int](), 0, sum(least), NEVER
    for stage, few in enumerate(least):
        begin, rest = end + (stage > 0), rest - few
        waits, before = ticks[begin] // slices, ticks[begin]
        timely = bisect_left(ticks, before - (waits - bound) // m, begin)
        if timely < len(ticks):
            more = min(more, waits + m * (ticks[timely] - before))
        behind = min(timely, bisect_right(held, held[begin] + room, begin))
        behind = min(behind - 2 - (stage == len(least) - 1), number - rest)
        if behind < end + few:
            return (), more
        found.append(behind - end)
        end = behind
    return (tuple(found) if end == number else ()), more


def _lightest(bounds: CutBounds, room: int | None) -> Cut:
    """The cut whose stage that shows most shows least, after all moves of a layer to a stage beside
    that make the ranks lighter."""
    layers, stages = bounds.layers, range(len(bounds.stage_ranks))
    least, rooms = layers.least(len(stages)), NEVER if room is None else room
    found, _ = _furthest(bounds, least, NEVER, rooms)
    if not found:
        return _lightest(bounds, None)
    fewest = bounds.microbatches * layers.sums["ticks"][-1] // len(stages)  # no cut shows less
    while (most := 1 + max(_of_stages(bounds, found))) - fewest > 1:
        cut, more = _furthest(bounds, least, (fewest + most) // 2, rooms)
        found, fewest = (cut, fewest) if cut else (found, more)
    counts, is_moving = list(found), True
    ranks = _RankLoads(bounds, found)
    while is_moving:
        is_moving = False
        for of, to in [*pairwise(stages), *pairwise(reversed(stages))]:
            if counts[of] > least[of] and ranks.move(of, to, rooms):
                counts[of], counts[to], is_moving = counts[of] - 1, counts[to] + 1, True
    return tuple(counts)


def _of_stages(bounds: CutBounds, cut: Cut) -> list[int]:
    """What each stage shows that the cut takes."""
    ticks, slices, m = bounds.layers.sums["ticks"], bounds.slices, bounds.microbatches
    marks = pairwise(bounds.layers.marks(cut))
    return [ticks[begin] // slices + m * (ticks[end] - ticks[begin]) for begin, end in marks]


class _RankLoads:
    """What each rank shows that a cut takes (``_shown``), while layers move."""

    def __init__(self, bounds: CutBounds, cut: Cut) -> None:
        self.bounds, self.marks = bounds, bounds.layers.marks(cut)
        self.first: dict[int, int] = {}
        for stage, rank in enumerate(bounds.stage_ranks):
            self.first.setdefault(rank, stage)
        self.work = dict.fromkeys(self.first, 0)
        ticks = bounds.layers.sums["ticks"]
        for rank, (begin, end) in zip(bounds.stage_ranks, pairwise(self.marks), strict=True):
            self.work[rank] += ticks[end] - ticks[begin]

    def move(self, of: int, to: int, room: int) -> bool:
        """Move a layer to the stage beside where that has the room, and ranks are lighter then."""
        sums, marks, mark = self.bounds.layers.sums, self.marks, max(of, to)
        before, after = marks[mark], marks[mark] + (1 if of > to else -1)
        more = abs(sums["ticks"][after] - sums["ticks"][before])
        giver, taker = self.bounds.stage_ranks[of], self.bounds.stage_ranks[to]
        shown = sorted((self._shown(giver), self._shown(taker)), reverse=True)
        self.work[giver] -= more
        self.work[taker] += more
        marks[mark] = after
        is_full = sums["held"][marks[to + 1]] - sums["held"][marks[to]] > room
        moved = sorted((self._shown(giver), self._shown(taker)), reverse=True)
        if not is_full and moved < shown:
            return True
        self.work[giver] += more
        self.work[taker] -= more
        marks[mark] = before
        return False

    def _shown(self, rank: int) -> int:
        waits = self.bounds.layers.sums["ticks"][self.marks[self.first[rank]]] // self.bounds.slices
        return waits + self.bounds.microbatches * self.work[rank]


def balanced_cut(
    layers: Layers,
    stage_ranks: Sequence[int],
    waits: dict[int, int] | None = None,
    microbatches: int = 1,
) -> Cut:
    """The cut whose heaviest rank takes the least ticks, then its next heaviest; ``stage_ranks``
    tells the rank of each stage. Empty where there are too few layers.

    Of layers alike, giving each to the rank (and there, to the stage) that then has the least is
    exact: no cut has a rank with more layers, and less on the heaviest. Of ranks alike the last
    takes it: it keeps fewer microbatches. Others are dealt out as if they were alike.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    waits
        Ticks that each rank waits beside ``microbatches`` passes.
    microbatches
        Passes of a step, beside which ``waits`` are.

    Returns
    -------
    Cut
        The layers of each stage.

    Examples
    --------
    >>> from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart
    >>> layer, head = LayerPart(forward=1, backward=2), LayerPart(forward=3)
    >>> balanced_cut(Layers(runs=((layer, 6),), rule=NamedCuts(), head=head), (0, 1, 2))
    (2, 2, 2)
    """
    ticks, cut = layers.sums["ticks"], list(layers.least(len(stage_ranks)))
    number, more = layers.number, ticks[-2] - ticks[1]
    if number < sum(cut):
        return ()
    loads = [count * more for count in cut]  # all times the number of layers
    loads[0] += number * ticks[1]
    loads[-1] += number * (ticks[-1] - ticks[-2])
    of_rank = dict.fromkeys(stage_ranks, 0)
    own: dict[int, list[tuple[int, int]]] = {rank: [] for rank in of_rank}
    for stage, (load, rank) in enumerate(zip(loads, stage_ranks, strict=True)):
        of_rank[rank] += microbatches * load
        heappush(own[rank], (load, -stage))
    for rank, ticks_before in (waits or {}).items():
        of_rank[rank] += number * ticks_before
    heap = sorted((load, -rank) for rank, load in of_rank.items())
    for _ in range(number - sum(cut)):
        total, rank = heap[0]
        load, stage = own[-rank][0]
        cut[-stage] += 1
        heapreplace(own[-rank], (load + more, stage))
        heapreplace(heap, (total + microbatches * more, rank))
    return tuple(cut)


def spread_cuts(*, layers: int, stages: int, spread: int) -> Iterator[Cut]:
    """Every cut whose stages have a layer or more, and at most ``spread`` off the even share.

    Parameters
    ----------
    layers
        How many there are to deal out.
    stages
        How many stages share them, 1 or more.
    spread
        How many layers a stage may have beyond the even share, or below it.
    """
    low, high = share_range(layers, stages, spread)
    if not low * stages <= layers <= high * stages:
        return iter(())
    behind = range(stages - 1, -1, -1)
    ends = [(layers - high * rest, layers - low * rest) for rest in behind]
    return cuts_along(ends, (low,) * stages, lambda _, begin: begin + high)


def cuts_along(
    ends: Sequence[tuple[int, int]], least: Cut, furthest: Callable[[int, int], int]
) -> Iterator[Cut]:
    """Every cut whose stages end within ``ends``, by the number of layers up to there.

    Precondition: from every end of a stage within them there is an end of the next.

    Parameters
    ----------
    ends
        The first and the last end of each stage.
    least
        Layers that each stage has at least.
    furthest
        Where a stage ends at most that begins behind so many layers.
    """
    found = [0]
    while True:
        for (first, _), few in zip(ends[len(found) - 1 :], least[len(found) - 1 :], strict=True):
            found.append(max(first, found[-1] + few))
        yield tuple(after - before for before, after in pairwise(found))
        while len(found) > 1:
            stage, end = len(found) - 2, found.pop()
            if end < min(ends[stage][1], furthest(stage, found[-1])):
                found.append(end + 1)
                break
        else:
            return


def share_range(layers: int, stages: int, spread: int) -> tuple[int, int]:
    """The least and the most layers of a stage.

    Parameters
    ----------
    layers
        How many there are to deal out.
    stages
        How many stages share them, 1 or more.
    spread
        How many layers a stage may have beyond the even share, or below it.

    Returns
    -------
    tuple[int, int]
        The even share rounded down, less the spread but 1 at least; and rounded up, with the
        spread.
    """
    return max(1, layers // stages - spread), -(-layers // stages) + spread


def num_cuts(*, layers: int, stages: int, spread: int) -> int:
    """How many ``cuts`` there are, without making them; ``COUNTLESS`` where counting takes long.

    Parameters
    ----------
    layers
        How many there are to deal out.
    stages
        How many stages share them.
    spread
        How many layers a stage may have beyond the even share, or below it.
    """
    low, high = share_range(layers, stages, spread)
    if low * stages > layers:
        return 0
    if (high - low) * stages * layers > COUNTLESS:
        return COUNTLESS
    ways = {0: 1}
    for _ in range(stages):
        longer: dict[int, int] = {}
        for total, count in ways.items():
            for more in range(low, min(high, layers - total) + 1):
                longer[total + more] = longer.get(total + more, 0) + count
        ways = longer
    return ways.get(layers, 0)
