"""One mistake each: rule 7 names it, whatever the other rules say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.theory.families import member
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import Rule, check, check_whole
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from proofs_tests.cases import Case
from proofs_tests.verify.dataflow.samples import (
    at,
    chosen,
    first_of,
    hosted,
    of_family,
    problem_without,
    retimed,
    sentences,
    sharded,
    stepped,
    swapped,
    texts,
    without,
    without_edge,
)

# Faults that must be caught before anything runs, and by which rules they are; the swapped SENDs
# among them stand in test_message_faults.


def test_a_forgotten_gradient_of_key_value_states_is_found_by_rule_7_alone() -> None:
    # The problem lacks an edge and the order makes use of it: rules 1 to 6 cannot know.
    case = of_family("svpp", p=2, m=2, s=3)
    problem = without_edge(case.problem, "1B0.2", "1B0.1")
    schedule = retimed(problem, swapped(texts(case.schedule, problem), "1B0.2", "1B0.1"))
    assert check(problem, schedule).ok
    verdict = check_whole(problem, schedule)
    assert verdict.broken == (Rule.DATAFLOW,)
    assert [v.message for v in verdict.violations] == [
        "1B0.1 on rank 1 needs the key/value gradients that 1B0.2 adds: it has not added them yet"
    ]
    assert "[1B0.1]" in verdict.violations[0].picture


def test_a_lost_weight_gradient() -> None:
    case = of_family("zb-h1", p=2, m=3)
    schedule = without(case.schedule, "0W1")
    expected = "the gradient of stage 0 needs every contribution once: it lacks what 0W1 adds"
    assert first_of(case, schedule) == expected
    assert check_whole(case.problem, schedule).broken == (Rule.COMPLETE, Rule.DATAFLOW)
    # A problem that never asked for it has it missing all the same; only rule 7 can tell.
    poorer = problem_without(case.problem, "0W1")
    assert check_whole(poorer, schedule).broken == (Rule.DATAFLOW,)


def test_a_lost_piece_of_a_weight_gradient() -> None:
    made = member("zb-h1", p=2, m=2, tW=3)
    pipeline = made.pipeline.with_changes(weight_parts=(1, 2))
    orders = [
        [text for b in order for text in ([f"{b}#0", f"{b}#1"] if "W" in b else [b])]
        for order in texts(made.schedule, made.problem)
    ]
    case = Case(
        name="pieces", problem=pipeline.problem(), schedule=retimed(pipeline.problem(), orders)
    )
    assert check_dataflow(case.problem, case.schedule).ok
    assert first_of(case, without(case.schedule, "1W0#1")) == (
        "the gradient of stage 1 needs every contribution once: it lacks what 1W0 adds as piece 1"
    )


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_a_lost_reduction(zero: int) -> None:
    # Two enqueues and two dequeues: collectives 0 and 1 are of forwards, 2 and 3 of backwards.
    case = sharded(zero)
    schedule = without(case.schedule, "1REDUCE_GRAD.3")
    assert Rule.DATAFLOW in check_whole(case.problem, schedule).broken
    added = "1B0" if zero == 1 else "1B4"
    assert first_of(case, schedule) == (
        f"the gradient of stage 1 needs all of it reduced: what {added} added is never reduced"
    )


def test_a_reduction_may_do_the_work_of_the_one_before_it() -> None:
    # The sum is the same, so only rule 1 objects.
    case = sharded(2)
    schedule = without(case.schedule, "1REDUCE_GRAD.2")
    assert check_dataflow(case.problem, schedule).ok
    assert Rule.COMPLETE in check_whole(case.problem, schedule).broken


def test_activations_that_are_not_brought_back() -> None:
    case = of_family("bpipe", p=4, m=6)
    text = next(str(a) for a in case.schedule.program.actions if "LOAD" in str(a))
    stage, microbatch = text.split("LOAD")
    expected = (
        f"{stage}B{microbatch} on rank 0 needs the activations of {stage}F{microbatch} on rank 0: "
        f"{stage}EVICT{microbatch} has evicted them"
    )
    schedule = without(case.schedule, text)
    assert first_of(case, schedule) == expected
    by_order = check_dataflow_of_program(case.problem, schedule.program)
    assert sentences(by_order) == [expected]
    assert {Rule.COMPLETE, Rule.DATAFLOW} <= set(check_whole(case.problem, schedule).broken)


# Parameters.


def test_a_step_before_the_last_backward() -> None:
    # 1F1B p=2 m=3 takes (m + p - 1) 3 = 12 ticks: 0B2 runs from 10 to 12 and 0STEP follows. No
    # precedence of the problem says that it must.
    case = stepped()
    assert (case.schedule.start.max(), case.problem.edges.after.max()) == (12, 11)
    schedule = at(case.schedule, "0STEP", 10)
    assert sentences(check_dataflow(case.problem, schedule)) == [
        "0STEP on rank 0 needs the whole gradient of stage 0: it lacks what 0B2 adds",
        "0B2 on rank 0 needs the parameters of stage 0 until it ends: 0STEP has updated them",
    ]


def test_a_stage_that_is_never_updated() -> None:
    case = stepped()
    assert first_of(case, without(case.schedule, "1STEP")) == (
        "stage 1 needs one STEP: it has had 0"
    )


def test_parameters_that_are_not_gathered_or_freed_too_early() -> None:
    case = sharded(3)
    assert first_of(case, without(case.schedule, "0UNSHARD")) == (
        "0F0 on rank 0 needs the parameters of stage 0 of this step: no UNSHARD has brought them"
    )
    assert first_of(case, without(case.schedule, "0RESHARD.3")) == (
        "copy 3 of the parameters of stage 0 needs to be freed: no RESHARD has freed it"
    )
    # 0F0 to 0F3 run in the first visit; freed at 3 they are gone while 0F0 or 0F1 uses them.
    message = first_of(case, at(case.schedule, "0RESHARD", 3))
    assert message.endswith(
        "needs the parameters of stage 0 until it ends: 0RESHARD has freed them"
    )


def test_a_hosted_stage() -> None:
    case = hosted()
    assert first_of(case, without(case.schedule, "3RELOAD0")) == (
        "3F0 on rank 0 needs the parameters of stage 3 of this step: no RELOAD has brought them"
    )
    assert first_of(case, without(case.schedule, "3OFFLOAD3")) == (
        "3STEP on host of rank 0 needs the whole gradient of stage 3: "
        "it lacks what 3B0 adds (and 3 more)"
    )
    early = at(case.schedule, "3OFFLOAD3", 0)
    assert any(
        "3OFFLOAD3" in sentence for sentence in sentences(check_dataflow(case.problem, early))
    )


# Activations.


def test_activations_that_are_not_recomputed() -> None:
    case = hosted()
    assert first_of(case, without(case.schedule, "0R1")) == (
        "0B1 on rank 0 needs the activations of 0F1 on rank 0: "
        "they were dropped after 0F1 and not recomputed since"
    )


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        ("0LOAD1", "0EVICT1 has evicted them"),
        ("0RELOAD2", "0OFFLOAD2 has off-loaded them"),
        ("1R0", "they were dropped after 1F0 and not recomputed since"),
    ],
)
def test_each_way_of_parking_needs_its_way_back(lost: str, found: str) -> None:
    case = chosen()
    assert first_of(case, without(case.schedule, lost)).endswith(f": {found}")


def test_a_backward_while_its_activations_are_on_their_way() -> None:
    case = of_family("bpipe", p=4, m=6)
    load = next(str(a) for a in case.schedule.program.actions if "LOAD" in str(a))
    backward = load.replace("LOAD", "B")
    program = case.schedule.program
    start = int(case.schedule.start[[str(a) for a in program.actions].index(backward)])
    message = first_of(case, at(case.schedule, load, start))
    assert message.startswith(f"{backward} on rank 0 needs the activations")


def test_a_backward_that_adds_twice() -> None:
    case = of_family("gpipe", p=1, m=2)
    orders = [["0F0", "0F1", "0B1", "0B1", "0B0"]]
    finding = check_dataflow_of_program(case.problem, Program.from_orders(orders))
    assert sentences(finding) == [
        "0B1 on rank 0 needs the activations of 0F1 on rank 0: 0B1 has released them",
        "the gradient of stage 0 needs every contribution once: 0B1 has added to it 2 times",
    ]


def test_a_stage_runs_where_its_parameters_are() -> None:
    case = of_family("gpipe", p=2, m=1)
    orders = [["0F0", "1F0", "0B0"], ["1B0"]]
    finding = check_dataflow_of_program(case.problem, Program.from_orders(orders))
    assert sentences(finding) == [
        "1F0 on rank 0 needs the parameters of stage 1 on rank 0: they are on rank 1",
        "1B0 on rank 1 needs the activations of 1F0 on rank 1: they are on rank 0 since 1F0",
    ]


# Slices, and what runs at all.


def test_slices_read_the_states_of_earlier_ones() -> None:
    case = of_family("terapipe", p=1, m=1, s=2)
    orders = [["0F0.1", "0F0", "0B0.1", "0B0"]]
    finding = check_dataflow_of_program(case.problem, Program.from_orders(orders))
    assert sentences(finding) == [
        "0F0.1 on rank 0 needs the key/value states of 0F0.0: 0F0.0 has not run"
    ]


def test_a_pair_of_which_one_part_is_foreign_does_not_run() -> None:
    case = of_family("1f1b", p=2, m=2)
    orders = texts(case.schedule, case.problem)
    orders[0].remove("0B1")
    without_it = check_dataflow_of_program(case.problem, Program.from_orders(orders))
    orders[0].append("(0F7;0B1)OVERLAP_F_B")
    with_it = check_dataflow_of_program(case.problem, Program.from_orders(orders))
    assert sentences(with_it) == sentences(without_it)
    assert sentences(with_it) != []


@pytest.mark.parametrize(("rank_is_first", "where"), [(True, "rank 0"), (False, "link 0-3")])
def test_a_task_on_two_resources_runs_where_its_first_row_stands(
    rank_is_first: bool, where: str
) -> None:
    case = of_family("bpipe", p=4, m=6)
    task = case.problem.task("0EVICT1")
    homes = case.problem.occupancy
    at = int(np.flatnonzero(homes.task == task)[0]) + (not rank_is_first)
    both = replace(
        homes, task=np.insert(homes.task, at, task), resource=np.insert(homes.resource, at, 0)
    )
    problem = replace(case.problem, occupancy=both)
    orders = texts(case.schedule, case.problem)
    orders[0].insert(orders[0].index("0F1"), "0EVICT1")
    orders[0].remove("0F1")
    found = sentences(check_dataflow_of_program(problem, Program.from_orders(orders)))
    assert [one.split(" needs ")[0] for one in found if one.startswith("0EVICT1")] == [
        f"0EVICT1 on {where}"
    ]
