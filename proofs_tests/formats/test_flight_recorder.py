"""Flight Recorder dumps: the form that torch writes and reads, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.flight_recorder import read_dump, read_dumps
from proofs_tests.verify.recorder_dumps import dump_of, entries_of, write_dumps
from proofs_tests.verify.test_hangs import just_in_time

Dump = dict[str, Any]


def good() -> Dump:
    run, _ = just_in_time()
    return dump_of(entries_of(run, 0, timing=True), 2)


def write(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(value), "utf-8")
    return path


def refusal(*paths: Path) -> str:
    with pytest.raises(UnusableInput) as refused:
        read_dumps(paths)
    line = str(refused.value)
    assert "\n" not in line
    assert str(paths[-1]) in line
    return line.replace(str(paths[-1]), "FILE")


def test_pickle_and_json_are_read_alike(tmp_path: Path) -> None:
    value = good()
    (tmp_path / "rank_0").write_bytes(pickle.dumps(value, protocol=2))
    write(tmp_path, "0.json", value)
    one, other = (read_dump(tmp_path / name).record for name in ("rank_0", "0.json"))
    assert [str(call) for call in one.calls] == [str(call) for call in other.calls]
    assert str(one.calls[0]) == "rank 0's send to rank 1 (record 0)"
    assert one.calls[0].is_completed
    assert one.is_whole


def batch(value: Dump, state: str) -> None:
    """The first two calls as one batch with its entry at the end."""
    first, second, *rest = value["entries"]
    second["p2p_seq_id"] = first["p2p_seq_id"]
    first["state"] = second["state"] = "scheduled"
    end = {**second, "profiling_name": "nccl:coalesced", "state": state}
    value["entries"] = [{**e, "record_id": k} for k, e in enumerate([first, second, end, *rest])]


@pytest.mark.parametrize("state", ["scheduled", "completed"])
def test_a_batch_is_in_the_state_of_its_end(tmp_path: Path, state: str) -> None:
    value = good()
    batch(value, state)
    calls = read_dump(write(tmp_path, "0.json", value)).record.calls
    assert len(calls) == len(good()["entries"])
    assert calls[0].batch == calls[1].batch is not None
    assert [call.is_completed for call in calls[:2]] == [state == "completed"] * 2
    assert calls[2].batch is None


WRONG: dict[str, tuple[Callable[[Dump], object], str]] = {
    "no entries": (lambda d: d.pop("entries"), "expected a dump with version, pg_config, entries"),
    "no ranks": (lambda d: d["pg_config"].clear(), "pg_config: expected a table of process groups"),
    "ranks": (
        lambda d: d["pg_config"]["0"].update(ranks="[0, x]"),
        "pg_config.0.ranks: expected a text such as '[0, 1]', found '[0, x]'",
    ),
    "version": (lambda d: d.update(version="3.0"), "version: expected 2.x, found '3.0'"),
    "state": (
        lambda d: d["entries"][1].update(state="lost"),
        "entries[1].state: expected one of scheduled, started, completed, found 'lost'",
    ),
    "sizes": (
        lambda d: d["entries"][1].update(input_sizes=3),
        "entries[1].input_sizes: expected a list of sizes, found 3",
    ),
    "negative": (
        lambda d: d["entries"][1].update(output_sizes=[[-1]]),
        "entries[1].output_sizes: expected a whole number of at most 18 digits",
    ),
    "group": (
        lambda d: d["entries"][0].update(process_group=["7", "x"]),
        "entries[0].process_group: expected one of pg_config, found '7'",
    ),
    "peer": (
        lambda d: d["entries"][0].update(profiling_name="nccl:send 0->9"),
        "entries[0].profiling_name: expected ranks of communicator",
    ),
    "another rank": (
        lambda d: d["entries"][0].update(profiling_name="nccl:send 1->0"),
        "is the file named for another rank?",
    ),
    "entry": (lambda d: d["entries"].insert(0, 5), "entries[0]: expected a table, found 5"),
    "id": (
        lambda d: d["entries"][0].update(record_id="a"),
        "entries[0].record_id: expected a whole number of at most 18 digits, found 'a'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_another_form_is_refused_at_its_place(tmp_path: Path, what: str) -> None:
    change, says = WRONG[what]
    value = deepcopy(good())
    change(value)
    assert says in refusal(write(tmp_path, "0.json", value))


def test_files_that_are_no_dump_are_refused(tmp_path: Path) -> None:
    assert "a name that ends in the rank" in refusal(write(tmp_path, "dump.json", good()))
    assert "a dump of rank 5" in refusal(write(tmp_path, "5.json", good()))
    assert "expected a dump with" in refusal(write(tmp_path, "0.json", [1]))
    (tmp_path / "1").write_bytes(b"")
    assert "an empty file" in refusal(tmp_path / "1")
    assert "no such file" in refusal(tmp_path / "gone_0")
    assert "no such file" in refusal(tmp_path / "gone")  # a folder's name that is misspelt
    with pytest.raises(ValueError, match="one file for each rank"):
        read_dumps([])


def test_dumps_of_two_jobs_and_two_of_one_rank_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path, "a_0.json", good())
    assert "expected one dump of rank 0" in refusal(first, write(tmp_path, "b_0.json", good()))
    larger = dump_of([], 4)
    assert "dumps of one job" in refusal(first, write(tmp_path, "1.json", larger))
    newer = {**dump_of([], 2), "comm_lib_version": "2.30"}
    assert "with one version" in refusal(first, write(tmp_path, "1.json", newer))
    other = dump_of([], 2)
    other["pg_config"]["1"]["ranks"] = "[1]"  # type: ignore[index]  # a table of tables
    assert "other ranks of the group '1'" in refusal(first, write(tmp_path, "1.json", other))


def test_a_pickle_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(good(), protocol=2)
    path = tmp_path / "0"
    for length in range(2, len(content), 97):
        path.write_bytes(content[:length])
        assert "a whole pickle" in refusal(path)


class Gadget:
    """What a pickle calls while it is read."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("exit 3",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused_before_it_is_run(
    tmp_path: Path, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0"
    path.write_bytes(pickle.dumps({**good(), "version": Gadget()}, protocol=protocol))
    monkeypatch.setattr(os, "system", lambda _: pytest.fail("it was called"))
    line = refusal(path)
    assert "plain values, which call nothing" in line
    assert "system" in line


def test_a_pickle_that_asks_for_a_table_of_any_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_bytes(b"\x80\x02}r\xff\xff\xff\x7f.")
    assert "entries numbered in order" in refusal(path)


@pytest.mark.torch
def test_torch_reads_the_dumps_that_are_made(tmp_path: Path) -> None:
    from torch.distributed.flight_recorder.components.loader import read_dump as read_by_torch
    from torch.distributed.flight_recorder.components.types import Op

    run, _ = just_in_time()
    random = Random(1)
    while (path := write_dumps(run, tmp_path, random)[0]).suffix == ".json":
        pass
    theirs = read_by_torch("nccl_trace_rank_", str(path))
    ours = read_dump(path).record.calls
    assert theirs["rank"] == 0
    entries = theirs["entries"]
    assert isinstance(entries, list)
    ops = [Op(entry, {"0": {0, 1}}, "0") for entry in entries]
    assert [(op.type, op.state == "completed") for op in ops] == [
        (call.operation, call.is_completed) for call in ours
    ]
    assert [op.dst if op.type == "send" else op.src for op in ops] == [call.peer for call in ours]


@pytest.mark.torch
def test_the_entries_have_the_keys_that_torch_writes(tmp_path: Path) -> None:
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    where = f"file://{tmp_path / 'store'}"
    dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
    try:
        dist.barrier()
        for name, dump in (("rank_0", "_dump_fr_trace"), ("0.json", "_dump_fr_trace_json")):
            (tmp_path / name).write_bytes(vars(c10d)[dump]())
    finally:
        dist.destroy_process_group()
    written = pickle.loads((tmp_path / "rank_0").read_bytes())
    assert written.keys() <= good().keys()
    assert written["entries"][0].keys() == good()["entries"][0].keys()
    for name in ("rank_0", "0.json"):
        calls = read_dump(tmp_path / name).record.calls
        assert {call.operation for call in calls} == {"barrier"}  # done or not: gloo's own thread
