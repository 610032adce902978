"""Pipelines with any choices together: solved or ordered, written, read and replayed, all kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats import ScheduleFile, read_schedule, write_schedule
from bubbleproof.formats.schedule_json import is_same_problem
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.models.footprint import footprint, input_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.sliced import SlicedSample
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.solving import solve
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from proofs_tests.patience import PATIENCE
from proofs_tests.random_choices import combined
from proofs_tests.reference_exec.cases import Case, random_case, run
from proofs_tests.sized import sized

NUMBERS = range(sized(8, full=200))
SOLVED = 7  # one in so many schedules is a solver's
LEFT_OUT = ("frozen_stages", "host_capacity")  # not replayed; more than random orders keep
KINDS = ("mlp", "transformer", "llama")


def model(number: int) -> ModelSpec:
    kind = KINDS[number % 3]
    return ModelSpec(kind=kind, hidden=4, heads=2, sequence=3, batch=1, seed=number)


def written(case: Case, path: Path) -> ScheduleFile:
    """What a file of the case says."""
    write_schedule(path, ScheduleFile.of(case.problem, case.schedule, pipeline=case.pipeline))
    return read_schedule(path)


def ordered(pipeline: Pipeline, number: int) -> Case:
    """A random schedule of the pipeline, or one that a solver has found."""
    case = random_case(pipeline, number)
    if number % SOLVED or case.problem.num_tasks > 40:
        return case
    found = solve(case.problem, SolveOptions(time_limit=PATIENCE)).schedule
    assert found is not None
    return Case(pipeline=pipeline, problem=case.problem, schedule=found, lowered=case.lowered)


@pytest.mark.sweep
@pytest.mark.parametrize("number", NUMBERS)
def test_choices_are_kept_from_the_pipeline_to_the_gradients(number: int, tmp_path: Path) -> None:
    case = ordered(combined(Random(number), least=1, without=LEFT_OUT), number)
    file = written(case, tmp_path / "schedule.json")
    assert file.pipeline == case.pipeline
    assert is_same_problem(file.problem, case.problem)
    assert file.schedule is not None
    sharded = case.pipeline.choices.sharding is not None
    report = replay(
        file.pipeline,
        file.schedule,
        model(number),
        ReplayOptions(
            seed=number,
            data_parallel=2 if sharded and number % 2 else 1,
            training=Training(optimizer="adam", steps=2) if number % 5 == 0 else None,
        ),
    )
    assert report.gradients_equal
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert report.ok, str(report)


def test_the_random_pipelines_combine_their_choices() -> None:
    met = Counter(
        name
        for number in range(200)
        for pipeline in (combined(Random(number), without=LEFT_OUT),)
        for name in (
            *(f"{a} {b}" for a in pipeline.choices.added for b in pipeline.choices.added if a < b),
            *(f"{a} slices" for a in pipeline.choices.added if pipeline.num_slices > 1),
        )
    )
    assert len(met) == 9 + 5  # all pairs of five but host and shards; each with slices
    assert min(met.values()) >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_updates_one_stage_and_keeps_activations_of_another(kind: str) -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        num_slices=2,
        split_backward=True,
        recompute=Recompute(samples=((1, 0),)),
        evictions=(Eviction(stage=1, microbatch=1, slice=0, source=1, target=0, duration=2),),
        offloads=(ActivationOffload(stage=0, microbatch=1, slice=1, offload=1, reload=1),),
        state_offload=StateOffload(stages=(1,)),
    )
    for seed in sized((KINDS.index(kind),), full=range(3)):
        report = run(random_case(pipeline, seed), replace(model(seed), kind=kind))
        assert report.ok, str(report)


# What a slice keeps on its rank: its keys and values, which later slices attend to


def sliced(**choices: object) -> Case:
    """One rank, one sample in two slices; the later one's forward runs while the first is away."""
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, num_slices=2, **choices)  # type: ignore[arg-type]  # by name
    return random_case(pipeline, 0)


def test_keys_and_values_stay_where_a_slice_is_dropped() -> None:
    # transformer, d = 4, two tokens in the first slice, float64: the input 2 * 4 * 8 = 64 bytes
    # and keys and values 2 * 64 stay between its F and its R
    case = sliced(recompute=Recompute(stages=(0,)))
    (result,) = run_virtual(case.plan(model(1)))
    assert case.orders()[0][0] == "0F0"
    first = footprint(model(1), 0, 1, slice_index=0, num_slices=2)
    assert (first.prefix_bytes, input_bytes(model(1), slice_index=0, num_slices=2)) == (128, 64)
    assert result.live_bytes[:2] == (first.activation_bytes, 128 + 64)


def test_keys_and_values_that_leave_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = sliced(offloads=(ActivationOffload(stage=0, microbatch=0, offload=1, reload=1),))
    assert run(case, model(1)).ok
    monkeypatch.setattr(SlicedSample, "leaves", lambda _: [])
    assert not run(case, model(1)).ok


def test_keys_and_values_of_a_later_forward_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # recomputed keys in storages of their own: right gradients, more bytes than are promised
    case = sliced(recompute=Recompute(stages=(0,)))
    assert run(case, model(1)).ok
    monkeypatch.setattr("bubbleproof.reference_exec.runtime.sliced._in_place_of", lambda x, _: x)
    report = run(case, model(1))
    assert report.gradients_equal
    assert not report.ok
