"""Replicas: equal bits and predicted bytes at mixed ZeRO levels; what is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify.communication.semantics import USUAL
from proofs_tests.reference_exec.cases import TINY
from proofs_tests.reference_exec.meshes import mesh, run
from proofs_tests.sized import paired, sampled, sized
from proofs_tests.theory.test_pipemesh import filled


@pytest.mark.sweep
@pytest.mark.parametrize(("replicas", "zero"), paired([1, 2, 3], [2, 3, 1]))
def test_every_level_replays_on_any_number_of_replicas(zero: int, replicas: int) -> None:
    seed = 3 * zero + replicas
    spec = replace(TINY, kind=("mlp", "llama")[seed % 2], hidden=8, seed=seed)
    semantics = USUAL[seed % 4]
    report = run(mesh(zero), spec, data_parallel=replicas, seed=seed, semantics=semantics)
    assert report.ok, str(report)
    assert (report.data_parallel, report.zero) == (replicas, str(zero))
    assert len(report.peak_bytes.measured) == len(report.state_bytes.measured) == 2 * replicas
    assert report.num_updated_stages == 4


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("levels", "dtype"),
    sampled(
        paired(
            ["3,norm=1", "2,up=3,norm=1", "1,weight=3", "3,bias=2,down=1"], ["float64", "float32"]
        ),
        every=2,
    ),
)
def test_mixed_levels_replay(levels: str, dtype: str) -> None:
    spec = replace(TINY, layers=(1, 2, 1, 3), dtype=dtype)
    report = run(mesh(3), spec, data_parallel=2, zero=ZeroLevels.parse(levels))
    assert report.ok, str(report)


def test_lower_levels_replay_on_the_collectives_of_higher_ones() -> None:
    for zero, levels in ((3, "2"), (3, "1"), (2, "1,norm=2")):
        report = run(mesh(zero), data_parallel=2, zero=ZeroLevels.parse(levels))
        assert report.ok, str(report)


def test_what_a_deep_model_amplifies_is_no_fault() -> None:
    """Off by 1.5e-12, more than float64's constant: stages whose rounding is amplified may be."""
    ticks = Sharding(zero=2, gather=4, reduce=1, regather=2)
    made = mesh(2, p=2, v=3, m=4, e=(4,), d=(4,), ticks=ticks)
    spec = replace(TINY, layers=(2, 2, 2, 1, 2, 2), seed=79)
    report = run(made, spec, data_parallel=2, seed=79, zero=ZeroLevels(default=1))
    assert report.ok
    assert (report.rounded_to, report.tolerance > 1e-12) == ("float64", True)


@pytest.mark.sweep
def test_random_shapes_ticks_and_levels_replay() -> None:
    choice = random.Random(0)
    shapes = list(filled(range(1, 4), 6))
    for seed in range(sized(3, full=300)):
        p, v, m, e, d = choice.choice(shapes)
        zero = choice.randint(1, 3)
        ticks = Sharding(
            zero=zero,
            gather=choice.choice((0, 1, 4, 9)),
            reduce=choice.choice((0, 1, 3, 7)),
            regather=choice.choice((None, 0, 2)),
            rereduce=choice.choice((None, 0, 2)),
        )
        made = mesh(
            zero,
            p=p,
            v=v,
            m=m,
            e=e,
            d=d,
            ticks=ticks,
            forward=choice.randint(1, 3),
            backward=choice.randint(1, 5),
            latency=choice.choice((0, 0, 2)),
        )
        levels = [choice.randint(1, zero) for _ in range(3)]
        spec = replace(TINY, layers=tuple(choice.randint(1, 2) for _ in range(p * v)), seed=seed)
        report = run(
            made,
            spec,
            data_parallel=choice.randint(1, 3),
            seed=seed,
            zero=ZeroLevels(default=levels[0], exceptions=(("norm", levels[1]), ("up", levels[2]))),
        )
        assert report.ok, f"{p, v, m, e, d} {ticks} {levels}: {report}"


@pytest.mark.parametrize(
    ("replicas", "levels", "message"),
    [
        (0, "2", "data parallelism must have 1 replica or more, got 0"),
        (2, "3", "ZeRO level 3 needs more collectives than the schedule has"),
        (2, "2,gain=1", "ZeRO level 1 is for parameters named 'gain'"),
    ],
)
def test_what_is_refused(replicas: int, levels: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(mesh(2), data_parallel=replicas, zero=ZeroLevels.parse(levels))


def test_computations_of_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="need computations of 1 tick or more"):
        run(mesh(3, forward=0))
