"""``solve`` with demands, why there is no schedule, and ``repair``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.commands import repair
from proofs_tests.commands.conftest import Run

SMALL = """\
ranks = 2
microbatches = 3
[durations]
forward = 1
backward = 2
"""


def problem(folder: Path, more: str = "") -> str:
    path = folder / "small.toml"
    path.write_text(SMALL + more)
    return str(path)


def test_orders_are_kept_and_the_answer_is_verified(command: Run, tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    answer = command(
        "solve",
        problem(tmp_path),
        "--require",
        "0F2 < 0B0",
        "--forbid",
        "1B0<1F1",
        "--json",
        "-o",
        str(target),
    )
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["makespan"] >= 12
    assert found["scope"] == "schedules that keep the 2 orders demanded"
    order = [row[0] for row in json.loads(target.read_text())["orders"]["rank 0"]]
    assert order.index("0F2") < order.index("0B0")
    assert command("verify", str(target)).status == 0


def test_a_part_of_a_schedule_is_kept(command: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "gpipe.json", tmp_path / "s.json"
    assert command("convert", "gpipe", "p=2", "m=3", str(source)).status == 0
    for words in (("--keep-ranks", "0"), ("--keep-until", "3")):
        answer = command(
            "solve", problem(tmp_path), "--keep", str(source), *words, "-o", str(target), "--json"
        )
        assert answer.status == 0, answer.err
        order = [row[0] for row in json.loads(target.read_text())["orders"]["rank 0"]]
        assert order[:3] == ["0F0", "0F1", "0F2"]


def test_infeasible_input_says_what_contradicts_what(command: Run, tmp_path: Path) -> None:
    answer = command(
        "solve",
        problem(tmp_path),
        "--require",
        "0F0<0F1",
        "--require",
        "0F1<0F0",
        "--require",
        "1F0<1F1",
        "--json",
    )
    found = json.loads(answer.out)
    assert (answer.status, found["status"]) == (1, "INFEASIBLE")
    assert found["causes"] == [
        "0F0 must end before 0F1",
        "0F1 must end before 0F0",
        "without any one of these there are schedules",
    ]


def test_a_cap_below_one_activation_names_the_store(command: Run, tmp_path: Path) -> None:
    path = problem(tmp_path, "[memory]\nactivation = 3\nstatic = 1\ncapacity = 3\n")
    answer = command("solve", path)
    assert answer.status == 1
    assert "0F0 needs 3 beside the base load 1, but the capacity is 3" in answer.out
    assert "memory of rank 0 (3 activation, 1 of it taken) keeps what 0F0 0B0 hold" in answer.out


def test_repair_that_finds_nothing_has_the_same_keys(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, tight = (
        tmp_path / "bad.csv",
        problem(tmp_path, "[memory]\nactivation = 3\ncapacity = 2\n"),
    )
    table.write_text("0F0,0B0\n1F0,1B0\n")
    found = json.loads(command("repair", str(table), "--json").out)
    impossible = json.loads(command("repair", str(table), "--problem", tight, "--json").out)
    monkeypatch.setattr(repair, "repair", lambda *_: None)
    undecided = json.loads(command("repair", str(table), "--json").out)
    told = {"name", "status", "statement", "lower_bound_of", "scope", "causes"}
    for none, status, keys in (
        (impossible, "INFEASIBLE", told | {"reason"}),
        (undecided, "UNKNOWN", told),
    ):
        assert none["status"] == status
        assert none.keys() == {*found, "causes"}
        assert {key for key, value in none.items() if value is not None} == keys


def test_repair_moves_what_it_must_and_says_so(command: Run, tmp_path: Path) -> None:
    table, target = tmp_path / "bad.csv", tmp_path / "good.json"
    table.write_text("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")
    # A deadlock: 1F1 waits for 0F1, behind 0B0, which waits for 1B0, behind 1F1.
    assert command("verify", str(table)).status == 1
    found = json.loads(command("repair", str(table), "--json").out)
    assert found["moves"] == len(found["moved"]) == 1
    path = tmp_path / "tight.toml"
    path.write_text(SMALL.replace("= 3", "= 2") + "[memory]\ncapacity = 1\n")
    table.write_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")
    assert command("verify", str(table), "--problem", str(path)).status == 1
    answer = command("repair", str(table), "--problem", str(path), "-o", str(target), "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    # Each rank moves one action: F1 behind B0.
    assert (found["moves"], found["is_fewest"]) == (2, True)
    assert found["kept_orders"] == ["0F0<0B0", "0B0<0B1", "1F0<1B0", "1B0<1B1"]
    assert command("verify", str(target)).status == 0


def test_the_scope_of_a_repair_is_said(command: Run, tmp_path: Path) -> None:
    table = tmp_path / "slow.csv"
    table.write_text("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n")
    # Valid as it stands: nothing moves. One microbatch after the other takes 2 x 6 ticks, both 9.
    answer = command("repair", str(table))
    assert answer.status == 0, answer.err
    why = "no repair of as few moves is shorter: an uncertified bound of cpsat"
    assert f"time     12 ticks ({why})" in answer.out
    whole = command("repair", str(table), "-v").out
    assert "status and bound are about all schedules of the problem" in whole
    assert "feasible: the schedule was checked" in whole
    found = json.loads(command("repair", str(table), "--json").out)
    assert (found["makespan"], found["lower_bound"], found["status"]) == (12, 9, "FEASIBLE")
    assert (found["is_shortest"], found["kept_orders"][0]) == (True, "0F0<0B0")


def test_what_cannot_be_repaired_says_why(command: Run, tmp_path: Path) -> None:
    path = problem(tmp_path, "[memory]\nactivation = 3\ncapacity = 2\n")
    answer = command("repair", "1f1b", "p=2", "m=3", "--problem", path)
    assert answer.status == 1
    assert "memory of rank 0" in answer.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--require", "0F0"], "--require must be two actions such as 0F1<0B0, got '0F0'"),
        (["--require", "0F0<9F9"], "--require: 9F9 is no task of the problem"),
        (["--require", "0F0<what"], "what"),
        (["--forbid", "0F0<1F0"], "0F0 and 1F0 share none"),
        (["--keep-until", "3"], "--keep-ranks and --keep-until need the schedule to --keep"),
        (["--keep", "x.json"], "--keep takes either --keep-ranks or --keep-until"),
        (["--certificate", "c.txt"], "the certificate's file must end in .json, got 'c.txt'"),
    ],
)
def test_unusable_demands(command: Run, tmp_path: Path, words: list[str], message: str) -> None:
    answer = command("solve", problem(tmp_path), *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err


def test_repair_says_as_solve_does_that_one_task_needs_more_than_there_is(
    command: Run, tmp_path: Path
) -> None:
    # an activation of 3 where the memory is 2: by hand, whatever the order
    problem, table = tmp_path / "rp.toml", tmp_path / "rp.csv"
    problem.write_text(
        "ranks = 2\nmicrobatches = 1\n[durations]\nforward = 2\nbackward = 2\n"
        "[memory]\ncapacity = 2\nactivation = 3\n"
    )
    table.write_text("0F0,0B0\n1F0,1B0\n")
    repaired = command("repair", table, "--problem", problem, "--json")
    solved = command("solve", problem, "--json")
    assert (repaired.status, solved.status) == (1, 1)
    told, wanted = json.loads(repaired.out), json.loads(solved.out)
    for key in ("status", "statement", "reason", "causes"):
        assert told[key] == wanted[key], key
    assert "needs 3 beside the base load 0, but the capacity is 2" in told["reason"]
