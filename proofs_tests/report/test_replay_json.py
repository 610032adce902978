"""Replay files: written by their layout, and loaded again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bubbleproof.reference_exec.evidence.machine_versions import ReplayMachine
from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.evidence.replay_record import RankComparison
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.replay_json import (
    ReplayAccount,
    write_measured_trace,
    write_replay,
)
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action
from proofs_tests.report.replay_content import replay_in

MACHINE = ReplayMachine(
    processor="x86_64", cores=2, memory_bytes=1 << 30, versions={"python": "3.11"}
)
TRACE = RankTrace(
    name="rank 0",
    actions=(Action.parse("0F0"), Action.parse("0B0")),
    begin=(0, 10_000),
    waited=(0, 5_000),
    end=(8_000, 40_000),
    live_bytes=((8,), (0,)),
    predicted=((8,), (0,)),
)
REPORT = ReplayReport(
    backend="gloo",
    semantics="buffered",
    seed=0,
    model="mlp",
    dtype="float64",
    ranks=1,
    stages=1,
    microbatches=1,
    gradients_equal=True,
    losses_equal=True,
    max_relative_error=0.0,
    tolerance=1e-12,
    loss=0.5,
    peak_bytes=RankComparison((8,), (8,)),
    live_bytes=((8, 0),),
    seconds=0.25,
    torch_version="2",
    losses=(0.5,),
    passes=((TRACE,),),
    flops=RankComparison((16,), (16,)),
)


def account(report: ReplayReport = REPORT) -> ReplayAccount:
    found = member("1f1b", p=1, m=1, tF=1, tB=2)
    return ReplayAccount(
        name="tiny",
        report=report,
        spec=ModelSpec(),
        problem=found.problem,
        schedule=found.schedule,
        machine=MACHINE,
    )


def written(path: Path, report: ReplayReport = REPORT) -> dict[str, object]:
    write_replay(path, account(report))
    loaded: dict[str, object] = json.loads(path.read_text())
    return loaded


def test_a_replay_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    raw = written(path)
    assert raw["trace"] == {
        "rank 0": [["0F0", 0, 0, 8000, [8], [8]], ["0B0", 10000, 5000, 40000, [0], [0]]]
    }
    # 0F0 takes 1 tick from 0, 0B0 takes 2 after it
    assert raw["predicted"] == {
        "unit": "tick",
        "orders": {"rank 0": [["0F0", 0, 1], ["0B0", 1, 3]]},
    }
    assert replay_in(path).trace["rank 0"][0][3] == 8000


def test_what_is_not_finite_is_null(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    report = replace(REPORT, max_relative_error=float("inf"), losses=(float("nan"),))
    written(path, report)
    content = replay_in(path)
    assert content.gradients.max_relative_error is None
    assert content.losses.each == [None]
    assert not content.ok


def test_the_trace_has_true_times_and_the_measured_bytes(tmp_path: Path) -> None:
    found = member("1f1b", p=1, m=1)
    path = tmp_path / "x.perfetto.json"
    write_measured_trace(
        path, *measured_schedule(found.problem, found.schedule, (TRACE,)), (TRACE,)
    )
    content = json.loads(path.read_text())
    assert content["otherData"]["time"] == "microseconds"
    events = content["traceEvents"]
    slices = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert slices == [("0F0", 0, 8), ("0B0", 15, 25)]
    counters = [(e["ts"], e["args"]["byte"]) for e in events if e["ph"] == "C"]
    assert counters == [(8, 8), (40, 0)]
