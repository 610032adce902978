"""Users' models as people write them: with hooks, assertions, autocast, sparse gradients, and what
else may go wrong in a module that is somebody else's."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.autograd.function import FunctionCtx

from bubbleproof.reference_exec.models.own import OwnModel
from proofs_tests.reference_exec.own_models import SHAPE, batch, linear, model, of, seeded

CALLS = [0]  # of the factory that counts them


def build(stage: Callable[[], nn.Module]) -> Callable[[], OwnModel]:
    """A factory of a model whose stage 1 is awkward."""
    return of(linear, stage)


class Up(nn.Module):
    """A linear named u, of which subclasses make something."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Linear(4, 4)
        self.prepare()

    def prepare(self) -> None:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.tanh(self.u(x))
        return y


class Asserting(Up):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(self.u, nn.Linear), "u is no nn.Linear any more"
        assert type(self.u) is nn.Linear
        assert repr(self.u) == "Linear(in_features=4, out_features=4, bias=True)"
        return super().forward(x)


class Doubling(Up):
    def prepare(self) -> None:
        self.u.weight.register_hook(lambda g: g * 2)  # type: ignore[no-untyped-call]  # torch's stub


class Tolerant(Up):
    def prepare(self) -> None:
        self.u.weight.register_hook(lambda g: None if g is None else g * 2)  # type: ignore[no-untyped-call]  # torch's stub


class Watching(Up):
    """Its hook looks at the gradient, and changes nothing."""

    def prepare(self) -> None:
        self.u.weight.register_post_accumulate_grad_hook(_look)  # type: ignore[no-untyped-call]  # torch's stub


def _look(parameter: torch.Tensor) -> None:
    assert parameter.grad is not None
    assert parameter.grad.shape == (4, 4)


class Halving(Up):
    def prepare(self) -> None:
        self.u.weight.register_post_accumulate_grad_hook(_halve)  # type: ignore[no-untyped-call]  # torch's stub


def _halve(parameter: torch.Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(0.5)


class Clipping(Up):
    def prepare(self) -> None:
        self.u.weight.register_hook(lambda g: g.clamp(-1e-3, 1e-3))  # type: ignore[no-untyped-call]  # torch's stub


class Stepping(Up):
    """The optimizer in the backward."""

    def prepare(self) -> None:
        self.u.weight.register_post_accumulate_grad_hook(_take)  # type: ignore[no-untyped-call]  # torch's stub


def _take(parameter: torch.Tensor) -> None:
    parameter.grad = None


class BiasHook(Up):
    def prepare(self) -> None:
        assert self.u.bias is not None
        self.u.bias.register_hook(lambda g: g * 3)  # type: ignore[no-untyped-call]  # torch's stub


class RaisingHook(Up):
    def prepare(self) -> None:
        self.u.weight.register_hook(_refuse)  # type: ignore[no-untyped-call]  # torch's stub


class ForwardHooks(Up):
    """Hooks of the linear itself, which change what it takes and gives."""

    def prepare(self) -> None:
        self.u.register_forward_pre_hook(lambda _, given: (given[0] * 2,))
        self.u.register_forward_hook(lambda _, given, output: output + given[0])
        self.u.register_full_backward_hook(_tripled)


def _tripled(_: nn.Module, given: object, back: object) -> tuple[torch.Tensor]:
    assert isinstance(given, tuple)
    assert isinstance(back, tuple)
    return (given[0] * 3,)


class Penalized(Up):
    """Its weight is in the output by a way of its own too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.u.weight.square().sum()


class Functional(Up):
    """Half of it goes past the module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.nn.functional.linear(x, self.u.weight))


class Words(nn.Module):
    """An embedding of tokens that are made of numbers."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4, sparse=sparse)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.table((x.detach().abs() * 3).long().clamp(max=4)).sum(1) + x
        return y


class First(nn.Module):
    """The same where nothing comes before it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4, sparse=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.table((x.abs() * 3).long().clamp(max=4)).sum(1)
        return y


class Adjacent(Up):
    """A sparse buffer."""

    def prepare(self) -> None:
        self.register_buffer("near", torch.eye(4).to_sparse())


class Cast(Up):
    """Its linear is computed in bfloat16, where that is not float64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y: torch.Tensor = self.u(x)
        return y.to(x.dtype)


class Coarse(Up):
    """What is large, here microbatch 1 and not 0, is rounded to bfloat16, whatever the type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y if x.sum() < 3 else y.to(torch.bfloat16).to(y.dtype)


class Mean(Up):
    """0 / 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + (x - x) / (x - x)


class Root(Up):
    """A square root at 0, times 0: its gradient is 0 / 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y + torch.sqrt(y - y) * 0


class NoDouble(Up):
    """It has no float64, as kernels for mixtures of experts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            raise RuntimeError("Expected mat_a to be Float32, got Double")
        return super().forward(x)


class _Broken(torch.autograd.Function):
    @staticmethod
    def forward(_: FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(_: FunctionCtx, *_gradients: torch.Tensor) -> torch.Tensor:
        raise TypeError("no backward of mine")


class BrokenBackward(Up):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = _Broken.apply(super().forward(x))  # type: ignore[no-untyped-call]  # torch's stub
        return y


class TwoInputs(Up):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # wrong on purpose
        return super().forward(x) * mask


class Leaving(Up):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(len(x) - 3)


class Picky(Up):
    """It does not take microbatch 2."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.equal(x, batch(2)[0].to(x.dtype)):
            raise LookupError("not this one")
        return super().forward(x)


class PickyBackward(Up):
    """Its hook does not take microbatch 2."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        if torch.equal(x, batch(2)[0].to(x.dtype)):
            y.register_hook(_refuse)  # type: ignore[no-untyped-call]  # torch's stub
        return y


def _refuse(_: torch.Tensor) -> None:
    raise LookupError("not this one")


class Shrinking(Up):
    """Its forward changes its weight."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.u.weight.mul_(0.9)
        return super().forward(x)


class Numpy(Up):
    """It takes its input out of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.u(torch.from_numpy(x.numpy()))
        return y


class Turning(nn.Module):
    """Complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.w).real.to(x.dtype)


@seeded
def kept() -> OwnModel:
    return KEPT


KEPT = model(nn.Linear(4, 4), nn.Linear(4, 4))


@seeded
def generated() -> OwnModel:
    stages = (nn.Linear(4, 4) for _ in range(2))
    return replace(model(), stages=stages)  # wrong on purpose


def growing() -> OwnModel:
    CALLS[0] += 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return model(*(nn.Linear(4, 4) for _ in range(2 + CALLS[0] % 2)))


@seeded
def nameless_batch() -> OwnModel:
    given = {j: batch(j) for j in range(8)}
    return replace(model(nn.Linear(4, 4), nn.Linear(4, 4)), batch=given.__getitem__)


@seeded
def empty_data() -> OwnModel:
    nothing = torch.full(SHAPE, torch.nan)
    return replace(model(nn.Linear(4, 4), nn.Linear(4, 4)), batch=lambda _: (nothing, nothing))


@seeded
def leaving_loss() -> OwnModel:
    return replace(model(nn.Linear(4, 4), nn.Linear(4, 4)), loss=lambda *_: sys.exit(0))


asserting, doubling, tolerant = build(Asserting), build(Doubling), build(Tolerant)
doubling_first = of(Doubling, linear)
watching, halving, clipping = build(Watching), build(Halving), build(Clipping)
stepping, bias_hook, raising_hook = build(Stepping), build(BiasHook), build(RaisingHook)
forward_hooks, penalized, functional = build(ForwardHooks), build(Penalized), build(Functional)
sparse, dense = build(lambda: Words(True)), build(lambda: Words(False))
sparse_first = of(First, linear)
adjacent, cast, coarse = build(Adjacent), build(Cast), build(Coarse)
cast_first = of(Cast, Cast)
mean, root, no_double = build(Mean), build(Root), build(NoDouble)
broken_backward, two_inputs = build(BrokenBackward), build(TwoInputs)
leaving, shrinking = build(Leaving), build(Shrinking)
picky = of(Picky, linear)
picky_backward = of(PickyBackward, linear)
numpy, turning = build(Numpy), build(Turning)
brief = build(lambda: nn.Linear(4, 4, dtype=torch.bfloat16))
brief_buffer = build(lambda: nn.BatchNorm1d(4, affine=False, dtype=torch.float16))
plain = build(linear)
lazy = build(lambda: nn.LazyLinear(4))
unreal = build(lambda: nn.Linear(4, 4, device="meta"))
whole = build(lambda: nn.Sequential(nn.Tanh(), nn.Identity()))


@seeded
def collected() -> OwnModel:
    """Python's collector has run before the stages are cast to the replay's type."""
    built = model(nn.Linear(4, 4), nn.Linear(4, 4))
    gc.collect()
    return built
