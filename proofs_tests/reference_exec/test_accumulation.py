"""Gradients accumulated over passes: the bits of one sum, one step for all of its passes."""

from __future__ import annotations

import pytest

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    microbatch_input,
    microbatch_target,
)
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime.updates import Updates
from proofs_tests.reference_exec.cases import TINY, family_case, run

WORDS = ModelSpec(kind="mlp", hidden=4, sequence=3, vocabulary=11, tied=True)


def training(accumulate: int, steps: int = 2, clip: float | None = None) -> Training:
    barrier = clip is not None
    return Training(
        optimizer="adam", steps=steps, accumulate=accumulate, has_barrier=barrier, clip=clip
    )


@pytest.mark.parametrize(
    ("family", "params", "spec", "clip"),
    [
        ("1f1b", {"p": 3, "m": 3}, TINY, None),
        ("zb-h1", {"p": 2, "m": 3}, TINY, 0.05),
        ("interleaved", {"p": 2, "m": 2, "v": 2}, TINY, None),
        ("chimera", {"p": 2, "m": 2}, TINY, None),  # each stage on two ranks
        ("svpp", {"p": 2, "m": 2, "s": 2}, TINY, None),
        ("1f1b", {"p": 2, "m": 2}, WORDS, None),
    ],
)
def test_steps_take_the_sums_of_their_passes(
    family: str, params: dict[str, int], spec: ModelSpec, clip: float | None
) -> None:
    report = run(family_case(family, **params), spec, training=training(2, clip=clip))
    assert report.ok, report.failures
    assert report.accumulate == 2
    assert len(report.passes) == 4  # two steps of two passes


def test_losses_are_those_of_one_loop_over_all_passes() -> None:
    # an independent loop: 3 passes of 2 microbatches, the loss a mean over all 6 of them
    report = run(family_case("1f1b", p=2, m=2), TINY, training=training(3, steps=1))
    stages, losses = [Stage(TINY, stage) for stage in range(2)], []
    for step in range(3):
        for j in range(2):
            y = microbatch_input(TINY, j, step=step)
            for stage in stages:
                y = stage(y, None)
            error = y - microbatch_target(TINY, j, step=step)
            losses.append(float(error.detach().square().sum() / (2 * 6 * y.numel())))
    assert report.losses == pytest.approx(losses, rel=1e-12)
    assert report.loss == pytest.approx(sum(losses), rel=1e-12)


def test_gradients_stay_from_pass_to_pass_and_go_with_the_step() -> None:
    report = run(family_case("1f1b", p=2, m=2), TINY, training=training(2))
    held = [moment.on_ranks.measured[0] for moment in report.earlier_state]
    assert [bool(state.gradients) for state in held] == [
        False, True, True, True,  # as passes 0 and 1 begin and end
        False, True, True,  # passes 2 and 3; the last end stands alone
    ]  # fmt: skip
    # Adam keeps nothing before the first step, which is at the end of pass 1
    assert [bool(state.optimizer) for state in held] == [False] * 3 + [True] * 4


def test_a_rank_that_forgets_a_pass_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Updates.begin_pass

    def forgetful(self: Updates, number: int) -> None:
        right(self, number)
        for module in self._stages.values():
            module.zero_grad(set_to_none=True)

    monkeypatch.setattr(Updates, "begin_pass", forgetful)
    report = run(family_case("1f1b", p=2, m=2), TINY, training=training(2, steps=1))
    assert not report.gradients_equal
    assert not report.weights_equal
    assert report.max_relative_error > 0.1


def test_a_rank_that_steps_after_each_pass_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "ends_step", lambda *_: True)
    report = run(family_case("1f1b", p=2, m=2), TINY, training=training(2, steps=1))
    assert not report.weights_equal


def test_what_cannot_accumulate_is_refused() -> None:
    with pytest.raises(ValueError, match="replay accumulate must be 1 pass or more, whole, got 0"):
        training(0)
    with pytest.raises(ValueError, match="hosts step at the end of each pass"):
        run(family_case("toffload", p=2, m=4), TINY, training=training(2))
    with pytest.raises(ValueError, match="replicas add theirs up"):
        run(family_case("1f1b", p=2, m=2), TINY, training=training(2), data_parallel=2)
