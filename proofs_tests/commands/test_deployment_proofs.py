"""The proofs of all deployments of a model on a cluster: accepted, and refused where changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.cli import main
from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
from bubbleproof.formats.clusters.deployed_content import deployments
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.planners import Plan, PlanOptions, plan
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

MICRO_BATCHES = sized([1, 3], full=[1, 2, 3])
TEXT = f"""{SMALL.replace("128 MiB", "104 MiB")}\
[plan]
pipeline = [1, 2, 4]
micro_batch = {MICRO_BATCHES}
zero = [0, 1]
scope = ["none", "full"]
chunks = [1, 2]
"""
Content = dict[str, Any]  # a JSON object, whatever is in it


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, its plan and its proofs."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "small.toml").write_text(TEXT)
    words = ("plan", folder / "small.toml", "-o", folder / "out", "--certificate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bubbleproof", *map(str, words), str(folder / "p.json")])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert not stopped.value.code
    return folder


@pytest.fixture
def planned(made: Path, tmp_path: Path) -> Path:
    """A copy of them, to change."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def verified(command: Run, folder: Path, subject: str = "out") -> tuple[int, Content]:
    answer = command("verify", folder / subject, "--certificate", folder / "p.json", "--json")
    return answer.status, json.loads(answer.out) if answer.out else {"err": answer.err}


def changed(folder: Path, change: Callable[[list[Content]], object]) -> None:
    content = json.loads((folder / "p.json").read_text())
    change(content["deployments"])
    (folder / "p.json").write_text(json.dumps(content))


@pytest.mark.sweep
def test_the_plan_is_optimal_over_all_deployments(command: Run, planned: Path) -> None:
    """The bound is the least iteration of all deployments, each planned by itself."""
    file = read_cluster_file(planned / "small.toml")
    alone = []
    for one in deployments(file, all_counted(file)).deployed:
        each = plan(one.space, PlanOptions(time_limit=PATIENCE))
        alone += [each.value + one.after] if isinstance(each, Plan) else []
    status, found = verified(command, planned)
    assert status == 0
    told = found["certificate"]
    assert told["ok"] is True
    assert told["objective"] == "iteration"
    assert told["bound"] == told["value"] == min(alone)
    assert told["without_room"] > 0
    assert told["statement"].startswith(
        "optimal over these deployments and choices, with layers cut even or balanced: "
    )
    # (t, d, p): (1,4,1) (2,2,1) (1,2,2), each at two levels of ZeRO, and (2,1,2) (1,1,4), of one
    # replica, at one; micro-batches of which 3 never divides 8; two scopes.
    assert (
        told["deployments"] == (3 * 2 + 2) * len(MICRO_BATCHES) * 2 - told["deployments_not_legal"]
    )
    status, bare = verified(command, planned, "small.toml")
    assert status == 0
    assert bare["certificate"]["bound"] == told["bound"]
    assert bare["certificate"]["statement"].startswith("no iteration over these deployments")


def test_a_deployment_that_is_missing_is_named(command: Run, planned: Path) -> None:
    names: list[str] = []
    changed(planned, lambda rows: names.append(rows.pop(3)["deployment"]))
    for subject in ("out", "small.toml"):
        status, found = verified(command, planned, subject)
        assert status == 1
        assert f"nothing bounds the deployment {names[0]}" in json.dumps(found)


def test_a_deployment_that_stands_twice_or_nowhere_is_refused(command: Run, planned: Path) -> None:
    changed(planned, lambda rows: rows.append(rows[0]))
    assert "stands 2 times" in json.dumps(verified(command, planned)[1])
    changed(planned, lambda rows: rows[-1].update(deployment="t=9"))
    status, found = verified(command, planned)
    assert status == 1
    assert "t=9 is no deployment of the problem" in json.dumps(found)


def test_a_candidate_that_is_missing_is_named(command: Run, planned: Path) -> None:
    changed(planned, lambda rows: rows[0]["candidates"].pop())
    status, found = verified(command, planned)
    assert status == 1
    assert "the bundle has no bound of v=" in json.dumps(found)


@pytest.mark.parametrize("kind", ["rank-work", "no-room"])
def test_a_bound_that_is_raised_is_refused(command: Run, planned: Path, kind: str) -> None:
    """Ticks more than the rank shows; or no room, of a candidate that has room."""

    def raise_one(rows: list[Content]) -> None:
        candidates = [each for row in rows for each in row["candidates"]]
        one = next(c for c in candidates if c["certificate"]["kind"] == "rank-work")
        one["bound"] += 1
        one["certificate"]["kind"] = kind

    changed(planned, raise_one)
    status, found = verified(command, planned)
    assert status == 1
    told = json.dumps(found)
    assert ("has room for one microbatch" if kind == "no-room" else "ticks, not") in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hidden = 256", "hidden = 128"),
        ("flops = 1e12", "flops = 0.9e12"),
        ("samples = 8", "samples = 16"),
        ('"104 MiB"', '"128 MiB"'),
        ("zero = [0, 1]", "zero = [0, 1, 2]"),
        ("chunks = [1, 2]", "chunks = [1]"),
        ('network = "1 GB/s"', 'network = "2 GB/s"'),
    ],
)
def test_proofs_of_another_file_are_refused(
    command: Run, planned: Path, old: str, new: str
) -> None:
    assert old in TEXT
    (planned / "other.toml").write_text(TEXT.replace(old, new))
    status, found = verified(command, planned, "other.toml")
    assert status == 2
    assert "expected those of this model, cluster and batch" in found["err"]
    given = (planned / "out", "--problem", planned / "other.toml")
    answer = command("verify", *given, "--certificate", planned / "p.json")
    assert answer.status == 2


def test_proofs_of_a_pipeline_are_none_of_deployments(command: Run, planned: Path) -> None:
    own = planned / "own.json"
    assert command("plan", planned / "out" / "problem.toml", "--certificate", own).status == 0
    answer = command("verify", planned / "small.toml", "--certificate", own)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "deployments: expected the proofs of every deployment" in answer.err
    problem = planned / "out" / "problem.toml"
    answer = command("verify", problem, "--certificate", planned / "p.json")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "candidates: expected the proofs of one pipeline's plan" in answer.err


def test_a_plan_of_another_deployment_is_not_taken(command: Run, planned: Path) -> None:
    path = planned / "out" / "plan.json"
    content = json.loads(path.read_text())
    assert "p=4" not in content["deployment"]
    names = [
        row["deployment"] for row in json.loads((planned / "p.json").read_text())["deployments"]
    ]
    content["deployment"] = next(name for name in names if "p=4" in name)
    path.write_text(json.dumps(content))
    status, found = verified(command, planned)
    assert status == 1
    assert "is no candidate of the problem" in json.dumps(found)  # its cut of the layers is another
    content["deployment"] = "t=9"
    path.write_text(json.dumps(content))
    assert verified(command, planned)[0] == 2
