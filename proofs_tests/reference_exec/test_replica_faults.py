"""Teeth of replicas: collectives that are lost, moved or doubled are refused, and show.

The schedules have no collectives of their own and get theirs (``test_replicas``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.plans import prepared
from bubbleproof.reference_exec.plans.replicated import ReplicatedSchedule
from bubbleproof.reference_exec.plans.verification import verify_collectives
from bubbleproof.theory.model.actions import Action, ActionTable, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.finding import Rule
from proofs_tests.cases import without
from proofs_tests.reference_exec.cases import Case, family_case
from proofs_tests.reference_exec.replica_cases import (
    of_family,
    placed,
    run,
)
from proofs_tests.sized import sized


def refused(whole: ReplicatedSchedule, program: Program) -> set[Rule]:
    """The rules that a program with collectives breaks before anything runs."""
    return set(verify_collectives(whole.problem, whole.schedule, program).broken)


@pytest.mark.parametrize(("name", "levels"), [("zb-v", "3"), ("chimera", "2"), ("1f1b", None)])
def test_every_dropped_collective_is_refused_and_shows_when_forced(
    name: str, levels: str | None
) -> None:
    whole, plan = placed(family_case(name, p=2, m=2), levels)
    assert whole.parallel is not None
    assert not refused(whole, plan.program)
    for number, action in enumerate(whole.parallel.homes):
        rows = [row for row, a in enumerate(plan.program.actions) if a == action]
        poorer = without(plan.program, *rows)
        broken = refused(whole, poorer)
        assert Rule.COMPLETE in broken
        is_earlier = action.kind is Kind.REDUCE_GRAD and not _is_last(whole, action)
        assert (Rule.DATAFLOW in broken) == (not is_earlier), action  # the next does its work
        if number % sized(4, full=1) == 0:
            with pytest.raises(BrokenProgram, match=r"not here|never freed|never reduced"):
                run_virtual(replace(plan, program=poorer))


def _is_last(whole: ReplicatedSchedule, action: Action) -> bool:
    assert whole.parallel is not None
    return whole.parallel.last[action.stage, whole.parallel.homes[action]] == action.slice


def moved(program: Program, action: Action, places: int) -> Program:
    """The program with both rows of a collective so many places earlier."""
    orders = program.orders(1 + int(program.resource.max()))
    for order in orders:
        if action in order:
            at = order.index(action)
            del order[at : at + 2]
            order[at - places : at - places] = [action, action]
    return Program.from_orders(orders)


def test_a_sum_before_the_last_contribution_is_refused_and_shows() -> None:
    case = of_family("zb-h1")
    whole, plan = placed(case, None)
    early = moved(plan.program, Action(stage=0, kind=Kind.REDUCE_GRAD, slice=2), 1)
    assert refused(whole, early) == {Rule.DATAFLOW}
    report = replay_forced(case, early)
    assert not report.gradients_equal
    assert report.max_relative_error > 1e-3


def replay_forced(case: Case, program: Program) -> ReplayReport:
    """A replay of whole replicas that runs ``program`` whatever verification says."""
    with pytest.MonkeyPatch.context() as patch:
        right = prepared.replay_plan
        patch.setattr(
            prepared, "replay_plan", lambda *given: replace(right(*given), program=program)
        )
        return run(case, None, unsafe=True)


def test_parameters_gathered_after_their_use_are_refused_and_show() -> None:
    whole, plan = placed(of_family("zb-v"), "3")
    order = plan.order(0)
    brought = Action(stage=0, kind=Kind.UNSHARD, slice=1)
    at = order.index(brought)
    later = order[:at] + order[at + 2 : at + 3] + [brought] * 2 + order[at + 3 :]
    late = Program.from_orders([later, plan.order(1)])
    assert refused(whole, late) == {Rule.DATAFLOW}
    with pytest.raises(BrokenProgram, match=r"parameters of stage 0 are not here; UNSHARD 1 has"):
        run_virtual(replace(plan, program=late))


def test_a_copy_on_the_other_rank_of_a_stage_does_not_serve() -> None:
    whole, plan = placed(of_family("chimera"), "3")
    assert whole.parallel is not None
    brought = Action(stage=1, kind=Kind.UNSHARD, slice=whole.parallel.first[1, 0])
    orders = [plan.order(0), plan.order(1)]
    orders[0] = [a for a in orders[0] if a != brought]
    orders[1] = [brought, brought, *orders[1]]
    assert Rule.DATAFLOW in refused(whole, Program.from_orders(orders))


def test_a_collective_twice_or_of_no_problem_is_refused() -> None:
    whole, plan = placed(of_family("1f1b"), "1")
    for added in ("0UNSHARD", "0REDUCE_GRAD.7"):
        table = ActionTable.from_actions([Action.parse(added)])
        more = Program.grouped(
            actions=ActionTable.concatenate([plan.program.actions, table]),
            resource=np.append(plan.program.resource, 0),
        )
        assert Rule.COMPLETE in refused(whole, more)


def test_bytes_of_other_levels_differ_at_some_action_of_each_process() -> None:
    # the same collectives with less to take: what is predicted of an action is no echo of the run
    case = of_family("zb-v")
    whole, fewer = run(case, "2"), run(case, "2,weight=1")
    for trace, other in zip(whole.traces, fewer.traces, strict=True):
        assert trace.actions == other.actions
        assert trace.num_differing == other.num_differing == 0
        assert replace(trace, predicted=other.predicted).num_differing > 0
