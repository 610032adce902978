"""Steps by hand against the loop: the right one is the same, each mistake is named."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch

from bubbleproof.testing.same_step import same_step
from bubbleproof.testing.step_causes import RightStep, differences
from proofs_tests.testing import faulty_steps
from proofs_tests.testing.faulty_steps import batch, model

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci"
pytestmark = pytest.mark.torch
# Of each mistake every line must say it; gradients are those of step 0 unless it is of the second.
MISTAKES = {
    "undivided": r"step [01]: \S+: m = 3 times the loop's",
    "divided_twice": r"step [01]: \S+: 1/m = 1/3 of the loop's",
    "first_is_dropped": r"step [01]: (\S+: microbatch 0 missing|losses are .*)",
    "last_is_done_twice": r"step [01]: (\S+: microbatch 2 counted twice|losses are .*)",
    "keeping": "rank 0 holds 64 bytes of activations more after each step",
}


def test_a_right_step_is_the_same_and_tells_its_bytes() -> None:
    found = same_step(faulty_steps.right, model, batch())
    assert found.differences == ()
    # A rank holds of each of 3 microbatches the input of its linear and the output of its tanh, 2
    # by 4 of 8 bytes; the last rank also of its loss the target, and of that and the output the
    # difference is not saved: mse_loss saves both its arguments, of which the output is there.
    assert found.peaks == (3 * 2 * 64, 3 * 3 * 64)
    # The loop holds one microbatch: input, two outputs and the target.
    assert found.loop_peak == 4 * 64


def test_the_example_on_pytorchs_runtime_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    example = importlib.import_module("pipeline_step")
    assert same_step(example.step, example.model, example.batch()).differences == ()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name: str) -> None:
    with pytest.raises(AssertionError) as caught:
        same_step(getattr(faulty_steps, name), model, batch())
    lines = str(caught.value).splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(MISTAKES[name] + ".*", line), line


def test_a_stale_stage_is_named_once() -> None:
    with pytest.raises(AssertionError) as caught:
        same_step(faulty_steps.stale, model, batch())
    lines = str(caught.value).splitlines()
    named = "step 1: stage second is stale: gradients are those of its parameters a step before"
    assert lines[0] == named
    assert all("losses are" in line for line in lines[1:])


def test_a_step_that_fails_names_the_rank_and_what_it_raised() -> None:
    with pytest.raises(ValueError, match=r"failed on rank [01]: RuntimeError: 2 stages, 3 m"):
        same_step(faulty_steps.failing, model, batch())


def test_what_is_no_known_mistake_is_told_by_its_size() -> None:
    wanted = torch.tensor([1.0, 2.0], dtype=torch.float64)
    step = RightStep(right={"w": wanted}, parts=[{"w": wanted}])
    assert differences({"w": wanted * 1.5}, step, 1e-12) == ["w: 1.5 times the loop's"]
    (line,) = differences({"w": torch.tensor([2.0, 1.0], dtype=torch.float64)}, step, 1e-12)
    assert line == "w: differs by 5.0e-01 of its largest entry, for no reason that is known"
    assert differences({}, step, 1e-12) == ["w: no rank has a gradient of it"]
