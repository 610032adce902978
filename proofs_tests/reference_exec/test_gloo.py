"""Real processes, of one pool: the same gradients and peaks as on virtual ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.replaying import replay
from proofs_tests.reference_exec.cases import TINY, family_case, replay_with
from proofs_tests.reference_exec.meshes import mesh
from proofs_tests.reference_exec.safe_programs import replay_safe_programs
from proofs_tests.sized import sized

SPEC = replace(TINY, kind="transformer")


@pytest.mark.parametrize(
    ("name", "v", "dtype"),
    [("1f1b", None, "float64"), ("interleaved", 2, "float32"), ("zb-h1", None, "float64")],
)
def test_published_schedules_replay_on_gloo(
    name: str, v: int | None, dtype: str, pool: GlooPool
) -> None:
    case = family_case(name, p=4, m=4, v=v)
    spec = replace(SPEC, dtype=dtype)
    report = replay(case.pipeline, case.schedule, spec, ReplayOptions(backend="gloo"), pool=pool)
    virtual = replay(case.pipeline, case.schedule, spec)
    assert report.ok, str(report)
    assert (report.backend, report.semantics) == ("gloo", "buffered")
    assert report.live_bytes == virtual.live_bytes
    assert report.loss == virtual.loss


@pytest.mark.parametrize(
    ("name", "params", "dtype"),
    [
        ("trecomp", {"p": 2, "m": 3}, "float64"),
        ("bpipe", {"p": 4, "m": 5}, "float32"),
        ("chimera", {"p": 2, "m": 4}, "float64"),
        ("svpp", {"p": 2, "m": 2, "s": 2, "v": 2}, "float64"),
        ("svpp-w", {"p": 2, "m": 2, "s": 3}, "float32"),
        ("toffload", {"p": 2, "m": 3}, "float64"),
        ("zb-v", {"p": 2, "m": 4}, "float64"),
        ("dualpipev", {"p": 2, "m": 4}, "float32"),
    ][:: sized(3, full=1)],
)
def test_choices_and_slices_replay_on_gloo(
    name: str, params: dict[str, int], dtype: str, pool: GlooPool
) -> None:
    case = family_case(name, **params)
    spec = replace(SPEC, dtype=dtype)
    report = replay(case.pipeline, case.schedule, spec, ReplayOptions(backend="gloo"), pool=pool)
    assert report.ok, str(report)
    assert report.live_bytes == replay(case.pipeline, case.schedule, spec).live_bytes


@pytest.mark.sweep
def test_programs_that_are_safe_under_pair_stream_never_stall_on_processes(pool: GlooPool) -> None:
    """200 random programs with ``BUBBLEPROOF_SWEEP=full``, 6 otherwise."""
    wanted = sized(6, full=200)
    found = replay_safe_programs(wanted, pool)
    assert (found.equal, found.failures) == (wanted, ())
    assert found.unsafe >= wanted // 4  # or the moves were too timid to show anything


def test_replicas_replay_on_gloo(pool: GlooPool) -> None:
    # 2 x 2 processes: PipeMesh on two ranks and two replicas, parameters at all three levels
    made = mesh(3)
    options = {"data_parallel": 2, "zero": ZeroLevels.parse("3,norm=1,down=2")}
    spec = replace(SPEC, dtype="float32")
    report = replay_with(*made, spec, backend="gloo", pool=pool, **options)
    virtual = replay_with(*made, spec, **options)
    assert report.ok, str(report)
    assert len(report.live_bytes) == 4
    assert report.live_bytes == virtual.live_bytes
    assert report.state_bytes.measured == virtual.state_bytes.measured
    assert report.loss == virtual.loss


@pytest.mark.parametrize(
    ("name", "levels"),
    [("zb-v", "3,norm=1"), ("chimera", "2"), ("dualpipe", None), ("toffload", None)][
        : sized(2, full=4)
    ],
)
def test_schedules_without_collectives_replay_on_processes(
    name: str, levels: str | None, pool: GlooPool
) -> None:
    # 2 x 2 processes; where a stage is on two ranks they swap the sums of their shards
    case = family_case(name, p=2, m=2 if name == "zb-v" else 4)
    made = case.pipeline, case.schedule
    zero = None if levels is None else ZeroLevels.parse(levels)
    report = replay(
        *made, SPEC, ReplayOptions(backend="gloo", data_parallel=2, zero=zero), pool=pool
    )
    assert report.ok, str(report)
    assert [trace.num_differing for trace in report.traces] == [0] * 4
    assert report.loss == replay(*made, SPEC, ReplayOptions(data_parallel=2, zero=zero)).loss
