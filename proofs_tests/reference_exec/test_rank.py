"""A rank does what its program says and nothing that an earlier action did not make possible."""

from __future__ import annotations

import pytest
import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import Endpoint, Network, run_virtual
from bubbleproof.reference_exec.ledger import Hold
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.rank import Rank
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.semantics import Semantics
from proofs_tests.reference_exec.cases import TINY, family_case


def alone(*actions: str, num_microbatches: int = 1, num_stages: int = 1) -> ReplayPlan:
    """A plan of one rank that holds all stages."""
    return ReplayPlan(
        spec=TINY,
        program=Program.from_orders([actions]),
        stage_ranks=(0,) * num_stages,
        num_microbatches=num_microbatches,
    )


def test_live_bytes_rise_at_f_and_fall_at_b() -> None:
    # TINY: N = 3 tokens, d = 4: saved 6 * 12 + 2 * 3 = 78, error 12, loss 1: 91 * 8 = 728 bytes
    (result,) = run_virtual(alone("0F0", "0F1", "0B0", "0B1", num_microbatches=2))
    assert result.live_bytes == (728, 1456, 728, 0)


def test_live_bytes_of_a_split_backward() -> None:
    # operands of W: 10 * 12 elements = 960 bytes
    (result,) = run_virtual(alone("0F0", "0I0", "0F1", "0I1", "0W1", "0W0", num_microbatches=2))
    assert result.live_bytes == (728, 960, 1688, 1920, 960, 0)


def test_an_overlapped_pair_counts_as_its_two_parts() -> None:
    (result,) = run_virtual(alone("0F0", "(0F1;0B0)OVERLAP_F_B", "0B1", num_microbatches=2))
    assert result.live_bytes == (728, 1456, 728, 0)


def test_stages_of_one_rank_hand_over_without_messages() -> None:
    (result,) = run_virtual(alone("0F0", "1F0", "1B0", "0B0", num_stages=2))
    # the middle stage's output is 12 elements, without the scalar loss: 720 bytes
    assert result.live_bytes == (720, 1448, 720, 0)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (("0B0",), "rank 0, action 0: 0B0 without its forward, or again"),
        (("0F0", "0F0"), "0F0 runs twice"),
        (("0F0", "0B0", "0B0"), "0B0 without its forward, or again"),
        (("0F0", "0I0", "0W0", "0W0"), "0W0 without its I, or again"),
        (("0F0", "0W0", "0I0"), "0W0 without its I, or again"),
        (("0F0", "0B0", "0W0"), "0W0 without its I, or again"),
        (("0F0",), "left over: 0F0 without backward"),
        (("0F0", "0I0"), "left over: 0I0 without W"),
    ],
)
def test_a_wrong_order_is_noticed(actions: tuple[str, ...], message: str) -> None:
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(alone(*actions))


def test_a_message_that_nobody_posted_is_noticed() -> None:
    plan = family_case("1f1b", p=2, m=1).plan(
        program=Program.from_orders([["0F0", "0SEND_F0", "0RECV_B0", "0B0"], ["1F0", "1B0"]])
    )
    with pytest.raises(BrokenProgram, match="1F0 needs 1RECV_F0, which is not posted"):
        run_virtual(plan)


def test_a_message_that_is_not_made_yet_is_noticed() -> None:
    plan = family_case("1f1b", p=2, m=1).plan(program=Program.from_orders([["0SEND_F0"], []]))
    with pytest.raises(BrokenProgram, match="0SEND_F0 has nothing to send"):
        run_virtual(plan)


def test_an_unsent_output_is_noticed() -> None:
    plan = family_case("1f1b", p=2, m=1).plan(program=Program.from_orders([["0F0"], []]))
    with pytest.raises(BrokenProgram, match="0F0 without backward, 1RECV_F0 never sent or used"):
        run_virtual(plan)


def test_a_storage_that_is_held_at_the_end_is_noticed() -> None:
    endpoint = Endpoint(network=Network(Semantics.BUFFERED), rank=0, is_blocking=False)
    rank = Rank(alone("0F0", "0B0"), 0, endpoint)
    leak = Hold(rank._compute.ledger, torch.zeros(7, dtype=torch.float64))
    list(rank.run())
    assert rank.result().left_bytes == 56
    del leak


def test_every_kind_has_a_handler() -> None:
    endpoint = Endpoint(network=Network(Semantics.BUFFERED), rank=0, is_blocking=False)
    assert set(Rank(alone("0F0"), 0, endpoint)._handlers) == set(Kind)


@pytest.mark.parametrize("text", ["2UNSHARD", "1RESHARD", "0REDUCE_GRAD"])
def test_collectives_without_replicas_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=f"replay runs collectives on replicas.*; got {text}$"):
        alone("0F0", text)
