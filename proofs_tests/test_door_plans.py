"""Plans at the door: judged with their proofs, written and read again, and refused by rule 9."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.planners import Plan
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.verify import Rule
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.conftest import command as command  # the fixture
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.patience import PATIENCE

TOML = """
name = "small"
ranks = 2
microbatches = 3
[durations]
forward = 2
backward = 4
[memory]
activation = 2
capacity = 8
[plan]
chunks = [1, 2]
"""
CLUSTER = f"""{SMALL.replace("128 MiB", "104 MiB")}\
[plan]
pipeline = [1, 2]
micro_batch = [1]
zero = [1]
scope = ["none"]
chunks = [1]
"""


@pytest.fixture
def made(tmp_path: Path) -> Plan:
    """A plan of a problem file, written into ``out``."""
    (tmp_path / "small.toml").write_text(TOML)
    found = bp.plan(tmp_path / "small.toml", time_limit=PATIENCE)
    assert isinstance(found, Plan)
    bp.write(tmp_path / "out", found)
    return found


def broken(of: PlanFile | Plan, certificate: Path) -> list[str]:
    """Why a plan is refused: each time by rule 9, with its proofs and without where it can be."""
    judged = bp.check(of, certificate=certificate)
    assert judged.verdict.broken == (Rule.CERTIFICATE,)
    assert not judged.ok
    assert judged.distance.gap is None or judged.distance.value is None
    assert "optimal" not in judged.statement
    return [violation.message for violation in judged.violations]


def read(path: Path) -> PlanFile:
    found = bp.read(path)
    assert isinstance(found, PlanFile)
    return found


def test_a_plan_is_judged_with_its_proofs(made: Plan, tmp_path: Path) -> None:
    """As it was made, and as it is read again; both by the same words."""
    assert bp.check(made).ok
    told = [
        bp.check(one, certificate=proofs)
        for one in (made, read(tmp_path / "out"), read(tmp_path / "out" / "plan.json"))
        for proofs in (tmp_path / "out" / "certificate.json", made.bundle)
    ]
    assert {each.ok for each in told} == {True}
    assert {each.distance.gap for each in told} == {0}
    assert len({each.statement for each in told}) == 1
    assert told[0].statement.startswith(f"optimal over these choices: {made.value} tick")


def test_the_command_says_of_what_the_door_wrote_what_the_door_says(
    command: Run, made: Plan, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    answer = command("verify", out, "--certificate", out / "certificate.json", "--json")
    assert answer.status == 0
    told = bp.check(made, certificate=out / "certificate.json").statement
    assert json.loads(answer.out)["certificate"]["statement"] == told
    # And what the command writes is what the door writes.
    words = ("-o", tmp_path / "by", "--certificate", tmp_path / "by.json")
    assert command("plan", tmp_path / "small.toml", *words).status == 0
    for name in ("plan.json", "schedule.json"):
        assert (tmp_path / "by" / name).read_text() == (out / name).read_text()
    assert (tmp_path / "by.json").read_text() == (out / "certificate.json").read_text()


def test_a_folder_that_cannot_be_made_is_one_line(made: Plan, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"small.toml: expected a folder that can be made, found"):
        bp.write(tmp_path / "small.toml", made)


def test_a_plan_of_a_pipeline_needs_no_file_to_be_judged(tmp_path: Path) -> None:
    found = bp.plan(bp.Pipeline(num_ranks=2, num_microbatches=3, capacity=2))
    assert isinstance(found, Plan)
    assert bp.check(found).ok
    assert bp.check(found, certificate=found.bundle).statement.startswith("optimal over these")
    with pytest.raises(ValueError, match=r"^write: the plan was made of no problem file; plan a"):
        bp.write(tmp_path / "out", found)
    assert not (tmp_path / "out").exists()


def test_a_winner_that_is_no_candidate_is_refused(command: Run, made: Plan, tmp_path: Path) -> None:
    out, proofs = tmp_path / "out", tmp_path / "out" / "certificate.json"
    foreign = Candidate(chunks=3, placement="loop", backward="whole", slices=1)
    told = ["v=3 loop whole is no candidate of the problem"]
    assert broken(replace(read(out), winner=foreign), proofs) == told
    assert made.winner is not None
    assert broken(replace(made, winner=replace(made.winner, candidate=foreign)), proofs) == told
    content = json.loads((out / "plan.json").read_text())
    content["winner"]["chunks"] = 3
    (out / "plan.json").write_text(json.dumps(content))
    answer = command("verify", out / "plan.json", "--certificate", proofs)
    assert answer.status == 1
    assert told[0] in answer.out


def test_a_value_below_the_bound_is_refused(command: Run, made: Plan, tmp_path: Path) -> None:
    """Proofs of a longer problem, whose bound the plan is below: of another file, taken for it."""
    slow = TOML.replace("forward = 2", "forward = 4").replace("backward = 4", "backward = 8")
    (tmp_path / "slow.toml").write_text(slow)
    longer = bp.plan(tmp_path / "slow.toml", time_limit=PATIENCE)
    assert isinstance(longer, Plan)
    bp.write(tmp_path / "slow", longer)
    proofs = tmp_path / "slow" / "certificate.json"
    wrong = bp.check(made, certificate=proofs)
    assert wrong.verdict.broken == (Rule.CERTIFICATE,)
    assert wrong.distance.proved.bound is None
    assert command("verify", tmp_path / "out", "--certificate", proofs).status == 1
    # An engine that is believed, and says too much, is found out by the schedule.
    content = json.loads((tmp_path / "out" / "certificate.json").read_text())
    for row in content["candidates"]:
        row.pop("certificate", None)
        row.update(word="cpsat", bound=(made.value or 0) + 1)
    (tmp_path / "word.json").write_text(json.dumps(content))
    [why] = broken(made, tmp_path / "word.json")
    value = made.value
    assert why == (
        f"the schedule's makespan is {value}, below the bound {(value or 0) + 1} of all candidates"
    )
    answer = command("verify", tmp_path / "out", "--certificate", tmp_path / "word.json")
    assert answer.status == 1
    assert why in answer.out


def test_a_plan_of_deployments_is_judged_and_written(command: Run, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CLUSTER)
    found = bp.plan(tmp_path / "c.toml", time_limit=PATIENCE)
    assert isinstance(found, ClusterPlan)
    out = tmp_path / "out"
    bp.write(out, found)
    proofs = out / "certificate.json"
    assert bp.check(found).ok
    judged = bp.check(found, certificate=proofs)
    assert judged.ok
    assert judged.distance.value == found.value
    assert judged.statement.startswith(
        "optimal over these deployments and choices, with layers cut even"
    )
    assert bp.check(read(out), certificate=proofs).statement == judged.statement
    answer = command("verify", out / "plan.json", "--certificate", proofs, "--json")
    assert json.loads(answer.out)["certificate"]["statement"] == judged.statement
    assert command("plan", tmp_path / "c.toml", "-o", tmp_path / "by").status == 0
    names = ("plan.json", "schedule.json", "problem.toml", "schedule.csv")
    assert {name: (out / name).read_text() for name in names} == {
        name: (tmp_path / "by" / name).read_text() for name in names
    }
    with pytest.raises(TypeError, match=r"certificate of a plan of deployments is a file"):
        bp.check(found, certificate=())


def test_a_plan_without_a_winner_and_what_is_no_plan_are_one_line(tmp_path: Path) -> None:
    none = bp.plan(bp.Pipeline(num_ranks=2, num_microbatches=3, static=9, capacity=2))
    with pytest.raises(ValueError, match=r"^check: the plan has no winner: INFEASIBLE$"):
        bp.check(none)
    member = bp.family("1f1b")(p=2, m=3)
    with pytest.raises(TypeError, match=r"^check: plan must be what plan gives"):
        bp.check(member, certificate="p.json")  # type: ignore[call-overload]  # wrong on purpose
    found = bp.plan(bp.Pipeline(num_ranks=2, num_microbatches=3))
    assert isinstance(found, Plan)
    with pytest.raises(TypeError, match=r"^check: certificate must be a file or a plan's bundle"):
        bp.check(found, certificate=(1,))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"^check: path must be text"):
        bp.check(found, certificate=5)  # type: ignore[call-overload]  # wrong on purpose
    with pytest.raises(ValueError, match=r"none.json"):
        bp.check(found, certificate=tmp_path / "none.json")
