"""Whether a pipeline is one of the choices left open: those that are, and each kind that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.candidates.chosen import foreign_choice, foreign_step, plain_of
from proofs_tests.planners.every_choice import every_choice

GIVEN = Pipeline(num_ranks=2, num_microbatches=2, activation=2, split_backward=True, capacity=9)
OPEN = AllowedChoices(
    recompute=AllowedRecompute(stages=(0,), kept=1, duration=3),
    evict=AllowedEvictions(pairs=((0, 1),), duration=2),
    offload=AllowedOffloads(stages=(1,), offload=4, reload=5, host_capacity=8),
)
EVICTED = Eviction(stage=0, microbatch=1, source=0, target=1, duration=2)
LEFT = ActivationOffload(stage=1, microbatch=0, offload=4, reload=5)
PER_SAMPLE = replace(OPEN, recompute=replace(OPEN.recompute, per_microbatch=True))  # type: ignore[type-var]  # not None


@pytest.mark.parametrize("allowed", [OPEN, PER_SAMPLE, None], ids=["stages", "samples", "nothing"])
def test_every_choice_is_one_of_them(allowed: AllowedChoices | None) -> None:
    choices = [*every_choice(GIVEN, allowed)]
    assert len(choices) == (1 if allowed is None else len({repr(one) for one in choices}))
    for chosen in choices:
        assert foreign_choice(GIVEN, allowed, chosen) is None
        assert plain_of(chosen) == GIVEN


def test_a_stage_may_recompute_whole_where_samples_may() -> None:
    whole = GIVEN.with_changes(recompute=Recompute(stages=(0,), kept=1, duration=3))
    assert foreign_choice(GIVEN, PER_SAMPLE, whole) is None


HOSTED = {"offloads": (LEFT,), "host_capacity": 8}
FOREIGN: dict[str, tuple[dict[str, object], str]] = {
    "shape": ({"num_microbatches": 3}, "another shape"),
    "ticks": ({"forward": 2}, "another shape, or other numbers"),
    "memory": ({"capacity": 10}, "another shape"),
    "latency": ({"latency": 1}, "another shape"),
    "placement": ({"placement": (1, 0)}, "another shape"),
    "backward": ({"split_backward": False}, "another shape"),
    "waits": ({"waits": ((Action.parse("0F0"), Action.parse("0F1")),)}, "another shape"),
    "kept": ({"recompute": Recompute(stages=(0,), kept=0, duration=3)}, "ticks or memory"),
    "R": ({"recompute": Recompute(stages=(0,), kept=1, duration=1)}, "ticks or memory"),
    "R as F": ({"recompute": Recompute(stages=(0,), kept=1)}, "ticks or memory"),
    "stage": ({"recompute": Recompute(stages=(0, 1), kept=1, duration=3)}, "stage 1 recomputes"),
    "sample": (
        {"recompute": Recompute(samples=((0, 1),), kept=1, duration=3)},
        "some microbatches only",
    ),
    "EVICT": (
        {"evictions": (EVICTED, replace(EVICTED, microbatch=0, duration=1))},
        "an eviction of other ticks",
    ),
    "pair": (
        {"evictions": (replace(EVICTED, stage=1, source=1, target=0),)},
        "rank 1 evicts to rank 0",
    ),
    "OFFLOAD": ({**HOSTED, "offloads": (replace(LEFT, offload=3),)}, "an off-load of other ticks"),
    "RELOAD": ({**HOSTED, "offloads": (replace(LEFT, reload=3),)}, "an off-load of other ticks"),
    "off-loading": ({**HOSTED, "offloads": (replace(LEFT, stage=0),)}, "stage 0 off-loads"),
    "host": ({**HOSTED, "host_capacity": 9}, "another memory of the hosts"),
    "no limit": ({**HOSTED, "host_capacity": None}, "another memory of the hosts"),
    "idle host": ({"host_capacity": 9}, "another memory of the hosts"),
}


@pytest.mark.parametrize(("changes", "why"), FOREIGN.values(), ids=FOREIGN)
def test_each_foreign_choice_is_found(changes: dict[str, object], why: str) -> None:
    found = foreign_choice(GIVEN, OPEN, GIVEN.with_changes(**changes))
    assert found is not None
    assert why in found


def test_a_sample_of_another_stage_is_found() -> None:
    other = GIVEN.with_changes(recompute=Recompute(samples=((1, 1),), kept=1, duration=3))
    assert foreign_choice(GIVEN, PER_SAMPLE, other) == "stage 1 recomputes"


@pytest.mark.parametrize(
    "changes",
    [
        {"recompute": Recompute(stages=(0,), kept=1, duration=3)},
        {"evictions": (EVICTED,)},
        {"offloads": (LEFT,)},
        {"host_capacity": 8},
    ],
    ids=["recompute", "evict", "offload", "host"],
)
@pytest.mark.parametrize("allowed", [None, AllowedChoices()])
def test_where_nothing_is_open_nothing_is_chosen(
    changes: dict[str, object], allowed: AllowedChoices | None
) -> None:
    assert foreign_choice(GIVEN, allowed, GIVEN.with_changes(**changes)) is not None


LAYERS = Layers(
    rule=NamedCuts(),
    runs=((LayerPart(forward=2, backward=6, input_backward=3, weight_backward=4), 4),),
    head=LayerPart(forward=1, backward=1, input_backward=1, weight_backward=1),
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"forward": (4, 5), "backward": (12, 13)}, None),
        ({"forward": (5, 4), "backward": (13, 12)}, None),  # the head's ticks on another rank
        ({"backward": (40, 40)}, None),  # more, such as what is computed again
        ({"forward": (4, 4)}, "forwards of a microbatch take 8 ticks on all ranks, not 9"),
        ({"backward": (12, 12)}, "backwards of a microbatch take 24 ticks on all ranks, not 25"),
        (
            {"split_backward": True, "input_backward": (6, 7), "weight_backward": (8, 8)},
            "backwards of a microbatch take 29 ticks on all ranks, not 30",
        ),
        ({"split_backward": True, "input_backward": (6, 7), "weight_backward": (8, 9)}, None),
        ({"num_microbatches": 2}, "its num_microbatches is not the problem's"),
        ({"num_ranks": 1, "forward": 9, "backward": 25}, "its num_ranks is not the problem's"),
        ({"capacity": None}, "its capacity is not the problem's"),
        ({"latency": 0}, "its latency is not the problem's"),
        ({"bandwidth": 7}, "its bandwidth is not the problem's"),
    ],
)
def test_what_trains_another_step_is_told(changes: dict[str, Any], why: str | None) -> None:
    """Four layers and a head: 4 x 2 + 1 ticks forward, 4 x 6 + 1 back, 4 x (3 + 4) + 2 in two."""
    base: dict[str, Any] = {
        "num_ranks": 2,
        "num_microbatches": 3,
        "forward": (4, 5),
        "backward": (12, 13),
        "capacity": 5,
        "latency": 1,
    }
    space = PlanSpace(pipeline=Pipeline(**base), layers=LAYERS)
    assert foreign_step(space, Pipeline(**{**base, **changes})) == why


def test_each_rank_does_its_own_part_where_no_layers_are_told() -> None:
    """What a slow rank does is not moved to a fast one: 6 + 2 as 4 + 4."""
    slow = Pipeline(num_ranks=2, num_microbatches=3, forward=(6, 2), backward=(6, 2))
    even = Pipeline(num_ranks=2, num_microbatches=3, forward=4, backward=4)
    told = foreign_step(PlanSpace(pipeline=slow), even)
    assert told == "forwards of a microbatch take 4 ticks on rank 0, not 6"
    halves = Pipeline(
        num_ranks=2, num_microbatches=3, num_chunks=2, forward=(3, 1, 3, 1), backward=(3, 1, 3, 1)
    )
    assert foreign_step(PlanSpace(pipeline=slow), halves) is None


def test_what_is_frozen_beside_is_what_the_problem_freezes() -> None:
    """By hand: stage 1 frozen takes 1 tick back of 2; where both are, no backward runs."""
    one = Pipeline(num_ranks=2, num_microbatches=3, frozen_stages=(1,))
    both = one.with_changes(frozen_stages=(0, 1))
    assert foreign_step(PlanSpace(pipeline=one), one) is None
    assert foreign_step(PlanSpace(pipeline=both), one) is None  # trains more
    told = foreign_step(PlanSpace(pipeline=one), both)
    assert told == "backwards of a microbatch take 0 ticks on rank 0, not 2"
