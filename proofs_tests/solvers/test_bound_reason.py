"""The reason for a bound: the numbers of the sentence, worked out by hand, and the advice."""

from __future__ import annotations

from bubbleproof.solvers.bound_reason import bound_reason
from bubbleproof.theory.model.problem import Resource
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand


def test_the_rank_with_most_work_is_named() -> None:
    uneven = Pipeline(num_ranks=3, num_microbatches=4, forward=(1, 2, 1), backward=(2, 4, 2))
    # Rank 1 works 4 (2 + 4) = 24 ticks of 48; 0F0 comes before, 0B3 after it.
    assert bound_reason(uneven.problem()) == (
        "8 tasks on rank 1 take 24 ticks, none starts before 1, and 2 follow the last: no schedule "
        "is below 27. Rank 1 has the most work, 24 of 48 ticks: move a layer off it."
    )


def test_even_work_leaves_the_way_in_and_out() -> None:
    told = bound_reason(Pipeline(num_ranks=4, num_microbatches=8).problem())
    # Rank 3 works 8 (1 + 2) ticks, 3 forwards come before and 3 backwards of 2 after it.
    assert told.startswith("16 tasks on rank 3 take 24 ticks, none starts before 3, and 6 follow")
    assert "9 ticks of that are the way in and out: more microbatches" in told


def test_one_rank_is_never_idle() -> None:
    assert bound_reason(Pipeline(num_ranks=1, num_microbatches=2).problem()).endswith(
        "Rank 0 is never idle then: only quicker computation would lower that."
    )


def test_a_link_that_takes_longest_is_named() -> None:
    rows = [
        (f"0{kind}{j}", ticks, (where,))
        for j in range(3)
        for kind, ticks, where in (("F", 1, 0), ("OFFLOAD", 5, 1), ("B", 1, 0))
    ]
    waits = [
        (f"0{a}{j}", f"0{b}{j}", 0)
        for j in range(3)
        for a, b in (("F", "OFFLOAD"), ("OFFLOAD", "B"))
    ]
    told = bound_reason(by_hand(rows, waits, resources=RANK_AND_LINK))
    assert told.startswith("3 tasks on link take 15 ticks, none starts before 1, and 1 follow")
    assert told.endswith("A faster link, or less that goes over it, would lower that.")


def test_memory_is_named_where_it_binds() -> None:
    tight = Pipeline(num_ranks=2, num_microbatches=4, capacity=1).problem()
    # With room for one microbatch each takes F F B B = 1 + 1 + 2 + 2 ticks, one after the other;
    # else rank 1 works 4 (1 + 2) ticks, after 1 and before 2.
    assert bound_reason(tight) == (
        "No schedule is below 24 ticks with the room that there is in memory; with room for "
        "everything that bound is 15. More room is what would lower it."
    )


def test_a_chain_over_ranks_is_named_where_no_rank_has_much_to_do() -> None:
    # One microbatch on 8 ranks: 8 (1 + 2) ticks, of which a rank works 3.
    told = bound_reason(Pipeline(num_ranks=8, num_microbatches=1).problem())
    assert told.startswith("No schedule is below 24 ticks: so long takes a chain of tasks")


def test_a_circle_has_no_schedule() -> None:
    rows = [("0F0", 1, (0,)), ("0B0", 1, (0,))]
    circle = by_hand(
        rows, [("0F0", "0B0", 0), ("0B0", "0F0", 0)], resources=(Resource(name="rank 0", rank=0),)
    )
    assert "circle" in bound_reason(circle)
