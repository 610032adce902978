"""Verified schedules replay with equal gradients and predicted peaks."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.evidence.oracle import order_matched
from bubbleproof.reference_exec.models import linear
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans import prediction
from bubbleproof.reference_exec.plans.accumulation import accumulation_orders
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from proofs_tests.reference_exec.cases import (
    TINY,
    family_case,
    random_case,
    run,
)
from proofs_tests.sized import paired, sampled, sized

TRANSFORMER = ModelSpec(kind="transformer", hidden=4, heads=2, sequence=3, batch=2)
FAMILIES = [
    ("gpipe", 3, 4, None),
    ("1f1b", 4, 8, None),
    ("1f1b", 3, 2, None),
    ("interleaved", 4, 8, 2),
    ("bfs", 2, 4, 3),
    ("zb-h1", 4, 8, None),
    ("zb-h1", 1, 3, None),
]
KINDS, DTYPES = ("mlp", "transformer"), ("float32", "float64")


@pytest.mark.sweep
@pytest.mark.parametrize(("family", "kind", "dtype"), paired(FAMILIES, KINDS, DTYPES))
def test_published_schedules_replay(
    family: tuple[str, int, int, int | None], kind: str, dtype: str
) -> None:
    name, p, m, v = family
    case = family_case(name, p=p, m=m, v=v)
    for seed in range(sized(1, full=3)):
        report = run(case, replace(TRANSFORMER, kind=kind, dtype=dtype, seed=seed), seed=seed)
        assert report.gradients_equal
        assert report.losses_equal
        assert report.max_relative_error <= {"float64": 1e-12, "float32": 5e-4}[dtype]
        assert report.peak_bytes.measured == report.peak_bytes.predicted
        assert report.ok


@pytest.mark.parametrize(("semantics", "name"), paired(USUAL, ["1f1b", "zb-h1"]))
def test_lowered_programs_replay_under_every_semantics(name: str, semantics: Semantics) -> None:
    report = run(family_case(name, p=4, m=6), semantics=semantics.value, seed=3)
    assert report.ok
    assert report.semantics == semantics.value


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_peaks_are_the_known_ones(name: str) -> None:
    # TINY holds 720 bytes from F to B on a middle stage, 728 on the last (test_rank). Peaks with
    # p = 4 in microbatches: GPipe m each; 1F1B p - r on rank r.
    report = run(family_case(name, p=4, m=6))
    expected = {
        "gpipe": (6 * 720, 6 * 720, 6 * 720, 6 * 728),
        "1f1b": (4 * 720, 3 * 720, 2 * 720, 728),
        # ZB-H1: rank r runs I at once and r microbatches of W (960 each) late. Rank 0: three held
        # and one between I and W: 3 * 720 + 960.
        "zb-h1": (3 * 720 + 960, 2 * 720 + 2 * 960, 720 + 3 * 960, 4 * 960),
    }
    assert report.peak_bytes.measured == expected[name]


PLACEMENTS: dict[str, Pipeline] = {
    "wave": Pipeline(num_ranks=2, num_microbatches=3, num_chunks=3, placement="wave"),
    "loop": Pipeline(num_ranks=3, num_microbatches=3, num_chunks=2),
    "blocks": Pipeline(num_ranks=3, num_microbatches=2, num_chunks=2, placement=(2, 2, 0, 1, 1, 0)),
    "lopsided": Pipeline(
        num_ranks=2, num_microbatches=3, num_chunks=3, placement=(0, 0, 0, 1, 0, 0)
    ),
    "one rank": Pipeline(num_ranks=1, num_microbatches=2, num_chunks=3),
}


def mixed(pipeline: Pipeline, seed: int) -> Pipeline:
    """The pipeline with B or I + W drawn for each stage and microbatch."""
    choice = random.Random(seed)
    flags = tuple(
        tuple(choice.random() < 0.5 for _ in range(pipeline.num_microbatches))
        for _ in range(pipeline.num_stages)
    )
    return pipeline.with_changes(split_backward=flags)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("seed", "name"), sampled([*itertools.product(range(4), PLACEMENTS)], every=4)
)
def test_random_programs_on_any_placement_replay(name: str, seed: int) -> None:
    case = random_case(mixed(PLACEMENTS[name], seed), seed)
    layers = tuple(1 + (stage + seed) % 2 for stage in range(case.pipeline.num_stages))
    semantics = USUAL[seed]
    for kind in sized(KINDS[seed // 2 :][:1], full=KINDS):
        spec = replace(TRANSFORMER, kind=kind, layers=layers, seed=seed)
        assert run(case, spec, semantics=semantics, seed=seed).ok


def test_overlapped_pairs_replay() -> None:
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=3, overlaps=(((0, 2), (0, 0)), ((1, 1), (1, 0)))
    )
    report = run(random_case(pipeline, 0))
    assert report.ok
    # rank 0 holds F0, F1 and, in the pair, F2 before B0 ends
    assert report.peak_bytes.measured[0] == 3 * 720


def test_a_schedule_need_not_be_left_shifted() -> None:
    case = family_case("zb-h1", p=3, m=4)
    late = Schedule(program=case.schedule.program, start=case.schedule.start * 5 + 100)
    assert replay(case.pipeline, late, TINY).ok


@pytest.mark.parametrize(("name", "kind"), paired([*PLACEMENTS], ["mlp", "transformer"]))
def test_live_bytes_are_the_models_after_every_action(name: str, kind: str) -> None:
    case, spec = random_case(mixed(PLACEMENTS[name], 5), 5), replace(TRANSFORMER, kind=kind)
    problem = prediction.in_bytes(case.pipeline, spec).problem()
    change = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(change, problem.events.task, problem.events.delta)
    task, rank = problem.locate(case.schedule.program.actions), case.schedule.program.resource
    expected = [np.cumsum(change[task[rank == r]]).tolist() for r in range(problem.num_ranks)]
    assert [list(curve) for curve in run(case, spec).live_bytes] == expected


def test_memory_in_bytes_replaces_every_other_unit() -> None:
    units = Pipeline(num_ranks=2, num_microbatches=1, activation=3, static=5, capacity=9)
    given = prediction.in_bytes(units, TINY)
    assert given.activation == (720, 728)
    assert given.released_at_input == (720 - 960, 728 - 960)
    assert given.memory_unit == "byte"
    assert [(s.base, s.capacity) for s in given.problem().stores] == [(0, None)] * 2


def test_durations_do_not_change_the_prediction() -> None:
    case = family_case("zb-h1", p=2, m=3)
    whole = replicated(case.pipeline, case.schedule, TINY)
    expected = whole.peak_bytes()
    instant = case.pipeline.with_changes(forward=0, input_backward=0, weight_backward=0)
    squeezed = left_shift(instant.problem(), case.schedule.program)
    whole = replicated(instant, squeezed, TINY)
    assert whole.peak_bytes() == expected
    assert run(case).peak_bytes.predicted == expected


def test_actions_of_no_duration_replay() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=3, forward=0)
    report = run(random_case(pipeline, 2))
    assert report.ok
    assert sum(report.peak_bytes.measured) > 0


def test_the_order_of_accumulation_matters_and_is_matched() -> None:
    # a random W order against the ascending one: equal up to rounding, not bit for bit
    pipeline = Pipeline(num_ranks=2, num_microbatches=6, split_backward=True)
    case, spec = random_case(pipeline, 1), replace(TINY, dtype="float32")
    gemm, other = accumulation_orders(case.plan(spec))
    ascending_order = [(j, 0) for j in range(6)]
    assert ascending_order not in (gemm[0, 0], gemm[1, 1])
    assert gemm != other
    ascending = family_case("gpipe", p=2, m=6).plan(spec)
    assert not are_equal(order_matched(case.plan(spec))[0], order_matched(ascending)[0])
    assert run(case, spec).ok


def test_replays_compute_on_one_thread_whatever_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    right = linear.weight_gradient

    def watched(*given: torch.Tensor) -> torch.Tensor:
        seen.add(torch.get_num_threads())
        return right(*given)

    monkeypatch.setattr(linear, "weight_gradient", watched)
    torch.set_num_threads(2)
    assert run(family_case("zb-h1", p=2, m=3)).ok
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert seen == {1}


def test_the_report_goes_to_json() -> None:
    report = run(family_case("1f1b", p=2, m=2), semantics="rendezvous", seed=4)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["ok"] is True
    assert data["failures"] == []
    assert (data["backend"], data["semantics"], data["seed"]) == ("virtual", "rendezvous", 4)
    assert data["measured_peak_bytes"] == data["predicted_peak_bytes"] == [1440, 728]
    assert data["live_bytes"] == [[720, 1440, 720, 0], [728, 0, 728, 0]]
    assert str(report) == (
        "virtual replay of 2 ranks, 2 microbatches in float64: gradients equal, "
        "peaks [1440, 728] as predicted"
    )


@pytest.mark.parametrize(("kind", "dtype"), paired(("mlp", "transformer"), ("float64", "float32")))
def test_larger_layers_are_equal_too(kind: str, dtype: str) -> None:
    # GEMMs large enough for other kernels and, without care, for several threads
    spec = ModelSpec(
        kind=kind, dtype=dtype, hidden=96, heads=4, sequence=33, batch=2, layers=2, seed=9
    )
    assert run(family_case("zb-h1", p=2, m=3), spec).ok
