"""No more candidates than a reader of their proofs can go through: counted without making them."""

from __future__ import annotations

from bubbleproof.theory.pipelines.shapes.layer_cuts import share_range
from bubbleproof.theory.pipelines.shapes.plan_space import MIXED, Backward, PlanSpace

MOST_CANDIDATES = 10_000
COUNTLESS = 5_000_000  # sums to add up


def few(space: PlanSpace) -> PlanSpace:
    """The space.

    Raises ``ValueError`` for more than ``MOST_CANDIDATES`` candidates, naming what would be few
    enough.
    """
    plain = len(space.placements) * len(space.slices)
    backward = sum(_num_flags(space, flags) for flags in space.backward)
    found = sum(plain * backward * _num_cuts(space, chunks) for chunks in space.chunks)
    if found <= MOST_CANDIDATES:
        return space
    hint = "list fewer values"
    if plain * backward * len(space.chunks) <= MOST_CANDIDATES:
        hint = f"the even cut of the layers leaves {plain * backward * len(space.chunks)}"
    elif MIXED in space.backward:
        mixed = _count_text(_num_flags(space, MIXED))
        hint = f"leave out backward = {MIXED!r}, which stands for {mixed}"
    raise ValueError(
        f"a plan goes through at most {MOST_CANDIDATES} candidates, these are "
        f"{_count_text(found)}; {hint}"
    )


def _count_text(count: int) -> str:
    return str(count) if count < COUNTLESS else f"{COUNTLESS} or more"


def _num_flags(space: PlanSpace, flags: Backward) -> int:
    return 2**space.pipeline.num_ranks - 2 if flags == MIXED else 1


def _num_cuts(space: PlanSpace, chunks: int) -> int:
    layers = space.layers
    if layers is None:
        return 1
    if layers.spread is None:
        return len(layers.kinds)
    stages = space.pipeline.num_ranks * chunks
    return num_cuts(layers=layers.number, stages=stages, spread=layers.spread) or 1


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
