"""Plans with a paper's pipelines at the door: derived anew, and refused by rule 9."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

import bubbleproof as bp
from bubbleproof.formats.plans.plan_json import write_plan
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.verify import Rule
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.conftest import command as command  # the fixture
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.test_door_plans import broken, read
from proofs_tests.test_door_plans import made as made

MESH = """
ranks = 3
microbatches = 12
[durations]
forward = 60
backward = 120
[memory]
activation = 24
capacity = 400
static = 200
[plan]
chunks = [6]
[paper.pipemesh]
parameters = 25
replicas = 3
communication = 300
"""


@pytest.fixture(scope="module")
def planned_once() -> list[Path]:
    """Where the plan of ``meshed`` lies once it is made."""
    return []


@pytest.fixture
def meshed(
    command: Run, planned_once: list[Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A plan with two pipelines of a paper beside the file's shapes, the better one the winner."""
    if not planned_once:
        made = tmp_path_factory.mktemp("meshed") / "mesh"
        path = made.with_suffix(".toml")
        path.write_text(MESH)
        words = ("--paper", "pipemesh", "--work", "2", "-o", made, "--certificate", made / "c.json")
        assert command("plan", path, *words).status == 0
        planned_once.append(made)
    out = Path(copytree(planned_once[0], tmp_path / "mesh"))
    assert read(out).winner.beside == "pipemesh, as it should be"
    assert [name for name, _ in read(out).others] == ["pipemesh", "pipemesh, as it should be"]
    return out


def test_a_papers_pipeline_is_derived_anew(command: Run, meshed: Path) -> None:
    judged = bp.check(read(meshed), certificate=meshed / "c.json")
    assert judged.ok
    assert "2 pipelines of the plan beside the file's shapes, derived anew" in judged.statement
    answer = command("verify", meshed, "--certificate", meshed / "c.json")
    assert judged.statement in " ".join(answer.out.split())


@pytest.mark.parametrize("name", ["pipemesh", "pipemesh, as it should be"])
def test_a_papers_pipeline_that_was_exchanged_is_refused(
    command: Run, meshed: Path, name: str
) -> None:
    """One that needs less memory, in the plan and its schedule alike, and trains the same step."""
    plan = read(meshed)
    static = tuple(max(0, units - 1) for units in plan.others[0][1].per_stage.static.tolist())
    others = tuple(
        (each, other.with_changes(static=static) if each == name else other)
        for each, other in plan.others
    )
    schedule = plan.schedule
    if plan.winner.beside == name:
        own, made = dict(others)[name], replace(schedule.timed(), claims={})
        schedule = ScheduleFile.of(own.problem(), made, pipeline=own)
    exchanged = replace(plan, others=others, schedule=schedule)
    verdict = bp.check(exchanged)
    assert verdict.broken == (Rule.CERTIFICATE,)
    told = f"the pipeline '{name}' is not what the file's numbers give: another static"
    assert [violation.message for violation in verdict.violations] == [told]
    write_plan(meshed / "plan.json", exchanged)
    answer = command("verify", meshed / "plan.json")
    assert answer.status == 1
    assert told in answer.out


def test_a_pipeline_of_no_paper_is_refused(command: Run, meshed: Path) -> None:
    plan = read(meshed)
    others = (*plan.others, ("mine", plan.others[0][1]))
    [why] = [v.message for v in bp.check(replace(plan, others=others)).violations]
    assert why.startswith("nothing gives the pipeline 'mine' beside the shapes: paper must be one")
    # Of a file with other numbers for its planner it is another.
    other = meshed / "other.toml"
    other.write_text(MESH[: MESH.index("[paper")])
    answer = command("verify", meshed, "--problem", other)
    assert answer.status == 1
    assert "the pipeline 'pipemesh' is not what the file's numbers give" in answer.out


def test_a_papers_pipeline_of_a_deployment_is_derived_anew(command: Run, tmp_path: Path) -> None:
    """PipeMesh's collectives follow from the model and the network: one tick less is none of it."""
    (tmp_path / "c.toml").write_text(
        f'{SMALL}[plan]\npipeline = [2]\nmicro_batch = [1]\nzero = [1]\nscope = ["none"]\n'
        'chunks = [1, 2]\nlayers = "even"\n'
    )
    out, proofs = tmp_path / "out", tmp_path / "p.json"
    words = ("--paper", "pipemesh", "--work", "2", "-o", out, "--certificate", proofs)
    assert command("plan", tmp_path / "c.toml", *words).status == 0
    plan = read(out)
    [(name, other)] = plan.others
    assert (name, plan.winner.beside) == ("pipemesh", "pipemesh")
    judged = bp.check(plan, certificate=proofs)
    assert judged.ok
    assert "derived anew from the file" in judged.statement
    sharding = other.choices.sharding
    assert sharding is not None
    faster = other.with_changes(sharding=replace(sharding, gather=sharding.gather - 1))
    made = ScheduleFile.of(faster.problem(), replace(plan.schedule.timed(), claims={}))
    schedule = replace(made, pipeline=faster)
    exchanged = replace(plan, others=((name, faster),), schedule=schedule)
    told = "the pipeline 'pipemesh' is not what the file's numbers give: another choices"
    assert told in broken(exchanged, proofs)
    assert told in [violation.message for violation in bp.check(exchanged).violations]
    write_plan(out / "plan.json", exchanged)
    answer = command("verify", out / "plan.json")
    assert answer.status == 1
    assert told in answer.out
