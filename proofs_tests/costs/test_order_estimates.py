"""What an order takes and needs by formula, beside the order itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.costs.combinations import CombinationCosts, legal
from bubbleproof.costs.order_estimates import order_estimate
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, space_of_layers
from bubbleproof.planners.looks import FirstSearch, FoundSchedule, first_look
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped
from proofs_tests.commands.small_cluster import SMALL

TEXT = f'{SMALL.replace("layers = 4", "layers = 8")}\n[plan]\nframework = "megatron-core"\n'
ORDERS = ("1f1b", "interleaved")


def timed(one: CombinationCosts, chunks: int) -> FoundSchedule | None:
    """The best of the published orders on a card with room for anything."""
    file = cluster_file_of_text(TEXT, name="small")
    numbers = replace(one.numbers, capacity=1 << 40)
    shapes = file.shapes_of(one).model_copy(update={"chunks": [chunks]})
    microbatches, ranks = one.microbatches, one.combination.pipeline
    space, found = space_of_layers(numbers, shapes, ranks=ranks, microbatches=microbatches), []
    for candidate in space.candidates():
        try:
            asked = FirstSearch(shaped=shaped(space, candidate), orders=ORDERS)
        except NotLegalError:
            continue
        found += [each for each in [first_look(asked).found] if each is not None]
    return min(found, key=lambda each: each.value, default=None)


@pytest.mark.parametrize("number", range(8))
def test_an_estimate_is_near_its_order(number: int) -> None:
    """Within 15 % where messages take as long as stages; of one chunk and even stages the memory is
    exact: W + min(p - r, m) a. Other chunks are cut otherwise: within a fifth."""
    file = cluster_file_of_text(TEXT, name="small")
    every = [one for one in legal(all_counted(file)) if one.combination.pipeline > 1]
    one = every[number * len(every) // 8]
    told = order_estimate(one.numbers, microbatches=one.microbatches)
    found = timed(one, told.chunks)
    assert found is not None
    takes = found.value + one.numbers.step_end
    assert abs(told.iteration - takes) <= 0.15 * takes
    needs = found.peak_memory + one.numbers.beside
    assert abs(told.needed - needs) <= 0.2 * needs
    if told.chunks == 1 and len(one.numbers.cuts) == 1:
        assert told.needed == needs
