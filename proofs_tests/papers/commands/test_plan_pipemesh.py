"""``bubbleproof plan FILE --paper pipemesh``: its costs have data parallelism's collectives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run

PIPEMESH = """
ranks = 2
microbatches = 4
[durations]
forward = 4
backward = 8
[memory]
activation = 2
capacity = 13
static = 5
[plan]
chunks = [1, 2]
[paper.pipemesh]
parameters = 1
replicas = 12
communication = 3
operations = [{ name = "gelu", activation = 1, ticks = 1, count = 2 }]
"""


def test_pipemesh_stands_beside_the_plan_by_its_own_costs(command: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "mesh.toml", tmp_path / "out"
    path.write_text(PIPEMESH)
    answer = command("plan", path, "--paper", "pipemesh", "-o", out, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    paper = found["paper"]
    # Two chunks: rank 0 stores (2-1) q + 2 + 1 activations of 1 beside 5 of model state (with half
    # of the gradients' buffers double: 12/12 + 2/12 + 4/2 + 2 = 31/6). q = 4 makes 12.17 < 13.
    assert paper["choice"]["q"] == 4
    assert paper["choice"]["recompute"] == []
    # (2 4 + 1) 6 ticks of compute, 2 before and 2 behind for half of 3 rounded up.
    assert (paper["choice"]["ticks"], paper["value"]) == (58, 58)
    assert paper["joint"]["value"] == found["value"] <= 58
    assert command("verify", out / "paper.json").status == 0


def test_the_best_of_the_papers_kind_is_the_plan_and_written(command: Run, tmp_path: Path) -> None:
    """With 12 microbatches and room for q = 9, (9, 3) shows more of the gathers than (8, 4)."""
    path, out, proofs = tmp_path / "mesh.toml", tmp_path / "out", tmp_path / "proofs.json"
    path.write_text(
        "ranks = 3\nmicrobatches = 12\n[durations]\nforward = 60\nbackward = 120\n"
        "[memory]\nactivation = 24\ncapacity = 400\nstatic = 200\n[plan]\nchunks = [6]\n"
        "[paper.pipemesh]\nparameters = 25\nreplicas = 3\ncommunication = 300\n"
    )
    answer = command(
        "plan",
        path,
        "--paper",
        "pipemesh",
        "--time-limit",
        "2",
        "-o",
        out,
        "--json",
        "--certificate",
        proofs,
    )
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    paper, winner = found["paper"], found["winner"]
    assert winner["beside"] == "pipemesh, as it should be"
    assert paper["joint"]["run"].startswith("pipemesh, as it should be: v=6")
    assert paper["joint"]["value"] == found["value"] < paper["value"]
    for name in ("paper.json", "schedule.json", "plan.json"):
        assert command("verify", out / name).status == 0
    # The plan's proofs cover its pipelines, and are no proofs of the problem file alone.
    told = json.loads(command("verify", out, "--certificate", proofs, "--json").out)
    assert told["certificate"]["value"] == found["value"]
    assert told["certificate"]["bound"] == found["lower_bound"]
    assert "of the plan beside the file's shapes" in told["certificate"]["statement"]
    alone = command("verify", path, "--certificate", proofs)
    assert (alone.status, alone.err.count("\n")) == (2, 1)
    assert "expected a candidate of the problem, found pipemesh" in alone.err
    # A pipeline of other numbers than the schedule's is refused.
    plan = (out / "plan.json").read_text()
    others = plan.index('"others"')
    assert '"latency": 0' in plan[others:]
    (out / "plan.json").write_text(
        plan[:others] + plan[others:].replace('"latency": 0', '"latency": 1')
    )
    foreign = command("verify", out)
    assert foreign.status == 1
    assert "it has another pipeline" in foreign.out
    # So is one that does less than the file's ranks, in the plan and its schedule alike; and
    # nothing is told of how near it is to the optimum.
    content = json.loads(plan)
    for pipeline in (*content["others"].values(), content["schedule"]["pipeline"]):
        assert pipeline["forward"] == [10] * 18  # 60 ticks of a rank in 6 chunks
        pipeline["forward"] = [9] * 18
    (out / "plan.json").write_text(json.dumps(content))
    less = command("verify", out / "plan.json", "--certificate", proofs)
    assert less.status == 1
    assert "another step: forwards of a microbatch take 54 ticks on rank 0, not 60" in less.out
    assert "optimal over" not in less.out


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("parameters = 1\n", "", "paper.pipemesh.parameters"),
        ("replicas = 12", "replicas = 0", "paper.pipemesh.replicas"),
        ("parameters = 1\n", "parameters = 2\n", "(12/D + 4) psi = 10"),
        ("count = 2", "count = -1", "operations"),
        ("[paper.pipemesh]", "[paper.pipemash]", "did you mean 'pipemesh'"),
    ],
)
def test_bad_numbers_for_pipemesh_are_one_line(
    command: Run, tmp_path: Path, old: str, new: str, told: str
) -> None:
    path, out = tmp_path / "mesh.toml", tmp_path / "out"
    path.write_text(PIPEMESH.replace(old, new))
    answer = command("plan", path, "--paper", "pipemesh", "-o", out)
    assert answer.status == 2
    assert told in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not out.exists()
