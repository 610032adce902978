"""A rank does what its program says and nothing that an earlier action did not make possible."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import Endpoint, Network, run_virtual
from bubbleproof.reference_exec.ledger import Hold
from bubbleproof.reference_exec.plans.plan import Plan, require_runnable
from bubbleproof.reference_exec.plans.step import training_step
from bubbleproof.reference_exec.runtime.rank import Rank
from bubbleproof.theory.model.actions import Action, ActionTable, Kind
from bubbleproof.theory.model.problem import Occupancy, Problem, Resource
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.communication.matching import Semantics
from proofs_tests.reference_exec.cases import TINY, family_case


def alone(*actions: str, num_microbatches: int = 1, num_stages: int = 1) -> Plan:
    """A plan of one rank that holds all stages."""
    return Plan(
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


@pytest.mark.parametrize("text", ["0R0", "0EVICT0", "0LOAD0", "0OFFLOAD0", "0RELOAD0"])
def test_recomputing_or_moving_slices_is_refused_by_name(text: str) -> None:
    actions = [Action.parse("0F0.0"), Action.parse("0F0.1"), Action.parse(text)]
    with pytest.raises(ValueError, match=f"unsliced microbatches only; got {text}.0"):
        require_runnable(ActionTable.from_actions(actions))


def test_the_training_step_is_read_back_from_its_tasks() -> None:
    flags = ((True, False), (False, False), (True, True), (False, True))
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        num_chunks=2,
        placement=(1, 0, 0, 1),
        split_backward=flags,
        overlaps=(((0, 1), (3, 0)),),
    )
    step = training_step(pipeline.with_changes(forward=7, latency=2, capacity=9).problem())
    assert step == pipeline


def test_half_a_training_step_is_refused() -> None:
    orders = [["0F0", "0F1", "0B0"], ["1F0", "1F1", "1B0", "1B1"]]
    actions = Program.from_orders(orders)
    half = Problem(
        resources=tuple(Resource(name=f"rank {r}", rank=r) for r in range(2)),
        actions=actions.actions,
        duration=np.ones(7, dtype=np.int64),
        occupancy=Occupancy(task=np.arange(7), resource=actions.resource),
    )
    with pytest.raises(ValueError, match="replay needs a whole training step; task 0B1 is missing"):
        training_step(half)


def test_a_problem_far_from_a_training_step_is_refused() -> None:
    far = Program.from_orders([["0F9999999"]])
    problem = Problem(
        resources=(Resource(name="rank 0", rank=0),),
        actions=far.actions,
        duration=np.ones(1, dtype=np.int64),
        occupancy=Occupancy(task=np.arange(1), resource=far.resource),
    )
    with pytest.raises(ValueError, match="1 stages x 10000000 microbatches are more than 1 tasks"):
        training_step(problem)


def test_a_task_beyond_the_training_step_is_refused() -> None:
    more = Program.from_orders([["0F0", "0B0", "0W0"]])
    problem = Problem(
        resources=(Resource(name="rank 0", rank=0),),
        actions=more.actions,
        duration=np.ones(3, dtype=np.int64),
        occupancy=Occupancy(task=np.arange(3), resource=more.resource),
    )
    with pytest.raises(ValueError, match="replay runs training steps; task 0W0 belongs to none"):
        training_step(problem)


def placed(*orders: list[str]) -> Problem:
    """The tasks of a program on its ranks, without precedences."""
    program = Program.from_orders(orders)
    return Problem(
        resources=tuple(Resource(name=f"rank {r}", rank=r) for r in range(len(orders))),
        actions=program.actions,
        duration=np.ones(len(program), dtype=np.int64),
        occupancy=Occupancy(task=np.arange(len(program)), resource=program.resource),
    )


def test_a_single_stage_on_two_ranks_is_refused() -> None:
    problem = placed(["0F0", "0B0", "1F0", "1B0", "1F1", "1B1"], ["0F1", "0B1"])
    with pytest.raises(ValueError, match="in opposite directions; stage 0 is on neither"):
        training_step(problem)


def test_two_directions_are_read_back_and_no_other_sharing_of_stages() -> None:
    step = Pipeline(num_ranks=2, num_microbatches=3, placement="bidirectional")
    rows = tuple(tuple(row) for row in np.zeros((2, 3), dtype=bool).tolist())
    assert training_step(step.problem()) == step.with_changes(split_backward=rows)
    # of three microbatches the first two run downward (stage g on rank g), here only the first
    orders = [
        ["0F0", "0B0", "1F1", "1B1", "1F2", "1B2"],
        ["1F0", "1B0", "0F1", "0B1", "0F2", "0B2"],
    ]
    with pytest.raises(ValueError, match="replay needs 1F1 on rank 1, where its direction runs"):
        training_step(placed(*orders))


def test_choices_are_read_back() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        placement=(0, 1),
        split_backward=((False,) * 3,) * 2,
        recompute=Recompute(stages=(1,), samples=((0, 2),)),
        evictions=(Eviction(stage=0, microbatch=1, source=0, target=1, duration=4),),
    )
    assert training_step(pipeline.problem()) == pipeline
    weightless = pipeline.with_changes(activation=0).problem()
    with pytest.raises(ValueError, match="memory of one rank; 0EVICT1 adds to 0"):
        training_step(weightless)
