"""Analogues of open instances: like them in all but size, and both shares of a gap add up to it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import gap_analogues
from benchmarks.gap_analogues import FILE, AnalogueRow, main
from benchmarks.gap_run import instances

with FILE.open(encoding="utf-8", newline="") as _lines:
    ROWS = {row["name"]: row for row in csv.DictReader(_lines)}
LIKE = ("v", "placement", "split", "ticks", "latency")


@pytest.mark.parametrize("name", ROWS)
def test_an_analogue_is_like_the_instances_that_it_stands_for(name: str) -> None:
    analogue = ROWS[name]
    for of in analogue["row"].split("; "):
        row = instances()[of]
        assert [analogue[key] for key in LIKE] == [row[key] for key in LIKE]
        assert int(analogue["p"]) < int(row["p"])
        assert int(analogue["m"]) < int(row["m"])
        assert abs(_share(analogue) - _share(row)) <= 0.17, of


def _share(row: dict[str, str]) -> float:
    """The cap as a share of what the family's published order keeps on its fullest rank."""
    ranks, chunks = int(row["p"]), int(row["v"])
    published = (chunks - 1) * ranks + 2 * (ranks - 1) + 1 if row["name"][0] == "I" else 0
    return int(row["cap"]) / (published or ranks * chunks)


def test_the_shares_are_of_the_optimum() -> None:
    known = AnalogueRow(tasks=1, bound=90, schedule=110, least=100, most=100, certificate="drup")
    shares = [*known.bound_too_low, *known.schedule_too_long]
    assert shares == pytest.approx([0.1] * 4)
    open_ = AnalogueRow(tasks=1, bound=90, schedule=110, least=95, most=105, certificate="")
    assert open_.bound_too_low == (1 - 90 / 95, 1 - 90 / 105)
    assert open_.schedule_too_long == (110 / 105 - 1, 110 / 95 - 1)
    for optimum in range(95, 106):
        least, most = open_.bound_too_low
        assert least <= 1 - 90 / optimum <= most
        least, most = open_.schedule_too_long
        assert least <= 110 / optimum - 1 <= most


def test_a_run_writes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap_analogues, "SOON", 0.2)
    page = tmp_path / "analogues.md"
    words = ["--only", "I p2 m8 v2", "--time-limit", "0.4", "--write", str(page)]
    assert main(words) == 0
    table = page.read_text(encoding="utf-8").rsplit("\n\n", 1)[1].splitlines()
    row = [cell.strip() for cell in table[2].split("|")][1:-1]
    assert row[:2] == ["I p2 m8 v2 cap3", "64"]
    least, _, most = row[3].partition(" to ")
    # rank 0 computes 8 microbatches of 2 chunks, each 2 and 4 ticks
    assert 8 * 2 * (2 + 4) <= int(row[2]) <= int(least) <= int(most or least) <= int(row[5])
    assert row[-1] == "I p8 m32 v2 cap12"
