"""Collectives that are missing, out of order or of no use: refused, and noticed when forced."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import ReplayStalled, run_virtual
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.replaying import NotVerified
from bubbleproof.theory.model.actions import Action, Kind
from proofs_tests.reference_exec.meshes import mesh, plan_of, run
from proofs_tests.reference_exec.swapped import swapped
from proofs_tests.sized import sampled, sized
from proofs_tests.verify.dataflow.samples import without


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("zero", "kind"),
    sampled([*product((3, 1, 2), (Kind.RESHARD, Kind.UNSHARD, Kind.REDUCE_GRAD))], every=2),
)
def test_a_dropped_collective_is_refused_and_shows_when_forced(zero: int, kind: Kind) -> None:
    problem, schedule = mesh(zero, m=4, e=(2, 2), d=(2, 2))
    dropped = [str(a) for a in schedule.program.actions if a.kind is kind and a.stage == 1]
    assert bool(dropped) == (kind is not Kind.RESHARD or zero == 3)
    for text in sized(dropped[-1:], full=dropped):
        poorer = without(schedule, text)
        with pytest.raises(NotVerified, match="replay refuses what is not verified"):
            run((problem, poorer), data_parallel=2)
        report = run((problem, poorer), data_parallel=2, unsafe=True)
        assert not report.ok
        assert "complete" in report.broken_rules
        assert report.stopped.startswith("BrokenProgram: rank 1 of replica ")
    last = {"UNSHARD": "not here", "RESHARD": "never freed", "REDUCE_GRAD": "never reduced"}
    if dropped:
        assert last[kind.name] in report.stopped
        assert "dataflow" in report.broken_rules


def test_without_any_reduction_the_run_ends_too() -> None:
    problem, schedule = mesh(2, m=2, e=(2,), d=(2,))
    poorer = without(schedule, "0REDUCE_GRAD.1", "1REDUCE_GRAD.1")
    report = run((problem, poorer), data_parallel=2, unsafe=True)
    assert not report.ok
    assert {"complete", "dataflow"} <= set(report.broken_rules)
    assert "never reduced" in report.stopped


def test_replicas_that_differ_in_order_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(mesh(1), replicas=2, levels="1")
    right = ReplayPlan.order

    def differing(self: ReplayPlan, process: int) -> list[Action]:
        order = right(self, process)
        return swapped(order) if self.seat(process)[0] == 1 else order

    monkeypatch.setattr(ReplayPlan, "order", differing)
    for seed in range(4):
        with pytest.raises(BrokenProgram) as caught:
            run_virtual(plan, seed=seed)
        assert "must issue their collectives in one order" in str(caught.value)
        assert "UNSHARD met " in str(caught.value)


def test_a_replica_without_a_collective_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # the last collective of its rank: there is nothing later that could be mistaken for it
    plan = plan_of(mesh(1), replicas=2, levels="1")
    right = ReplayPlan.order
    last = [a for a in right(plan, 0) if a.kind is Kind.REDUCE_GRAD][-1]

    def shorter(self: ReplayPlan, process: int) -> list[Action]:
        order = right(self, process)
        return [a for a in order if a != last] if process == 2 else order

    monkeypatch.setattr(ReplayPlan, "order", shorter)
    with pytest.raises((ReplayStalled, BrokenProgram)) as caught:
        run_virtual(plan)
    stalled = f"rank 0 of replica 0: {last} waits for {last} with replica 1"
    assert stalled in str(caught.value) or "never reduced" in str(caught.value)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (["0UNSHARD", "0UNSHARD", "0UNSHARD"], "0UNSHARD runs twice"),
        (["0F0"], "the ZeRO-3 parameters of stage 0 are not here; UNSHARD 0 has not brought them"),
        (["0UNSHARD", "0F0"], "parameters of stage 0 are not here"),
        (["0UNSHARD", "0RESHARD"], "copy 0 of stage 0 is not here to be freed"),
        (["0RESHARD"], "copy 0 of stage 0 is not here to be freed"),
        (["0REDUCE_GRAD.1"], "stage 0 has no ZeRO-3 gradient for REDUCE_GRAD 1"),
        (["0UNSHARD"], "left over: 0UNSHARD not waited for"),
        (["0UNSHARD", "0UNSHARD"], "left over: 0UNSHARD.0 never freed"),
        (["0UNSHARD", "0UNSHARD", "0F0", "0RESHARD", "0B0"], "UNSHARD 1 has not brought them"),
    ],
)
def test_what_no_rank_can_run(actions: list[str], message: str) -> None:
    plan = plan_of(mesh(3, p=1, v=1, m=2, e=(2,), d=(2,)), replicas=1, levels="3")
    program = replace(
        plan.program,
        actions=type(plan.program.actions).from_actions(map(Action.parse, actions)),
        resource=np.zeros(len(actions), dtype=np.int64),
    )
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(replace(plan, program=program))
