"""Processes that torchrun starts: one replay, one verdict, one exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed

from bubbleproof.commands.replaying.read_sharded import known_pipeline, read_to_replay
from bubbleproof.commands.replaying.replay_options import ReplayRequest, TrainingOptions
from bubbleproof.reference_exec.drivers.gloo import RankFailed
from bubbleproof.reference_exec.drivers.group_transport import (
    GroupTransport,
    evicting,
    talking,
    twins,
)
from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.drivers.rank_report import Ending, RankReport, gravest_of
from bubbleproof.reference_exec.drivers.torchrun import (
    Processes,
    open_backend,
    require_processes,
)
from bubbleproof.reference_exec.plans.prepared import prepared
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.runtime.device import CPU
from bubbleproof.verify.communication.semantics import Semantics
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec import launched as launcher
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.launched import Start, launched

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}
ALONE = ProcessPlace(rank=0, world_size=1, local_rank=0)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    here = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env={**os.environ, **here, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def torchrun() -> list[str]:
    """The words that start two processes on this machine."""
    return [
        *("torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2"),
        *("--master-addr", "127.0.0.1", "--master-port", str(launcher.free_port())),
    ]


def test_two_processes_of_torchrun_replay_a_schedule() -> None:
    done = run(
        *torchrun(),
        "-m",
        "bubbleproof.reference_exec",
        "zb-h1",
        "p=2",
        "m=4",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # one object: only the first process prints
    assert report["ok"] is True
    assert (report["backend"], report["ranks"], report["device"]) == ("gloo", 2, "cpu")
    assert report["gradients_equal"] is True
    assert report["measured_peak_bytes"] == report["predicted_peak_bytes"]


def test_processes_of_torchrun_train(tmp_path: Path) -> None:
    words, port = ("zb-h1", "p=2", "m=4", "--steps", "2", "--json"), launcher.free_port()
    two = [Start(words=words, variables=launcher.variables(rank, 2, port)) for rank in (0, 1)]
    with launched(tmp_path, two) as ranks:
        assert ranks.statuses() == [0, 0], ranks.errors(0)
        report = json.loads(ranks.output(0))
        assert ranks.output(1) == ""
    assert report["ok"] is report["gradients_equal"] is report["weights_equal"] is True
    assert (report["backend"], report["steps"]) == ("gloo", 2)
    assert report["measured_peak_bytes"] == report["predicted_peak_bytes"]


def test_ranks_that_fail_end_all_processes_with_what_went_wrong(tmp_path: Path) -> None:
    # microbatch 1 comes first on rank 1 alone: forced past the check, neither finds its message
    words, port = (str(ROOT / "examples" / "ci" / "crossed.csv"), "--unsafe"), launcher.free_port()
    two = [Start(words=words, variables=launcher.variables(rank, 2, port)) for rank in (0, 1)]
    with launched(tmp_path, two) as ranks:
        assert ranks.statuses() == [1, 1]
        assert ranks.errors(1) == ""  # one process on each node tells
        (line,) = ranks.errors(0).splitlines()
    assert line.startswith("gloo replay ended: rank 0 failed: BrokenProgram: rank 0, action")
    assert "; rank 1 failed: BrokenProgram: rank 1, action" in line


def test_too_few_processes_are_refused_in_one_line(tmp_path: Path) -> None:
    one = Start(
        words=("1f1b", "p=3", "m=3"), variables=launcher.variables(0, 1, launcher.free_port())
    )
    with launched(tmp_path, [one]) as alone:
        assert alone.statuses() == [2]
        assert alone.output(0) == ""
        assert alone.errors(0) == (
            "bubbleproof: the schedule has 3 ranks and needs a process for each, torchrun started "
            "1; --nproc-per-node x --nnodes must be 3\n"
        )


def test_a_place_is_read_from_what_torchrun_sets() -> None:
    place = ProcessPlace.of(VARIABLES)
    assert (place.rank, place.world_size, place.local_rank) == (1, 4, 0)
    assert (place.address, place.port) == ("localhost", 29500)
    assert (place.has_agent, place.has_store, place.attempt) == (False, False, 0)
    by_torchrun = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    again = ProcessPlace.of({**VARIABLES, **by_torchrun, "TORCHELASTIC_RESTART_COUNT": "2"})
    assert (again.has_agent, again.has_store, again.attempt) == (True, True, 2)
    with pytest.raises(ValueError, match=r"RANK must be less than WORLD_SIZE \(4\), got 4"):
        ProcessPlace.of({**VARIABLES, "RANK": "4"})
    without = {name: value for name, value in VARIABLES.items() if name != "MASTER_ADDR"}
    with pytest.raises(ValueError, match=r"MASTER_ADDR is not set: start it by torchrun"):
        ProcessPlace.of(without)
    with pytest.raises(ValueError, match=r"RANK must be a whole number, got 'one'"):
        ProcessPlace.of({**VARIABLES, "RANK": "one"})


def test_as_many_processes_as_ranks_are_needed() -> None:
    plan = family_case("1f1b", p=2, m=2).plan()
    require_processes(ProcessPlace(rank=0, world_size=2, local_rank=0), plan)
    with pytest.raises(ValueError, match=r"has 2 ranks .* torchrun started 3"):
        require_processes(ProcessPlace(rank=0, world_size=3, local_rank=0), plan)


def test_a_backend_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="backend must be one of gloo, nccl, got 'mpi'"):
        open_backend("mpi", ALONE)
    with pytest.raises(ValueError, match="gloo takes its messages from cpu, got --device cuda"):
        open_backend("gloo", ALONE, "cuda")
    assert open_backend("gloo", ALONE, "cpu").description == "cpu"


@pytest.mark.parametrize(("timeout", "seconds"), [(60.0, 120.0), (600.0, 602.0)])
def test_groups_may_take_as_long_as_the_replay(
    timeout: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def by_pairs(*_: object, seconds: float, **__: object) -> None:
        given.append(seconds)
        raise RuntimeError("far enough")

    def end(ending: Ending, text: str) -> None:
        raise RankFailed(f"{ending.label}: {text}")

    processes = Processes.__new__(Processes)  # without the processes that it waits for
    processes.place = ALONE
    vars(processes).update(_line=SimpleNamespace(end=end), _store=None)
    for name in ("init_process_group", "new_group"):
        monkeypatch.setattr(torch.distributed, name, lambda *_, **__: None)
    monkeypatch.setattr(GroupTransport, "by_pairs", by_pairs)
    plan = family_case("1f1b", p=2, m=2).plan()
    with pytest.raises(RankFailed, match="failed: failed: RuntimeError: far enough"):
        processes.run(plan, ReplayOptions(backend="nccl", timeout=timeout), CPU)
    assert given == [seconds]


@pytest.mark.parametrize(
    ("name", "params", "talk", "evict"),
    [
        # stages 0 1 2 3 on ranks 0 1 2 3
        ("1f1b", {"p": 4, "m": 4}, {(0, 1), (1, 2), (2, 3)}, set[tuple[int, int]]()),
        # stages 0..3 on ranks 0 1 0 1
        ("interleaved", {"p": 2, "m": 2, "v": 2}, {(0, 1)}, set[tuple[int, int]]()),
        # stages 0..5 on ranks 0 1 2 0 1 2: from rank 2 back to rank 0
        ("interleaved", {"p": 3, "m": 3, "v": 2}, {(0, 1), (1, 2), (0, 2)}, set()),
        # stages 0..5 on ranks 0 1 2 2 1 0: the turn stays on rank 2
        ("zb-v", {"p": 3, "m": 3}, {(0, 1), (1, 2)}, set()),
        # rank 0 would hold 4 of at most ceil((4 + 2) / 2) = 3: it evicts to its mirror, rank 3
        ("bpipe", {"p": 4, "m": 5}, {(0, 1), (1, 2), (2, 3)}, {(0, 3)}),
    ],
)
def test_pairs_that_talk_have_a_group(
    name: str, params: dict[str, int], talk: set[tuple[int, int]], evict: set[tuple[int, int]]
) -> None:
    plan = family_case(name, **params).plan()
    assert talking(plan) == talk
    assert evicting(plan) == evict


def test_the_gravest_report_is_the_cause() -> None:
    stalled = RankReport.stalled("1F0 waits")
    failed = RankReport.failed(ValueError("so"))
    died = RankReport(ending=Ending.DIED, text="died with exit code -9")
    assert gravest_of({0: stalled, 2: stalled}, {}) == "ranks 0, 2 stalled: 1F0 waits"
    assert gravest_of({0: stalled, 1: failed}, {}) == "rank 1 failed: ValueError: so"
    assert gravest_of({0: failed, 1: died, 2: stalled}, {}) == "rank 1 died with exit code -9"


def test_replicas_have_a_process_for_each_rank_and_groups_among_each_other() -> None:
    asked = TrainingOptions(data_parallel=3)
    given = read_to_replay(ReplayRequest(schedule=["pipemesh", "p=2", "m=4"], training=asked))
    pipeline = known_pipeline(given)
    plan = prepared(
        pipeline,
        given.timed(),
        TINY,
        ReplayOptions(data_parallel=3),
        semantics=Semantics.BUFFERED,
    ).plan
    require_processes(ProcessPlace(rank=0, world_size=6, local_rank=0), plan)
    with pytest.raises(ValueError, match=r"has 2 ranks in 3 replicas and .* must be 6$"):
        require_processes(ProcessPlace(rank=0, world_size=2, local_rank=0), plan)
    # replica i is processes 2 i and 2 i + 1; rank 0 is processes 0 2 4, rank 1 is 1 3 5
    assert talking(plan) == {(0, 1), (2, 3), (4, 5)}
    among = {(0, 2), (0, 4), (2, 4), (1, 3), (1, 5), (3, 5)}
    assert twins(plan) == among | {(high, low) for low, high in among}
