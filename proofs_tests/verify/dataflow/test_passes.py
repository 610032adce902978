"""Rule 7 over the passes of a training: versions and contributions, by hand-made programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.dataflow.passes import check_training
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision
from proofs_tests.verify.dataflow.samples import of_family

Orders = list[list[str]]
PASSES = 3
SPLIT = of_family("zb-h1", p=2, m=2).problem
CHUNKS = of_family("interleaved", p=1, m=1, v=2).problem
TWINS = of_family("chimera", p=2, m=2).problem
FIRST = ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1", "0STEP"]
SECOND = ["1F0", "1I0", "1W0", "1F1", "1I1", "1W1", "1STEP"]
TWO_CHUNKS = ["0F0", "1F0", "1B0", "1STEP", "0B0", "0STEP"]
EXCHANGED = ["0REDUCE_GRAD", "1REDUCE_GRAD", "0STEP", "1STEP"]
DOWN = ["0F0", "1F1", "1B1", "0B0", *EXCHANGED]
UP = ["0F1", "1F0", "1B0", "0B1", *EXCHANGED]
TIE = "0REDUCE_GRAD.1"


def judged(problem: Problem, passes: Sequence[Orders], **options: Any) -> RuleDecision:
    return check_training(problem, [Program.from_orders(each) for each in passes], **options)


def said(finding: RuleDecision) -> str:
    assert finding.rule is Rule.DATAFLOW
    assert not finding.ok
    return finding.violations[0].message


def without(order: list[str], *texts: str) -> list[str]:
    return [text for text in order if text not in texts]


def moved(order: list[str], text: str, place: int) -> list[str]:
    """The order with an action put in at a place of what is left without it."""
    rest = without(order, text)
    return [*rest[:place], text, *rest[place:]]


@pytest.mark.parametrize("has_barrier", [False, True])
@pytest.mark.parametrize(
    ("problem", "orders"),
    [(SPLIT, [FIRST, SECOND]), (TWINS, [DOWN, UP])],
    ids=["split", "twins"],
)
def test_right_trainings_hold(problem: Problem, orders: Orders, has_barrier: bool) -> None:
    assert judged(problem, [orders] * PASSES, has_barrier=has_barrier).ok


def test_a_dropped_step_leaves_the_old_version_to_the_next_pass() -> None:
    passes = [[FIRST, SECOND], [without(FIRST, "0STEP"), SECOND], [FIRST, SECOND]]
    message = "0F0 on rank 0 in pass 2 needs version 2 of the parameters of stage 0"
    assert said(judged(SPLIT, passes)) == f"{message}: it finds version 1"
    # with none at all the last pass tells it too
    last = [[FIRST, SECOND], [without(FIRST, "0STEP"), SECOND]]
    assert said(judged(SPLIT, last)) == (
        "stage 0 on rank 0 needs 2 STEPs, one per pass: it has had 1"
    )


def test_a_doubled_step_finds_no_gradient() -> None:
    message = said(judged(SPLIT, [[[*FIRST, "0STEP"], SECOND]] * PASSES))
    assert message == (
        "0STEP on rank 0 in pass 0 needs each contribution of pass 1 to stage 0 once: "
        "it lacks what 0W0 of pass 1 adds (and 1 more)"
    )


def test_a_step_before_its_last_contribution_lacks_it() -> None:
    early = moved(FIRST, "0STEP", len(FIRST) - 2)
    assert early[-2:] == ["0STEP", "0W1"]
    message = said(judged(SPLIT, [[early, SECOND]] * PASSES))
    assert message == (
        "0STEP on rank 0 in pass 0 needs each contribution of pass 0 to stage 0 once: "
        "it lacks what 0W1 of pass 0 adds"
    )


def test_a_step_after_a_forward_of_the_next_pass_comes_too_late() -> None:
    # the step itself takes what it should; the forward before it is all that is wrong
    passes = [
        [without(FIRST, "0STEP"), SECOND],
        [["0F0", "0STEP", *FIRST[1:]], SECOND],
    ]
    finding = judged(SPLIT, passes)
    assert finding.count == 1
    assert said(finding) == (
        "0F0 on rank 0 in pass 1 needs version 1 of the parameters of stage 0: it finds version 0"
    )
    assert "[0F0]" in finding.violations[0].picture
    between = [passes[0], [["0STEP", *FIRST], SECOND]]
    assert judged(SPLIT, between).ok


def test_a_step_of_another_stage_is_foreign_or_finds_nothing() -> None:
    foreign = ["1STEP" if text == "0STEP" else text for text in FIRST]
    assert said(judged(SPLIT, [[foreign, SECOND]])) == (
        "1STEP on rank 0 in pass 0 is not of rank 0: it does not hold stage 1"
    )
    swapped = ["0F0", "1F0", "1B0", "0STEP", "0B0", "1STEP"]
    message = said(judged(CHUNKS, [[swapped]]))
    assert message.endswith("stage 0 once: it lacks what 0B0 of pass 0 adds")


def test_a_contribution_that_is_added_twice_or_in_another_pass_is_named() -> None:
    twice = [*FIRST[:4], "0W0", *FIRST[4:]]
    assert said(judged(SPLIT, [[twice, SECOND]])).endswith("has what 0W0 of pass 0 adds 2 times")
    # 0W1 of pass 0 is run in pass 1 as well: pass 1 finds its own twice
    lost = without(FIRST, "0W1")
    passes = [[lost, SECOND], [["0W1", *FIRST], SECOND]]
    assert said(judged(SPLIT, passes)).endswith("it lacks what 0W1 of pass 0 adds")


def test_a_barrier_waits_for_all_stages() -> None:
    assert judged(CHUNKS, [[TWO_CHUNKS]]).ok
    message = said(judged(CHUNKS, [[TWO_CHUNKS]], has_barrier=True))
    assert message == (
        "1STEP on rank 0 in pass 0, behind the barrier, needs each contribution of pass 0 to "
        "stage 0 once: it lacks what 0B0 of pass 0 adds"
    )
    last = ["0F0", "1F0", "1B0", "0B0", "1STEP", "0STEP"]
    assert judged(CHUNKS, [[last]] * PASSES, has_barrier=True).ok


def test_a_barrier_that_one_rank_never_comes_to_stops_the_training() -> None:
    message = said(judged(SPLIT, [[without(FIRST, "0STEP"), SECOND]], has_barrier=True))
    assert message == "the training stops: 1STEP on rank 1 waits for rank 0"


def test_ranks_of_one_stage_step_with_the_sum_of_both() -> None:
    lost = [without(order, "0REDUCE_GRAD") for order in (DOWN, UP)]
    message = said(judged(TWINS, [lost]))
    assert "0STEP on rank 0 in pass 0 needs each contribution of pass 0 to stage 0" in message
    one = said(judged(TWINS, [[lost[0], UP]]))
    assert one.startswith("the training stops: 1REDUCE_GRAD on rank 0 waits for rank 1; 0REDUCE_")
    early = ["0F0", "1F1", "1B1", "0REDUCE_GRAD", "0B0", *EXCHANGED[1:]]
    message = said(judged(TWINS, [[early, UP]]))
    assert message.endswith("it lacks what 0B0 of pass 0 adds")
    crossed = [*DOWN[:4], "1REDUCE_GRAD", "0REDUCE_GRAD", *DOWN[6:]]
    assert said(judged(TWINS, [[crossed, UP]])).startswith("the training stops")


def test_an_exchange_with_nobody_is_named() -> None:
    alone = [*FIRST[:-1], "0REDUCE_GRAD", "0STEP"]
    assert said(judged(SPLIT, [[alone, SECOND]])).endswith(
        "no other rank has a part of this gradient"
    )


def tied(order: list[str]) -> list[str]:
    return [*order[:-1], TIE, order[-1]]


def test_tied_ends_step_with_the_sum_of_both_stages() -> None:
    right = [tied(FIRST), tied(SECOND)]
    assert judged(SPLIT, [right] * PASSES, tied=(0, 1)).ok
    message = said(judged(SPLIT, [[FIRST, SECOND]], tied=(0, 1)))
    assert message.startswith("0STEP on rank 0 in pass 0 needs each contribution of pass 0 to ")
    assert message.endswith(
        "stage 0 and 1 once: it lacks what 0W0 of pass 0 adds (and 3 more), of the tied matrix"
    )
    early = [*SECOND[:-2], TIE, *SECOND[-2:]]
    message = said(judged(SPLIT, [[right[0], early]], tied=(0, 1)))
    assert message.endswith("it lacks what 1W1 of pass 0 adds, of the tied matrix")


def test_replicas_of_tied_ends_add_theirs_first() -> None:
    ends = [*EXCHANGED[:2], TIE, *EXCHANGED[2:]]
    right = [[*order[:4], *ends] for order in (DOWN, UP)]
    assert judged(TWINS, [right] * PASSES, tied=(0, 1)).ok
    wrong = [[*order[:4], TIE, *EXCHANGED] for order in (DOWN, UP)]
    assert not judged(TWINS, [wrong], tied=(0, 1)).ok
