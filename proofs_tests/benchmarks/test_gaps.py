"""The gap benchmark: every instance can be built, and a table comes of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.gap_run import instances, pipeline_of
from benchmarks.gaps import GAINS, cells, gained, gap, main, published
from benchmarks.markdown import CLOCK
from bubbleproof.theory.pipelines.pipeline import Pipeline

FILES = ("gap_instances.csv", "gap_growth.csv")


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file in FILES for name in instances(file)]
)
def test_every_row_is_a_pipeline_of_its_size(file: str, name: str) -> None:
    row = instances(file)[name]
    pipeline = pipeline_of(row)
    kinds = 3 if row["split"] == "1" else 2
    tasks = int(row["p"]) * int(row["m"]) * int(row["v"]) * kinds
    stages = pipeline.num_ranks * pipeline.num_chunks
    assert stages * pipeline.num_microbatches * kinds == tasks
    assert f"p{row['p']} m{row['m']}" in name
    assert f"cap{row['cap']}" in name


def test_gaps_are_parts_of_the_bound() -> None:
    found = {
        "makespan": 105,
        "bound": 100,
        "first": 0.5,
        "seconds": 2.0,
        "origin": "greedy",
        "certified": 100,
        "proof": "prices",
    }
    assert gap(found) == 0.05
    assert cells(found) == ["105", "100", "5.00%", "0.50", "2.0", "greedy", "prices"]
    # a bound that is better than the certified one is the engine's word
    assert cells({**found, "certified": 99})[-1] == ""
    none = {**found, "makespan": None, "first": None, "origin": ""}
    assert gap(none) is None
    assert cells(none)[:3] == ["none", "100", ""]
    assert cells(None)[0] == "given up"


@pytest.mark.parametrize(
    ("work", "said"), [([], ""), (["--work", "0.25"], " and 0.25 units of work")]
)
def test_a_run_writes_a_table(tmp_path: Path, work: list[str], said: str) -> None:
    page = tmp_path / "gaps.md"
    assert main(["--only", "V p4", "--time-limit", "0.5", *work, "--write", str(page)]) == 0
    first, gains = page.read_text(encoding="utf-8").split(f"\n{GAINS}\n\n")
    head, machine, clock, table = first.rsplit("\n\n", 3)
    lines = table.splitlines()
    assert head.startswith("# Gaps")
    assert f"Limit 0.5 s{said}, 2 threads." in machine
    assert clock == CLOCK
    assert [line.split("|")[1].strip() for line in lines] == [
        "instance",
        "---",
        "V p4 m16 cap6",
    ]
    assert gains.splitlines()[2].startswith("| V p4 m16 cap6 | hanayo | 8 | 126 | 6 | ")
    # what is left out stays as it is
    stays = page.read_text(encoding="utf-8")
    assert main(["--only", "none", *work, "--time-limit", "0.5", "--write", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == stays


def test_what_is_gained_is_beside_an_order_that_fits_or_holds_least() -> None:
    roomy = Pipeline(num_ranks=4, num_microbatches=8, capacity=4)
    one = published(roomy, 4)
    assert one is not None
    assert (one.peak, one.makespan) == (4, 33)
    assert gained("row", roomy, 4, "33")[-4:] == ["4", "33", "alike", "alike"]
    tight = dataclasses.replace(roomy, capacity=3)
    assert published(tight, 3) == one  # none fits
    assert gained("row", tight, 3, "36")[-4:] == ["3", "36", "-25%", "+9.1%"]
    assert gained("row", tight, 3, "none")[1] == "none"
