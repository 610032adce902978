"""Users' models as people write them: each replays, or is refused by stage and parameter."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from bubbleproof.cli import app
from bubbleproof.commands.last_resort import status_of_call
from bubbleproof.reference_exec.broken import ModelFailed
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.examined import examined, own_layers
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import build
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.sized import sampled

FILE = Path(__file__).parent / "awkward_models.py"
CASE = family_case("zb-h1", p=2, m=3)
NAN = "is NaN in {} numbers on microbatch 0; a replay has nothing to compare with that"
SPARSE = "is sparse (torch.sparse_coo); a replay"
NOT_LINEAR = "stage 1: a hook of its parameter u.weight gives other than three times its gradient"


def own(name: str, dtype: str = "float64") -> ModelSpec:
    return ModelSpec(
        kind="own", factory=f"proofs_tests.reference_exec.awkward_models:{name}", dtype=dtype
    )


HOLD = [
    "asserting",
    "doubling",
    "doubling_first",
    "tolerant",
    "watching",
    "bias_hook",
    "forward_hooks",
    "penalized",
    "functional",
    "dense",
    "cast",
    "cast_first",
    "whole",
    "nameless_batch",
    "collected",
]
REFUSED = [
    ("halving", NOT_LINEAR),
    ("clipping", NOT_LINEAR),
    ("stepping", "stage 1: its parameter u.weight has no gradient after a backward that its hooks"),
    ("raising_hook", "model stage 1 failed in B: LookupError: not this one"),
    ("sparse", f"stage 1: the gradient of its parameter table.weight {SPARSE}"),
    ("sparse_first", f"stage 0: the gradient of its parameter table.weight {SPARSE}"),
    ("adjacent", f"stage 1: its buffer near {SPARSE}"),
    ("mean", f"stage 1: its output {NAN.format('12 of 12')}"),
    ("root", f"stage 1: the gradient of its parameter u.weight {NAN.format('16 of 16')}"),
    ("empty_data", f"model input {NAN.format('12 of 12')}"),
    ("no_double", "stage 1 cannot take what stage 0 gives, float64 (3, 4): Expected mat_a"),
    ("broken_backward", "model stage 1 failed in B: TypeError: no backward of mine"),
    ("two_inputs", "(3, 4): TwoInputs.forward() missing 1 required positional argument: 'mask'"),
    ("leaving", "stage 1 cannot take what stage 0 gives, float64 (3, 4): SystemExit 0"),
    ("leaving_loss", "model loss failed: SystemExit 0"),
    ("shrinking", "stage 1 changes its parameter u.weight in a forward; ranks see microbatches"),
    ("numpy", "stage 1 cannot take what stage 0 gives, float64 (3, 4): Can't call numpy() on"),
    ("turning", "stage 1: its parameter w is of torch.complex64; a replay is in one type of real"),
    ("brief", "stage 1: its parameter weight is of torch.bfloat16, and in float64 it would"),
    ("brief_buffer", "stage 1: its buffer running_mean is of torch.float16, and in float64 it"),
    ("lazy", "stage 1: its parameter weight has no shape yet (a lazy module); run the stage once"),
    ("unreal", "stage 1: its parameter weight is on meta; the factory must build on the cpu"),
    ("kept", "gives stage 0 weight in one place both times; each rank has its own: build the"),
    ("generated", "its stages must be a list of modules, got generator"),
    ("growing", "has 3 stages, the second time 2; it must be the same each time"),
]


@pytest.mark.parametrize("name", sampled(HOLD, every=2))
def test_it_replays(name: str) -> None:
    report = run(CASE, own(name))
    assert report.ok, str(report)


def test_a_report_says_in_which_type_it_ran_and_in_which_the_model_came() -> None:
    report = run(CASE, own("plain"))  # torch makes float32, a replay float64
    assert (report.dtype, report.given_types) == ("float64", ("float32",))
    assert "in float64 (the model's parameters came as float32)" in str(report)
    assert report.to_dict()["given_types"] == ("float32",)
    assert "in float32: " in str(run(CASE, own("plain", "float32")))


def test_a_lazy_module_elsewhere_in_the_process_disturbs_nothing() -> None:
    alive = [nn.LazyLinear(4), torch.eye(2).to_sparse()]
    assert run(CASE, own("asserting")).ok
    assert len(alive) == 2


def test_a_stage_without_parameters_trains_alone() -> None:
    report = run(CASE, own("whole"), training=Training(optimizer="momentum", steps=2))
    assert report.ok, str(report)
    for levels in (None, ZeroLevels.parse("3")):
        with pytest.raises(ValueError, match="stage 1 has no parameters that are trained"):
            run(CASE, own("whole"), data_parallel=2, zero=levels)


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_it_is_refused_by_its_place(name: str, why: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of lazy modules
        with pytest.raises(ValueError, match="model") as caught:
            run(CASE, own(name))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_has_no_float64_is_refused_by_the_oracle_that_needs_it() -> None:
    with pytest.raises(ValueError, match="model stage 1 failed in F: RuntimeError: ") as caught:
        run(CASE, own("no_double", "float32"))
    assert "that is in float64, in which every replay's gradients" in str(caught.value)
    assert "(the oracle): give the model operations that have it" in str(caught.value)


@pytest.mark.parametrize("name", ["cast", "cast_first"])
def test_autocast_leaves_the_operands_of_its_type(name: str) -> None:
    # bits and bytes are right; bfloat16 is off float64 by more than float32 may be
    report = run(CASE, own(name, "float32"))
    assert report.failures == ()
    assert report.rounded_to == "bfloat16"
    assert 5e-4 < report.max_relative_error <= report.tolerance


def test_a_failure_in_the_midst_names_rank_action_and_stage() -> None:
    with pytest.raises(ModelFailed) as caught:
        run(CASE, own("picky"))
    assert str(caught.value) == (
        "rank 0, action 8: model stage 0 failed in F: LookupError: not this one"
    )
    for name, action in (("picky_backward", "I"), ("picky_backward", "B")):
        case = CASE if action == "I" else family_case("1f1b", p=2, m=3)
        with pytest.raises(ModelFailed, match=f"model stage 0 failed in {action}: LookupError"):
            run(case, own(name))


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("doubling", 0, "stage 1: I makes all 2 gradients, W none; hooks watch u.weight"),
        ("asserting", 0, "stage 1: W makes 1 of 2 gradients (u.weight), I the others"),
        ("picky", 1, "rank 0, action 8: model stage 0 failed in F: LookupError: not this one"),
        ("leaving", 2, "bubbleproof: model stage 1 cannot take what stage 0 gives"),
        ("sparse", 2, "bubbleproof: model stage 1: the gradient of its parameter table.weight is"),
    ],
)
def test_the_command_ends_with_a_word_and_a_status(
    name: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["replay", "zb-h1", "p=2", "m=3", "--model", f"{FILE}:{name}"]
    assert status_of_call(lambda: app(words, standalone_mode=False)) == status
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    assert "fault of bubbleproof" not in captured.err


def test_profile_tells_of_a_stage_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "p.toml"
    words = ["profile", "-o", str(target), "--ranks", "2", "--microbatches", "2"]
    words += ["--model", f"{FILE}:raising_hook"]
    assert status_of_call(lambda: app(words, standalone_mode=False)) == 2
    assert "model stage 1 failed in B: LookupError" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize(
    ("name", "deferred", "hooked"),
    [
        ("asserting", ("u",), ()),
        ("forward_hooks", ("u",), ()),
        ("doubling", (), ("u.weight",)),
        ("watching", (), ("u.weight",)),
        ("bias_hook", ("u",), ("u.bias",)),
        ("penalized", (), ()),
        ("functional", (), ()),
        ("cast", ("u",), ()),
    ],
)
def test_a_deferred_module_computes_what_the_user_wrote(
    name: str, deferred: tuple[str, ...], hooked: tuple[str, ...]
) -> None:
    spec = own(name)
    facts = examined(spec)[1]
    assert (facts.replaced, facts.watched) == (deferred, hooked)
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.manual_seed(0)).requires_grad_()
    plain, (layer,) = build(spec).stages[1], own_layers(spec, [1])
    expected = _gradients(plain, plain(x))
    store = WeightGradStore(Ledger())
    store.is_deferring = True
    root = layer(x, store)
    torch.autograd.backward(root.sum())
    assert (layer.module.get_parameter("u.weight").grad is None) == bool(deferred)
    if deferred:
        store.run()
    for key, value in expected.items():
        found = layer.module.get_parameter(key).grad
        assert found is not None
        assert torch.allclose(found, value, rtol=0, atol=1e-13)


def _gradients(module: nn.Module, y: torch.Tensor) -> dict[str, torch.Tensor]:
    torch.autograd.backward(y.sum())
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
