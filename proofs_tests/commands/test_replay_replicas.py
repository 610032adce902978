"""``replay`` on data-parallel replicas: levels by name, files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.commands.replaying.read_sharded import read_sharded
from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from proofs_tests.commands.conftest import Run

pytestmark = pytest.mark.torch


def test_replicas_replay_with_levels_by_name(command: Run) -> None:
    words = ["replay", "pipemesh", "p=2", "m=2", "--data-parallel", "2", "--zero", "3,norm=1"]
    answer = command(*words, "--json")
    assert answer.status == 0
    report = json.loads(answer.out)
    assert report["name"] == "pipemesh p=2 m=2 with ZeRO-3"
    assert (report["data_parallel"], report["zero"]) == (2, "3,norm=1")
    assert report["ok"]
    assert len(report["measured_state_bytes"]) == 4
    table = command(*words, "-v")
    assert "2 replicas of 2" in table.out
    assert "bytes of sharded and whole model state" in table.out


def test_schedules_without_collectives_replay_on_replicas(command: Run) -> None:
    words = ["replay", "zb-h1", "p=2", "m=2", "--data-parallel", "2"]
    sharded = command(*words, "--zero", "3", "--json")
    assert sharded.status == 0
    report = json.loads(sharded.out)
    assert (report["ok"], report["zero"], len(report["measured_state_bytes"])) == (True, "3", 4)
    whole = command(*words)
    assert whole.status == 0
    assert "replicas" in whole.out
    assert "whole model state" not in whole.out


def test_files_name_the_replica_of_each_process(command: Run, tmp_path: Path) -> None:
    targets = [tmp_path / f"x.{ending}" for ending in ("json", "html", "perfetto.json")]
    options = [word for target in targets for word in ("-o", str(target))]
    words = ["replay", "zb-h1", "p=2", "m=2", "--data-parallel", "2", "--zero", "2"]
    assert command(*words, *options).status == 0
    names = [f"rank {rank} of replica {replica}" for replica in (0, 1) for rank in (0, 1)]
    assert list(json.loads(targets[0].read_text())["trace"]) == names
    page = targets[1].read_text()
    assert all(f'"{name}"' in page for name in names[:2])  # the first replica is drawn
    assert all(f"{name} (KiB)" in page for name in names)  # the memory of every one
    assert "Of the replicas it is the first." in page
    assert "2 replicas of 2 ranks" in page
    events = json.loads(targets[2].read_text())["traceEvents"]
    called = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert list(called.values()) == names
    drawn = {
        pid: {e["name"] for e in events if (e["ph"], e["pid"]) == ("X", pid)} for pid in called
    }
    first, second, third, fourth = drawn.values()
    assert first == third
    assert second == fourth
    assert any("REDUCE_GRAD" in name for name in third)
    counted = {e["pid"] for e in events if e["name"] == "live bytes"}
    assert counted == called.keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["toffload", "p=2", "m=2", "--zero", "1"], "with whole gradients, which no shards hold"),
        (["pipemesh", "p=2", "m=2", "--zero", "4"], "a ZeRO level must be 1, 2 or 3, got 4"),
        (["pipemesh", "p=2", "m=2", "--zero", "all"], "ZeRO levels must be a level"),
        (["pipemesh", "p=2", "m=2", "--data-parallel", "0"], "must have 1 replica or more, got 0"),
        (
            ["1f1b", "p=2", "m=2", "--zero", "1", "--backend", "torch-runtime"],
            "--zero has no meaning for --backend torch-runtime",
        ),
    ],
)
def test_what_replicas_do_not_replay(command: Run, words: list[str], message: str) -> None:
    answer = command("replay", *words)
    assert answer.status == 2
    assert message in answer.err


def test_a_file_has_its_collectives_in_it(command: Run, tmp_path: Path) -> None:
    given = read_sharded(["pipemesh", "p=2", "m=2"], ZeroLevels(default=2))
    assert given is not None
    path = str(tmp_path / "sharded.json")
    write_schedule(path, ScheduleFile.of(given.problem, given.timed(), pipeline=given.pipeline))
    answer = command("replay", path, "--data-parallel", "2", "--json")
    assert answer.status == 0
    report = json.loads(answer.out)
    assert (report["ok"], report["data_parallel"], report["zero"]) == (True, 2, "2")
    answer = command("replay", path, "--zero", "3")
    assert answer.status == 2
    assert "ZeRO level 3 needs more collectives than the schedule has" in answer.err
