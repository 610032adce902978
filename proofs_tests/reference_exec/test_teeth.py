"""Faults in schedules: refused by the rule that knows them, and seen where they are run anyway."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.accumulation import accumulation_orders
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import NotVerified, replay
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SENDER,
    SWAPPED_SENDS,
    TINY,
    family_case,
    replay_with,
)
from proofs_tests.sized import sized
from proofs_tests.verify.dataflow.samples import retimed, swapped, texts, without, without_edge

SPEC = replace(TINY, kind="transformer")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fault:
    """What to replay, the rules it breaks, and what the run says of it on ``virtual``."""

    pipeline: Pipeline
    schedule: Schedule
    program: Program | None = None
    rules: tuple[str, ...]
    stopped: str

    def replayed(self, *, spec: ModelSpec = SPEC, **options: object) -> ReplayReport:
        return replay_with(self.pipeline, self.schedule, spec, program=self.program, **options)


def lost_key_value_gradients() -> Fault:
    """1B0.1 runs before 1B0.2 has passed its dK and dV back."""
    case = family_case("svpp", p=2, m=2, s=3)
    problem = without_edge(case.problem, "1B0.2", "1B0.1")
    schedule = retimed(problem, swapped(texts(case.schedule, problem), "1B0.2", "1B0.1"))
    return Fault(
        pipeline=case.pipeline,
        schedule=schedule,
        rules=("dependencies", "communication", "dataflow"),
        stopped="rank 1, action .*: 1B0.1 before a later slice's",
    )


def lost_weight_gradient() -> Fault:
    case = family_case("zb-h1", p=2, m=3)
    return Fault(
        pipeline=case.pipeline,
        schedule=without(case.schedule, "0W1"),
        rules=("complete", "dataflow"),
        stopped="rank 0, action .*: left over: 0I1 without W",
    )


def lost_load() -> Fault:
    case = family_case("bpipe", p=4, m=6)
    return Fault(
        pipeline=case.pipeline,
        schedule=without(case.schedule, "0LOAD1"),
        rules=("complete", "memory", "dataflow", "communication"),
        stopped="rank 0, action .*: 0B1 while its activation is away",
    )


def swapped_sends() -> Fault:
    case = family_case("gpipe", p=2, m=2)
    return Fault(
        pipeline=case.pipeline,
        schedule=case.schedule,
        program=Program.from_orders([SWAPPED_SENDS, RECEIVER]),
        rules=("communication", "dataflow"),
        stopped="MessageMismatch: rank 0 sent 1RECV_F1 where rank 1 expected 1RECV_F0",
    )


FAULTS = [lost_key_value_gradients, lost_weight_gradient, lost_load, swapped_sends]


@pytest.mark.parametrize("made", FAULTS)
def test_a_fault_is_refused_and_shows_where_it_is_forced(made: Callable[[], Fault]) -> None:
    fault = made()
    with pytest.raises(NotVerified, match="replay refuses what is not verified"):
        fault.replayed()
    for seed in range(sized(1, full=3)):
        report = fault.replayed(unsafe=True, seed=seed)
        assert report.unsafe
        assert report.broken_rules == fault.rules
        assert not report.ok
        assert not report.gradients_equal
        assert re.search(fault.stopped, report.stopped), report.stopped


def test_a_lost_weight_gradient_ends_a_run_on_processes() -> None:
    fault = lost_weight_gradient()
    report = fault.replayed(unsafe=True, backend="gloo")
    assert report.broken_rules == ("complete", "dataflow")
    assert re.search(fault.stopped, report.stopped), report.stopped
    assert report.stopped.startswith("RankFailed: gloo replay ended: rank 0 failed: BrokenProgram:")


def test_swapped_sends_give_other_gradients_where_messages_have_no_tags() -> None:
    # each microbatch is learnt from the other's activations: nothing stalls, all is wrong
    report = swapped_sends().replayed(unsafe=True, backend="gloo")
    assert report.stopped == ""
    assert not report.gradients_equal
    assert report.max_relative_error > 1e-2
    assert report.broken_rules == ("communication", "dataflow")


def test_what_is_verified_runs_as_ever_where_it_is_forced() -> None:
    case = family_case("gpipe", p=2, m=2)
    program = Program.from_orders([SENDER, RECEIVER])
    report = replay(case.pipeline, case.schedule, SPEC, ReplayOptions(unsafe=True), program=program)
    assert report.ok
    assert (report.unsafe, report.broken_rules, report.violations) == (True, (), ())
    plain = replay(case.pipeline, case.schedule, SPEC, program=program)
    timeless = replace(report, seconds=0.0, passes=())
    assert timeless == replace(plain, seconds=0.0, passes=(), unsafe=True)
    assert str(report).startswith("UNSAFE virtual replay of 2 ranks")


def test_a_broken_rule_is_a_failure_whatever_the_run_shows() -> None:
    case = family_case("gpipe", p=2, m=3)
    said: list[str] = []
    report = replay(
        case.pipeline.with_changes(capacity=2),
        case.schedule,
        SPEC,
        ReplayOptions(unsafe=True),
        progress=said.append,
    )
    assert report.gradients_equal
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert not report.ok
    assert len(report.failures) == 1
    assert report.failures[0].startswith("not verified, memory: ")
    assert said[0] == "UNSAFE: running what is not verified; broken: memory"
    assert report.to_dict()["unsafe"] is True


def test_oracles_add_what_a_program_forgets() -> None:
    # or a run without 0W1 would be right by its own measure
    case = family_case("zb-h1", p=2, m=3)
    kept = ~np.array([str(action) == "0W1" for action in case.lowered.actions])
    program = Program(actions=case.lowered.actions.take(kept), resource=case.lowered.resource[kept])
    assert len(program) == len(case.lowered) - 1
    gemm, _ = accumulation_orders(case.plan(program=program))
    assert gemm[0, 0] == [(0, 0), (2, 0), (1, 0)]
    assert gemm[1, 1] == [(0, 0), (1, 0), (2, 0)]
