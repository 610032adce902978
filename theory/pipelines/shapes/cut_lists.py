"""Which cuts of a model's layers are tried: the ways that a file may name.

``even`` is the cut whose stages have as many layers each, where there is one. ``balanced`` are two:
the one whose heaviest rank takes least time, of those the one whose next takes least, and so on;
and the one of which that is true of time and of what the rank waits for. ``any`` are all cuts: so
many are looked at of those that ranks show least of, and what all others take at least is known
(``verify.candidates.other_cuts``). Beside them stands ``spread``: every cut whose stages have so
many layers more or less than the even share.

>>> [cut for cut in spread_cuts(layers=5, stages=2, spread=1)]
[(1, 4), (2, 3), (3, 2), (4, 1)]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise, permutations, product
from math import comb
from operator import ge

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
            found += balanced_cuts(layers, stage_ranks, microbatches)
        if self.is_any:
            found += shortest_cuts(layers, stage_ranks, microbatches, room)
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


def shortest_cuts(
    layers: Layers, stage_ranks: Sequence[int], microbatches: int, room: int | None
) -> list[Cut]:
    """So many cuts as are looked at, of those whose bounds are least (``cut_bounds``), least first.

    All, where there are few. Where ranks have several stages, those that are one move of a layer
    away from a balanced cut.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    microbatches
        Those of one step.
    room
        Memory units of each rank; None: without limit.
    """
    least, stages = layers.least(len(stage_ranks)), len(stage_ranks)
    spare = layers.number - sum(least)
    if spare < 0:
        return []
    if comb(spare + stages - 1, stages - 1) <= MOST_CUTS:
        left = [layers.number - sum(least[g + 1 :]) for g in range(stages)]
        ends = [(0, end) for end in left[:-1]] + [(layers.number, layers.number)]
        found = list(cuts_along(ends, least, lambda _, __: layers.number))
    elif len(set(stage_ranks)) < stages:
        found = _beside(layers, balanced_cuts(layers, stage_ranks, microbatches))
    else:
        bounds = CutBounds(
            layers=layers,
            stage_ranks=stage_ranks,
            microbatches=microbatches,
            capacity=() if room is None else (room,) * stages,
        )

        def are_many(bound: int) -> bool:
            return len(list(islice(bounds.below(bound), 1 + MOST_CUTS))) > MOST_CUTS

        most = bisect_left(range(NEVER), True, key=are_many)
        found = list(islice(bounds.below(most), MOST_CUTS))
    return sorted(found, key=lambda cut: _shown(layers, cut, stage_ranks, microbatches))[:MOST_CUTS]


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
    layers: Layers, cut: Cut, stage_ranks: Sequence[int], microbatches: int
) -> tuple[int, ...]:
    """What each rank shows that the cut takes (``cut_bounds``), the most first."""
    ticks, marks = [_ticks(row) for row in layers.sums()], layers.marks(cut)
    found: dict[int, int] = {}
    for rank, (begin, end) in zip(stage_ranks, pairwise(marks), strict=True):
        work = microbatches * (ticks[end] - ticks[begin])
        found[rank] = found.get(rank, ticks[begin]) + work
    return tuple(sorted(found.values(), reverse=True))


def balanced_cuts(layers: Layers, stage_ranks: Sequence[int], microbatches: int) -> list[Cut]:
    """The balanced cut, and that of ``microbatches`` on ranks that wait for the stages before.

    A rank computes nothing before its first stage's first forward, nor after its last backward:
    with m microbatches it is done no earlier than if each took 1 / m of that more. None where there
    are too few layers.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.
    microbatches
        Those of one step.
    """
    plain = balanced_cut(layers, stage_ranks)
    if not plain:
        return []
    ticks, marks = [_ticks(row) for row in layers.sums()], layers.marks(plain)
    first = {rank: ticks[marks[stage_ranks.index(rank)]] for rank in set(stage_ranks)}
    return [plain, balanced_cut(layers, stage_ranks, first, microbatches)]


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
    takes it: it keeps fewer microbatches. Others are dealt out as if they were alike, each stage
    then ends behind the layer that is nearest to its share of all ticks, and layers move to a stage
    beside as long as that makes the ranks lighter.

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
    ticks, cut = [_ticks(row) for row in layers.sums()], list(layers.least(len(stage_ranks)))
    number, more = layers.number, ticks[-2] - ticks[1]
    if number < sum(cut):
        return ()
    loads = [count * more for count in cut]  # all times the number of layers
    loads[0] += number * ticks[1]
    loads[-1] += number * (ticks[-1] - ticks[-2])
    of_rank = dict.fromkeys(stage_ranks, 0)
    for load, rank in zip(loads, stage_ranks, strict=True):
        of_rank[rank] += microbatches * load
    for rank, ticks_before in (waits or {}).items():
        of_rank[rank] += number * ticks_before
    own = {rank: [g for g, at in enumerate(stage_ranks) if at == rank] for rank in of_rank}
    for _ in range(number - sum(cut)):
        rank = min(of_rank, key=lambda r: (of_rank[r], -r))
        stage = min(own[rank], key=lambda g: (loads[g], -g))
        cut[stage] += 1
        loads[stage] += more
        of_rank[rank] += microbatches * more
    if len(layers.runs) == 1:
        return tuple(cut)
    return _moved(layers, _nearest(layers, cut), stage_ranks, waits or {}, microbatches)


def _nearest(layers: Layers, shares: Sequence[int]) -> list[int]:
    """Where stages begin and end: nearest to where so many layers of the mean would."""
    least, number = layers.least(len(shares)), layers.number
    ticks = [number * _ticks(row) for row in layers.sums()[1:-1]]
    each, left, found = (ticks[-1] - ticks[0]) // number, sum(least), [0]
    for share, few in zip(accumulate(shares), least, strict=True):
        left -= few
        ends, wanted = range(found[-1] + few, number - left + 1), ticks[0] + share * each
        end = bisect_left(ends, wanted, key=lambda layer: ticks[layer])
        near = ends[max(0, end - 1) : end + 1]
        found.append(min(near, key=lambda layer: abs(ticks[layer] - wanted)))
    return found


def _moved(
    layers: Layers,
    ends: list[int],
    stage_ranks: Sequence[int],
    waits: Mapping[int, int],
    microbatches: int,
) -> Cut:
    """The cut after all moves of one layer to a stage beside that make the ranks lighter."""
    least, ticks = layers.least(len(stage_ranks)), [_ticks(row) for row in layers.sums()]

    def loads(marks: Sequence[int]) -> list[int]:
        found = dict.fromkeys(stage_ranks, 0) | dict(waits)
        places = [0, *(1 + mark for mark in marks[1:-1]), len(ticks) - 1]
        for rank, (begin, end) in zip(stage_ranks, pairwise(places), strict=True):
            found[rank] += microbatches * (ticks[end] - ticks[begin])
        return sorted(found.values(), reverse=True)

    best, is_moving = loads(ends), True
    while is_moving:
        is_moving = False
        for mark, step in product(range(1, len(stage_ranks)), (-1, 1)):
            moved = [*ends[:mark], ends[mark] + step, *ends[mark + 1 :]]
            sizes = [end - begin for begin, end in pairwise(moved[mark - 1 : mark + 2])]
            fits = all(map(ge, sizes, least[mark - 1 : mark + 1]))
            if fits and (found := loads(moved)) < best:
                ends, best, is_moving = moved, found, True
    return tuple(end - begin for begin, end in pairwise(ends))


def _ticks(sums: Sequence[int]) -> int:
    return sums[0] + sums[1]  # forward and backward


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
