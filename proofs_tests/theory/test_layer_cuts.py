"""Layers cut into stages: every cut once, and what a stage of one takes and holds."""

from __future__ import annotations

from itertools import product

import pytest

from bubbleproof.theory.pipelines.layer_cuts import (
    COUNTLESS,
    Layers,
    Part,
    cuts,
    nearest_cut,
    num_cuts,
)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("layers", [1, 4, 7, 8])
def test_cuts_are_all_sums_near_the_even_share(layers: int, stages: int) -> None:
    for spread in range(4):
        # At least one layer each; within the spread of the share rounded down and up.
        low, high = max(1, layers // stages - spread), -(-layers // stages) + spread
        expected = [
            cut for cut in product(range(low, high + 1), repeat=stages) if sum(cut) == layers
        ]
        assert list(cuts(layers=layers, stages=stages, spread=spread)) == expected
        assert num_cuts(layers=layers, stages=stages, spread=spread) == len(expected)


def test_thousands_of_stages_are_cut_and_counted() -> None:
    assert list(cuts(layers=3000, stages=3000, spread=0)) == [(1,) * 3000]
    assert num_cuts(layers=10_000, stages=4096, spread=9_999) == COUNTLESS
    assert num_cuts(layers=10_000, stages=4096**2, spread=1) == 0


def test_the_nearest_cut_differs_by_one_layer_at_most() -> None:
    for layers, stages in product(range(1, 30), range(1, 10)):
        cut = nearest_cut(layers=layers, stages=stages)
        assert (len(cut), sum(cut)) == (stages, layers)
        assert max(cut) - min(cut) <= 1


def test_embedding_and_head_stand_at_the_ends() -> None:
    layers = Layers(
        number=5,
        layer=Part(forward=10, backward=20, activation=3, static=7),
        embedding=Part(forward=1, static=100),
        head=Part(forward=2, backward=4, released=1),
    )
    # Two layers and the embedding: 2*10 + 1, 2*20, 2*3, 2*7 + 100.
    assert layers.stage((2, 3), 0) == Part(forward=21, backward=40, activation=6, static=114)
    # Three layers and the head: 3*10 + 2, 3*20 + 4, 3*3, 3*7.
    assert layers.stage((2, 3), 1) == Part(
        forward=32, backward=64, activation=9, released=1, static=21
    )
    # One stage has both.
    assert layers.stage((5,), 0).forward == 5 * 10 + 1 + 2
