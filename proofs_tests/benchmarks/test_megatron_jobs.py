"""What Megatron-core's parser, checks and groups answered, against what is planned and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.frameworks.ask_megatron import ARGUMENTS, SPOILED, VERSIONS
from benchmarks.frameworks.megatron_jobs import JOBS, REFUSED, planned_arguments
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.own_files import own_of

ROWS: dict[str, dict[str, Any]] = {row["job"]: row for row in json.loads(ARGUMENTS.read_text())}
OVERLAPS = {
    "overlap of gradients": "--overlap-grad-reduce",
    "overlap of weights": "--overlap-param-gather",
    "overlap of tensor groups": "--tp-comm-overlap",
    "distributed optimizer": "--use-distributed-optimizer",
}


@pytest.mark.parametrize("name", JOBS)
def test_what_is_written_now_is_what_megatron_loaded(name: str, tmp_path: Path) -> None:
    cards, text = planned_arguments(JOBS[name], tmp_path)
    row = ROWS[name]
    assert (cards, text.splitlines()) == (row["cards"], row["arguments"])
    assert row["version"] == VERSIONS[0]
    told = row["told"]
    words = {line.split()[0]: line.split()[1:] for line in row["arguments"]}
    assert told["tensor"] * told["data"] * told["context"] * told["pipeline"] == cards
    stages = words.get("--pipeline-model-parallel-layout", ["EL"])[0].count("|") + 1
    assert told["pipeline"] * (told["chunks"] or 1) == stages
    if told["chunks"]:
        group = words["--microbatch-group-size-per-virtual-pipeline-stage"]
        assert [str(told["group"])] == group
        assert told["overlap of messages"]
    for key, switch in OVERLAPS.items():
        assert told[key] is (switch in words)


def test_overlaps_are_switched_on_where_the_times_count_on_them() -> None:
    """The plain software waits for every collective; the overlapped one is an open file's."""
    plain, overlapped = ROWS["plain software"]["told"], ROWS["16-bit gradients"]["told"]
    names = [name for name in OVERLAPS if name.startswith("overlap")]
    assert [plain[name] for name in names] == [False] * 3
    assert [overlapped[name] for name in names] == [True] * 3


def test_experts_over_more_cards_than_replicas_are_whole() -> None:
    told = {name: ROWS[f"experts over {name}"]["told"] for name in ("replicas", "more")}
    assert (told["replicas"]["expert"], told["replicas"]["expert tensor"]) == (4, 2)
    assert (told["more"]["expert"], told["more"]["expert tensor"]) == (8, 1)


@pytest.mark.parametrize("name", JOBS)
def test_what_is_written_is_read_back_as_ones_own(name: str, tmp_path: Path) -> None:
    """Megatron's own answer has the same sizes; nothing waits that the plan's times overlap."""
    path, row = tmp_path / "megatron.args", ROWS[name]
    path.write_text("\n".join(row["arguments"]))
    own = own_of(str(path), cluster_file_of_text(JOBS[name], name=name).training)
    at, told = own.combination, row["told"]
    sizes = (at.tensor, at.data, at.pipeline, at.context, at.expert, own.chunks)
    known = ("tensor", "data", "pipeline", "context", "expert", "chunks")
    assert sizes == tuple(told[key] or 1 for key in known)
    assert at.zero == told["distributed optimizer"]
    assert (own.waits, own.group) == ((), told["group"] or 0)
    assert sum(own.layers or ()) == told["layers"]


@pytest.mark.parametrize("name", SPOILED)
def test_megatron_refused_what_was_spoiled(name: str) -> None:
    assert "refused" in ROWS[f"spoiled {name}"]
    assert ROWS[f"spoiled {name}"]["arguments"] != ROWS[SPOILED[name][0]]["arguments"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("parallel layers", "no model with attention and feed-forward block side by side"),
        ("shared weights", "plan.zero: expected values that megatron-core-0.19 runs"),
        ("waves", "plan.placements: expected values that megatron-core-0.19 runs"),
        ("six numbers", "no precision bpipe"),
    ],
)
def test_what_megatron_does_not_run_is_refused_by_name(
    name: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        planned_arguments(REFUSED[name], tmp_path)
