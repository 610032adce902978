"""Sentences of rule 7 that no test of ``test_faults`` brings about, in orders written by hand."""

from __future__ import annotations

import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow_of_program
from proofs_tests.verify.dataflow.samples import of_family, sharded, stepped, texts
from proofs_tests.verify.dataflow.test_moved_state import GATHERED

FINE = "0UNSHARD 0F0 0RESHARD 0UNSHARD.1 0B0 0RESHARD.1 0REDUCE_GRAD.1"


def found(problem: Problem, *orders: str) -> list[str]:
    program = Program.from_orders([order.split() for order in orders])
    finding = check_dataflow_of_program(problem, program)
    assert finding.count == len(finding.violations) or finding.count > 3
    return [violation.message for violation in finding.violations]


def test_the_step_by_hand_is_right() -> None:
    assert found(GATHERED, FINE) == []
    # REDUCE_GRAD may run anywhere after the backward, the second UNSHARD before the first RESHARD.
    assert found(GATHERED, "0UNSHARD 0UNSHARD.1 0F0 0RESHARD 0B0 0REDUCE_GRAD.1 0RESHARD.1") == []


THIS_STEP = "on rank 0 needs the parameters of stage 0 of this step:"
A_COPY = "on rank 0 needs the gathered parameters of stage 0:"


@pytest.mark.parametrize(
    ("order", "sentences"),
    [
        (
            "0F0 0RESHARD 0UNSHARD.1 0B0 0RESHARD.1 0REDUCE_GRAD.1",
            [
                f"0F0 {THIS_STEP} no UNSHARD has brought them",
                f"0RESHARD {A_COPY} no UNSHARD has brought them",
            ],
        ),
        (
            "0UNSHARD 0F0 0RESHARD 0B0 0RESHARD.1 0REDUCE_GRAD.1",
            [
                f"0B0 {THIS_STEP} 0RESHARD has freed them",
                f"0RESHARD.1 {A_COPY} no UNSHARD has brought them",
            ],
        ),
        (
            "0UNSHARD 0UNSHARD 0F0 0RESHARD 0UNSHARD.1 0B0 0RESHARD.1 0REDUCE_GRAD.1",
            [
                "0UNSHARD on rank 0 needs to bring a copy for the first time: "
                "0UNSHARD has brought it"
            ],
        ),
        (
            "0UNSHARD 0F0 0RESHARD 0RESHARD 0UNSHARD.1 0B0 0RESHARD.1 0REDUCE_GRAD.1",
            [f"0RESHARD {A_COPY} 0RESHARD has freed them"],
        ),
        (
            "0UNSHARD 0F0 0UNSHARD.1 0B0 0RESHARD.1 0REDUCE_GRAD.1",
            ["copy 0 of the parameters of stage 0 needs to be freed: no RESHARD has freed it"],
        ),
        (
            "0UNSHARD 0F0 0RESHARD 0UNSHARD.1 0REDUCE_GRAD.1 0B0 0RESHARD.1",
            ["the gradient of stage 0 needs all of it reduced: what 0B0 added is never reduced"],
        ),
    ],
)
def test_copies_are_gathered_used_and_freed(order: str, sentences: list[str]) -> None:
    assert found(GATHERED, order) == sentences


def test_a_copy_on_another_rank_is_of_no_use() -> None:
    problem = sharded(3).problem
    message = found(problem, "0F0", "0UNSHARD")[0]
    assert message == f"0F0 {THIS_STEP} 0UNSHARD has brought them to rank 1"


def test_a_stage_steps_once_and_last() -> None:
    case = stepped()
    zero, one = (" ".join(order) for order in texts(case.schedule, case.problem))
    assert found(case.problem, zero, one) == []
    assert found(case.problem, f"{zero} 0STEP", one) == ["stage 0 needs one STEP: it has had 2"]
    early = zero.replace(" 0STEP", "").replace("0B2", "0STEP 0B2")
    assert found(case.problem, early, one) == [
        "0STEP on rank 0 needs the whole gradient of stage 0: it lacks what 0B2 adds",
        "0B2 on rank 0 needs the parameters of stage 0 of this step: 0STEP has updated them",
    ]


def test_a_step_off_the_ranks_sees_what_all_of_them_have() -> None:
    case = stepped()
    zero, one = (" ".join(order) for order in texts(case.schedule, case.problem))
    for gap in ([], [""]):  # on the first resource behind the ranks, and on the next
        orders = [zero.replace(" 0STEP", ""), one, *gap, "0STEP"]
        assert found(case.problem, *orders) == []
    # On another rank it sees what that has summed of the stage: nothing.
    assert found(case.problem, orders[0], f"{one} 0STEP")[0] == (
        "0STEP on rank 1 needs the whole gradient of stage 0: it lacks what 0B0 adds (and 2 more)"
    )


def test_a_piece_of_w_runs_once() -> None:
    split = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        split_backward=True,
        weight_backward=2,
        weight_parts=(1, 1),
    ).problem()
    assert found(split, "0F0 0I0 0W0#1 0W0#0") == []
    assert found(split, "0F0 0I0 0W0#0 0W0#0 0W0#1") == [
        "0W0#0 on rank 0 needs the activations of 0F0, as left for W: this piece of W has run",
        "the gradient of stage 0 needs every contribution once: 0W0 has added to it 2 times as "
        "piece 0",
    ]
    assert found(split, "0F0 0I0 0W0#0") == [
        "the gradient of stage 0 needs every contribution once: it lacks what 0W0 adds as piece 1"
    ]


def test_what_has_come_on_another_rank_is_not_waited_for() -> None:
    """0F0 has run, but on rank 1: rank 0 would wait for it for ever, so it goes on without."""
    problem = of_family("terapipe", p=2, m=1, s=2).problem
    assert found(problem, "0F0.1 0B0.1 0B0", "0F0 1F0 1F0.1 1B0.1 1B0") == [
        "0F0.0 on rank 1 needs the parameters of stage 0 on rank 1: they are on rank 0",
        "0F0.1 on rank 0 needs the key/value states of 0F0.0: they are on rank 1 since 0F0.0",
        "0B0.0 on rank 0 needs the activations of 0F0.0 on rank 0: they are on rank 1 since 0F0.0",
    ]


def test_a_standstill_is_counted_with_the_mistakes_before_it() -> None:
    problem = of_family("1f1b", p=2, m=2).problem
    # The second 0F0 is a mistake; then 0B0 waits for 1B0 and 1F1 for 0F1, behind each other.
    messages = found(problem, "0F0 0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0")
    assert messages == [
        "0F0 on rank 0 needs to run for the first time: they are on rank 0 since 0F0",
        "the run stops, all wait: "
        "0B0 on rank 0 needs the input gradient of 1B0: it has not been made; "
        "1F1 on rank 1 needs the output of 0F1: it has not been made",
    ]


def test_activations_on_a_link_are_waited_for() -> None:
    """The link evicts twice before it brings back, and the second waits for what 0B1 holds up."""
    problem = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        evictions=tuple(
            Eviction(stage=0, microbatch=j, source=0, target=1, duration=1) for j in (1, 2)
        ),
    ).problem()
    second = "1F0 1B0 1F1 1B1 1F2 1B2"
    link = "0EVICT1 0LOAD1 0EVICT2 0LOAD2"
    assert found(problem, "0F0 0B0 0F1 0B1 0F2 0B2", second, link) == []
    assert found(problem, "0F0 0B0 0F1 0B1 0F2 0B2", second, "0EVICT1 0EVICT2 0LOAD1 0LOAD2") == [
        "the run stops, all wait: "
        "0B1 on rank 0 needs the activations of 0F1 on rank 0: 0EVICT1 has evicted them; "
        "1F2 on rank 1 needs the output of 0F2: it has not been made; "
        "0EVICT2 on link 0-1 needs the activations of 0F2 on their rank: 0F2 has not run"
    ]


def test_parameters_that_another_rank_gathers_are_waited_for() -> None:
    problem = sharded(3).problem
    program = Program.from_orders([["0F0"], ["1UNSHARD", "1F0", "0UNSHARD"]])
    (violation,) = check_dataflow_of_program(problem, program).violations
    assert violation.message == (
        f"the run stops, all wait: 0F0 {THIS_STEP} no UNSHARD has brought them; "
        "1F0 on rank 1 needs the output of 0F0: it has not been made"
    )


@pytest.mark.parametrize(
    ("order", "tasks"),
    [("0F0 0I0", ("0I0",)), ("0F0 0I0 0W0 0W0", ("0W0", "0W0"))],
)
def test_a_gradient_is_shown_where_it_went_wrong(order: str, tasks: tuple[str, ...]) -> None:
    """What lacks a W, at the last work on its activations; what has it twice, at those who add."""
    problem = Pipeline(num_ranks=1, num_microbatches=1, split_backward=True).problem()
    finding = check_dataflow_of_program(problem, Program.from_orders([order.split()]))
    assert tuple(t for v in finding.violations for t in v.tasks)[: len(tasks)] == tasks


def test_what_is_parked_over_one_link_does_not_come_back_over_another() -> None:
    problem = Pipeline(
        num_ranks=4,
        num_microbatches=1,
        evictions=(
            Eviction(stage=0, microbatch=0, source=0, target=3, duration=1),
            Eviction(stage=1, microbatch=0, source=1, target=2, duration=1),
        ),
    ).problem()
    ranks = [f"{rank}F0 {rank}B0" for rank in range(4)]
    assert found(problem, *ranks, "0EVICT0 0LOAD0", "1EVICT0 1LOAD0") == []
    assert found(problem, *ranks, "0EVICT0", "1EVICT0 1LOAD0 0LOAD0") == [
        "0LOAD0 on link 1-2 needs the activations of 0F0, evicted over the same link: "
        "0EVICT0 has evicted them"
    ]
