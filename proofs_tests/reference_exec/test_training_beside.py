"""Trainings whose stages are sharded or a host's: what is judged, and what is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.plans.stepping import with_steps
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.report.replay_json import write_measured_trace
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.check import check
from bubbleproof.verify.dataflow.passes import check_training
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision
from proofs_tests.reference_exec.cases import family_case
from proofs_tests.reference_exec.meshes import mesh, plan_of
from proofs_tests.reference_exec.training_cases import trained, training_orders

Orders = list[list[str]]
TWO = Training(optimizer="adam", steps=2)
WAITING = replace(TWO, has_barrier=True)


def judged(problem: Problem, orders: Orders, *, has_barrier: bool = False) -> RuleDecision:
    passes = [Program.from_orders(orders)] * 2
    return check_training(problem, passes, has_barrier=has_barrier)


def put(order: list[str], text: str, which: int, place: int) -> list[str]:
    """The order with the ``which``-th of an action put at a place of what is left."""
    at = [i for i, own in enumerate(order) if own == text][which]
    rest = [own for i, own in enumerate(order) if i != at]
    return [*rest[:place], text, *rest[place:]]


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("has_barrier", [False, True])
def test_sharded_stages(zero: int, has_barrier: bool) -> None:
    made = mesh(zero, m=2)
    problem = made[0].problem()
    plan = plan_of(made, replicas=2, levels=str(zero))
    plan = with_steps(replace(plan, training=WAITING if has_barrier else TWO))
    first, second = ([str(a) for a in plan.order(rank)] for rank in range(2))
    assert judged(problem, [first, second], has_barrier=has_barrier).ok
    # a step while its last reduction is still under way
    last = max(i for i, text in enumerate(first) if text.startswith("0REDUCE_GRAD"))
    early = put(first, "0STEP", 0, last)
    found = judged(problem, [early, second])
    assert found.violations[0].message.startswith("0STEP on rank 0 in pass 0 needs each contrib")
    assert "it lacks what 0B0 of pass 0 adds" in found.violations[0].message
    # a step that is dropped leaves the old parameters to the next pass's UNSHARD
    lost = [text for text in first if text != "0STEP"]
    found = judged(problem, [lost, second])
    message = "0F0 on rank 0 in pass 1 needs version 1 of the parameters of stage 0"
    assert found.violations[0].message == f"{message}: it finds version 0"


def test_stages_of_a_host() -> None:
    case = family_case("toffload", p=2, m=2)
    first, second = training_orders(case, TWO)
    assert judged(case.problem, [first, second], has_barrier=True).ok
    # the host steps while the gradient is still on its way down
    down = [i for i, text in enumerate(first) if text == "2OFFLOAD1"]
    found = judged(case.problem, [put(first, "2STEP", 0, down[1]), second])
    assert "2STEP on rank 0 in pass 0" in found.violations[0].message
    assert "it lacks what 2B0 of pass 0 adds (and 1 more)" in found.violations[0].message
    # no STEP of the host at all: the next RELOAD brings the old weights
    lost = [text for text in first if text != "2STEP"]
    found = judged(case.problem, [lost, second])
    message = "2F0 on rank 0 in pass 1 needs version 1 of the parameters of stage 2"
    assert found.violations[0].message == f"{message}: it finds version 0"
    # weights that are not back yet
    back = put(first, "2RELOAD0", 1, first.index("2F0"))
    found = judged(case.problem, [back, second])
    assert found.violations[0].message.endswith("parameters of stage 2: none is there")


@pytest.mark.parametrize(
    ("name", "params", "added"),
    [
        ("chimera", {"p": 4, "m": 4}, 16),
        ("zb-h1", {"p": 2, "m": 3}, 2),
        ("interleaved", {"p": 2, "m": 4, "v": 2}, 4),
    ],
)
def test_steps_and_exchanges_are_drawn_where_they_ran(
    name: str, params: dict[str, int], added: int, tmp_path: Path
) -> None:
    case = family_case(name, **params)
    report = trained(case, TWO)
    problem, measured = measured_schedule(case.problem, case.schedule, report.traces)
    assert len(measured) == len(case.schedule) + added
    verdict = check(problem, measured)
    held = {finding.rule for finding in verdict.decisions if finding.ok}
    assert {Rule.COMPLETE, Rule.EXCLUSIVE} <= held, str(verdict)
    task = problem.locate(measured.program.actions)
    assert not (task == NONE).any()
    for row in np.flatnonzero(task >= case.problem.num_tasks).tolist():
        action, rank = measured.program.actions[row], int(measured.program.resource[row])
        trace = report.traces[rank]
        place = trace.actions.index(action)
        begin = trace.begin[place] + trace.waited[place]
        assert begin <= int(measured.start[row]) * 1000 < begin + 1000
        assert int(problem.duration[task[row]]) <= (trace.end[place] - begin) // 1000 + 1
    path = tmp_path / "x.perfetto.json"
    write_measured_trace(path, problem, measured, report.traces)
    assert path.read_text().count("STEP") >= added // 2
