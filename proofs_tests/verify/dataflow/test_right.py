"""Rule 7 holds for every family and every kind of action; the twin's numbers agree."""

from __future__ import annotations

import pytest

from bubbleproof.theory.families import families
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import Rule, check, check_whole
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from bubbleproof.verify.dataflow.training_step import NoTrainingStep
from proofs_tests.cases import Case, all_family_cases, hand_built, overlapped
from proofs_tests.sized import sized
from proofs_tests.verify.dataflow.samples import all_samples, lowered, problem_without, stepped
from proofs_tests.verify.dataflow.twin_runs import right_by_messages, right_by_time, timed

SAMPLES = all_samples()


@pytest.fixture(scope="module")
def of_families() -> dict[str, list[Case]]:
    cases = all_family_cases((2, 3, 4), sized((1, 2, 3, 5), full=(1, 2, 3, 5, 8)), sized(1, full=5))
    assert set(cases) == set(families())
    return {**cases, "overlapped": [overlapped()]}


def require_right(case: Case) -> None:
    """By time, by order, and by messages; and on numbers where no computation takes 0 ticks."""
    for finding in (
        check_dataflow(case.problem, case.schedule),
        check_dataflow_of_program(case.problem, case.schedule.program),
        check_dataflow_of_program(case.problem, lowered(case)),
    ):
        assert finding.ok, f"{case.name}: {finding.violations}"
    ranks = case.problem.rank_of_task >= 0
    if case.problem.duration[ranks].min():
        assert right_by_time(case.problem, timed(case.problem, case.schedule)), case.name
    if len(case.problem.resources) == case.problem.num_ranks:
        orders = lowered(case).orders(case.problem.num_ranks)
        assert right_by_messages(case.problem, orders), case.name


def test_every_family_flows_right(of_families: dict[str, list[Case]]) -> None:
    for case in [case for members in of_families.values() for case in members]:
        require_right(case)


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.name)
def test_every_kind_of_action_flows_right(case: Case) -> None:
    assert check(case.problem, case.schedule).ok
    require_right(case)


def test_key_value_states_stay_when_activations_move() -> None:
    """Slice 0 leaves at 1, for a peer or for the host; slice 2 attends to its states at 2."""
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        num_slices=3,
        evictions=(Eviction(stage=0, microbatch=0, slice=0, source=0, target=1, duration=1),),
        offloads=(ActivationOffload(stage=1, microbatch=0, slice=0, offload=1, reload=1),),
    )
    problem = pipeline.problem()
    passes = ("F0.0", "F0.1", "F0.2", "B0.2", "B0.1", "B0.0")
    moves = (("0EVICT0.0", "0LOAD0.0"), ("1OFFLOAD0.0",), ("1RELOAD0.0",))  # link and engines
    ranks = ([f"{stage}{text}" for text in passes] for stage in range(2))
    schedule = left_shift(problem, Program.from_orders([*ranks, *moves]))
    assert check(problem, schedule).ok
    for finding in (
        check_dataflow(problem, schedule),
        check_dataflow_of_program(problem, schedule.program),
    ):
        assert finding.ok, finding.violations


def test_what_leaves_by_one_direction_of_a_link_comes_back_by_the_other() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        duplex="full",
        evictions=(Eviction(stage=0, microbatch=0, source=0, target=1, duration=1),),
    )
    problem = pipeline.problem()
    assert [resource.name for resource in problem.resources[2:]] == ["link 0>1", "link 1>0"]
    orders = [["0F0", "0B0"], ["1F0", "1B0"], ["0EVICT0"], ["0LOAD0"]]
    schedule = left_shift(problem, Program.from_orders(orders))
    assert check_dataflow(problem, schedule).ok
    assert check_dataflow_of_program(problem, schedule.program).ok


def test_the_samples_hold_every_kind_of_action() -> None:
    kinds = {action.kind.name for case in SAMPLES for action in case.problem.actions}
    wanted = "F B I W R EVICT LOAD OFFLOAD RELOAD UNSHARD RESHARD REDUCE_GRAD STEP"
    assert kinds == set(wanted.split())


def test_a_problem_that_moves_something_else_is_left_alone() -> None:
    case = hand_built()
    with pytest.raises(NoTrainingStep, match="it has 1OFFLOAD0 without 1RELOAD0"):
        check_dataflow(case.problem, case.schedule)
    verdict = check_whole(case.problem, case.schedule)
    assert Rule.DATAFLOW not in {finding.rule for finding in verdict.decisions}
    assert [rule for rule, _ in verdict.inapplicable] == [Rule.DATAFLOW]
    assert "inapplicable" in str(verdict)
    assert verdict.ok


@pytest.mark.parametrize(
    ("dropped", "why"),
    [
        (("0F1",), "it has no 0F1"),
        (("1B2",), "it has no backward of 1F2"),
        (("0F0", "0F1", "0F2", "1F0", "1F1", "1F2"), "it has no forwards or no backwards"),
    ],
)
def test_part_of_a_training_step_is_none(dropped: tuple[str, ...], why: str) -> None:
    case = stepped()
    with pytest.raises(NoTrainingStep, match=why):
        check_dataflow(problem_without(case.problem, *dropped), case.schedule)
