"""``bubbleproof plan``: what it prints, writes and refuses, and ``verify`` of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bubbleproof as bp
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.planned import Plans
from proofs_tests.sized import sampled

# Two ranks, four microbatches, forwards of 4 ticks and backwards of 8, two activations of 2 a rank.
# Split in one chunk, rank 1 starts after one forward of 4 ticks and works 4 * 12 = 48: 52 at least.
# In two chunks it starts after 2 ticks: 50 at least.
PROBLEM = """
ranks = 2
microbatches = 4
[durations]
forward = 4
input = 4
weight = 4
[memory]
capacity = 4
activation = 2
[plan]
chunks = [1, 2, 3]
placements = ["loop", "wave"]
backward = ["whole", "split"]
"""
KEYS = {"chunks", "placement", "backward", "slices", "f", "layers", "recompute", "evict", "offload"}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(PROBLEM)
    return path


def test_the_json_has_the_keys_of_the_contract(command: Run, problem: Path) -> None:
    answer = command("plan", problem, "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["status"] == "OPTIMAL"
    assert found["statement"].startswith("optimal over these choices")
    assert found["objective"] == "makespan"
    assert found["value"] == found["lower_bound"] >= 50
    assert found["verified"] is True
    assert found["winner"].keys() >= KEYS
    assert len(found["candidates"]) == 3 * 2 * 2
    for one in found["candidates"]:
        wanted = KEYS | {"status", "value", "lower_bound", "peak_memory", "reason"}
        assert one.keys() >= wanted
    legal = [one for one in found["candidates"] if one["status"] != "NOT_LEGAL"]
    assert min(one["value"] for one in legal if one["value"]) == found["value"]
    assert all(one["lower_bound"] >= found["value"] for one in legal)
    assert [one["value"] for one in found["pareto"]] == sorted(
        one["value"] for one in found["pareto"]
    )
    # 4 ticks, and an activation of 2, are no whole number of thirds.
    out = [one["reason"] for one in found["candidates"] if one["chunks"] == 3]
    assert set(out) == {"forward 4 is not divisible by 3"}


def test_the_folder_of_a_plan_serves_as_its_schedule(
    command: Run, planned: Plans, tmp_path: Path
) -> None:
    folder = planned(PROBLEM).folder
    by_file = command("show", folder / "schedule.json")
    assert (by_file.status, command("show", folder).out) == (0, by_file.out)
    empty = command("show", tmp_path)
    assert empty.status == 2
    assert "a schedule (.json)" in empty.err
    long = command("show", "a" * 5000)
    assert (long.status, "a schedule (.json)" in long.err) == (2, True)


def test_files_of_two_plans_in_a_folder_are_seen(
    command: Run, problem: Path, planned: Plans, tmp_path: Path
) -> None:
    """As where a process was killed between them: the schedule is the older plan's."""
    whole, old = planned(PROBLEM).folder, tmp_path / "schedule.json"
    old.write_bytes((whole / "schedule.json").read_bytes())
    problem.write_text(PROBLEM.replace("microbatches = 4", "microbatches = 6"))
    assert command("plan", problem, "-o", whole).status == 0
    for asker in ("verify", "show"):
        assert command(asker, whole).status == 0
    old.replace(whole / "schedule.json")
    for words in (
        ("verify", whole),
        ("show", whole),
        ("hand-over", whole, "--to", "torch", "-o", tmp_path / "x"),
    ):
        answer = command(*words)
        told = "out: expected the files of one plan, found a schedule.json that is not the plan"
        assert (answer.status, told in answer.err) == (2, True), answer.err
    with pytest.raises(ValueError, match="expected the files of one plan"):
        bp.read(whole)
    assert bp.check(bp.read(whole / "plan.json")).ok  # which is whole by itself


def test_a_plan_is_not_planned_again_and_says_who_takes_it(
    command: Run, planned: Plans, tmp_path: Path
) -> None:
    folder = planned(PROBLEM).folder
    for asker in ("plan", "run"):
        for given in (folder, folder / "plan.json"):
            answer = command(asker, given)
            told = f"got '{given}', a plan: verify, show and hand-over take it, {asker} the file"
            assert (answer.status, told in answer.err) == (2, True), answer.err
        assert "a plan:" not in command(asker, tmp_path).err


def test_the_table_ends_with_what_to_run(command: Run, problem: Path) -> None:
    answer = command("plan", problem, "-v")
    assert answer.status == 0
    assert "optimal over these choices" in answer.out
    assert "the plan" in answer.out
    assert "95 % within" in answer.out
    assert "optimal:" not in answer.out


def test_a_plan_and_its_proofs_are_verified(command: Run, problem: Path, planned: Plans) -> None:
    made = planned(PROBLEM)
    out, proofs, value = made.folder, made.proofs, made.found["value"]
    assert {path.name for path in out.iterdir()} >= {"plan.json", "schedule.json"}
    for named in (out, out / "plan.json"):
        answer = command("verify", named, "--certificate", proofs)
        assert answer.status == 0, answer.out
        assert f"optimal over these choices: {value} tick" in answer.out
    alone = command("verify", problem, "--certificate", proofs, "--json")
    assert alone.status == 0
    assert json.loads(alone.out)["certificate"]["bound"] == value
    assert command("verify", out / "schedule.json").status == 0


@pytest.mark.sweep
@pytest.mark.parametrize("row", sampled(range(8), every=3))
def test_a_bundle_that_misses_a_candidate_is_refused(
    command: Run, problem: Path, planned: Plans, row: int
) -> None:
    proofs = planned(PROBLEM).proofs
    content = json.loads(proofs.read_text())
    assert len(content["candidates"]) == 8
    del content["candidates"][row]
    proofs.write_text(json.dumps(content))
    answer = command("verify", problem, "--certificate", proofs)
    assert answer.status == 1
    assert "the bundle has no bound of" in answer.out


def test_a_bundle_for_another_problem_is_refused(
    command: Run, planned: Plans, tmp_path: Path
) -> None:
    proofs, other = planned(PROBLEM).proofs, tmp_path / "other.toml"
    other.write_text(PROBLEM.replace("microbatches = 4", "microbatches = 3"))
    assert command("verify", other, "--certificate", proofs).status in (1, 2)
    other.write_text(PROBLEM.replace('"wave"', '"bidirectional"'))
    answer = command("verify", other, "--certificate", proofs)
    assert answer.status == 2
    assert "expected a candidate of the problem" in answer.err


def test_a_schedule_of_another_candidate_is_refused(command: Run, planned: Plans) -> None:
    out = planned(PROBLEM).folder
    content = json.loads((out / "plan.json").read_text())
    was = content["winner"]["backward"]
    content["winner"]["backward"] = "whole" if was == "split" else "split"
    (out / "plan.json").write_text(json.dumps(content))
    answer = command("verify", out)
    assert answer.status == 1
    assert "the schedule is none of" in answer.out


def test_a_memory_that_nothing_fits_names_the_nearest_that_would(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    problem.write_text(PROBLEM.replace("capacity = 4", "capacity = 1"))
    answer = command("plan", problem, "-o", tmp_path / "out", "--json")
    assert answer.status == 1
    found = json.loads(answer.out)
    assert (found["status"], found["winner"]) == ("INFEASIBLE", None)
    assert found["least_capacity"] == 2  # one microbatch holds 2 on each rank
    assert not (tmp_path / "out").exists()
    told = command("plan", problem).out.splitlines()
    assert told[0].startswith("DOES NOT FIT")
    assert told[0].endswith("use 2 activations on each rank")
    assert "2 activations on each rank" in command("plan", problem, "-v").out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "[plan]",
            "[compare]",
            "no key 'chunks' (chunks stands at the top); the keys",
        ),
        # 4 ticks and an activation of 2 are no thirds, and each is two halves.
        ("[1, 2, 3]", "[3]", "forward 4 is not divisible by 3; use chunks = [2]"),
        ("chunks = [1, 2, 3]", "chunks = []", "chunks must list one value or more"),
        ("chunks = [1, 2, 3]", "chunks = [2, 2]", "each once"),
        ("chunks = [1, 2, 3]", "chunks = [0]", "plan.chunks[0]"),
        ("input = 4\nweight = 4", "backward = 8", "durations.input and durations.weight"),
        ('"wave"', '"ring"', "plan.placements"),
        ("chunks = [1, 2, 3]", "chunks = [1]\nslices = [9999999]", "plan.slices"),
    ],
)
def test_what_is_no_plan_is_refused_in_a_line(
    command: Run, problem: Path, tmp_path: Path, old: str, new: str, words: str
) -> None:
    problem.write_text(PROBLEM.replace(old, new))
    answer = command("plan", problem, "-o", tmp_path / "out")
    assert answer.status == 2
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time-limit", 0), "time limit must be above 0 seconds, got 0.0"),
        (("--threads", 0), "threads must be 1 or more, got 0"),
        (("--seed", -1), "seed must be 0 to 2**31 - 1, got -1"),
        (("-o", "taken"), "taken: expected a folder to write into"),
        (("-o", "taken/below"), "taken/below: expected a folder to write into"),
        (("--certificate", "taken/proofs.json"), "taken/proofs.json: expected a file in a folder"),
        (("--certificate", "folder.json"), "folder.json: expected a regular file to write"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    command: Run,
    problem: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("mine")
    Path("folder.json").mkdir()
    there = sorted(tmp_path.rglob("*"))
    answer = command("plan", problem, "--certificate", "c.json", "-o", "out", *words)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err
    assert sorted(tmp_path.rglob("*")) == there


def test_where_nothing_fits_no_proofs_are_written(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    problem.write_text(PROBLEM.replace("capacity = 4", "capacity = 1"))
    assert command("plan", problem, "--certificate", tmp_path / "c.json").status == 1
    assert not (tmp_path / "c.json").exists()


def test_a_file_without_a_plan_says_what_it_lacks(command: Run, problem: Path) -> None:
    problem.write_text(PROBLEM[: PROBLEM.index("[plan]")])
    answer = command("plan", problem)
    assert answer.status == 2
    assert "plan: expected this table, such as chunks = [1, 2], found nothing" in answer.err


def test_layers_are_cut_as_found_best(command: Run, problem: Path) -> None:
    # 5 layers on 2 ranks, and a head of 3 layers' work: 3 + 2 + 3 balances as 4 + (1 + 3).
    problem.write_text(
        "ranks = 2\nmicrobatches = 6\n"
        "[layers]\nnumber = 5\nforward = 2\nbackward = 4\nspread = 2\n"
        "[layers.head]\nforward = 6\nbackward = 12\n[plan]\n"
    )
    found = json.loads(command("plan", problem, "--json").out)
    assert found["status"] == "OPTIMAL"
    assert found["winner"]["layers"] == [4, 1]
    assert {tuple(one["layers"]) for one in found["candidates"]} == {(1, 4), (2, 3), (3, 2), (4, 1)}


@pytest.mark.torch
def test_run_plans_draws_and_replays(
    command: Run, problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")  # no cell is broken
    problem.write_text(PROBLEM + '[compare]\nfamilies = ["1f1b"]\n')
    out = tmp_path / "out"
    answer = command("run", problem, "-o", out, "--backend", "virtual", "-v")
    assert answer.status == 0, answer.out + answer.err
    assert "optimal over these choices" in answer.out
    assert "1f1b" in answer.out
    assert answer.out.index("this shape (VPP 1, full backward)") < answer.out.index(
        "the plan (VPP "
    )
    written = {path.name for path in out.iterdir()}
    assert written >= {"plan.json", "certificate.json", "schedule.json", "result.json"}
    checked = command("verify", out, "--certificate", out / "certificate.json")
    assert checked.status == 0
    told = json.loads(command("run", problem, "-o", out, "--backend", "virtual", "--json").out)
    assert told["verified"] is True
    assert {row["verdict"] for row in told["replay"]} == {"holds"}


def test_counted_work_repeats(command: Run, problem: Path) -> None:
    def told() -> tuple[int, dict[str, object]]:
        answer = command("plan", problem, "--work", "0.2", "--json")
        found = json.loads(answer.out)
        del found["seconds"]
        return answer.status, found

    assert told() == told()
