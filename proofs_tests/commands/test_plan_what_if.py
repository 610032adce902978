"""``plan --what-if`` and ``--tokens``: the plan beside that on another cluster, and its days."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_each_change_has_a_line_and_the_plan_that_its_file_has(command: Run, problem: Path) -> None:
    changes = {
        "network=0.5x": SMALL.replace('"1 GB/s"', '"0.5 GB/s"'),
        "memory=24MiB": SMALL.replace('"128 MiB"', '"24 MiB"'),
        "cards=-2": SMALL.replace("cards = 4", "cards = 2"),
        "flops=2x": SMALL.replace("1e12", "2e12"),
    }
    words = ["--time-limit", "300"]
    words += [word for change in changes for word in ("--what-if", change)]
    lines = [
        line.removeprefix("what if  ")
        for line in command("plan", problem, *words).out.splitlines()
        if line.startswith("what if")
    ]
    assert len(lines) == len(changes)
    assert lines[2].startswith("cards=-2 (2 cards): ")
    found = json.loads(command("plan", problem, "--json", *words).out)
    assert [one["change"] for one in found["what_if"]] == list(changes)
    for one, line, text in zip(found["what_if"], lines, changes.values(), strict=True):
        problem.write_text(text)
        alone = json.loads(command("plan", problem, "--json").out)
        assert (one["value"], one["status"]) == (alone["value"], alone["status"])
        assert one["deployment"] is None or one["deployment"] in line
    assert found["what_if"][3]["value"] < found["value"]


def test_a_card_by_name_takes_the_place_of_what_is_told(command: Run, problem: Path) -> None:
    found = json.loads(command("plan", problem, "--json", "--what-if", "card=h100").out)
    told = ("flops", "memory =", "memory_bandwidth", "node_link", "network")
    kept = [line for line in SMALL.splitlines() if not line.startswith(told)]
    problem.write_text("\n".join(kept).replace("[cluster]", '[cluster]\ncard = "h100"'))
    alone = json.loads(command("plan", problem, "--json").out)
    assert found["what_if"][0]["value"] == alone["value"]


def test_cards_that_divide_into_nothing_stand_idle(command: Run, problem: Path) -> None:
    """As many of the others as make a deployment are planned for; listed sizes make none."""
    found = json.loads(command("plan", problem, "--json", "--what-if", "cards=7").out)
    (one,) = found["what_if"]
    problem.write_text(SMALL.replace("cards = 4", f"cards = {one['cards']}"))
    alone = json.loads(command("plan", problem, "--json").out)
    assert one["value"] == alone["value"]
    lists = "[plan]\ntensor = [1]\ndata = [2]\npipeline = [2]\nzero = [1]\n"
    problem.write_text(SMALL + lists)
    answer = command("plan", problem, "--what-if", "cards=-1")
    assert answer.status == 0
    assert "what if  cards=-1 (3 cards): plan: no tensor x data x pipeline" in answer.out


@pytest.mark.parametrize("change", ["network", "net=2x", "cards=two", "card=a1000", "memory=3 kg"])
def test_changes_that_are_none_are_refused(command: Run, problem: Path, change: str) -> None:
    answer = command("plan", problem, "--what-if", change)
    assert answer.status == 2
    assert "--what-if" in answer.err


def test_days_are_those_of_the_tokens(command: Run, problem: Path) -> None:
    """8 samples of 256 tokens an iteration; the number stands in the second line too."""
    found = json.loads(command("plan", problem, "--json", "--tokens", "15e12").out)
    seconds = 15e12 / (8 * 256) * found["value"] / 1e6
    assert found["days"] == pytest.approx(seconds / 86400, abs=1e-3)
    assert found["tokens"] == 15e12
    second = command("plan", problem, "--tokens", "15e12").out.splitlines()[1]
    assert all(word in second for word in ("tokens/s", "MFU", "days for 15T tokens"))
    assert command("plan", problem, "--tokens", "0").status == 2
