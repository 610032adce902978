"""What a candidate makes of a problem, by numbers that are computed here by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Backward, Candidate, Placement, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.theory.pipelines.transfers import Eviction

# Rank 0 takes 12, 24 = 16 + 8 ticks and holds 36, rank 1 twice that.
GIVEN = Pipeline(
    num_ranks=2,
    num_microbatches=3,
    forward=(12, 24),
    backward=(24, 48),
    input_backward=(16, 32),
    weight_backward=(8, 16),
    activation=(36, 72),
    released_at_input=(4, 8),
    static=(5, 7),
    capacity=(100, 200),
    message=(6, 10),
    latency=3,
    bandwidth=2,
    links=(Link(ranks=(0, 1), latency=9, bandwidth=Fraction(1, 2)),),
    unit="us",
    memory_unit="bytes",
)
OPEN = AllowedChoices(
    recompute=AllowedRecompute(stages=(1,), kept=4, duration=8, per_microbatch=True),
    evict=AllowedEvictions(pairs=((0, 1),), duration=12),
    offload=AllowedOffloads(stages=(0,), offload=16, reload=20, host_capacity=77),
)


def shape(
    chunks: int = 1,
    placement: Placement = "loop",
    backward: Backward = "whole",
    slices: int = 1,
    *,
    given: Pipeline = GIVEN,
    allowed: AllowedChoices | None = None,
    layers: Layers | None = None,
    cut: tuple[int, ...] | None = None,
) -> ShapedPipeline:
    space = PlanSpace(pipeline=given, allowed=allowed, layers=layers)
    candidate = Candidate(
        chunks=chunks, placement=placement, backward=backward, slices=slices, layers=cut
    )
    return shaped(space, candidate)


def refused(chunks: int = 1, placement: Placement = "loop", **more: object) -> str:
    with pytest.raises(NotLegalError) as caught:
        shape(chunks, placement, **more)  # type: ignore[arg-type]  # by name
    return str(caught.value)


def test_one_chunk_of_one_slice_is_the_problem_itself() -> None:
    assert shape().pipeline == GIVEN
    assert shape().allowed is None
    assert shape(allowed=OPEN).allowed == OPEN


def test_two_chunks_take_and_hold_half_of_their_rank() -> None:
    found = shape(2).pipeline
    assert found.stage_ranks == (0, 1, 0, 1)
    assert found.forward == (6, 12, 6, 12)
    assert found.backward == (12, 24, 12, 24)
    assert (found.input_backward, found.weight_backward) == ((8, 16, 8, 16), (4, 8, 4, 8))
    assert (found.activation, found.released_at_input) == ((18, 36, 18, 36), (2, 4, 2, 4))
    assert found.static == (5, 7, 0, 0)  # with the first chunk of each rank
    assert [store.base for store in found.problem().stores] == [5, 7]
    assert found.message == (6, 10, 6, 10)  # as large as ever, and twice as many
    # What the problem says of ranks and links stays.
    for name in (
        "capacity",
        "latency",
        "bandwidth",
        "links",
        "duplex",
        "unit",
        "memory_unit",
        "num_ranks",
        "num_microbatches",
    ):
        assert getattr(found, name) == getattr(GIVEN, name)


def test_slices_divide_messages_too() -> None:
    found = shape(2, slices=2).pipeline
    assert found.forward == (3, 6, 3, 6)  # 12 / 4, 24 / 4
    assert found.activation == (9, 18, 9, 18)
    assert found.message == (3, 5, 3, 5)  # by the slices alone
    assert (found.latency, found.static) == (3, (5, 7, 0, 0))


def test_what_is_open_takes_its_share() -> None:
    found = shape(2, slices=2, allowed=OPEN).allowed
    assert found == AllowedChoices(
        recompute=AllowedRecompute(stages=(1, 3), kept=1, duration=2, per_microbatch=True),
        evict=AllowedEvictions(pairs=((0, 1),), duration=3),
        offload=AllowedOffloads(stages=(0, 2), offload=4, reload=5, host_capacity=77),
    )
    # R as long as its forward stays so.
    plain = AllowedChoices(recompute=AllowedRecompute(stages=(0, 1)))
    assert shape(2, allowed=plain).allowed == AllowedChoices(
        recompute=AllowedRecompute(stages=(0, 1, 2, 3))
    )


def test_placements() -> None:
    wave = shape(2, "wave", allowed=OPEN)
    assert wave.pipeline.stage_ranks == (0, 1, 1, 0)
    assert wave.pipeline.forward == (6, 12, 12, 6)
    assert wave.pipeline.static == (5, 7, 0, 0)
    assert wave.allowed is not None
    assert wave.allowed.recompute == AllowedRecompute(
        stages=(1, 2), kept=2, duration=4, per_microbatch=True
    )
    own = shape(2, (1, 1, 0, 0)).pipeline
    assert own.forward == (12, 12, 6, 6)
    assert own.static == (7, 0, 5, 0)
    # The wave of one chunk has the loop's stages.
    one = shape(1, "wave").pipeline
    assert one.with_changes(placement="loop") == shape(1, "loop").pipeline


def test_both_ways_each_stage_stands_on_two_ranks_and_nothing_is_open() -> None:
    found = shape(1, "bidirectional", allowed=OPEN)
    assert found.pipeline.is_bidirectional
    assert found.allowed is None
    assert found.pipeline.forward == (12, 24)
    # Both ranks hold both stages: 5 + 7 each.
    assert [store.base for store in found.pipeline.problem().stores] == [12, 12]


def test_backwards() -> None:
    assert shape(2, backward="split").pipeline.split_backward is True
    assert shape(2, backward="whole").pipeline.split_backward is False
    # Rank 1 splits: of stages 0, 1, 1, 0 the middle ones, each microbatch.
    flags = shape(2, "wave", backward=(False, True)).pipeline.split_backward
    assert flags == ((False,) * 3, (True,) * 3, (True,) * 3, (False,) * 3)
    kinds = {
        str(action)[:2] for action in shape(1, backward=(True, False)).pipeline.problem().actions
    }
    assert kinds == {"0F", "0I", "0W", "0S", "1F", "1B", "1S"}  # S: its messages


def test_ticks_of_actions_that_a_candidate_has_not_need_not_divide() -> None:
    odd = GIVEN.with_changes(input_backward=7, weight_backward=9)
    assert shape(2, given=odd).pipeline.backward == (12, 24, 12, 24)
    assert refused(2, given=odd, backward="split") == "input_backward 7 is not divisible by 2"
    assert refused(2, given=odd, backward=(True, False)) == "input_backward 7 is not divisible by 2"
    whole = GIVEN.with_changes(backward=(25, 48))
    assert shape(2, given=whole, backward="split").pipeline.input_backward == (8, 16, 8, 16)
    assert refused(2, given=whole) == "backward 25 is not divisible by 2"


def test_weight_parts_and_their_workspaces() -> None:
    cut = GIVEN.with_changes(weight_parts=((2, 6), (4, 12)), weight_workspace=((2, 4), (6, 8)))
    found = shape(2, given=cut, backward="split").pipeline
    assert found.weight_parts == ((1, 3), (2, 6), (1, 3), (2, 6))
    assert found.workspace == ((1, 2), (3, 4), (1, 2), (3, 4))
    assert (
        refused(2, given=cut, backward="split", slices=2) == "weight_parts 2 is not divisible by 4"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"forward": 13}, "forward 13 is not divisible by 2"),
        ({"backward": 5}, "backward 5 is not divisible by 2"),
        ({"activation": (36, 71)}, "activation 71 is not divisible by 2"),
        ({"released_at_input": 3}, "released_at_input 3 is not divisible by 2"),
    ],
)
def test_the_number_that_does_not_divide_is_named(changes: dict[str, object], text: str) -> None:
    assert refused(2, given=GIVEN.with_changes(**changes)) == text
    assert refused(1, slices=2, given=GIVEN.with_changes(**changes)) == text


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (AllowedChoices(recompute=AllowedRecompute(stages=(0,), kept=3)), "recompute.kept 3"),
        (
            AllowedChoices(recompute=AllowedRecompute(stages=(0,), duration=5)),
            "recompute.duration 5",
        ),
        (AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=1)), "evict.duration 1"),
        (
            AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=1, reload=2)),
            "offload.offload 1",
        ),
        (
            AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=2, reload=3)),
            "offload.reload 3",
        ),
    ],
)
def test_a_choice_that_does_not_divide_is_named(allowed: AllowedChoices, text: str) -> None:
    assert refused(2, allowed=allowed) == f"choices.{text} is not divisible by 2"
    assert shape(1, allowed=allowed).allowed == allowed


def test_messages_are_divided_by_slices_only() -> None:
    odd = GIVEN.with_changes(message=(6, 5))
    assert shape(2, given=odd).pipeline.message == (6, 5, 6, 5)
    assert refused(1, slices=2, given=odd) == "message 5 is not divisible by 2"


def test_what_has_no_meaning_is_not_legal() -> None:
    assert refused(2, "bidirectional") == "placement bidirectional takes 1 chunk, got 2"
    assert refused(1, "ring").startswith("placement must be one of loop, wave, bidirectional, got")
    assert refused(2, (0, 1)) == (
        "a placement of 2 stages is none of 4 stages (2 on each of 2 ranks)"
    )
    assert refused(1, (0, 2)) == "placement names rank 2, which is none of 0 to 1"
    assert refused(1, (-1, 0)) == "placement names rank -1, which is none of 0 to 1"
    assert "every rank 0..1 a stage" in refused(1, (0, 0))
    # A rank may have more stages than the other.
    assert shape(2, (0, 1, 1, 1)).pipeline.stage_ranks == (0, 1, 1, 1)


def test_absurd_sizes_are_no_candidates_and_answered_at_once() -> None:
    idle, wide = (
        Pipeline(
            num_ranks=ranks,
            num_microbatches=1,
            forward=0,
            backward=0,
            input_backward=0,
            weight_backward=0,
            activation=0,
        )
        for ranks in (4096, 128)
    )
    assert "at most 4000000 actions, got 33554432" in refused(4096, given=idle)
    assert "at most 4000000 actions" in refused(1, given=idle, slices=4096)
    # 32,768 stages: the limit on actions lets them pass.
    assert shape(256, given=wide).pipeline.num_stages == 128 * 256


LAYERS = Layers(
    rule=NamedCuts(),
    runs=(
        (
            LayerPart(
                forward=4,
                backward=8,
                input_backward=6,
                weight_backward=2,
                activation=10,
                released=2,
                static=3,
            ),
            6,
        ),
    ),
    embedding=LayerPart(static=50),
    head=LayerPart(forward=2, backward=4, input_backward=2, weight_backward=2, activation=4),
)


def test_layers_in_place_of_ranks() -> None:
    found = shape(2, layers=LAYERS, cut=(1, 2, 2, 1)).pipeline
    assert found.forward == (4, 8, 8, 6)  # 1*4, 2*4, 2*4, 1*4 + 2
    assert found.backward == (8, 16, 16, 12)
    assert (found.input_backward, found.weight_backward) == ((6, 12, 12, 8), (2, 4, 4, 4))
    assert (found.activation, found.released_at_input) == ((10, 20, 20, 14), (2, 4, 4, 2))
    assert found.static == (53, 6, 6, 3)  # each stage weighs what its layers do
    sliced = shape(2, slices=2, layers=LAYERS, cut=(1, 2, 2, 1)).pipeline
    assert (sliced.forward, sliced.activation) == ((2, 4, 4, 3), (5, 10, 10, 7))
    assert sliced.static == (53, 6, 6, 3)


def test_layers_that_cannot_be_cut_so() -> None:
    text = "6 layers are not divisible by 8 stages (4 on each of 2 ranks)"
    assert refused(4, layers=LAYERS, cut=()) == text
    silent = GIVEN.with_changes(message=0)
    # 3*4 and 3*4 + 2 ticks.
    assert refused(1, slices=4, given=silent, layers=LAYERS, cut=(3, 3)) == (
        "forward 14 is not divisible by 4"
    )


def test_what_is_frozen_is_of_the_problems_own_stages() -> None:
    """Of two chunks a rank, stage 1 would be half of rank 1, and the other half be trained."""
    frozen = Pipeline(num_ranks=2, num_microbatches=2, activation=4, forward=4, frozen_stages=(1,))
    frozen = frozen.with_changes(backward=8, input_backward=4, weight_backward=4)
    space = PlanSpace(pipeline=frozen, chunks=(1, 2), placements=("loop", "wave"), slices=(1, 2))
    told: list[str] = []
    for candidate in space.candidates():
        if candidate.chunks == 1:
            assert shaped(space, candidate).pipeline.frozen_stages == (1,)
        else:
            with pytest.raises(NotLegalError) as found:
                shaped(space, candidate)
            told.append(str(found.value))
    assert told == ["frozen_stages is of the problem's stages; this shape has others"] * 4
    move = Eviction(stage=0, microbatch=0, source=0, target=1, duration=1)
    moved = PlanSpace(pipeline=frozen.with_changes(evictions=(move,)), slices=(1, 2))
    whole, sliced = moved.candidates()
    assert shaped(moved, whole).pipeline.evictions == (move,)
    with pytest.raises(NotLegalError, match="evictions is of the problem's stages"):
        shaped(moved, sliced)
