"""``verify``: status, JSON and counterexamples for files, tables and families."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.verify import USUAL, Semantics
from proofs_tests.cases import hand_built
from proofs_tests.commands.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_family_holds_under_every_semantics(command: Run) -> None:
    answer = command("verify", "1f1b", "p=4", "m=8", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"]) == (0, True)
    details = [rule["detail"] for rule in found["rules"] if rule["rule"] == "communication"]
    assert details == ["buffered", "rendezvous", "pair-stream", "launch-order", "rank-stream"]
    assert details == list(USUAL)
    assert found["measured"]["idle_ratio"] == "3/11"


def test_help_names_every_semantics(command: Run) -> None:
    assert ",".join(Semantics) in "".join(command("verify", "--help").out.split())


def test_one_launch_queue_a_rank_stops_what_a_stream_a_pair_lets_through(command: Run) -> None:
    # LoopedBFS of PyTorch at p=3 v=2 m=6 with deferred receives.
    table = str(EXAMPLES / "ci" / "launch-order.csv")
    assert command("verify", table, "--comm", "buffered", "--comm", "pair-stream").status == 0
    answer = command("verify", table, "--comm", "launch-order")
    assert answer.status == 1
    (sentence,) = (line for line in answer.out.splitlines() if line.startswith("deadlock under"))
    assert "the start of 3RECV_F0 on rank 0 waits for the start of 0SEND_F5 on rank 0" in sentence


def test_the_definition_alone_decides_six_rules(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bubbleproof.verify.rows.Rows.of", None)  # the fast checker is not asked
    answer = command("verify", "1f1b", "p=4", "m=8", "--spec", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"], found["measured"]["idle_ratio"]) == (0, True, "3/11")
    undecided = [rule["rule"] for rule in found["rules"] if rule["verdict"] == "not decided"]
    assert undecided == ["communication", "dataflow", "certificate", "required"]
    path = tmp_path / "late.json"
    case = hand_built()
    late = replace(case.schedule, start=case.schedule.start[::-1].copy())
    write_schedule(str(path), ScheduleFile.of(case.problem, late))
    answer = command("verify", path, "--spec", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"]) == (1, False)
    assert {row["rule"] for row in found["violations"]} >= {"dependencies", "exclusive"}
    refused = command("verify", "1f1b", "p=4", "m=8", "--spec", "--comm", "buffered")
    assert (refused.status, refused.out) == (2, "")


def test_a_missing_action_is_a_violation_with_its_grid(command: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("0F0,0F1,0B0,\n1F0,1B0,1F1,1B1\n")
    answer = command("verify", table)
    assert answer.status == 1
    assert "0B1 is missing on rank 0" in answer.out
    assert "[0B0]" in answer.out
    assert "not decided: dependencies, exclusive, memory (the program has no times" in answer.out


def test_receive_just_in_time_deadlocks_in_one_stream_per_pair(
    command: Run, tmp_path: Path
) -> None:
    # Rank 0 sends F1 before it receives B0; rank 1 sends B0 before it receives F1.
    table = tmp_path / "t.csv"
    table.write_text(
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"
    )
    fine = command("verify", table, "--comm", "buffered")
    assert fine.status == 0
    stuck = command("verify", table, "--comm", "pair-stream")
    assert stuck.status == 1
    assert "deadlock under pair-stream" in stuck.out
    assert "waits for" in stuck.out


def test_swapped_sends_are_seen_where_they_are_used(command: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"
    )
    answer = command("verify", table)
    assert answer.status == 1
    assert "1F0 on rank 1 needs the output of 0F0: it finds the output of 0F1" in answer.out
    found = json.loads(command("verify", table, "--json").out)
    flows = {rule["detail"]: rule["ok"] for rule in found["rules"] if rule["rule"] == "dataflow"}
    # By time the computations are right; the author's own messages are not.
    assert flows == {"": True, "messages": False}


def test_a_problem_that_is_no_training_step_has_no_data_flow(command: Run, tmp_path: Path) -> None:
    case, path = hand_built(), tmp_path / "s.json"
    write_schedule(path, ScheduleFile.of(case.problem, case.schedule, name="hand-built"))
    answer = command("verify", path)
    assert answer.status == 0
    assert "VALID (every rule but dataflow)" in answer.out
    assert "inapplicable" in command("verify", path, "-v").out
    found = json.loads(command("verify", path, "--json").out)
    (skipped,) = found["inapplicable"]
    assert skipped["rule"] == "dataflow"
    assert skipped["reason"].endswith("it has 1OFFLOAD0 without 1RELOAD0")
    assert found["ok"]


def test_claims_in_a_file_are_checked(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    assert command("convert", "1f1b", "p=2", "m=2", path).status == 0
    content = json.loads(path.read_text())
    content["claims"] = {"makespan": 8}  # (2 + 2 - 1) * 3 = 9
    path.write_text(json.dumps(content))
    answer = command("verify", path)
    assert answer.status == 1
    assert "makespan is claimed to be 8, but measures 9" in answer.out


def test_against_another_problem(command: Run, tmp_path: Path) -> None:
    problem = tmp_path / "p.toml"
    text = "ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n"
    problem.write_text(text + "[memory]\nactivation = 1\ncapacity = 1\n")
    answer = command("verify", "1f1b", "p=2", "m=4", "--problem", problem)
    assert answer.status == 1
    assert "memory of rank 0 holds 2 at 1, when 0F1 runs; its capacity is 1" in answer.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0F0,0F0x\n", "row 1, column 2: expected a PyTorch action"),
        ("0F0,0BW0\n", "row 1, column 2: expected a PyTorch action"),
        ("(0F0;0B0OVERLAP_F_B\n", "row 1, column 1: expected a PyTorch action"),
        ("0F0,0B0\n\n1F0,1B0\n", "row 2: expected the actions of a rank, found an empty row"),
        ("0F0,0B0\n0F0,0B0\n", "a stage mapped twice"),
        ("0F0,,,0B0\n,1F0\n", "row 2: expected 4 cells as in row 1"),
    ],
)
def test_unusable_tables(command: Run, tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text(content)
    answer = command("verify", table)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify"], "verify needs SCHEDULE, as in: bubbleproof verify 1f1b p=4 m=8"),
        (["verify", "x.yaml"], "expected a schedule (.json), a PyTorch table (.csv) or a family"),
        (["verify", "nosuch.json"], "nosuch.json: expected a file, found no such file"),
        (["verify", "1f1b", "p=2", "m=2", "--comm", "x"], "--comm must be one of buffered"),
        (["verify", "1f1b", "p=2", "m=2", "--nosuch"], "No such option"),
        (["frobnicate"], "No such command"),
    ],
)
def test_unusable_words(command: Run, words: list[str], message: str) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_a_problem_with_open_choices_is_refused(command: Run) -> None:
    answer = command(
        "verify", "1f1b", "p=4", "m=8", "--problem", EXAMPLES / "researcher" / "memory-choices.toml"
    )
    assert (answer.status, answer.out) == (2, "")
    assert "1f1b p=4 m=8 is none of the choices of memory-choices" in answer.err


def test_a_runtime_says_what_messages_wait_for(command: Run) -> None:
    # PyTorch's runtime has a stream a pair, or one a rank; receives just in time hang in both.
    # Megatron-LM's batches exchange what DeepSpeed's blocking sends cannot.
    answer = command("verify", "examples/ci/just-in-time.csv", "--runtime", "torch-2.13", "--json")
    rules = [rule for rule in json.loads(answer.out)["rules"] if rule["rule"] == "communication"]
    assert [rule["detail"] for rule in rules] == ["pair-stream", "rank-stream"]
    assert answer.status == 1
    assert (
        command("verify", "examples/ci/just-in-time.csv", "--runtime", "megatron-core").status == 0
    )
    assert command("verify", "examples/ci/just-in-time.csv", "--runtime", "deepspeed").status == 1


def test_a_runtime_and_a_semantics_are_one_too_many(command: Run) -> None:
    answer = command("verify", "1f1b", "p=2", "m=2", "--runtime", "deepspeed", "--comm", "buffered")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
