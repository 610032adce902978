"""The page of jobs beside practice: a row and the reasons of each, refused ones too."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.practice_plans import COLUMNS, Practice, page, planned, practices
from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
from bubbleproof.planners.own_run import OwnRun
from bubbleproof.planners.side_by_side import own_asked
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.patience import PATIENCE
from proofs_tests.structure import ROOT

JOBS = ROOT / "benchmarks" / "jobs"


def test_each_job_is_a_row_and_what_is_told_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SMALL)
    (tmp_path / "b.toml").write_text(SMALL.replace("128 MiB", "88 MiB"))
    (tmp_path / "c.toml").write_text(SMALL.replace("cards = 4", "cards = 0"))
    pipeline = "ranks = 2\nmicrobatches = 2\n[durations]\nforward = 1\nbackward = 2\n"
    (tmp_path / "d.toml").write_text(f"{pipeline}[plan]\nchunks = [1]\n")
    told = "job,deployment,source,seconds\na,pipeline=2,us,0.2\nb,pipeline=2,us,\n"
    (tmp_path / "practice.csv").write_text(told)
    known = practices(tmp_path)
    found = [
        planned(path, known.get(path.stem, Practice()), PATIENCE)
        for path in sorted(tmp_path.glob("*.toml"))
    ]
    assert [one.name for one in found] == ["a", "b", "c", "d"]
    own = own_asked(read_cluster_file(tmp_path / "a.toml"), "pipeline=2")
    assert isinstance(own, OwnRun)
    off = own.iteration / 2e5 - 1
    assert found[0].cells[-1] == f"0.2 s (estimate {100 * off:+.1f} %)"
    assert any("MiB are missing" in line and "fits with" in line for line in found[1].told)
    assert found[2].cells == ("refused",)
    assert "cards" in found[2].told[0]
    assert found[3].cells[:2] == ("1F1B", "9 ticks")  # 2 x 3 of rank 0, and 3 of rank 1
    rows = [line for line in page(found).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(found)
    assert {line.count("|") for line in rows} == {len(COLUMNS) + 1}


@pytest.mark.parametrize("path", sorted(JOBS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_job_of_ours_is_read_and_its_practice_runs(path: Path) -> None:
    """What others run is a deployment of the file, with room or without."""
    practice = practices(JOBS).get(path.stem, Practice())
    own = own_asked(read_cluster_file(path), practice.deployment or None)
    assert (own is None) is (not practice.deployment)
    assert own is None or isinstance(own, OwnRun)


def test_every_practice_is_of_a_job() -> None:
    with (JOBS / "practice.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows} <= {path.stem for path in JOBS.glob("*.toml")}
    assert all(row["source"] for row in rows)
