"""Rule 6 for exchanges of gradients and for barriers, by hand."""

from __future__ import annotations

import pytest

from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.matching import check_communication
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.verdict import Verdict
from proofs_tests.verify.dataflow.samples import of_family

TWINS = of_family("chimera", p=2, m=2).problem
CHAIN = of_family("gpipe", p=2, m=1).problem
ENDS = ["0REDUCE_GRAD", "1REDUCE_GRAD", "0STEP", "1STEP"]
# microbatch 0 goes down from rank 0 to rank 1, microbatch 1 up from rank 1 to rank 0
DOWN = ["0F0", "0SEND_F0", "1RECV_F1", "1F1", "1B1", "1SEND_B1", "0RECV_B0", "0B0"]
UP = ["0F1", "0SEND_F1", "1RECV_F0", "1F0", "1B0", "1SEND_B0", "0RECV_B1", "0B1"]
FIRST = ["0F0", "0SEND_F0", "0RECV_B0", "0B0", "0STEP"]
LAST = ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1STEP"]
TIE = "0REDUCE_GRAD.1"
UNBLOCKED = (Semantics.BUFFERED, Semantics.PAIR_STREAM, Semantics.RANK_STREAM)


def judged(
    orders: list[list[str]], *semantics: Semantics, problem: object = TWINS, **options: bool
) -> Verdict:
    program = Program.from_orders(orders)
    return check_communication(problem, program, semantics or USUAL, **options)  # type: ignore[arg-type]  # problems


def said(verdict: Verdict) -> str:
    assert not verdict.ok
    return verdict.violations[0].message


@pytest.mark.parametrize("has_barrier", [False, True])
def test_exchanges_at_the_end_are_free_of_deadlock(has_barrier: bool) -> None:
    # (blocking SENDs of both ranks at once are this hand-made order's own fault)
    assert judged([DOWN + ENDS, UP + ENDS], Semantics.BUFFERED, has_barrier=has_barrier).ok
    assert judged([FIRST, LAST], problem=CHAIN, has_barrier=has_barrier).ok


def test_an_exchange_stands_once_on_both_ranks() -> None:
    lost = [text for text in ENDS if text != "0REDUCE_GRAD"]
    assert said(judged([DOWN + lost, UP + ENDS])) == (
        "0REDUCE_GRAD stands 1 times on rank 1, must stand once on 0 and 1"
    )
    twice = ["0REDUCE_GRAD", *ENDS]
    assert said(judged([DOWN + twice, UP + ENDS])).startswith("0REDUCE_GRAD stands 2 times on rank")
    assert said(judged([["0REDUCE_GRAD", *FIRST], LAST], problem=CHAIN)) == (
        "0REDUCE_GRAD stands 1 times on rank 0, must stand once on no rank"
    )


def test_exchanges_and_messages_share_their_channels() -> None:
    crossed = ["1REDUCE_GRAD", "0REDUCE_GRAD", *ENDS[2:]]
    assert "is sent as 0REDUCE_GRAD but received as 1REDUCE_GRAD" in said(
        judged([DOWN + ENDS, UP + crossed], Semantics.BUFFERED)
    )
    # rank 0 exchanges before its last message, rank 1 after it
    early = [*DOWN[:5], "0REDUCE_GRAD", *DOWN[5:], *ENDS[1:]]
    assert "is sent as 0REDUCE_GRAD but received as 0RECV_B1" in said(
        judged([early, UP + ENDS], Semantics.BUFFERED)
    )


def test_an_exchange_that_waits_for_what_comes_after_it_is_a_deadlock() -> None:
    # rank 1 makes the gradient that rank 0's B needs only after it has met rank 0
    tied = ["1RECV_F0", "1F0", TIE, "1B0", "1SEND_B0"]
    late = ["0F0", "0SEND_F0", "0RECV_B0", "0B0", TIE]
    assert "is sent as 0REDUCE_GRAD.1 but received as 0RECV_B0" in said(
        judged([late, tied], problem=CHAIN)
    )
    # with the RECV behind the meeting the channels match, and 0B0 cannot run before it
    stuck = ["0F0", "0SEND_F0", "0B0", TIE, "0RECV_B0"]
    assert not judged([stuck, tied], problem=CHAIN).ok
    fine = ["0F0", "0SEND_F0", TIE, "0RECV_B0", "0B0"]
    assert judged([fine, tied], problem=CHAIN).ok


def test_a_rank_that_meets_before_it_sends_stops_the_other() -> None:
    # rank 1 waits for 0F0's output before its own half; rank 0 sends it after the meeting
    before = ["0F0", TIE, "0SEND_F0", "0RECV_B0", "0B0"]
    after = ["1RECV_F0", "1F0", "1B0", "1SEND_B0", TIE]
    for semantics in USUAL:
        assert not judged([before, after], semantics, problem=CHAIN).ok


def test_tied_ends_that_lie_on_the_same_ranks_do_not_meet() -> None:
    local = [*ENDS[:2], TIE, *ENDS[2:]]
    other = [TIE, *ENDS]  # before what the other does before it: met, they would not go on
    assert judged([DOWN + local, UP + other], Semantics.BUFFERED).ok


@pytest.mark.parametrize("semantics", UNBLOCKED)
def test_a_barrier_before_a_message_that_others_need(semantics: Semantics) -> None:
    # without a barrier rank 1 may step before it sends; with one rank 0 never gets there
    early = ["1RECV_F0", "1F0", "1B0", "1STEP", "1SEND_B0"]
    assert judged([FIRST, early], semantics, problem=CHAIN).ok
    assert not judged([FIRST, early], semantics, problem=CHAIN, has_barrier=True).ok
    message = said(judged([FIRST[:-1], LAST], semantics, problem=CHAIN, has_barrier=True))
    assert message == "rank 0 never comes to the barrier: it has no STEP"
