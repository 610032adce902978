"""Replays of forwards alone: the losses of the uncut model, and not a byte between forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    microbatch_input,
    microbatch_loss,
    microbatch_target,
    whole_model,
)
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.compute import Compute
from bubbleproof.theory.families import family
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.reference_exec.cases import TINY

MEMBER = family("forward")(p=2, m=4, v=2)


def run(spec: ModelSpec = TINY, program: Program | None = None, **options: object) -> ReplayReport:
    how = ReplayOptions(**options)  # type: ignore[arg-type]  # fields by name
    return replay(MEMBER.pipeline, MEMBER.schedule, spec, how, program=program)


@pytest.mark.parametrize("kind", ["mlp", "transformer", "llama"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_losses_are_those_of_the_uncut_model_and_nothing_is_held(kind: str, dtype: str) -> None:
    report = run(replace(TINY, kind=kind, dtype=dtype))
    assert report.ok, str(report)
    assert report.losses_equal
    assert not report.trains
    assert len(report.losses) == 4
    assert report.peak_bytes.measured == report.peak_bytes.predicted == (0, 0)
    assert {bytes_ for row in report.live_bytes for bytes_ in row} == {0}
    assert all(state.gradients == 0 for state in report.model_state.measured)
    assert str(report).startswith("virtual replay of 2 ranks, 4 microbatches in")
    assert "losses equal" in str(report)
    assert report.added_first == ()
    assert "Gradients: forwards ran alone, nothing was trained." in not_checked(report)


def test_on_processes() -> None:
    assert run(backend="gloo").ok


def test_the_losses_are_plain_torchs() -> None:
    """Without anything of ours but the layers: one model, one microbatch after the other."""
    spec = TINY.on(4)
    stages = whole_model(spec, 4)
    expected = []
    for microbatch in range(4):
        y = microbatch_input(spec, microbatch)
        for stage in stages:
            y = stage(y, None)
        expected.append(microbatch_loss(spec, y, microbatch_target(spec, microbatch), 4).item())
    assert run().losses == tuple(expected)


def test_a_forward_that_keeps_what_it_made_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    plain: Callable[..., torch.Tensor | None] = Compute.forward

    def keeping(self: Compute, key: tuple[int, int, int], x: torch.Tensor) -> torch.Tensor | None:
        kept.append(x)
        return plain(self, key, x)

    monkeypatch.setattr(Compute, "forward", keeping)
    report = run()
    assert not report.ok
    assert report.losses_equal
    assert "bytes at its peak, 0 were predicted" in report.failures[0]


def test_two_outputs_that_change_places_are_found() -> None:
    """Their rank sends microbatch 1 first, and the receiver takes it for 0."""
    program = lower(MEMBER.problem, MEMBER.schedule)
    orders = program.orders(2)
    sends = [place for place, a in enumerate(orders[0]) if a.kind is Kind.SEND_F][:2]
    one, other = sends
    orders[0][one], orders[0][other] = orders[0][other], orders[0][one]
    with pytest.raises(ValueError, match="0SEND_F"):
        run(program=Program.from_orders(orders))


def test_what_is_refused() -> None:
    why = "this schedule runs forwards alone and trains nothing: leave --steps"
    for more in ({"training": Training(steps=2)}, {"data_parallel": 2}):
        with pytest.raises(ValueError, match=why):
            run(**more)
    sliced = Pipeline(num_ranks=2, num_microbatches=2, num_slices=2, frozen_stages=(0, 1))
    orders = [[f"{g}F{j}.{k}" for j in range(2) for k in range(2)] for g in range(2)]
    schedule = left_shift(sliced.problem(), Program.from_orders(orders))
    with pytest.raises(ValueError, match="forwards alone takes whole samples"):
        replay(sliced, schedule, replace(TINY, sequence=2))
