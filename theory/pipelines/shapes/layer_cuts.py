"""A model as layers: what a stage takes and holds that computes so many of them.

All layers of a model are alike; the embedding before the first and the head after the last take and
hold something of their own. A *cut* tells how many layers each stage has, in stage order: stage g
of n takes ``cut[g]`` times what a layer does, stage 0 the embedding beside, stage n-1 the head.
``even`` is the cut whose stages have as many layers each, where there is one; ``balanced`` the one
whose heaviest rank takes least time, of those the one whose next takes least, and so on.

>>> [cut for cut in cuts(layers=5, stages=2, spread=1)]
[(1, 4), (2, 3), (3, 2), (4, 1)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

Cut = tuple[int, ...]
EVEN, BALANCED = "even", "balanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPart:
    """Ticks of each action of one layer, embedding or head, and memory units of one microbatch.

    ``static`` are weights and optimizer state; ``released`` the part of ``activation`` that a split
    backward gives back after its input part.
    """

    forward: int = 0
    backward: int = 0
    input_backward: int = 0
    weight_backward: int = 0
    activation: int = 0
    released: int = 0
    static: int = 0


PARTS = tuple(field.name for field in fields(LayerPart))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """``number`` layers alike, the embedding before them and the head behind.

    ``spread``: how many layers a stage may have more or less than the even cut; None for the cuts
    of ``kinds`` alone.
    """

    number: int
    layer: LayerPart
    embedding: LayerPart = LayerPart()
    head: LayerPart = LayerPart()
    spread: int | None = None
    kinds: tuple[str, ...] = (EVEN,)

    def stage(self, cut: Cut, stage: int) -> LayerPart:
        """What a stage of the cut takes and holds.

        Parameters
        ----------
        stage
            The stage's number, from 0 to ``len(cut) - 1``.

        Returns
        -------
        LayerPart
            Ticks and units of memory of all its layers, with the embedding in stage 0 and the head
            in the last one.
        """
        sums = {}
        for name in PARTS:
            sums[name] = cut[stage] * getattr(self.layer, name)
            if stage == 0:
                sums[name] += getattr(self.embedding, name)
            if stage == len(cut) - 1:
                sums[name] += getattr(self.head, name)
        return LayerPart(**sums)


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


def balanced_cut(layers: Layers, stage_ranks: Sequence[int]) -> Cut:
    """The cut whose heaviest rank takes the least ticks, then its next heaviest; ``stage_ranks``
    tells the rank of each stage. Empty where there are less layers than stages.

    Layers are alike, so that giving each to the rank (and there, to the stage) that then has the
    least is exact: no cut has a rank with more layers, and less on the heaviest. Of ranks alike the
    last takes it: it keeps fewer microbatches.

    Parameters
    ----------
    stage_ranks
        The rank of each stage.

    Returns
    -------
    Cut
        The layers of each stage, 1 or more.

    Examples
    --------
    >>> model = Layers(number=6, layer=LayerPart(forward=1, backward=2), head=LayerPart(forward=3))
    >>> balanced_cut(model, (0, 1, 2))
    (2, 2, 2)
    """
    stages = len(stage_ranks)
    if layers.number < stages:
        return ()
    cut = [1] * stages
    loads = [_ticks(layers.stage((1,) * stages, stage)) for stage in range(stages)]
    more = _ticks(layers.layer)
    of_rank: dict[int, int] = {}
    for load, rank in zip(loads, stage_ranks, strict=True):
        of_rank[rank] = of_rank.get(rank, 0) + load
    own = {rank: [g for g, at in enumerate(stage_ranks) if at == rank] for rank in of_rank}
    for _ in range(layers.number - stages):
        rank = min(of_rank, key=lambda r: (of_rank[r], -r))
        stage = min(own[rank], key=lambda g: (loads[g], -g))
        cut[stage] += 1
        loads[stage] += more
        of_rank[rank] += more
    return tuple(cut)


def _ticks(part: LayerPart) -> int:
    return part.forward + part.backward


def cuts(*, layers: int, stages: int, spread: int) -> Iterator[Cut]:
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
        return
    cut = _filled((), layers, stages, low, high)
    while True:
        yield cut
        after, stage = cut[-1], stages - 2
        while stage >= 0 and (cut[stage] == high or after <= low * (stages - 1 - stage)):
            after += cut[stage]
            stage -= 1
        if stage < 0:
            return
        cut = _filled((*cut[:stage], cut[stage] + 1), after - 1, stages, low, high)


def _filled(head: Cut, left: int, stages: int, low: int, high: int) -> Cut:
    """The first of the cuts that begin with ``head``; the other stages have ``left`` layers."""
    found = list(head)
    for rest in reversed(range(stages - len(head))):
        found.append(max(low, left - high * rest))
        left -= found[-1]
    return tuple(found)


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
