"""Traces: every action a slice, every message a flow, every store a counter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bubbleproof.formats import trace, write_trace
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import Occupancy, Problem, Resource
from bubbleproof.theory.model.schedule import Program, Schedule


def events(content: dict[str, object], phase: str) -> list[dict[str, object]]:
    found = content["traceEvents"]
    assert isinstance(found, list)
    return [event for event in found if event["ph"] == phase]


def test_two_ranks_one_microbatch() -> None:
    # 0F0 0..1, 1F0 1..2, 1B0 2..4, 0B0 4..6.
    small = member("1f1b", p=2, m=1)
    content = trace(small.problem, small.schedule)
    slices = [(e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in events(content, "X")]
    assert slices == [
        ("0F0", 0, 0, 0, 1),
        ("0B0", 0, 0, 4, 2),
        ("1F0", 1, 1, 1, 1),
        ("1B0", 1, 1, 2, 2),
    ]
    # Each flow leaves in the producer's last tick and arrives at the consumer's first.
    flows = [(e["name"], e["pid"], e["ts"]) for e in events(content, "s")]
    assert flows == [("0SEND_F0", 0, 0), ("1SEND_B0", 1, 3)]
    arrivals = [(e["name"], e["pid"], e["ts"], e["bp"]) for e in events(content, "f")]
    assert arrivals == [("0SEND_F0", 1, 1, "e"), ("1SEND_B0", 0, 4, "e")]
    assert [e["id"] for e in events(content, "s")] == [e["id"] for e in events(content, "f")]
    # One activation from the start of F to the end of B; rank 1 begins with its base load.
    loads = [(e["pid"], e["ts"], e["args"]) for e in events(content, "C")]
    one, none = {"activation": 1}, {"activation": 0}
    assert loads == [(0, 0, one), (0, 6, none), (1, 0, none), (1, 1, one), (1, 4, none)]


def test_names() -> None:
    small = member("1f1b", p=2, m=1)
    names = [
        (e["name"], e["pid"], e.get("tid"), e["args"])
        for e in events(trace(small.problem, small.schedule), "M")
    ]
    assert ("process_name", 1, None, {"name": "rank 1"}) in names
    assert ("thread_name", 1, 1, {"name": "compute"}) in names


def test_unit_is_told() -> None:
    small = member("1f1b", p=2, m=1)
    for unit, told in (
        ("us", "microseconds"),
        ("ms", "1 tick (ms) is shown as 1 microsecond"),
        ("tick", "1 tick (tick) is shown as 1 microsecond"),
    ):
        problem = small.pipeline.with_changes(unit=unit).problem()
        content = trace(problem, small.schedule)
        assert content["otherData"] == {"producer": "bubbleproof", "time": told}


def test_link_and_foreign_action() -> None:
    problem = Problem(
        resources=(Resource(name="rank 0", rank=0), Resource(name="link 0-1")),
        actions=ActionTable.from_actions([Action.parse("0F0"), Action.parse("0EVICT0")]),
        duration=np.array([2, 3]),
        occupancy=Occupancy(task=np.array([0, 1]), resource=np.array([0, 1])),
    )
    program = Program.from_orders([["0F0", "0B7"], ["0EVICT0"]])
    content = trace(problem, Schedule(program=program, start=np.array([0, 2, 2])))
    slices = [(e["name"], e["pid"], e["tid"], e["dur"]) for e in events(content, "X")]
    assert slices == [("0F0", 0, 0, 2), ("0B7", 0, 0, 0), ("0EVICT0", 1, 1, 3)]
    names = [(e["name"], e["pid"], e["args"]) for e in events(content, "M")]
    assert ("process_name", 1, {"name": "links, copy engines and other memory"}) in names
    assert ("thread_name", 1, {"name": "link 0-1"}) in names


def test_written_trace_is_json(tmp_path: Path) -> None:
    small = member("zb-h1", p=3, m=4)
    write_trace(tmp_path / "a.json", small.problem, small.schedule)
    content = json.loads((tmp_path / "a.json").read_text())
    assert content == trace(small.problem, small.schedule)
    assert len(events(content, "X")) == small.problem.num_tasks
