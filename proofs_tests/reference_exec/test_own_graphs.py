"""Users' modules that checkpoint, cache, work in place or give strided outputs replay as any."""

from __future__ import annotations

import pytest
import torch

from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.layers import as_message
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.reference_exec.cases import Case, family_case, random_case, run
from proofs_tests.sized import sized

NAMES = ("checkpointed", "part", "turned", "ended", "caching")
TRAINING = Training(optimizer="momentum", steps=2)


def own(name: str) -> ModelSpec:
    return ModelSpec(kind="own", factory=f"proofs_tests.reference_exec.own_graphs:{name}")


def half_split() -> Case:
    """Of each stage one backward is split and one is not."""
    split = ((True, False), (False, True))
    return random_case(Pipeline(num_ranks=2, num_microbatches=2, split_backward=split), 0)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_graphs_of_every_form_replay(name: str) -> None:
    spec = own(name)
    overlapped = [family_case("dualpipe", p=2, m=4)] if name in sized(NAMES[:1], full=NAMES) else []
    cases = [
        family_case("1f1b", p=2, m=3),
        half_split(),
        family_case("tpipe", p=1, m=2),
        family_case("zb-h1", p=2, m=3),
    ]
    for case in (*sized(cases[NAMES.index(name) % 4 :: 4], full=cases), *overlapped):
        report = run(case, spec, training=TRAINING, data_parallel=2)
        assert report.ok, str(report)
    if name in sized(NAMES[1:2], full=NAMES):
        report = run(family_case("zb-h1", p=2, m=3), spec, count_bytes=False)
        assert report.ok, str(report)


def test_a_strided_output_is_the_same_message_on_processes() -> None:
    report = run(family_case("zb-h1", p=2, m=3), own("turned"), backend="gloo")
    assert report.ok, str(report)


def test_a_checkpoint_holds_its_input_its_output_and_the_state_of_a_generator() -> None:
    # 3 x 4 float64 are 96 bytes; torch's checkpoint keeps the state of the random numbers too. I
    # leaves the gradients and operands of two linears: the output's, that of a(x), x and the
    # sigmoid made again
    first = examined(own("checkpointed"))[0]
    assert first.activation_bytes == 2 * 96 + torch.get_rng_state().nbytes
    assert first.operand_bytes == 4 * 96


def test_a_stage_is_given_the_bytes_of_its_input_alone() -> None:
    # the cat is 192 bytes, of which stage 0 holds all; stage 1 the 96 of the message, the sigmoid
    # that two nodes save, and the loss, whose target and difference it saves too
    whole, after = examined(own("part"))
    plain = examined(own("ended"))[1]
    assert whole.activation_bytes == 96 + 96 + 192  # x, the sigmoid, the output
    assert after.input_bytes == 96
    assert after.activation_bytes == plain.activation_bytes - 96  # which saves its output too


def test_a_message_is_row_by_row_both_ways() -> None:
    x = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    y = as_message(x)
    assert torch.equal(x, y)
    assert (x.stride(), y.stride()) == ((1, 3), (2, 1))
    seen: list[torch.Tensor] = []
    x.register_hook(seen.append)  # type: ignore[no-untyped-call]  # torch's stub
    torch.autograd.backward(y, torch.ones(2, 3).t())
    assert seen[0].stride() == (2, 1)
