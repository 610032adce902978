"""No more candidates than a reader of their proofs can go through: counted without making them."""

from __future__ import annotations

from bubbleproof.theory.pipelines.shapes.layer_cuts import COUNTLESS
from bubbleproof.theory.pipelines.shapes.plan_space import MIXED, Backward, PlanSpace

MOST_CANDIDATES = 10_000


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
    return layers.rule.number(layers, space.pipeline.num_ranks * chunks)
