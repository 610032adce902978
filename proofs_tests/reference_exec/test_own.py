"""A user's own modules replay with measured bytes; what would not is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import build
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from proofs_tests.reference_exec.cases import family_case, own
from proofs_tests.sized import sampled

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ModelSpec(kind="own", factory=f"{ROOT}/examples/model/own_model.py:build")
HERE = "proofs_tests.reference_exec.own_models:"


@pytest.mark.parametrize(
    ("name", "params", "dtype"),
    sampled(
        [
            ("1f1b", {"p": 4, "m": 5}, "float64"),
            ("zb-h1", {"p": 4, "m": 5}, "float32"),
            ("zb-v", {"p": 2, "m": 4}, "float64"),
            ("bpipe", {"p": 4, "m": 6}, "float64"),
            ("chimera", {"p": 4, "m": 4}, "float32"),
        ],
        every=2,
    ),
)
def test_the_example_replays(name: str, params: dict[str, int], dtype: str) -> None:
    case = family_case(name, **params)
    report = replay(case.pipeline, case.schedule, replace(EXAMPLE, dtype=dtype))
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert report.ok, str(report)


def test_own_modules_replay_on_processes_and_train() -> None:
    case = family_case("zb-h1", p=2, m=3)
    training = Training(optimizer="adam", steps=2)
    report = replay(
        case.pipeline, case.schedule, own("plain"), ReplayOptions(backend="gloo", training=training)
    )
    assert report.ok, str(report)


def test_measured_bytes_are_those_of_the_hand() -> None:
    # plain, float64, x of 3 x 4 elements. Stage 0, Linear(4, 4) on the input: x 12 and the output
    # 12 elements: 192 bytes; operands x and the output's gradient: 192. Stage 1: x 12, the norm's
    # statistics 3 + 3, norm 12 (the linear's input). The loss (y - t)^2: the difference 12, and
    # the scalar, 1; y itself is not needed: 43 elements, 344 bytes; operands norm and gradient.
    first, last = examined(own("plain"))
    assert (first.activation_bytes, first.operand_bytes, first.input_bytes) == (192, 192, 96)
    assert (last.activation_bytes, last.operand_bytes) == (344, 192)
    assert first.weight_bytes == 8 * (16 + 4)


def test_linears_used_once_are_deferred_and_no_others() -> None:
    assert [facts.replaced for facts in examined(own("reused"))] == [("once",), ("once",)]
    assert [facts.replaced for facts in examined(EXAMPLE)] == [
        (),
        ("inner", "outer"),
        ("inner", "outer"),
        ("",),
    ]
    stage = Stage(own("reused"), 0)
    assert stage.gemms() == ("layers.0.module.once.weight",)
    case = family_case("zb-h1", p=2, m=3)
    assert replay(case.pipeline, case.schedule, own("reused")).ok


def test_a_deferred_module_computes_what_the_user_wrote() -> None:
    spec = own("plain")
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.manual_seed(0))
    for stage, module in enumerate(build(spec).stages):
        ours = Stage(spec, stage)
        assert ours.gemms()
        assert torch.allclose(ours(x, None), module(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misfit", r"stage 1 cannot take what stage 0 gives, float64 \(3, 5\): mat1 and mat2"),
        ("counted", "stage 0 changes its buffer 1.running_mean in a forward"),
        ("idle", "stage 1: its parameter idle.weight gets no gradient"),
        ("paired", "loss failed: "),
        ("restless", "gives stage 0 weight other values the second time; draw them from a seed"),
        ("constant", "stage 1: its input gets no gradient to send back"),
        ("cut_off", "loss has no gradient; it must be computed from the output"),
        ("mismatched_loss", "loss failed: The size of tensor a"),
        ("without_loss", "own_models:without_loss: its loss must be a function, got NoneType"),
        ("without_modules", "own_models:without_modules: stage 1 must be a module, got int"),
        ("lists", "and a target .one tensor., got list, Tensor"),
        ("no_data", r"own_models:no_data: batch\(0\) failed: integer division"),
        ("failing", "own_models:failing failed: no such weights"),
        ("leaving", "own_models:leaving failed: SystemExit 7"),
        ("nothing", "must return an OwnModel, got <class 'int'>"),
        ("absent", "own_models has no function absent"),
    ],
)
def test_models_that_cannot_be_replayed_are_refused(name: str, message: str) -> None:
    case = family_case("1f1b", p=2, m=2)
    with pytest.raises(ValueError, match=message) as caught:
        replay(case.pipeline, case.schedule, own(name))
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_the_schedule_is_refused() -> None:
    case = family_case("1f1b", p=3, m=3)
    with pytest.raises(ValueError, match="has 2 stages, the schedule 3"):
        replay(case.pipeline, case.schedule, own("plain"))
    sliced = family_case("svpp", p=2, m=2, s=2)
    with pytest.raises(ValueError, match="takes whole samples, got 2 slices"):
        replay(sliced.pipeline, sliced.schedule, own("plain"))


def test_stages_with_inputs_of_other_sizes_are_recomputed() -> None:
    # 80 and 960 bytes, which stay of each activation until its R
    case = family_case("trecomp", p=2, m=3)
    report = replay(case.pipeline, case.schedule, EXAMPLE)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("no_colon", "must be MODULE:FUNCTION or FILE.py:FUNCTION, got 'no_colon'"),
        ("no/such/file.py:build", "model factory no/such/file.py:build: no file no/such/file.py"),
        ("no_such_module:build", "model factory no_such_module:build: No module named"),
    ],
)
def test_factories_that_are_not_there_are_refused(factory: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(ModelSpec(kind="own", factory=factory))
    with pytest.raises(ValueError, match="factory belongs to kind own"):
        ModelSpec(factory=factory)
