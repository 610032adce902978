"""``verify --certificate`` and ``solve --certificate``: how good a schedule is, with its proof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.formats import write_certificate
from bubbleproof.report.amounts import counted
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.options import OBJECTIVES
from bubbleproof.solvers.refutation.proofs import refute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.commands.conftest import Run
from proofs_tests.patience import PATIENCE, in_time
from proofs_tests.verify.candidates.test_cases import least

# Four ranks, tF = 2, tB = 4, latency 1: 80 is the optimum, and no one-machine bound says so.
LATE = (
    "ranks = 4\nmicrobatches = 8\n[durations]\nforward = 2\nbackward = 4\n"
    "[links]\nlatency = 1\n[memory]\ncapacity = 4\n"
)
PIPELINE = Pipeline(num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4)


@pytest.fixture
def solved(command: Run, tmp_path: Path) -> tuple[Path, Path]:
    """An optimal schedule of ``PIPELINE`` and a DRUP certificate of its makespan."""
    problem = tmp_path / "late.toml"
    problem.write_text(LATE)
    assert command("solve", problem, "-o", tmp_path / "s.json", "--json").status == 0
    problem_ = PIPELINE.problem()
    deadline = in_time()
    certificate = refute(problem_, lower_bounds(problem_), 80, deadline=deadline)
    assert certificate is not None
    write_certificate(tmp_path / "c.json", problem_, certificate)
    return tmp_path / "s.json", tmp_path / "c.json"


def test_an_optimal_schedule_is_called_optimal(command: Run, solved: tuple[Path, Path]) -> None:
    answer = command("verify", solved[0], "--certificate", solved[1])
    assert answer.status == 0
    assert "optimal for this pipeline: makespan 80 ticks, and no schedule has less" in answer.out
    found = json.loads(command("verify", solved[0], "--certificate", solved[1], "--json").out)
    assert found["certificate"]["gap"] == 0
    assert found["ok"] is True
    assert found["rules"][-1]["rule"] == "certificate"


def test_another_schedule_is_told_its_distance(command: Run, solved: tuple[Path, Path]) -> None:
    # 1F1B left-shifted on the same problem takes longer than 80.
    toml = solved[0].parent / "late.toml"
    words = ("verify", "1f1b", "p=4", "m=8", "--problem", toml, "--certificate", solved[1])
    found = json.loads(command(*words, "--json").out)
    gap = found["measured"]["makespan"] - 80
    assert gap > 0
    assert found["certificate"]["gap"] == gap
    answer = command(*words)
    assert answer.status == 0
    assert f"within {counted(gap, 'tick')} of optimal" in answer.out


def test_a_tampered_certificate_is_a_violation(command: Run, solved: tuple[Path, Path]) -> None:
    schedule, path = solved
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"bound": 81}))
    answer = command("verify", schedule, "--certificate", path)
    assert answer.status == 1
    assert "nothing is proved about how good the schedule is" in answer.out
    assert "optimal for" not in answer.out
    path.write_text(json.dumps(content | {"lemmas": content["lemmas"][:-1]}))
    found = json.loads(command("verify", schedule, "--certificate", path, "--json").out)
    assert found["ok"] is False
    assert found["certificate"]["gap"] is None
    assert found["violations"][0]["message"] == "the lemmas do not refute makespan 79"


def test_an_unusable_file_is_one_line(command: Run, solved: tuple[Path, Path]) -> None:
    schedule, path = solved
    path.write_text("{}")
    answer = command("verify", schedule, "--certificate", path)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert 'expected "bubbleproof/certificate"' in answer.err
    assert command("verify", schedule, "--certificate", path.parent / "none.json").status == 2


def test_a_broken_schedule_is_never_optimal(command: Run, solved: tuple[Path, Path]) -> None:
    schedule, path = solved
    content = json.loads(schedule.read_text())
    first = content["orders"]["rank 3"]
    first[-1][1] -= 20
    schedule.write_text(json.dumps(content))
    answer = command("verify", schedule, "--certificate", path)
    assert answer.status == 1
    assert "nothing is proved" in answer.out


def test_solve_writes_a_certificate_that_verifies(command: Run, tmp_path: Path) -> None:
    problem = tmp_path / "p.toml"
    problem.write_text("ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n")
    schedule, path = tmp_path / "s.json", tmp_path / "c.json"
    answer = command("solve", problem, "-o", schedule, "--certificate", path)
    assert answer.status == 0
    assert f"wrote {path}" in answer.err
    checked = command("verify", schedule, "--certificate", path)
    assert checked.status == 0
    assert "optimal for this pipeline: makespan 15 ticks" in checked.out
    refused = command("solve", problem, "--certificate", tmp_path / "c.txt")
    assert refused.status == 2
    assert "certificate's file must end in .json" in refused.err


# Rank 0 has room for one microbatch: it recomputes, evicts to rank 1, or waits. No relaxation shows
# the least makespan (``test_cases``), which plain models of all choices find.
OPEN = (
    "ranks = 2\nmicrobatches = 2\n[durations]\nforward = 2\nbackward = 4\n"
    "[links]\nlatency = 2\n[memory]\ncapacity = 3\nactivation = [3, 2]\n"
    "[choices.recompute]\nstages = [0]\nkept = 1\n[choices.evict]\npairs = [[0, 1]]\nduration = 2\n"
)


def test_solve_over_choices_writes_a_proof_by_cases(command: Run, tmp_path: Path) -> None:
    problem, schedule, path = (tmp_path / name for name in ("p.toml", "s.json", "c.json"))
    problem.write_text(OPEN)
    words = ("solve", problem, "-o", schedule, "--certificate", path, "--certified", "--json")
    solved = command(*words, "--time-limit", PATIENCE)
    assert solved.status == 0
    found = json.loads(solved.out)
    assert (found["value"], found["proof"]) == (least(), "CERTIFICATE")
    content = json.loads(path.read_text())
    assert (content["kind"], content["bound"]) == ("cases", least())
    assert content["cases"][0] is None
    told = {"kind": "cases", "cases": sum(one is not None for one in content["cases"])}
    assert found["certificate"] == {**told, "bound": least()}
    checked = command("verify", schedule, "--certificate", path)
    assert checked.status == 0
    assert f"optimal over these choices: makespan {least()} tick" in checked.out

    # Negative controls: a larger bound, a case that proves too little, a case left out.
    path.write_text(json.dumps(content | {"bound": least() + 1}))
    assert command("verify", schedule, "--certificate", path).status == 1
    row = next(row for row, one in enumerate(content["cases"]) if one is not None)
    weak = [*content["cases"]]
    weak[row] = weak[row] | {"bound": least() - 1}
    path.write_text(json.dumps(content | {"cases": weak}))
    refused = command("verify", schedule, "--certificate", path)
    assert refused.status == 1
    assert f"case {row} is not about a makespan of {least()}" in refused.out
    path.write_text(json.dumps(content | {"cases": content["cases"][:-1]}))
    missing = command("verify", schedule, "--certificate", path)
    assert (missing.status, missing.err.count("\n")) == (2, 1)
    assert "expected every case of the choices" in missing.err


def test_cases_are_refused_of_a_schedule_without_choices(
    command: Run, solved: tuple[Path, Path]
) -> None:
    schedule, path = solved
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"kind": "cases", "cases": []}))
    answer = command("verify", schedule, "--certificate", path)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "found 'cases'" in answer.err


# Rank 1 computes in no time: its 4 units are given back at the instant at which they are taken, so
# each microbatch takes 4 + 8 ticks on rank 0, which has room for three, and no schedule less.
INSTANT = (
    "ranks = 2\nmicrobatches = 2\n[durations]\nforward = [4, 0]\nbackward = [8, 0]\n"
    "[memory]\ncapacity = 3\nactivation = [1, 4]\n[plan]\nchunks = [1]\n"
)


def test_a_stage_of_no_ticks_needs_no_room(command: Run, tmp_path: Path) -> None:
    problem, path = tmp_path / "zero.toml", tmp_path / "c.json"
    problem.write_text(INSTANT)
    answer = command("plan", problem, "--certificate", path, "--json")
    assert (answer.status, json.loads(answer.out)["value"]) == (0, 2 * (4 + 8))
    assert command("verify", problem, "--certificate", path).status == 0
    content = json.loads(path.read_text())
    claim = {"bound": 1_000_000, "certificate": {"kind": "no-room", "rank": 1}}
    content["candidates"][0] |= claim
    path.write_text(json.dumps(content))
    refused = command("verify", problem, "--certificate", path)
    assert refused.status == 1
    assert "nothing is proved about how good the plan is" in refused.out


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_solve_calls_checked_is_what_its_file_proves(
    objective: str, command: Run, tmp_path: Path
) -> None:
    """Each objective: what is called checked is what ``verify`` accepts of the file."""
    problem, schedule, proof = (str(tmp_path / name) for name in ("p.toml", "s.json", "c.json"))
    Path(problem).write_text(
        "ranks = 3\nmicrobatches = 5\n[durations]\nforward = 2\nbackward = 4\n"
        "[memory]\nactivation = 1\n",
        "utf-8",
    )
    words = ("solve", problem, "--objective", objective, "-o", schedule)
    if objective == "peak":  # what is proved is about problems of less memory
        refused = command(*words, "--certificate", proof)
        assert (refused.status, Path(proof).exists()) == (2, False)
        assert "--certificate has no meaning for the objective peak" in refused.err
        told = json.loads(command(*words, "--json").out)
        assert (told["proof"], told["certificate"]) == ("ARGUMENT", None)
        assert "optimal" not in told["statement"]
        assert "least peak for this shape, by the reason given" in told["statement"]
        assert "certificate checked" not in command(*words).out
        return
    told = json.loads(command(*words, "--certificate", proof, "--json").out)
    judged = json.loads(command("verify", schedule, "--certificate", proof, "--json").out)
    found = judged["certificate"]
    assert (judged["ok"], found["gap"], found["bound"]) == (True, 0, told["lower_bound"])
    assert (found["objective"] == objective) == (told["proof"] == "CERTIFICATE")
    said = " ".join(command(*words, "-v").out.replace("│", " ").split())
    assert told["statement"].replace("this shape", "this pipeline") in said
    assert f" {told['lower_bound']} ticks" in said
    assert "certificate checked" in said
    if objective == "makespan-then-peak":
        # 3 ranks, 5 microbatches: 7 x 6 = 42 ticks, where 1F1B holds 3 on rank 0. With room for 2
        # microbatches 0, 2 and 4 follow each other there, 3 x 18 = 54 ticks.
        assert (told["makespan"], told["peak"], told["proof"]) == (42, 3, "ARGUMENT")
        assert "peak not below 3 activations, by argument" in said
        assert told["statement"].startswith("optimal makespan for this shape, certificate checked")
        assert "least peak of that makespan by the reason given" in told["statement"]
        assert "OPTIMAL 42 ticks, least peak 3 activations for this pipeline (proved: " in said
        assert "no schedule is better" not in said
