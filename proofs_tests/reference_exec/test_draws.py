"""Dropout: a microbatch has one mask on a stage, in any order and in R; faults are caught."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.oracle import order_matched
from bubbleproof.reference_exec.models.draws import (
    drawing,
    kept_generators,
    place_of,
    seed_generators,
)
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import build, own_batch
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime import compute
from proofs_tests.reference_exec.cases import Case, family_case, own, run
from proofs_tests.sized import sampled

STEPS = Training(optimizer="adam", steps=2)


def model(name: str, dtype: str = "float64") -> ModelSpec:
    return own(name, "drawing_models", dtype)


@pytest.mark.parametrize(
    ("name", "case", "dtype"),
    sampled(
        [
            ("dropped", family_case("1f1b", p=2, m=4), "float32"),
            ("dropped", family_case("zb-h1", p=2, m=4), "float64"),
            ("four", family_case("trecomp", p=2, m=3), "float64"),
            ("four", family_case("bpipe", p=4, m=6), "float32"),
            ("four", family_case("chimera", p=4, m=4), "float64"),
            ("checkpointed", family_case("zb-h1", p=2, m=3), "float64"),
            ("noisy", family_case("1f1b", p=2, m=3), "float64"),
        ],
        every=2,
    ),
)
def test_models_that_draw_replay(name: str, case: Case, dtype: str) -> None:
    report = run(case, model(name, dtype), training=STEPS)
    assert report.ok, str(report)
    assert any("draws random numbers" in told for told in report.weight_backward)


def test_an_order_a_backend_and_replicas_change_no_mask() -> None:
    reports = [
        run(family_case(family, p=2, m=4), model("dropped"), **options)
        for family, options in (
            ("gpipe", {}),
            ("zb-h1", {}),
            ("1f1b", {"backend": "gloo"}),
        )
    ]
    assert all(report.ok for report in reports)
    assert len({report.losses for report in reports}) == 1
    # two replicas of two microbatches have the masks of the four of one
    twice = run(family_case("1f1b", p=2, m=2), model("dropped"), data_parallel=2)
    assert twice.ok
    assert twice.loss == pytest.approx(reports[0].loss, rel=1e-14)


def test_another_seed_draws_other_masks_in_every_order_alike() -> None:
    found = {
        seed: {
            run(family_case(family, p=2, m=3), replace(model("dropped"), seed=seed)).losses
            for family in ("gpipe", "zb-h1")
        }
        for seed in (0, 1)
    }
    assert [len(losses) for losses in found.values()] == [1, 1]
    assert found[0] != found[1]


def test_the_numbers_are_those_of_a_plain_loop_at_the_same_places() -> None:
    # by hand, without ``drawing``: torch seeded before each module, microbatch by microbatch
    spec = model("dropped")
    stages, losses = build(spec).stages, []
    with torch.random.fork_rng(devices=[]):
        for microbatch in range(3):
            y, target = own_batch(spec, microbatch)
            for number, stage in enumerate(stages):
                torch.manual_seed(place_of(0, number, 0, microbatch))
                y = stage(y)
            losses.append((y - target).square().mean().item() / 3)
    report = run(family_case("zb-h1", p=2, m=3), spec)
    assert report.losses == tuple(losses)
    assert examined(spec)[0].draws
    assert not examined(own("plain"))[0].draws


@pytest.mark.parametrize("seed", [0, 7, (1 << 63) - 1])
def test_a_seed_gives_the_numbers_that_torch_gives_for_it(seed: int) -> None:
    with kept_generators():
        torch.manual_seed(seed)
        there = torch.rand(5)
        torch.rand(3)
        seed_generators(seed)
        assert torch.equal(torch.rand(5), there)
        assert torch.initial_seed() == seed


def test_seeds_stages_steps_and_samples_have_their_own() -> None:
    places = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 0, 0, 1)]
    assert len({place_of(*place) for place in places}) == len(places)
    before = torch.get_rng_state()
    run(family_case("1f1b", p=2, m=2), model("dropped"))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("fault", ["recomputed", "microbatch", "nothing"])
def test_a_generator_that_is_wrongly_restored_is_caught(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # recomputed: R goes on where F's numbers ended; microbatch: all microbatches have one mask;
    # nothing: the control, which must hold
    seen: set[tuple[int, ...]] = set()

    @contextmanager
    def faulty(spec: ModelSpec, stage: int, step: int, sample: int, slice_: int) -> Iterator[None]:
        is_again = (stage, step, sample) in seen
        seen.add((stage, step, sample))
        if fault == "microbatch":
            sample = 0
        with drawing(spec, stage, step, sample, slice_):
            if fault == "recomputed" and is_again:
                torch.rand(1)
            yield

    case = family_case("trecomp", p=2, m=3)
    order_matched(case.plan(model("four")))
    monkeypatch.setattr(compute, "drawing", faulty)
    report = run(case, model("four"))
    assert report.gradients_equal == (fault == "nothing")
    assert report.losses_equal == (fault != "microbatch")
    assert report.ok == (fault == "nothing")


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("foreign", "float64", "stage 1 gives another output the second time, of the same random"),
        ("backwards", "float64", "stage 1 draws random numbers in a backward; only those of a"),
        ("noisy", "float32", "stage 1 draws other random numbers in float64 than in float32"),
    ],
)
def test_numbers_that_depend_on_more_are_refused(name: str, dtype: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(family_case("1f1b", p=2, m=2), model(name, dtype))
