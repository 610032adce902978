"""Replays on the stand-ins for ``torch.cuda`` and NCCL: no two operations race, seeded faults do.

``virtual`` is one GPU for all ranks, ``queued`` a process per GPU over NCCL (``races.queued``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.stepping import with_steps
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime import replica_collectives
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.reference_exec import meshes
from proofs_tests.reference_exec.cases import (
    TINY,
    family_case,
    gradients_of,
    random_case,
)
from proofs_tests.reference_exec.races.machine import Machine, StandInDevice
from proofs_tests.reference_exec.races.queued import Stalled, named_actions, run_queued
from proofs_tests.reference_exec.races.recorder import Recorder
from proofs_tests.reference_exec.replica_cases import of_family, placed
from proofs_tests.reference_exec.test_every_family import NAMES, ORDINARY, SHAPES
from proofs_tests.reference_exec.training_cases import training_plan
from proofs_tests.sized import sampled, sized

SEEDS = range(sized(1, full=3))
FAMILIES: dict[str, dict[str, int]] = {
    "1f1b": {"p": 2, "m": 3},
    "zb-h1": {"p": 3, "m": 5},
    "zb-v": {"p": 2, "m": 3},
    "bpipe": {"p": 4, "m": 4},
    "svpp": {"p": 2, "m": 2, "s": 2},
    "trecomp": {"p": 2, "m": 2},
    "toffload": {"p": 2, "m": 2},
    "chimera": {"p": 2, "m": 2},
}
FAMILIES |= sized(  # the others; faults are found at the shapes above
    {},
    full={
        name: SHAPES.get(name, ORDINARY)
        for name in NAMES
        if name not in FAMILIES and name != "pipemesh"
    },
)
TRAININGS = {
    "no step": None,
    "own steps": Training(optimizer="adam", steps=2),
    "a barrier": Training(optimizer="momentum", steps=2, has_barrier=True),
}


def plan_of(name: str, training: str = "no step", **spec: object) -> ReplayPlan:
    """A family's plan; the model has as many tokens as any of them has slices."""
    case = family_case(name, **FAMILIES[name])
    model = replace(TINY, **{"kind": "transformer", **spec})  # type: ignore[arg-type]  # fields
    chosen = TRAININGS[training]
    if chosen is None:
        return case.plan(model.on(case.pipeline.num_stages))
    return training_plan(case, chosen, model)


def on_one_gpu(plan: ReplayPlan, seed: int = 0) -> Recorder:
    machine = Machine(seed=seed)
    recorder = Recorder(machine)
    with named_actions(recorder), recorder:
        run_virtual(plan, seed=seed, device=StandInDevice(machine))
    return recorder


def said(recorder: Recorder) -> list[str]:
    return [*map(str, recorder.races.values()), *recorder.misplaced]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sampled([*FAMILIES], every=2))
def test_families_run_on_one_gpu_without_races(name: str, seed: int) -> None:
    assert said(on_one_gpu(plan_of(name), seed)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sampled([*reversed(FAMILIES)], every=2))
def test_families_run_over_nccl_without_races(name: str, seed: int) -> None:
    plan = plan_of(name)
    results, recorder = run_queued(plan, seed=seed)
    assert said(recorder) == []
    expected = gradients_of(run_virtual(plan))
    found = gradients_of(results)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.sweep
@pytest.mark.parametrize("lateness", sized([0.95], full=[0.0, 0.95]))
def test_the_host_may_notice_ends_early_or_late(lateness: float) -> None:
    # 0: whatever has arrived counts as over when asked; near 1: only what is waited for
    assert said(run_queued(plan_of("bpipe"), lateness=lateness)[1]) == []


def test_a_device_that_never_ends_is_told_of() -> None:
    with pytest.raises(Stalled, match="the device is still busy; not through: 1RECV_F0"):
        run_queued(plan_of("1f1b"), lateness=1.0)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.sweep
@pytest.mark.parametrize(
    ("where", "name"),
    sized(
        [("one GPU", "bpipe"), ("NCCL", "toffload")],
        full=[*itertools.product(("one GPU", "NCCL"), ("1f1b", "bpipe", "toffload"))],
    ),
)
def test_new_memory_may_be_filled(name: str, where: str) -> None:
    # torch then writes to what it allocates, on the stream that is current
    plan = plan_of(name)
    recorder = on_one_gpu(plan) if where == "one GPU" else run_queued(plan)[1]
    assert said(recorder) == []


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "training"),
    sampled([*itertools.product(("1f1b", "chimera"), ("own steps", "a barrier"))], every=3),
)
def test_training_runs_over_nccl_without_races(name: str, training: str) -> None:
    assert said(run_queued(plan_of(name, training))[1]) == []


def test_tied_words_run_over_nccl_without_races() -> None:
    plan = plan_of("1f1b", "own steps", kind="llama", vocabulary=5, tied=True)
    assert said(run_queued(plan)[1]) == []


@pytest.mark.sweep
@pytest.mark.parametrize("zero", sized([3], full=[1, 2, 3]))
def test_collectives_run_on_one_gpu_without_races(zero: int) -> None:
    plan = meshes.plan_of(meshes.mesh(zero, m=2), replicas=2, levels=str(zero))
    assert said(on_one_gpu(plan)) == []


@pytest.mark.sweep
@pytest.mark.parametrize(("zero", "replicas"), sized([(3, 2)], full=[(1, 2), (2, 3), (3, 2)]))
def test_replicas_run_over_nccl_without_races(zero: int, replicas: int) -> None:
    plan = meshes.plan_of(meshes.mesh(zero, m=2), replicas=replicas, levels=str(zero))
    results, recorder = run_queued(plan)
    assert said(recorder) == []
    for found, expected in zip(results, run_virtual(plan), strict=True):
        assert found.gradients.keys() == expected.gradients.keys()
        for name, value in expected.gradients.items():
            assert torch.equal(found.gradients[name], value)


def test_members_that_issue_other_collectives_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    right = replica_collectives._header

    def header(action: Action) -> torch.Tensor:
        return right(action) + (next(calls) == 3)

    calls = itertools.count()
    monkeypatch.setattr(replica_collectives, "_header", header)
    plan = meshes.plan_of(meshes.mesh(1, m=2), replicas=2, levels="1")
    with pytest.raises(BrokenProgram, match="must issue their collectives in one order"):
        run_queued(plan)


@pytest.mark.parametrize(
    ("name", "levels"), sized([("chimera", "3")], full=[("1f1b", None), ("chimera", "3")])
)
def test_whole_and_sharded_replicas_of_a_family_run_over_nccl_without_races(
    name: str, levels: str | None
) -> None:
    _, plan = placed(of_family(name), levels)
    plan = with_steps(replace(plan, training=TRAININGS["own steps"]))
    assert said(run_queued(plan)[1]) == []


def chosen_to_move() -> ReplayPlan:
    """One rank; microbatch 0's activation goes to the host, beside computation, and comes back."""
    moved = ActivationOffload(stage=0, microbatch=0, offload=3, reload=1)
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, offloads=(moved,))
    return random_case(pipeline, 1).plan()


def _cut_weights() -> ReplayPlan:
    """W of each stage in two parts."""
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=2, split_backward=True, weight_backward=2, weight_parts=(1, 1)
    )
    return random_case(pipeline, 0).plan()


@pytest.mark.parametrize("plan", [chosen_to_move(), _cut_weights()], ids=["off-load", "parts"])
def test_other_choices_run_over_nccl_without_races(plan: ReplayPlan) -> None:
    assert said(run_queued(plan)[1]) == []
