"""``verify`` of many files: each by itself, the worst one's status, and what a CI reads of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import bubbleproof as bp
from proofs_tests.commands.conftest import Run

# 1F0 waits for 0F0, which rank 0 runs after 0B0, which waits for 1B0: a standstill.
STUCK = "0B0,0F0\n1F0,1B0\n"
# Rank 1 misses 1B0: row 2, where only 1F0 stands, is as long as row 1.
NOT_AN_ACTION = "0F0,0F0x\n1F0,1B0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two right schedules, one in a folder below, and a JSON file of another kind."""
    monkeypatch.chdir(tmp_path)
    made = Path("made")
    (made / "below").mkdir(parents=True)
    bp.write(made / "a.csv", bp.family("1f1b")(p=2, m=3))
    bp.write(made / "below" / "b.json", bp.family("zb-h1")(p=2, m=2))
    (made / "package.json").write_text("{}")
    return made


def test_a_folder_stands_for_the_schedules_in_it(command: Run, folder: Path) -> None:
    answer = command("verify", str(folder), "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"]) == (0, True)
    assert [each["path"] for each in found["schedules"]] == ["made/a.csv", "made/below/b.json"]
    single = json.loads(command("verify", "made/a.csv", "--json").out)
    assert found["schedules"][0] == {"path": "made/a.csv", **single}


@pytest.mark.usefixtures("folder")
def test_the_worst_gives_the_status_and_none_hides_another(command: Run) -> None:
    Path("stuck.csv").write_text(STUCK)
    answer = command("verify", "made", "stuck.csv")
    assert answer.status == 1
    assert "2 of 3 valid" in answer.out
    assert (
        "stuck.csv: row 1, column 2: " in answer.out or "stuck.csv: row 1, column 1: " in answer.out
    )
    Path("odd.csv").write_text(NOT_AN_ACTION)
    answer = command("verify", "odd.csv", "stuck.csv", "made/a.csv")
    assert answer.status == 2
    assert "1 of 3 valid" in answer.out
    assert "odd.csv: row 1, column 2: expected a PyTorch action" in answer.out


@pytest.mark.usefixtures("folder")
def test_workers_say_the_same(command: Run) -> None:
    alone, together = (command("verify", "made", "--json", "--workers", n).out for n in ("1", "2"))
    assert alone == together


@pytest.mark.usefixtures("folder")
def test_junit_has_a_suite_for_each_file_and_a_case_for_each_rule(command: Run) -> None:
    Path("stuck.csv").write_text(STUCK)
    Path("odd.csv").write_text(NOT_AN_ACTION)
    command("verify", "made/a.csv", "stuck.csv", "odd.csv", "--junit", "out/j.xml")
    root = ElementTree.parse("out/j.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"made/a.csv", "stuck.csv", "odd.csv"}
    right = [case.get("name") for case in suites["made/a.csv"]]
    assert {"complete", "placed", "dependencies", "exclusive", "memory", "dataflow"} <= set(right)
    assert not list(suites["made/a.csv"].iter("failure"))
    failure = next(suites["stuck.csv"].iter("failure"))
    assert "0B0" in str(failure.get("message"))
    error = next(suites["odd.csv"].iter("error"))
    assert "expected a PyTorch action" in str(error.get("message"))
    for name in ("tests", "failures", "errors", "skipped"):
        assert int(root.get(name, "")) == sum(int(suite.get(name, "")) for suite in root)
    assert int(root.get("tests", "")) == len(list(root.iter("testcase")))
    assert int(root.get("errors", "")) == 1


@pytest.mark.usefixtures("folder")
def test_sarif_marks_the_cell(command: Run) -> None:
    Path("with space.csv").write_text(NOT_AN_ACTION)
    command("verify", "with space.csv", "made", "--sarif", "x.sarif")
    found = json.loads(Path("x.sarif").read_text("utf-8"))
    assert found["version"] == "2.1.0"
    (run,) = found["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    (location,) = result["locations"]
    # "0F0,0F0x": the second cell is characters 5 to 8.
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "with%20space.csv"},
        "region": {"startLine": 1, "startColumn": 5, "endColumn": 9},
    }


@pytest.mark.usefixtures("folder")
def test_a_violation_of_a_table_is_marked_at_its_first_action(command: Run) -> None:
    Path("stuck.csv").write_text(STUCK)
    command("verify", "stuck.csv", "--sarif", "x.sarif")
    (run,) = json.loads(Path("x.sarif").read_text("utf-8"))["runs"]
    regions = [
        each["locations"][0]["physicalLocation"]["region"]
        for each in run["results"]
        if each["level"] == "error"
    ]
    assert {"startLine": 1, "startColumn": 1, "endColumn": 4} in regions  # 0B0


@pytest.mark.usefixtures("folder")
def test_one_family_has_files_too(command: Run) -> None:
    answer = command("verify", "1f1b", "p=2", "m=2", "--junit", "j.xml")
    assert answer.status == 0
    assert ElementTree.parse("j.xml").getroot()[0].get("name") == "1f1b p=2 m=2"


@pytest.mark.usefixtures("folder")
def test_a_broken_schedule_file_is_broken_here_too(command: Run) -> None:
    member = bp.family("1f1b")(p=1, m=2)
    early = replace(member.schedule, start=member.schedule.start // 2)
    bp.write("s.json", member.problem, early)
    answer = command("verify", "s.json", "made/a.csv", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"]) == (1, False)
    assert [each["ok"] for each in found["schedules"]] == [False, True]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("empty",), "expected a table (.csv) or a schedule (.json) in it or below, found none"),
        (("made", "--spec"), "--spec has no meaning for several schedules"),
        (("made", "--certificate", "c.json"), "--certificate has no meaning for several schedules"),
        (("made", "--workers", "0"), "workers must be 1 or more"),
        (("made", "--junit", "x.xml", "--sarif", "x.xml"), "two outputs there"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_does_not_go_together_is_refused(
    command: Run, words: tuple[str, ...], told: str
) -> None:
    Path("empty").mkdir()
    answer = command("verify", *words)
    assert answer.status == 2
    assert told in answer.err
