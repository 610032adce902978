"""The count of floating-point operations is that of torch's own counter, and disturbs nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bubbleproof.reference_exec import flop_count
from bubbleproof.reference_exec.flop_count import FlopCount
from proofs_tests.reference_exec.counted_by_torch import flops_by_torch

LINEAR = nn.Linear(4, 5)
# forward 2 x 6 x 4 x 5, backward as much for the weight and for the input
LINEAR_FLOPS = 3 * 2 * 6 * 4 * 5


def _both_ways(module: nn.Module, *shape: int) -> None:
    x = torch.ones(shape, requires_grad=True)
    y = module(x)
    y.square().sum().backward()


MODULES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "linear": (LINEAR, (2, 3, 4)),
    "without a bias": (nn.Linear(4, 5, bias=False), (2, 3, 4)),
    "of a vector": (nn.Linear(4, 5), (4,)),
    "convolution": (nn.Conv2d(3, 4, 3, stride=2), (2, 3, 8, 8)),
    "transposed": (nn.ConvTranspose1d(3, 4, 3), (2, 3, 8)),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
    "norm": (nn.LayerNorm(4), (3, 4)),
}


@pytest.fixture(params=["kernels", "mode"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "mode":
        monkeypatch.setattr(flop_count, "_counting", lambda: flop_count._EveryOperation)


@pytest.mark.usefixtures("_each_way")
@pytest.mark.parametrize("name", MODULES)
def test_the_count_is_torchs(name: str) -> None:
    module, shape = MODULES[name]
    with FlopCount() as ours:
        _both_ways(module, *shape)
    assert ours.flops == flops_by_torch(lambda: _both_ways(module, *shape))
    assert bool(ours.flops) == (name != "norm")


@pytest.mark.usefixtures("_each_way")
def test_what_runs_inside_counts_and_what_runs_outside_does_not() -> None:
    count, outer = FlopCount(), FlopCount()
    _both_ways(LINEAR, 6, 4)
    with outer:
        for times in (1, 2):
            with count:
                _both_ways(LINEAR, 6, 4)
                assert count.flops == times * LINEAR_FLOPS
            _both_ways(LINEAR, 6, 4)
    _both_ways(LINEAR, 6, 4)
    assert (count.flops, outer.flops) == (2 * LINEAR_FLOPS, 4 * LINEAR_FLOPS)


@pytest.mark.usefixtures("_each_way")
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients_it_counts_too(context: type[torch.no_grad]) -> None:
    with context(), FlopCount() as count:
        torch.ones(2, 3, 4) @ torch.ones(4, 5)
    assert count.flops == LINEAR_FLOPS // 3


def test_an_error_inside_ends_the_count() -> None:
    count = FlopCount()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), count:
        torch.ones(2, 3) @ torch.ones(2, 3)
    torch.ones(2, 3) @ torch.ones(3, 2)
    assert count.flops == 0


@pytest.mark.usefixtures("_each_way")
def test_results_have_the_same_bits() -> None:
    def results() -> list[torch.Tensor]:
        torch.manual_seed(0)
        module = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        x = torch.randn(3, 2, 8, requires_grad=True)
        module(x).square().sum().backward()
        return [g for t in (x, *module.parameters()) if (g := t.grad) is not None]

    plain = results()
    with FlopCount():
        counted = results()
    assert len(plain) == len(counted) > 1
    assert all(map(torch.equal, plain, counted))


def test_a_torch_without_the_key_is_counted_by_a_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flop_count, "_KEY", "NoSuchKey")
    counting: Callable[[], object] = flop_count._counting.__wrapped__
    assert counting() is flop_count._EveryOperation
