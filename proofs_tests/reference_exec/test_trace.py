"""Traces of ranks: the clock, the live bytes, and the schedule that ran."""

from __future__ import annotations

import re
from itertools import count, pairwise

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.models.footprint import footprint
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.verify.check import check
from bubbleproof.verify.finding import Rule
from proofs_tests.sized import sampled

SPEC = ModelSpec()
ZERO_3 = ZeroLevels(default=3)
FAMILIES = (
    *("gpipe", "1f1b", "zb-h1", "v-half", "dualpipe", "terapipe"),
    *("bpipe", "trecomp", "toffload", "chimera"),
)


@pytest.mark.sweep
@pytest.mark.parametrize("family", sampled(FAMILIES, every=2))
def test_every_action_leaves_the_bytes_that_the_model_says(family: str) -> None:
    found = member(family, p=2, m=4)
    report = replay(found.pipeline, found.schedule, SPEC, ReplayOptions(seed=3))
    assert report.ok, report.failures
    for trace, staircase in zip(report.traces, report.live_bytes, strict=True):
        assert trace.predicted == trace.live_bytes
        samples = [count for own in trace.live_bytes for count in own]
        assert samples == list(staircase)  # each sample belongs to one action


def test_the_predicted_live_bytes_of_1f1b_by_hand() -> None:
    # rank 0 of 2 with m = 3: F0 F1 B0 F2 B1 B2 hold 1 2 1 2 1 0 activations of stage 0
    found = member("1f1b", p=2, m=3)
    report = replay(found.pipeline, found.schedule, SPEC)
    one = footprint(SPEC, 0, 2).activation_bytes
    computed = [c for c in report.traces[0].predicted if c]
    assert computed == [(one * held,) for held in (1, 2, 1, 2, 1, 0)]


def test_a_sample_that_is_left_out_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = Compute.sample, count()
    monkeypatch.setattr(Compute, "sample", lambda self: next(calls) in (3, 4) or right(self))
    found = member("1f1b", p=2, m=3)
    report = replay(found.pipeline, found.schedule, SPEC)
    assert report.gradients_equal
    told = [failure for failure in report.failures if "samples" in failure]
    assert sum(trace.num_differing for trace in report.traces) == 2
    assert all(re.search(r"0 samples in the place of 1 at \d[FB]\d", each) for each in told), told


def test_an_action_that_is_sampled_twice_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Compute.sample
    monkeypatch.setattr(Compute, "sample", lambda self: (right(self), right(self)))
    found = member("1f1b", p=2, m=2)
    report = replay(found.pipeline, found.schedule, SPEC)
    assert any("2 samples in the place of 1 at 0F0" in each for each in report.failures)


def test_a_forward_that_is_recomputed_is_sampled_with_all_it_saved_and_without() -> None:
    found = member("trecomp", p=2, m=2)
    report = replay(found.pipeline, found.schedule, SPEC)
    again = {a for t in report.traces for a in t.actions if a.kind is Kind.R}
    assert again
    for trace in report.traces:
        for action, samples in zip(trace.actions, trace.live_bytes, strict=True):
            dropped = Action(stage=action.stage, kind=Kind.R, microbatch=action.microbatch) in again
            if action.kind is Kind.F:
                assert len(samples) == (2 if dropped else 1)
            if action.kind is Kind.F and dropped:
                assert samples[1] < samples[0]


@pytest.mark.parametrize("backend", ["virtual", "gloo"])
def test_the_clock_runs_forward_and_messages_arrive_after_they_were_made(backend: str) -> None:
    found = member("1f1b", p=2, m=3)
    report = replay(found.pipeline, found.schedule, SPEC, ReplayOptions(backend=backend))
    ended: dict[Action, int] = {}
    for trace in report.traces:
        assert min(trace.begin) >= 0
        assert all(w >= 0 for w in trace.waited)
        spans = list(zip(trace.begin, trace.end, strict=True))
        assert all(begin <= end for begin, end in spans)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        ended |= dict(zip(trace.actions, trace.end, strict=True))
    for j in range(3):  # stage 1 is on the other rank, whose clock is the same
        assert ended[Action.parse(f"0F{j}")] < ended[Action.parse(f"1F{j}")]
        assert ended[Action.parse(f"1B{j}")] < ended[Action.parse(f"0B{j}")]


def test_ranks_of_one_process_take_turns() -> None:
    found = member("1f1b", p=3, m=4)
    report = replay(found.pipeline, found.schedule, SPEC)
    problem, measured = measured_schedule(found.problem, found.schedule, report.traces)
    assert problem.unit == "us"
    start = measured.start
    end = start + problem.ticks(problem.locate(measured.program.actions))
    order = np.argsort(start, kind="stable")
    assert (end[order][:-1] <= start[order][1:]).all()


def test_what_ran_is_a_schedule_of_the_same_tasks() -> None:
    found = member("bpipe", p=4, m=6)
    report = replay(found.pipeline, found.schedule, SPEC)
    problem, measured = measured_schedule(found.problem, found.schedule, report.traces)
    verdict = check(problem, measured)
    assert Rule.COMPLETE not in verdict.broken
    assert Rule.PLACED not in verdict.broken


def test_a_measured_bar_begins_when_its_message_is_there() -> None:
    parse = Action.parse
    trace = RankTrace(
        name="rank 0",
        actions=(parse("0F0"), parse("0B0")),
        begin=(0, 10_000),
        waited=(0, 5_000),
        end=(8_000, 40_000),
        live_bytes=((8,), (0,)),
    )
    found = member("1f1b", p=1, m=1)
    problem, measured = measured_schedule(found.problem, found.schedule, (trace,))
    # 0F0 runs from 0 to 8 us; 0B0 waits 5 of its 30 us, so it runs from 15 to 40
    assert measured.start.tolist() == [0, 15]
    assert problem.ticks(problem.locate(measured.program.actions)).tolist() == [8, 25]


def test_collectives_that_replicas_add_are_drawn_from_their_begin_to_their_end() -> None:
    found = member("zb-h1", p=2, m=2)
    report = replay(
        found.pipeline, found.schedule, SPEC, ReplayOptions(data_parallel=2, zero=ZERO_3)
    )
    names = [f"rank {rank} of replica {replica}" for replica in (0, 1) for rank in (0, 1)]
    assert [trace.name for trace in report.traces] == names
    problem, measured = measured_schedule(found.problem, found.schedule, report.traces)
    assert [resource.name for resource in problem.resources] == names[:2]
    drawn = {str(action) for action in measured.program.actions}
    collectives = {
        str(action)
        for trace in report.traces
        for action in trace.actions
        if action.kind in (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
    }
    # an UNSHARD and a RESHARD for each direction, and a REDUCE_GRAD, of each of two stages
    assert len(collectives) == 2 * (2 + 2 + 1)
    assert collectives < drawn
    start = measured.start
    end = start + problem.ticks(problem.locate(measured.program.actions))
    for rank in range(2):
        on = measured.program.resource == rank
        assert (end[on][:-1] <= start[on][1:]).all()
