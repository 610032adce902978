"""The semantics beside the usual five, by hand: each lets one program through and stops another."""

from __future__ import annotations

from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Semantics, check_communication
from bubbleproof.verify.communication.waiting_rules import RULES


def free(problem: Problem, *orders: str) -> set[Semantics]:
    """The semantics under which nothing is wrong."""
    rows = [[Action.parse(text) for text in order.split()] for order in orders]
    verdict = check_communication(problem, Program.from_orders(rows), tuple(Semantics))
    return {Semantics(decision.detail) for decision in verdict.decisions if decision.ok}


TWO = member("1f1b", p=2, m=2).problem
UP = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1"


def test_every_semantics_has_a_rule() -> None:
    assert set(RULES) == set(Semantics)


def test_two_sends_that_meet_pass_where_directions_have_streams_of_their_own() -> None:
    # Rank 0 sends F1 and then receives B0, rank 1 sends B0 and then receives F1: in one stream of
    # the pair each end waits for the other rank's. With a stream for each direction, each flow or
    # each sender's parity, F1 and B0 stand in two; with a buffer B0 leaves before it is received.
    # Rank 1's ends are one batch, and so are rank 0's (0SEND_F1 0RECV_B0): they exchange.
    down = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    passing = {"buffered", "directed-edge", "per-direction", "rank-parity", "bounded"}
    assert free(TWO, UP, down) == {
        Semantics(name) for name in (*passing, "batched", "whole-batches")
    }


def test_groups_that_are_split_differently_are_one_that_waits_for_itself() -> None:
    # Rank 0 posts 0SEND_F1 and 0RECV_B0 together, rank 1 computes between the other ends.
    down = "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1"
    assert set(Semantics) - free(TWO, UP, down) == {Semantics.WHOLE_BATCHES}


def test_messages_of_two_flows_do_not_cross_where_each_has_a_communicator() -> None:
    # A V: stages 0, 3 on rank 0, 1, 2 on rank 1. Rank 0 sends 3SEND_B0 (to stage 2) and then
    # 0SEND_F1 (to stage 1); rank 1 receives them the other way round.
    wave = Pipeline(num_ranks=2, num_chunks=2, num_microbatches=2, placement="wave").problem()
    up = (
        "0F0 0SEND_F0 0F1 3RECV_F0 3F0 3B0 3SEND_B0 0SEND_F1 3RECV_F1 3F1 3B1 3SEND_B1 "
        "0RECV_B0 0B0 0RECV_B1 0B1"
    )
    down = (
        "1RECV_F0 1F0 2F0 2SEND_F0 1RECV_F1 1F1 2RECV_B0 2F1 2SEND_F1 2B0 1B0 2RECV_B1 "
        "1SEND_B0 2B1 1B1 1SEND_B1"
    )
    assert free(wave, up, down) == {Semantics.PER_DIRECTION}


def test_a_channel_that_holds_one_message_is_full_with_the_second() -> None:
    # Rank 0 waits for both its SENDs before it receives B0, rank 1 receives F1 after it has sent
    # B0, which leaves at once where a channel holds a message: F0 was received, F1 has left too.
    # A third forward would wait: rank 1 receives F1 only when B0 has been received.
    fits = "0F0 0SEND_F0 0F1 0SEND_F1 0WAIT_SEND_F0 0WAIT_SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1"
    down = "1RECV_F0 1F0 1B0 1SEND_B0 1WAIT_SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1WAIT_SEND_B1"
    assert free(TWO, fits, down) == {Semantics.BUFFERED, Semantics.BOUNDED}
    three = member("1f1b", p=2, m=3).problem
    full = (
        "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0WAIT_SEND_F0 0WAIT_SEND_F1 0WAIT_SEND_F2 "
        "0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2"
    )
    more = (
        "1RECV_F0 1F0 1B0 1SEND_B0 1WAIT_SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1WAIT_SEND_B1 "
        "1RECV_F2 1F2 1B2 1SEND_B2 1WAIT_SEND_B2"
    )
    # B0 has left (its channel was empty), so rank 1 receives F1 and F2 leaves; B1 waits for B0 to
    # be received, which rank 0 does only when F2 has left. It has.
    assert Semantics.BOUNDED in free(three, full, more)
    # With four forwards, F3 waits for F2, which rank 1 receives behind B1, that waits for B0.
    four = member("1f1b", p=2, m=4).problem
    longer = full.replace("0WAIT_SEND_F0", "0F3 0SEND_F3 0WAIT_SEND_F3 0WAIT_SEND_F0", 1)
    last = " 1RECV_F3 1F3 1B3 1SEND_B3 1WAIT_SEND_B3"
    assert free(four, longer + " 0RECV_B3 0B3", more + last) == {Semantics.BUFFERED}


def test_a_communicator_is_made_when_both_ranks_come_to_it() -> None:
    # Stages 0 and 3 on rank 0, 1 and 4 on rank 1, 2 and 5 on rank 2. Rank 0 posts the receive of
    # its second forward, from rank 2, ahead of its first, which rank 1 begins with; rank 2 comes to
    # its first use with rank 0 only when it has received from rank 1.
    ring = Pipeline(num_ranks=3, num_chunks=2, num_microbatches=1).problem()
    rank0 = "3RECV_F0 0F0 0SEND_F0 3F0 3SEND_F0 3RECV_B0 3B0 3SEND_B0 0RECV_B0 0B0"
    rank1 = (
        "1RECV_F0 1F0 1SEND_F0 4RECV_F0 4F0 4SEND_F0 4RECV_B0 4B0 4SEND_B0 1RECV_B0 1B0 1SEND_B0"
    )
    rank2 = "2RECV_F0 2F0 2SEND_F0 5RECV_F0 5F0 5B0 5SEND_B0 2RECV_B0 2B0 2SEND_B0"
    stopped = set(Semantics) - free(ring, rank0, rank1, rank2)
    assert Semantics.LAZY_PAIRS in stopped
    assert Semantics.PAIR_STREAM not in stopped
