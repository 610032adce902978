"""The candidates of a plan: which there are, in which order, and lists that are refused."""

from __future__ import annotations

import pytest

from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.few_candidates import few
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace

TWO = Pipeline(num_ranks=2, num_microbatches=2)
LAYERS = Layers(runs=((LayerPart(forward=1, backward=2, activation=1), 6),), rule=NamedCuts())


def test_candidates_stand_in_the_order_of_the_lists() -> None:
    space = PlanSpace(
        pipeline=TWO,
        chunks=(2, 1),
        placements=("loop", "wave"),
        backward=("split", "whole"),
        slices=(1, 2),
    )
    found = space.candidates()
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 2
    assert found[0] == Candidate(chunks=2, placement="loop", backward="split", slices=1)
    assert found[1] == Candidate(chunks=2, placement="loop", backward="split", slices=2)
    assert found[2] == Candidate(chunks=2, placement="loop", backward="whole", slices=1)
    assert found[4] == Candidate(chunks=2, placement="wave", backward="split", slices=1)
    assert found[15] == Candidate(chunks=1, placement="wave", backward="whole", slices=2)


def test_mixed_is_every_set_of_ranks_but_none_and_all() -> None:
    three = Pipeline(num_ranks=3, num_microbatches=1)
    flags = [c.backward for c in PlanSpace(pipeline=three, backward=("mixed",)).candidates()]
    assert len(flags) == len(set(flags)) == 2**3 - 2
    assert (True, False, True) in flags
    assert not {(True,) * 3, (False,) * 3} & {*flags}
    assert (
        PlanSpace(
            pipeline=Pipeline(num_ranks=1, num_microbatches=1), backward=("mixed",)
        ).candidates()
        == ()
    )


def test_each_cut_of_the_layers_is_a_candidate() -> None:
    # 6 layers on 2 and on 4 stages, one off the share: 2..4 each, and 1..3 each.
    space = PlanSpace(
        pipeline=TWO,
        chunks=(1, 2),
        layers=Layers(runs=((LAYERS.runs[0][0], 6),), rule=NamedCuts(spread=1)),
    )
    found = [c.layers for c in space.candidates()]
    assert found[:3] == [(2, 4), (3, 3), (4, 2)]
    # Sums of four numbers 1..3 that make 6: 4 with one 3 (3111), 6 with two 2s (2211).
    assert len(found) == 3 + 4 + 6


def test_an_even_cut_that_there_is_not_stays_a_candidate_of_no_cut() -> None:
    space = PlanSpace(pipeline=TWO, chunks=(1, 2, 3, 4), layers=LAYERS)
    assert [c.layers for c in space.candidates()] == [(3, 3), (), (1,) * 6, ()]
    assert [c.layers for c in PlanSpace(pipeline=TWO).candidates()] == [None]
    # Fewer layers than stages, whatever the spread.
    wide = Layers(runs=((LAYERS.runs[0][0], 6),), rule=NamedCuts(spread=5))
    assert [c.layers for c in PlanSpace(pipeline=TWO, chunks=(4,), layers=wide).candidates()] == [
        ()
    ]


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (Candidate(chunks=1, placement="loop", backward="whole", slices=1), "v=1 loop whole"),
        (
            Candidate(chunks=2, placement=(0, 1, 1, 0), backward="split", slices=4),
            "v=2 0,1,1,0 split s=4",
        ),
        (
            Candidate(chunks=1, placement="wave", backward=(True, False, True), slices=1),
            "v=1 wave split on 0,2",
        ),
        (
            Candidate(chunks=1, placement="loop", backward="whole", slices=1, layers=(3, 3)),
            "v=1 loop whole",
        ),
        (
            Candidate(chunks=1, placement="loop", backward="whole", slices=1, layers=(2, 4)),
            "v=1 loop whole layers 2+4",
        ),
    ],
)
def test_a_candidate_in_words(candidate: Candidate, text: str) -> None:
    assert str(candidate) == text


@pytest.mark.parametrize("name", ["chunks", "placements", "backward", "slices"])
def test_lists_name_something_and_nothing_twice(name: str) -> None:
    twice: dict[str, tuple[object, ...]] = {
        "chunks": (1, 1),
        "placements": ("loop", "loop"),
        "backward": ("whole", "whole"),
        "slices": (2, 1, 2),
    }
    for values in ((), twice[name]):
        with pytest.raises(ValueError, match=f"{name} must list one value or more, each once"):
            PlanSpace(pipeline=TWO, **{name: values})  # type: ignore[arg-type]  # by name


def test_the_problem_is_stated_for_one_chunk_and_one_slice() -> None:
    for pipeline in (
        Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2),
        Pipeline(num_ranks=2, num_microbatches=2, num_slices=2),
        Pipeline(num_ranks=2, num_microbatches=2, placement="wave"),
        Pipeline(num_ranks=2, num_microbatches=2, placement="bidirectional"),
    ):
        with pytest.raises(ValueError, match="as one chunk and one slice in a loop, got"):
            PlanSpace(pipeline=pipeline)
    with pytest.raises(ValueError, match=r"or one flag per rank \(2\), got 3 flags"):
        PlanSpace(pipeline=TWO, backward=((True, False, True),))


def test_more_candidates_than_anyone_checks_are_refused_with_what_is_few_enough() -> None:
    def refusal(**lists: object) -> str:
        with pytest.raises(ValueError, match="a plan goes through at most 10000") as caught:
            few(PlanSpace(**lists))  # type: ignore[arg-type]  # by name
        return str(caught.value)

    # 10 x 2 x 2 x 251 = 10,040.
    many = {
        "chunks": tuple(range(1, 11)),
        "placements": ("loop", "wave"),
        "backward": ("whole", "split"),
    }
    assert "these are 10040; list fewer values" in refusal(
        pipeline=TWO, **many, slices=tuple(range(1, 252))
    )
    most = PlanSpace(pipeline=TWO, **many, slices=tuple(range(1, 251)))  # type: ignore[arg-type]  # by name
    assert len(few(most).candidates()) == 10_000
    # 2^14 - 2 sets of ranks; 2^13 - 2 are few enough.
    wide = Pipeline(num_ranks=14, num_microbatches=1)
    assert "leave out backward = 'mixed', which stands for 16382" in refusal(
        pipeline=wide, backward=("mixed",)
    )
    few(PlanSpace(pipeline=Pipeline(num_ranks=13, num_microbatches=1), backward=("mixed",)))
    # 100 layers on 8 stages.
    layers = Layers(runs=((LAYERS.runs[0][0], 100),), rule=NamedCuts(spread=6))
    assert "the even cut of the layers leaves 2" in refusal(
        pipeline=Pipeline(num_ranks=8, num_microbatches=1), chunks=(1, 2), layers=layers
    )


def test_absurd_sizes_are_answered_at_once() -> None:
    widest = Pipeline(num_ranks=4096, num_microbatches=1)
    with pytest.raises(ValueError, match="these are 5000000 or more; leave out") as caught:
        few(PlanSpace(pipeline=widest, backward=("mixed",)))
    assert len(str(caught.value)) < 300
    endless = Layers(runs=((LayerPart(), 10_000),), rule=NamedCuts(spread=10_000))
    with pytest.raises(ValueError, match="these are 5000000 or more; the even cut"):
        few(PlanSpace(pipeline=widest, layers=endless))
    # No layer is left for 4096 * 4096 stages, so this is one candidate, and quickly found to be.
    space = PlanSpace(
        pipeline=widest,
        chunks=(4096,),
        layers=Layers(runs=((LayerPart(), 10_000),), rule=NamedCuts(spread=1)),
    )
    assert [candidate.layers for candidate in space.candidates()] == [()]
