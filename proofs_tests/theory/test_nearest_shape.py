"""The nearest lists that leave a plan a candidate; derived by hand, and each tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.nearest_shape import nearest_change
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

# A rank's 12 ticks forward and 24 back divide by 1, 2, 3, 4, 6 and 12, as its 36 of memory do.
RANKS = PlanSpace(
    pipeline=Pipeline(num_ranks=4, num_microbatches=4, forward=12, backward=24, activation=36)
)
LAYER = LayerPart(forward=2, backward=4, activation=2)


def layered(number: int, ranks: int, chunks: tuple[int, ...] = (1,)) -> PlanSpace:
    pipeline = Pipeline(num_ranks=ranks, num_microbatches=4, forward=1, backward=2)
    return PlanSpace(
        pipeline=pipeline, layers=Layers(runs=((LAYER, number),), rule=NamedCuts()), chunks=chunks
    )


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (replace(RANKS, chunks=(5,)), "chunks = [4]"),
        (replace(RANKS, chunks=(5, 11)), "chunks = [4]"),
        (replace(RANKS, chunks=(11,)), "chunks = [12]"),
        (replace(RANKS, slices=(7,)), "slices = [6]"),
        (replace(RANKS, slices=(26,)), "slices = [12]"),
        # Four stages on ranks 0 and 1 of four: no chunks make that a placement.
        (replace(RANKS, placements=((0, 0, 1, 1),)), 'placements = ["loop"]'),
        (
            replace(RANKS, chunks=(5,), slices=(7,), placements=((0, 0),)),
            'chunks = [4], slices = [1] and placements = ["loop"]',
        ),
        (layered(48, 8, (5,)), "chunks = [6]"),
        # 42 = 5.25 x 8: 40 is nearer than 48; or two stages of 6 layers and six of 5.
        (layered(42, 8), 'layers.number = 40 or layers.cuts = ["balanced"]'),
        # 3 layers on 4 ranks: less than one each, however they are cut.
        (layered(3, 4), "layers.number = 4"),
    ],
)
def test_the_nearest_is_named(space: PlanSpace, told: str) -> None:
    assert nearest_change(space) == told
