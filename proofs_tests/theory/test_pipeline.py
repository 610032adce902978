"""Pipelines: the tasks, precedences and memory of small shapes written out by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from bubbleproof.testing.strategies import pipelines
from bubbleproof.theory.families.base import with_whole_weights
from bubbleproof.theory.model.actions import MAX_PART, Kind
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import stage_ranks
from bubbleproof.theory.pipelines.stage_numbers import weight_rows
from proofs_tests.theory.pipeline_rows import PLAIN, edges, events


def test_two_ranks_one_microbatch_full_backward() -> None:
    made = Pipeline(num_ranks=2, num_microbatches=1, latency=3).problem()
    assert edges(made) == Counter(
        [("0F0", "1F0", 3), ("0F0", "0B0", 0), ("1F0", "1B0", 0), ("1B0", "0B0", 3)]
    )
    assert events(made) == Counter(
        [
            ("0F0", "start", 0, 1),
            ("1F0", "start", 1, 1),
            ("0B0", "end", 0, -1),
            ("1B0", "end", 1, -1),
        ]
    )
    assert made.duration.tolist() == [1, 1, 2, 2]


def test_one_rank_split_backward_with_a_part_released_early_and_with_residuals() -> None:
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        num_chunks=2,
        split_backward=True,
        activation=(5, 4),
        released_at_input=(2, -3),
        static=(10, 20),
    )
    made = pipeline.problem()
    # Both stages on rank 0: no latency between them. I0 waits for I1, W waits for its own I.
    assert edges(made) == Counter(
        [("0F0", "1F0", 0), ("0F0", "0I0", 0), ("1F0", "1I0", 0), ("1I0", "0I0", 0),
         ("0I0", "0W0", 0), ("1I0", "1W0", 0)]
    )  # fmt: skip
    # Stage 0: 5 = 2 after I + 3 after W. Stage 1: 4, and 3 of residuals from I's start; 7 after W.
    assert events(made) == Counter(
        [("0F0", "start", 0, 5), ("0I0", "end", 0, -2), ("0W0", "end", 0, -3),
         ("1F0", "start", 0, 4), ("1I0", "start", 0, 3), ("1W0", "end", 0, -7)]
    )  # fmt: skip
    assert made.stores[0].base == 30


def test_one_stage_two_slices() -> None:
    made = Pipeline(num_ranks=1, num_microbatches=1, num_slices=2).problem()
    # Forwards in slice order; backwards in the reverse, so the first waits for all slices.
    assert edges(made) == Counter(
        [("0F0.0", "0F0.1", 0), ("0B0.1", "0B0.0", 0), ("0F0.0", "0B0.0", 0), ("0F0.1", "0B0.1", 0)]
    )


def test_slices_of_unequal_cost() -> None:
    # Stage 1 is twice as slow, later slices dearer; the last microbatch costs what the first does.
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        num_slices=3,
        forward=((3, 4, 5), (6, 8, 10)),
        backward=((6, 8, 10),),
    )
    made = pipeline.problem()
    wanted = {"0F0.0": 3, "0F1.1": 4, "0F0.2": 5, "1F0.0": 6, "1F1.2": 10, "0B0.1": 8, "1B1.2": 10}
    assert {text: int(made.duration[made.task(text)]) for text in wanted} == wanted
    assert made.duration.sum() == 2 * (12 + 24 + 24 + 24)


def test_one_row_is_for_every_stage_and_even_slices_are_one_number() -> None:
    one = Pipeline(num_ranks=2, num_microbatches=1, num_slices=2, forward=[[3, 4]])
    assert one == one.with_changes(forward=((3, 4), (3, 4)))
    even = one.with_changes(forward=((3, 3), (4, 4)))
    assert even == one.with_changes(forward=(3, 4))
    assert even.forward == (3, 4)


def test_weights_cut_into_parts() -> None:
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        num_chunks=3,
        split_backward=((True,), (False,), (True,)),
        weight_backward=(6, 1, 4),
        weight_parts=((1, 2, 3), (), ()),
        activation=5,
        released_at_input=2,
    )
    made = pipeline.problem()
    # Stage 0 in three GEMMs, one after another after I, the memory held to the end of the last;
    # stage 1 has a full backward; stage 2 is split and computes W whole.
    ticks = {made.label(t): int(made.duration[t]) for t in range(made.num_tasks)}
    weights = {text: number for text, number in ticks.items() if "W" in text}
    assert weights == {"0W0#0": 1, "0W0#1": 2, "0W0#2": 3, "2W0": 4}
    found = edges(made)
    assert all(
        found[pair] == 1
        for pair in [
            ("0I0", "0W0#0", 0),
            ("0W0#0", "0W0#1", 0),
            ("0W0#1", "0W0#2", 0),
            ("2I0", "2W0", 0),
        ]
    )
    assert sum("W" in before + after for before, after, _ in found) == 4
    moments = events(made)
    assert moments["0I0", "end", 0, -2] == moments["0W0#2", "end", 0, -3] == 1
    assert not [key for key in moments if key[0] in ("0W0#0", "0W0#1")]


def test_what_a_gemm_holds_while_it_runs() -> None:
    # Stage 0 cuts W, which holds 3 and then 4; stage 1 has a full backward, which holds the larger
    # of 1 and 5 all the time; stage 2 computes W whole and holds nothing but the activation.
    plain = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        num_chunks=3,
        split_backward=((True,), (False,), (True,)),
        weight_backward=(3, 3, 3),
        weight_parts=((1, 2), (2, 1), ()),
        activation=5,
    )
    pipeline = plain.with_changes(weight_workspace=((3, 4), (1, 5), (0,)))
    extra = events(pipeline.problem()) - events(plain.problem())
    assert extra == Counter(
        (task, moment, 0, units)
        for task, held in (("0W0#0", 3), ("0W0#1", 4), ("1B0", 5))
        for moment, units in (("start", held), ("end", -held))
    )
    assert not events(plain.problem()) - events(pipeline.problem())
    whole = with_whole_weights(pipeline)
    assert (whole.weight_parts, whole.weight_workspace) == ((), ((4,), (5,), (0,)))
    assert with_whole_weights(whole) == whole


def test_workspace_is_given_once_in_one_row_or_in_rows() -> None:
    cut = Pipeline(
        num_ranks=2, num_microbatches=1, split_backward=True, weight_backward=3, weight_parts=(1, 2)
    )
    assert cut.with_changes(weight_workspace=0) == cut
    assert cut.with_changes(weight_workspace=7).weight_workspace == ((7, 7), (7, 7))
    assert cut.with_changes(weight_workspace=(7, 8)).weight_workspace == ((7, 8), (7, 8))
    one_each = cut.with_changes(weight_parts=(), weight_workspace=((7,), (8,)))
    assert one_each.weight_workspace == ((7,), (8,))


def test_backwards_split_for_some_microbatches_of_some_stages() -> None:
    made = PLAIN.with_changes(split_backward=((True, False), (False, False))).problem()
    labels = {made.label(t) for t in range(made.num_tasks)}
    assert labels == {"0F0", "0F1", "1F0", "1F1", "0I0", "0W0", "0B1", "1B0", "1B1"}
    assert edges(made)["1B0", "0I0", 0] == 1
    assert edges(made)["1B1", "0B1", 0] == 1


def test_a_named_link_has_its_own_latency_in_both_directions() -> None:
    pipeline = Pipeline(
        num_ranks=3, num_microbatches=1, latency=1, links=(Link(ranks=(2, 1), latency=7),)
    )
    lags = {(a, b): lag for a, b, lag in edges(pipeline.problem())}
    assert lags["0F0", "1F0"] == lags["1B0", "0B0"] == 1
    assert lags["1F0", "2F0"] == lags["2B0", "1B0"] == 7


def test_placements() -> None:
    # Three chunks of two ranks: round and round, or there and back and there.
    assert stage_ranks("loop", num_ranks=2, num_chunks=3) == (0, 1, 0, 1, 0, 1)
    assert stage_ranks("wave", num_ranks=2, num_chunks=3) == (0, 1, 1, 0, 0, 1)
    refused = "placement must be one of loop, wave, bidirectional, got 'ring'"
    with pytest.raises(ValueError, match=refused):
        stage_ranks("ring", num_ranks=2, num_chunks=1)
    custom = Pipeline(num_ranks=2, num_microbatches=1, num_chunks=2, placement=(1, 0, 0, 1))
    assert custom.problem().stage_to_rank == {0: 1, 1: 0, 2: 0, 3: 1}


@given(pipelines())
def test_every_pipeline_has_its_tasks_on_their_ranks(pipeline: Pipeline) -> None:
    made = pipeline.problem()
    cells = pipeline.num_stages * pipeline.num_microbatches * pipeline.num_slices
    kinds = Counter(action.kind.name for action in made.actions)
    assert kinds["F"] == kinds["B"] + kinds["I"] == cells
    parts = pipeline.num_parts.tolist()
    assert kinds["W"] == sum(parts[a.stage] for a in made.actions if a.kind is Kind.I)
    for task, action in enumerate(made.actions):
        assert made.rank_of_task[task] == pipeline.rank_grid[action.stage, action.microbatch]


@given(pipelines())
def test_every_task_gives_back_what_it_took(pipeline: Pipeline) -> None:
    made = pipeline.problem()
    for store in range(len(made.stores)):
        assert made.events.delta[made.events.store == store].sum() == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_ranks": 0}, "num_ranks must be 1 or more, got 0"),
        ({"num_microbatches": True}, "num_microbatches must be a whole number, got True"),
        ({"num_chunks": 1.5}, "num_chunks must be a whole number, got 1.5"),
        ({"forward": -1}, "forward must be 0 or more, got -1"),
        ({"backward": (1, 2, 3)}, "backward must be one number or one per stage (2), got 3"),
        ({"forward": ((1, 2),)}, "forward of stage 0 must be one number per slice (1), got 2"),
        (
            {"forward": ((1,), (2,), (3,))},
            "forward must be one row or one per stage (2), got 3 rows",
        ),
        ({"forward": ((1,), 2)}, "forward must be numbers or rows of numbers, got both"),
        ({"forward": ((1,), (-2,))}, "forward must be 0 or more, got -2"),
        (
            {"weight_parts": (1, 1)},
            "weight_parts of stage 0 add up to 2 ticks, but weight_backward is 1",
        ),
        (
            {"weight_parts": ((), (2,))},
            "weight_parts of stage 1 add up to 2 ticks, but weight_backward is 1",
        ),
        (
            {"weight_parts": (1,) * 64, "weight_backward": 64},
            "weight_parts must be at most 63 parts, got 64",
        ),
        ({"weight_parts": (2, -1)}, "weight_parts must be 0 or more, got -1"),
        (
            {"weight_workspace": (1, 2)},
            "weight_workspace of stage 0 must be one number per part of W (1), got 2",
        ),
        ({"weight_workspace": -1}, "weight_workspace must be 0 or more, got -1"),
        ({"weight_parts": (0.5, 0.5)}, "weight_parts must be a whole number, got 0.5"),
        (
            {"weight_parts": ((1,), (1,), (1,))},
            "weight_parts must be one row or one per stage (2), got 3 rows",
        ),
        (
            {"placement": (0, 0)},
            "placement must give each of 2 stages a rank and every rank 0..1 a stage, got (0, 0)",
        ),
        (
            {"placement": (0, 1, 0)},
            "placement must give each of 2 stages a rank and every rank 0..1 a stage, "
            "got (0, 1, 0)",
        ),
        ({"latency": -2}, "latency must be 0 or more, got -2"),
        (
            {"links": (Link(ranks=(0, 2), latency=1),)},
            "a link joins two different ranks of 0..1, got (0, 2)",
        ),
        (
            {"links": (Link(ranks=(1, 1), latency=1),)},
            "a link joins two different ranks of 0..1, got (1, 1)",
        ),
        (
            {"links": (Link(ranks=(0, 1), latency=-1),)},
            "latency of link (0, 1) must be 0 or more, got -1",
        ),
        ({"released_at_input": 2}, "released_at_input (2) exceeds activation (1)"),
        ({"capacity": (1, 2, 3)}, "capacity must be one number or one per rank (2), got 3"),
        ({"capacity": -1}, "capacity must be 0 or more, got -1"),
        (
            {"split_backward": ((True, False),)},
            "split_backward must be one flag or 2 rows (stages) of 2 flags (microbatches)",
        ),
    ],
)
def test_what_a_pipeline_refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        PLAIN.with_changes(**changes)
    assert str(caught.value) == message


def test_capacities_go_to_their_ranks() -> None:
    capped = PLAIN.with_changes(capacity=(3, None)).problem()
    assert [store.capacity for store in capped.stores] == [3, None]
    assert [s.capacity for s in PLAIN.with_changes(capacity=4).problem().stores] == [4, 4]


def test_as_many_parts_as_an_action_can_name() -> None:
    # 0 to MAX_PART: one more than MAX_PART.
    most = MAX_PART + 1
    assert weight_rows((1,) * most, num_stages=2) == ((1,) * most,) * 2
    with pytest.raises(ValueError, match=f"must be at most {most} parts, got {most + 1}"):
        weight_rows((1,) * (most + 1), num_stages=2)


def test_parts_of_w_count_as_actions() -> None:
    # F, I and three parts of W are 5 actions a microbatch: 4,000,000 of 800,000, and no more.
    parts = {"split_backward": True, "weight_backward": 3, "weight_parts": (1, 1, 1)}
    assert Pipeline(num_ranks=1, num_microbatches=800_000, **parts).num_stages == 1  # type: ignore[arg-type]  # fields by name
    with pytest.raises(ValueError, match="at most 4000000 actions, got 4000005"):
        Pipeline(num_ranks=1, num_microbatches=800_001, **parts)  # type: ignore[arg-type]  # fields by name
