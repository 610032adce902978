"""Lowering: what is sent where, for tiny shapes by hand and for any program by simulation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages import messages
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.drawn_programs import ordered_pipelines
from proofs_tests.verify.token_simulator import SEMANTICS, Wiring, simulate

Ordered = tuple[Pipeline, Problem, Program]


def lowered(pipeline: Pipeline, *orders: str) -> list[str]:
    problem = pipeline.problem()
    program = Program.from_orders([order.split() for order in orders])
    rows = lower(problem, left_shift(problem, program)).orders(pipeline.num_ranks)
    return [" ".join(str(action) for action in row) for row in rows]


def test_two_ranks_two_microbatches() -> None:
    # Left-shifted: 0F0 0..1, 0F1 1..2, 1F0 1..2, 1B0 2..4, 1F1 4..5, 0B0 4..6, 1B1 5..7, 0B1 7..9.
    # A message stands where its task ends, before what its receiver starts next; 0F1 ends at 2,
    # when 1B0 starts, so 1RECV_F1 stands before 1B0.
    assert lowered(
        Pipeline(num_ranks=2, num_microbatches=2), "0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"
    ) == [
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
        "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1",
    ]


def test_stages_of_one_rank_send_nothing_to_each_other() -> None:
    # A wave of four stages on two ranks: 1 and 2 are neighbours on rank 1.
    wave = Pipeline(num_ranks=2, num_microbatches=1, num_chunks=2, placement="wave")
    assert lowered(wave, "0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0") == [
        "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0",
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0",
    ]


def test_weight_gradients_are_not_sent() -> None:
    split = Pipeline(num_ranks=2, num_microbatches=1, split_backward=True)
    assert lowered(split, "0F0 0I0 0W0", "1F0 1I0 1W0") == [
        "0F0 0SEND_F0 0RECV_B0 0I0 0W0",
        "1RECV_F0 1F0 1I0 1SEND_B0 1W0",
    ]


@given(ordered_pipelines())
def test_every_program_lowers_to_one_that_runs_under_every_semantics(made: Ordered) -> None:
    _, problem, program = made
    rows = lower(problem, left_shift(problem, program)).orders(problem.num_ranks)
    wiring = Wiring.of(problem)
    for semantics in SEMANTICS:
        assert simulate(wiring, rows, semantics, 0) == "ok"


@given(ordered_pipelines())
def test_lowering_keeps_the_computations_and_adds_two_rows_per_message(made: Ordered) -> None:
    _, problem, program = made
    rows = lower(problem, left_shift(problem, program)).orders(problem.num_ranks)
    kept = [[a for a in row if a.kind not in COMMUNICATION_KINDS] for row in rows]
    assert kept == program.orders(problem.num_ranks)
    added = Counter(a for row in rows for a in row if a.kind in COMMUNICATION_KINDS)
    wanted = Counter(end for m in messages(problem) for end in (m.send, m.recv))
    assert added == wanted
    assert set(added.values()) <= {1}


@pytest.mark.parametrize("foreign", ["0F9", "9B0"])
def test_foreign_rows_stay_and_send_nothing(foreign: str) -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=1).problem()
    schedule = left_shift(problem, Program.from_orders([["0F0", "0B0"], ["1F0", "1B0"]]))
    orders = schedule.program.orders(2)
    orders[1].append(Action.parse(foreign))
    made = Schedule(program=Program.from_orders(orders), start=np.append(schedule.start, 50))
    assert [str(a) for a in lower(problem, made).orders(2)[1]] == [
        "1RECV_F0",
        "1F0",
        "1B0",
        "1SEND_B0",
        foreign,
    ]


def test_tasks_of_no_time_that_wait_for_each_other_are_lowered_as_listed() -> None:
    """0B0 waits for 0F0, which is listed behind it; all start at 0, and no order is right."""
    problem = Pipeline(num_ranks=2, num_microbatches=1, forward=0, backward=0).problem()
    program = Program.from_orders([["0B0", "0F0"], ["1F0", "1B0"]])
    made = Schedule(program=program, start=np.zeros(4, dtype=np.int64))
    orders = lower(problem, made).orders(2)
    computed = [[str(a) for a in order if str(a)[1] in "FB"] for order in orders]
    assert computed == [["0B0", "0F0"], ["1F0", "1B0"]]
