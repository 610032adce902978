"""Trainings on real processes: the same bits as on one, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import OPTIMIZERS, Training
from bubbleproof.theory.model.schedule import Program
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.meshes import mesh, run
from proofs_tests.reference_exec.training_cases import trained, training_orders
from proofs_tests.sized import paired, sized

TIED = replace(TINY, kind="llama", vocabulary=5, tied=True)
CASES: list[tuple[str, dict[str, int], ModelSpec]] = [
    ("zb-h1", {"p": 2, "m": 3}, TINY),
    ("interleaved", {"p": 2, "m": 4, "v": 2}, TINY),
    ("chimera", {"p": 2, "m": 2}, replace(TINY, dtype="float32")),
    ("toffload", {"p": 2, "m": 2}, TINY),
    ("1f1b", {"p": 2, "m": 2}, TIED),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("optimizer", "has_barrier"), paired([*OPTIMIZERS], [False, True]))
def test_every_optimizer(optimizer: str, has_barrier: bool, pool: GlooPool) -> None:
    training = Training(optimizer=optimizer, steps=3, has_barrier=has_barrier)
    place = [*OPTIMIZERS].index(optimizer)
    for name, params, spec in sized(CASES[place :: len(OPTIMIZERS)], full=CASES):
        case = family_case(name, **params)
        report = trained(case, training, spec, backend="gloo", pool=pool)
        assert report.ok, f"{name}: {report}"
        assert (report.weights_equal, report.steps) == (True, 3)
        alike = trained(case, training, spec)
        assert (report.losses, report.max_weight_error) == (alike.losses, alike.max_weight_error)
        assert report.model_state.measured == alike.model_state.measured
        assert report.work == alike.work
        assert [len(rank.passes) for rank in report.work] == [3, 3]


def test_replicas(pool: GlooPool) -> None:
    training = Training(optimizer="adam", steps=2, has_barrier=True)
    report = run(mesh(2, m=2), training=training, data_parallel=2, backend="gloo", pool=pool)
    assert report.ok, str(report)


def test_a_step_too_early_shows(pool: GlooPool) -> None:
    case, training = family_case("zb-h1", p=2, m=3), Training(optimizer="momentum", steps=2)
    first, second = training_orders(case, training)
    early = [text for text in first if text != "0STEP"]
    early.insert(early.index("0W2"), "0STEP")
    report = trained(
        case,
        training,
        program=Program.from_orders([early, second]),
        unsafe=True,
        backend="gloo",
        pool=pool,
    )
    assert report.stopped == ""
    assert not report.weights_equal
    assert report.broken_rules == ("dataflow",)
