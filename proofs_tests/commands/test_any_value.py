"""A value of any JSON type at any place of a file: a verdict, or one line and status 2.

Every reader of a file with files in it is given them: schedules with pipelines and what was allowed
to them, plans with schedules, bundles with certificates and cases, certificates of every kind,
replays.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bubbleproof.commands.last_resort import status_of_call
from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.verify import run_verify_any
from bubbleproof.formats import ScheduleFile, write_certificate, write_schedule
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.deployed_content import deployments
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.formats.plans.bundle_json import write_bundle, write_deployment_bundles
from bubbleproof.formats.plans.cases_json import write_proof
from bubbleproof.formats.plans.plan_json import PlanFile, write_plan
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.testing.strategies import random_program
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.cases import CandidateProof, Cases
from bubbleproof.verify.candidates.chosen import plain_of
from bubbleproof.verify.candidates.rank_claims import RankWork
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindow, MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.commands.any_value import changes
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.formats.test_certificate_json import LEMMAS, PROBLEM, STEPS
from proofs_tests.sized import sampled, sized

STRIDE = sized(9, full=1)
CHOSEN = Pipeline(
    num_ranks=2,
    num_microbatches=2,
    num_chunks=2,
    forward=2,
    backward=(2, 4, 2, 4),
    activation=(3, 2, 2, 1),
    static=1,
    capacity=(9, None),
    message=1,
    bandwidth=2,
    latency=1,
    links=(Link(ranks=(0, 1), latency=2, bandwidth=3, duplex="full"),),
    recompute=Recompute(samples=((0, 1),), kept=1, duration=1),
    evictions=(Eviction(stage=0, microbatch=0, source=0, target=1, duration=1),),
    offloads=(ActivationOffload(stage=1, microbatch=0, offload=1, reload=1),),
    host_capacity=8,
)
PLAIN = plain_of(CHOSEN)
ALLOWED = AllowedChoices(
    recompute=AllowedRecompute(stages=(0,), kept=1, duration=1, per_microbatch=True),
    evict=AllowedEvictions(pairs=((0, 1),), duration=1),
    offload=AllowedOffloads(stages=(1,), offload=1, reload=1, host_capacity=8),
)
SHARDED = PLAIN.with_changes(
    split_backward=True,
    weight_parts=((1,), (), (1,), ()),
    weight_workspace=((1,), (1,), (2,), (1,)),
    sharding=Sharding(zero=3, gather=1, reduce=2, parameter=1, enqueue=(1, 1)),
)
HOSTED = PLAIN.with_changes(
    overlaps=(((0, 1), (0, 0)),),
    state_offload=StateOffload(stages=(1,), weight=1),
    waits=((Action.parse("1F0"), Action.parse("1F1")),),
)
TOML = """ranks = 2
microbatches = 2
[durations]
forward = [2, 2]
backward = 4
[memory]
capacity = 3
activation = [3, 2]
[choices.recompute]
stages = [0]
kept = 1
[plan]
chunks = [1]
"""
SPACE = problem_file_of_text(TOML, name="small").plan
assert SPACE is not None
[CANDIDATE] = SPACE.candidates()
FOUND = shaped(SPACE, CANDIDATE)
TASK = OneMachine(resource=0, tasks=(0,), bound=1)
CASES = Cases(bound=1, proofs=(None, TASK, TASK))
Folder = Path
Make = Callable[[Folder], tuple[str, str, str | None]]  # what is changed, what is verified, beside


def schedule(pipeline: Pipeline, allowed: AllowedChoices | None = None) -> ScheduleFile:
    """One schedule of the pipeline, perhaps above its memory."""
    problem = pipeline.problem()
    timed = left_shift(problem, random_program(problem, Random(0)))
    return ScheduleFile.of(problem, timed, pipeline=pipeline, allowed=allowed)


def a_schedule(pipeline: Pipeline) -> Make:
    def make(folder: Folder) -> tuple[str, str, str | None]:
        write_schedule(folder / "s.json", schedule(pipeline))
        return "s.json", "s.json", None

    return make


def by_hand(folder: Folder) -> tuple[str, str, str | None]:
    write_schedule(folder / "s.json", replace(schedule(HOSTED), pipeline=None))
    return "s.json", "s.json", None


def allowed(folder: Folder) -> tuple[str, str, str | None]:
    """A schedule of choices with a proof by cases of what was free to choose."""
    write_schedule(folder / "s.json", schedule(PLAIN, ALLOWED))
    proofs = Cases(bound=1, proofs=(TASK,))
    write_proof(folder / "c.json", PLAIN, ALLOWED, proofs)
    return "s.json", "s.json", "c.json"


def a_certificate(proof: Certificate) -> Make:
    def make(folder: Folder) -> tuple[str, str, str | None]:
        write_certificate(folder / "c.json", PROBLEM, proof)
        pipeline = Pipeline(num_ranks=2, num_microbatches=2)
        write_schedule(folder / "s.json", schedule(pipeline))
        return "c.json", "s.json", "c.json"

    return make


def cases(folder: Folder) -> tuple[str, str, str | None]:
    assert FOUND.allowed is not None
    pipeline = FOUND.pipeline
    write_schedule(folder / "s.json", schedule(pipeline, FOUND.allowed))
    write_proof(folder / "c.json", pipeline, FOUND.allowed, CASES)
    return "c.json", "s.json", "c.json"


def a_bundle(proof: CandidateProof | None) -> Make:
    def make(folder: Folder) -> tuple[str, str, str | None]:
        assert SPACE is not None
        (folder / "p.toml").write_text(TOML)
        word = "cpsat" if proof is None else ""
        entry = CandidateBound(candidate=CANDIDATE, bound=1, certificate=proof, word=word)
        write_bundle(folder / "b.json", SPACE, (entry,))
        return "b.json", "p.toml", "b.json"

    return make


def a_plan(folder: Folder) -> tuple[str, str, str | None]:
    assert SPACE is not None
    bundled = a_bundle(TASK)(folder)[0]
    plan = PlanFile(
        name="small",
        text=TOML,
        problem=problem_file_of_text(TOML, name="p"),
        winner=CANDIDATE,
        schedule=schedule(FOUND.pipeline),
        others=(("other", FOUND.pipeline),),
    )
    write_plan(folder / "plan.json", plan)
    return "plan.json", "plan.json", bundled


def of_a_cluster(folder: Folder) -> tuple[str, str, str | None]:
    text = SMALL + "[plan]\npipeline = [2]\nmicro_batch = [1]\nzero = [1]\nscope = ['none']\n"
    (folder / "p.toml").write_text(text)
    file = cluster_file_of_text(text, name="p")
    every = deployments(file, all_counted(file))
    bundles = {
        one.name: [
            CandidateBound(candidate=each, bound=1, certificate=RankWork(rank=0, bound=1))
            for each in one.space.candidates()
        ]
        for one in every.deployed
    }
    write_deployment_bundles(folder / "b.json", every, bundles)
    return "b.json", "p.toml", "b.json"


FILES: dict[str, Make] = {
    "schedule": a_schedule(CHOSEN),
    "sharded": a_schedule(SHARDED),
    "hosted": a_schedule(HOSTED),
    "by hand": by_hand,
    "allowed": allowed,
    "one-machine": a_certificate(TASK),
    "one-store": a_certificate(OneStore(resource=0, store=0, begin=0, end=0, bound=1)),
    "volume": a_certificate(Volume(store=0, bound=1)),
    "crossings": a_certificate(Crossings(store=0, bound=1)),
    "prices": a_certificate(
        TickPrices(resources=(Tariff(of=0, steps=((0, 1),)),), stores=(), bound=1)
    ),
    "windows": a_certificate(
        MicrobatchWindows(
            first=0,
            store=0,
            windows=(MicrobatchWindow(count=1, ranks=(0,), proof=TASK),),
            bound=1,
        )
    ),
    "drup": a_certificate(STEPS),
    "span_idle": a_certificate(LEMMAS),
    "cases": cases,
    "bundle": a_bundle(TASK),
    "bundle of a rank": a_bundle(RankWork(rank=0, bound=1)),
    "bundle of cases": a_bundle(CASES),
    "bundle of words": a_bundle(None),
    "plan": a_plan,
    "deployments": of_a_cluster,
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", sampled([*FILES], every=3))
def test_any_value_at_any_place_is_judged_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changed, subject, beside = FILES[name](tmp_path)
    request = VerifyRequest(certificate=beside, json=True)
    content = json.loads(Path(changed).read_text())

    def answer() -> int:
        return status_of_call(lambda: run_verify_any([subject], request))

    assert answer() in (0, 1, 3), capsys.readouterr()
    capsys.readouterr()
    statuses = set()
    for what, other in changes(content, stride=STRIDE):
        Path(changed).write_text(json.dumps(other))
        statuses.add(status := answer())
        told = capsys.readouterr()
        assert status in (0, 1, 2, 3), (what, told.err)
        assert told.err.count("\n") == (status == 2), (what, told.err)
        assert len(told.err) < 700, what
    assert 2 in statuses


# Files that ended in a traceback: a kind and a version that are no text and no number.
BUNDLE = {
    "format": "bubbleproof/plan-certificate",
    "version": 1,
    "candidates": [
        {
            "chunks": 1,
            "placement": "loop",
            "backward": "whole",
            "slices": 1,
            "bound": 24,
            "certificate": {"kind": {}},
        }
    ],
}
PLAN = {
    "format": "bubbleproof/plan",
    "version": 1,
    "problem": TOML,
    "winner": {"chunks": 1, "placement": "loop", "backward": "whole", "slices": 1},
    "schedule": {"format": "bubbleproof/schedule", "version": []},
}


def test_a_kind_and_a_version_inside_a_file_are_named(command: Run, tmp_path: Path) -> None:
    problem, bundle, plan = (tmp_path / name for name in ("p.toml", "b.json", "plan.json"))
    problem.write_text(TOML)
    bundle.write_text(json.dumps(BUNDLE))
    plan.write_text(json.dumps(PLAN))
    answer = command("verify", problem, "--certificate", bundle)
    kinds = "one-machine, one-store, volume, crossings, prices, drup, windows, rank-work, "
    kinds += "rank-memory, no-room"
    told = f"candidates[0].certificate.kind: expected one of {kinds}, found a table of 0 keys"
    assert (answer.status, answer.err) == (2, f"bubbleproof: {bundle}: {told}\n")
    answer = command("verify", plan)
    told = "schedule.version: expected 2, found a list of 0"
    assert (answer.status, answer.err) == (2, f"bubbleproof: {plan}: {told}\n")


@pytest.mark.parametrize("version", ["true", "1.0", "2.0", '"1"'])
def test_a_version_is_a_whole_number(command: Run, tmp_path: Path, version: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN).replace('on": 1', f'on": {version}'))
    answer = command("verify", tmp_path / "plan.json")
    assert answer.status == 2
    assert "version: expected " in answer.err
    assert "schedule" not in answer.err


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"recompute": {"stages": [4]}}, "recompute.stages[0]: expected another stage of 0 to 3"),
        ({"recompute": {"stages": [0], "kept": 4}}, "recompute.kept: expected at most the activ"),
        ({"evict": {"pairs": [[0, 2]], "duration": 1}}, "evict.pairs[0]: expected another rank"),
        ({"evict": {"pairs": [[1, 1]], "duration": 1}}, "evict.pairs[0]: expected another rank"),
        ({"offload": {"stages": [1, 1], "offload": 1, "reload": 1}}, "offload.stages[1]: expected"),
    ],
)
def test_what_is_allowed_is_allowed_to_the_pipeline(
    command: Run, tmp_path: Path, table: dict[str, object], told: str
) -> None:
    write_schedule(tmp_path / "s.json", schedule(PLAIN))
    content = json.loads((tmp_path / "s.json").read_text())
    (tmp_path / "s.json").write_text(json.dumps(content | {"allowed": table}))
    answer = command("verify", tmp_path / "s.json")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert f"allowed.{told}" in answer.err
