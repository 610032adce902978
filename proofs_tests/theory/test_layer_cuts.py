"""Layers cut into stages: every cut once, and what a stage of one takes and holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import pytest

from bubbleproof.formats.plans.listed_shapes import nearest_cut
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import stage_ranks
from bubbleproof.theory.pipelines.shapes.cut_lists import (
    NamedCuts,
    balanced_cut,
    balanced_cuts,
    even_cut,
    num_cuts,
    spread_cuts,
)
from bubbleproof.theory.pipelines.shapes.layer_cuts import COUNTLESS, LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.planners.unlike_layers import every_cut
from proofs_tests.zeros import zero_or


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("layers", [1, 4, 7, 8])
def test_cuts_are_all_sums_near_the_even_share(layers: int, stages: int) -> None:
    for spread in range(4):
        # At least one layer each; within the spread of the share rounded down and up.
        low, high = max(1, layers // stages - spread), -(-layers // stages) + spread
        expected = [
            cut for cut in product(range(low, high + 1), repeat=stages) if sum(cut) == layers
        ]
        assert list(spread_cuts(layers=layers, stages=stages, spread=spread)) == expected
        assert num_cuts(layers=layers, stages=stages, spread=spread) == len(expected)


def test_thousands_of_stages_are_cut_and_counted() -> None:
    assert list(spread_cuts(layers=3000, stages=3000, spread=0)) == [(1,) * 3000]
    assert num_cuts(layers=10_000, stages=4096, spread=9_999) == COUNTLESS
    assert num_cuts(layers=10_000, stages=4096**2, spread=1) == 0
    layers = Layers(runs=((LayerPart(forward=1), 3001),), rule=NamedCuts(kinds=("any",)))
    assert layers.rule.cuts(layers, range(3000), 2) == (  # the balanced ones alone
        (*(1,) * 2999, 2),
        (2, *(1,) * 2999),
    )


def test_the_nearest_cut_differs_by_one_layer_at_most() -> None:
    for layers, stages in product(range(1, 30), range(1, 10)):
        cut = nearest_cut(layers=layers, stages=stages)
        assert (len(cut), sum(cut)) == (stages, layers)
        assert max(cut) - min(cut) <= 1


def test_embedding_and_head_stand_at_the_ends() -> None:
    layers = Layers(
        rule=NamedCuts(),
        runs=((LayerPart(forward=10, backward=20, activation=3, static=7), 5),),
        embedding=LayerPart(forward=1, static=100),
        head=LayerPart(forward=2, backward=4, released=1),
    )
    # Two layers and the embedding: 2*10 + 1, 2*20, 2*3, 2*7 + 100.
    assert layers.stages((2, 3))[0] == LayerPart(forward=21, backward=40, activation=6, static=114)
    # Three layers and the head: 3*10 + 2, 3*20 + 4, 3*3, 3*7.
    assert layers.stages((2, 3))[1] == LayerPart(
        forward=32, backward=64, activation=9, released=1, static=21
    )
    # One stage has both.
    assert layers.stages((5,))[0].forward == 5 * 10 + 1 + 2


@pytest.mark.parametrize("seed", range(40))
def test_the_balanced_cut_is_the_lightest_of_all(seed: int) -> None:
    """By going through every cut: the sorted loads of the ranks, the heaviest first."""
    draw = random.Random(seed)
    ranks, chunks = draw.choice([(2, 1), (3, 1), (4, 1), (2, 2), (3, 2)])
    placement = stage_ranks(draw.choice(["loop", "wave"]), num_ranks=ranks, num_chunks=chunks)
    stages = ranks * chunks
    layer = LayerPart(forward=zero_or(draw, 1, 3), backward=zero_or(draw, 1, 6))
    layers = Layers(
        rule=NamedCuts(),
        runs=((layer, stages + draw.randint(0, 5)),),
        embedding=LayerPart(forward=draw.randint(0, 9)),
        head=LayerPart(forward=draw.randint(0, 9), backward=draw.randint(0, 9)),
    )

    def loads(cut: tuple[int, ...]) -> list[int]:
        found = [0] * ranks
        for part, rank in zip(layers.stages(cut), placement, strict=True):
            found[rank] += part.forward + part.backward
        return sorted(found, reverse=True)

    # With no layer beside an embedding or a head that takes something, one or more elsewhere.
    least = [1] * stages
    least[0] -= layers.embedding.forward > 0
    least[-1] -= layers.head.forward + layers.head.backward > 0
    counts = product(*(range(few, layers.number + 1) for few in least))
    every = [cut for cut in counts if sum(cut) == layers.number]
    balanced = balanced_cut(layers, placement)
    assert sum(balanced) == layers.number
    assert loads(balanced) == min(map(loads, every))


@pytest.mark.parametrize("seed", range(40))
def test_of_unlike_layers_the_heaviest_rank_is_lightest(seed: int) -> None:
    """By going through every cut, of those alone that fit where any does."""
    draw = random.Random(seed)
    ranks, m = draw.randint(2, 4), draw.choice([1, 2, 8])
    kinds = [
        LayerPart(
            forward=draw.randint(1, 9), backward=draw.randint(1, 9), static=draw.randint(0, 5)
        )
        for _ in range(3)
    ]
    layers = Layers(
        rule=NamedCuts(),
        runs=tuple((draw.choice(kinds), 1) for _ in range(draw.randint(ranks, 9))),
        head=LayerPart(forward=draw.randint(0, 9), backward=draw.randint(0, 9)),
    )
    room = draw.choice([None, 8, 12, 16])

    def heaviest(cut: tuple[int, ...], is_waiting: bool) -> int:
        times = [part.forward + part.backward for part in layers.stages(cut)]
        before = [sum(times[:g]) if is_waiting else 0 for g in range(ranks)]
        return max(wait + m * own for wait, own in zip(before, times, strict=True))

    every = list(every_cut(layers, ranks))
    fits = [cut for cut in every if max(part.static for part in layers.stages(cut)) <= (room or 99)]
    found = balanced_cuts(layers, range(ranks), m, room)[:2]
    for cut, is_waiting in zip(found, (False, True), strict=True):
        assert heaviest(cut, is_waiting) == min(heaviest(one, is_waiting) for one in fits or every)
        assert cut in (fits or every)


@pytest.mark.parametrize("seed", range(40))
def test_no_layer_of_unlike_ones_is_lighter_in_the_stage_beside(seed: int) -> None:
    """Of ranks with one stage or two: what each waits for and computes, the most first."""
    draw = random.Random(seed)
    ranks, m, chunks = draw.randint(2, 3), draw.choice([1, 2, 8]), draw.choice([1, 2])
    placement = stage_ranks(draw.choice(["loop", "wave"]), num_ranks=ranks, num_chunks=chunks)
    stages = ranks * chunks
    layers = Layers(
        rule=NamedCuts(),
        runs=tuple(
            (LayerPart(forward=draw.randint(1, 9), backward=draw.randint(1, 9)), 1)
            for _ in range(stages + draw.randint(1, 9))
        ),
    )

    def shown(cut: Sequence[int], is_waiting: bool) -> list[int]:
        times = [part.forward + part.backward for part in layers.stages(tuple(cut))]
        found: dict[int, int] = {}
        for stage, rank in enumerate(placement):
            found.setdefault(rank, sum(times[:stage]) if is_waiting else 0)
            found[rank] += m * times[stage]
        return sorted(found.values(), reverse=True)

    every = balanced_cuts(layers, placement, m)
    for cut, is_waiting in zip(every[:2], (False, True), strict=True):
        for of, to in [*pairwise(range(stages)), *pairwise(reversed(range(stages)))]:
            moved = [count + (g == to) - (g == of) for g, count in enumerate(cut)]
            assert cut[of] == 1 or shown(moved, is_waiting) >= shown(cut, is_waiting)


def test_a_lighter_last_stage_is_shorter_than_the_balanced_cut() -> None:
    """All cuts of 10 layers into 4 stages, by 1F1B with 2 microbatches."""
    layer, ends = LayerPart(forward=4, backward=12), LayerPart(forward=1, backward=1)
    head = LayerPart(forward=6, backward=10)
    layers = Layers(runs=((layer, 10),), rule=NamedCuts(), embedding=ends, head=head)

    def makespan(cut: tuple[int, ...]) -> int:
        parts = layers.stages(cut)
        pipeline = Pipeline(
            num_ranks=4,
            num_microbatches=2,
            forward=tuple(part.forward for part in parts),
            backward=tuple(part.backward for part in parts),
        )
        program = family("1f1b").program(pipeline)
        return measure(pipeline.problem(), left_shift(pipeline.problem(), program)).makespan

    found = balanced_cuts(layers, range(4), 2)
    # 34, 48, 48 and 48 ticks; the last rank is as heavy as any, and stage 0 takes a layer of it.
    assert (found[0], found[2]) == ((2, 3, 3, 2), (3, 3, 3, 1))
    # The microbatches' way down and back takes 178, and the second keeps the last stage 48 or 32
    # longer; or the backwards of stage 0, 37, are longer: 226 and 215.
    assert [makespan(cut) for cut in (found[0], found[2])] == [226, 215]
    assert makespan(found[2]) == min(map(makespan, every_cut(layers, 4)))
    # Where the last rank is not the heaviest there is no third.
    assert len(balanced_cuts(replace(layers, head=ends), range(4), 2)) == 2


def test_llama_3_405b_has_fewer_layers_at_both_ends() -> None:
    """126 layers of 16 stages: made for 128, an embedding and a head in place of one each."""
    layer = LayerPart(forward=10, backward=20)
    model = Layers(runs=((layer, 126),), rule=NamedCuts(), embedding=layer, head=layer)
    assert balanced_cut(model, range(16)) == (7, *[8] * 14, 7)
    assert even_cut(layers=126, stages=16) == ()
    # Embedding and head may have a stage of their own each, of 128.
    assert balanced_cut(model, range(128)) == (0, *[1] * 126, 0)
    assert balanced_cut(model, range(129)) == ()


def test_a_plan_tries_the_cuts_that_it_names() -> None:
    head = LayerPart(forward=4)
    layers = Layers(runs=((LayerPart(forward=1, backward=2), 6),), rule=NamedCuts(), head=head)
    space = PlanSpace(pipeline=Pipeline(num_ranks=3, num_microbatches=2), layers=layers)

    def found(*kinds: str) -> list[tuple[int, ...] | None]:
        own = replace(space, layers=replace(layers, rule=NamedCuts(kinds=kinds)))
        return [one.layers for one in own.candidates()]

    # 2 + 3 + 1: 6, 9 and 7 ticks; the head is as much as a layer and a third. Of two microbatches,
    # with what comes before a rank: 3 + 3 + 0 for 18, 9 + 18 and 18 + 8; 2 + 3 + 1 for 15 + 14.
    assert found("even") == [(2, 2, 2)]
    assert found("balanced") == [(2, 3, 1), (3, 3, 0)]
    assert found("even", "balanced") == [(2, 2, 2), (2, 3, 1), (3, 3, 0)]
    seven = replace(
        layers, runs=((layers.runs[0][0], 7),), rule=NamedCuts(kinds=("even", "balanced"))
    )
    tried = [one.layers for one in replace(space, layers=seven).candidates()]
    assert tried == [(3, 3, 1), (4, 3, 0)]
    assert str(replace(space, layers=seven).candidates()[0]) == "v=1 loop whole layers 3+3+1"


def test_many_stages_are_told_by_runs() -> None:
    layers = Layers(
        rule=NamedCuts(kinds=("balanced",)),
        runs=((LayerPart(forward=1), 126),),
        head=LayerPart(forward=1),
    )
    pipeline = Pipeline(num_ranks=16, num_microbatches=2)
    one, *_ = PlanSpace(pipeline=pipeline, layers=layers).candidates()
    assert str(one) == "v=1 loop whole layers 7+14x8+7"
