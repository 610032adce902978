"""One mistake each among messages and waits: rule 7 names it, whatever the other rules say."""

from __future__ import annotations

from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check_communication, check_whole
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow_of_program
from proofs_tests.verify.dataflow.samples import (
    hosted,
    lowered,
    of_family,
    sentences,
    swapped,
    texts,
)


def test_swapped_sends_are_found_by_rules_6_and_7() -> None:
    case = of_family("1f1b", p=2, m=2)
    orders = [
        ["0F0", "0F1", "0SEND_F1", "0SEND_F0", "0RECV_B0", "0B0", "0RECV_B1", "0B1"],
        ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RECV_F1", "1F1", "1B1", "1SEND_B1"],
    ]
    program = Program.from_orders(orders)
    assert not check_communication(case.problem, program).ok
    assert sentences(check_dataflow_of_program(case.problem, program)) == [
        "1F0 on rank 1 needs the output of 0F0: it finds the output of 0F1 in its place",
        "1F1 on rank 1 needs the output of 0F1: it finds the output of 0F0 in its place",
    ]
    verdict = check_whole(case.problem, program)
    assert verdict.broken == (Rule.COMMUNICATION, Rule.DATAFLOW)


def test_each_fault_of_a_message_is_named() -> None:
    case = of_family("1f1b", p=2, m=1)

    def found(*orders: str) -> list[str]:
        program = Program.from_orders([order.split() for order in orders])
        return sentences(check_dataflow_of_program(case.problem, program))

    fine = ("0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0")
    assert found(*fine) == []
    assert found("0SEND_F0 0F0 0RECV_B0 0B0", fine[1])[0] == (
        "0SEND_F0 on rank 0 needs the output of 0F0: it is not on rank 0, or was sent before"
    )
    assert found(fine[0], "1F0 1B0 1SEND_B0") == [
        "1F0 on rank 1 needs the output of 0F0: it is not on rank 1",
        "0SEND_F0 on rank 0 needs a receiver: nobody receives from its channel any more",
    ]
    assert found("0F0 0RECV_B0 0B0", fine[1]) == [
        "1F0 on rank 1 needs the output of 0F0: rank 0 has not sent what 1RECV_F0 receives",
        "1RECV_F0 on rank 1 needs a message: its channel brings no more",
    ]
    assert found(f"{fine[0]} 0RECV_B0", fine[1]) == [
        "0RECV_B0 on rank 0 needs a message: its channel brings no more"
    ]
    assert found(f"{fine[0]} 0SEND_B0", fine[1]) == [
        "0SEND_B0 on rank 0 needs a stage on the other side: there is none"
    ]


def test_ranks_that_wait_for_each_other_stop_the_run() -> None:
    case = of_family("1f1b", p=2, m=2)
    orders = [["0F0", "0B0", "0F1", "0B1"], ["1F1", "1B1", "1F0", "1B0"]]
    (message,) = sentences(check_dataflow_of_program(case.problem, Program.from_orders(orders)))
    assert message == (
        "the run stops, all wait: "
        "0B0 on rank 0 needs the input gradient of 1B0: it has not been made; "
        "1F1 on rank 1 needs the output of 0F1: it has not been made"
    )


def test_a_standstill_names_the_first_wait_of_each_rank() -> None:
    # Rank 1 runs 1F1 and 1B0 at once and lacks an input of each, both still to come from others.
    pipeline = Pipeline(num_ranks=3, num_microbatches=2, overlaps=(((1, 1), (1, 0)),))
    orders = [
        ["0F0", "0B0", "0F1", "0B1"],
        ["1F0", "(1F1;1B0)OVERLAP_F_B", "1B1"],
        ["2F0", "2F1", "2B0", "2B1"],
    ]
    program = Program.from_orders(orders)
    (message,) = sentences(check_dataflow_of_program(pipeline.problem(), program))
    assert message == (
        "the run stops, all wait: "
        "0B0 on rank 0 needs the input gradient of 1B0: it has not been made; "
        "1F1 on rank 1 needs the output of 0F1: it has not been made; "
        "2F1 on rank 2 needs the output of 1F1: it has not been made"
    )


def test_what_another_resource_is_still_to_add_is_waited_for() -> None:
    # 5F0 before 2F0: the ranks wait in a circle, and the OFFLOADs for the backwards behind it. No
    # resource is to blame, for all that is awaited is still to come from another one.
    case = hosted()
    orders = swapped(texts(case.schedule, case.problem), "2F0", "5F0")
    (message,) = sentences(check_dataflow_of_program(case.problem, Program.from_orders(orders)))
    assert message == (
        "the run stops, all wait: 3F0 on rank 0 needs the output of 2F0: it has not been made; "
        "4F0 on rank 1 needs the output of 3F0: it has not been made; "
        "5F0 on rank 2 needs the output of 4F0: it has not been made"
    )


def test_the_author_s_own_messages_are_run_too() -> None:
    case = of_family("bpipe", p=4, m=6)
    verdict = check_whole(case.problem, lowered(case))
    assert [f.detail for f in verdict.decisions if f.rule is Rule.DATAFLOW] == ["", "messages"]
    assert verdict.ok
