"""One small user's model for each feature of real models; ``features_page`` replays them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.autograd.function import FunctionCtx
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.checkpoint import checkpoint

from bubbleproof.reference_exec.models.own import OwnModel
from proofs_tests.reference_exec.own_models import batch, linear, loss, model, of, seeded


class Calls(nn.Module):
    """A linear u, and what a function of it and the input gives."""

    def __init__(self, given: Callable[[nn.Linear, torch.Tensor], object]) -> None:
        super().__init__()
        self.u, self.given = nn.Linear(4, 4), given

    def forward(self, x: torch.Tensor) -> object:
        return self.given(self.u, x)


class Two(nn.Linear):
    """Takes two tensors."""

    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # another
        found: torch.Tensor = super().forward(x + y)
        return found


def calls(given: Callable[[nn.Linear, torch.Tensor], object]) -> Callable[[], nn.Module]:
    return lambda: Calls(given)


def autocast_to(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return torch.tanh(u(x)).to(x.dtype)


def half_inside(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    y = nn.functional.linear(x.bfloat16(), u.weight.bfloat16(), u.bias.bfloat16())
    return torch.tanh(y).to(x.dtype)


class _Auxiliary(torch.autograd.Function):
    """Adds a constant to the gradient of a second loss, as Megatron's router does."""

    @staticmethod
    def forward(ctx: FunctionCtx, y: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(aux)
        return y.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (aux,) = ctx.saved_tensors  # type: ignore[attr-defined]  # absent from torch's stubs
        return gradients[0], torch.full_like(aux, 1e-2)


def auxiliary(u: nn.Linear, x: torch.Tensor) -> object:
    y = torch.tanh(u(x))
    return _Auxiliary.apply(y, y.square().mean())  # type: ignore[no-untyped-call]  # torch's stub


def attention(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    q = u(x)[None, None]
    return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)[0, 0] + x


def routed(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Saves what the data choose."""
    chosen = (x[:, 0] > 0).nonzero()[:, 0]
    return x.index_add(0, chosen, torch.tanh(u(x[chosen])))


def group_inside(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = u(x)
    torch.distributed.all_reduce(y)
    return y


def lora() -> OwnModel:
    from peft import LoraConfig, get_peft_model

    def stage() -> nn.Module:
        config = LoraConfig(r=2, target_modules=["u"], init_lora_weights=False)
        built: nn.Module = get_peft_model(calls(lambda u, x: torch.tanh(u(x)))(), config)
        return built

    return seeded(lambda: model(stage(), stage()))()


@seeded
def shapes() -> OwnModel:
    def longer(microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, target = batch(microbatch)
        return x.repeat(1 + microbatch % 2, 1), target.repeat(1 + microbatch % 2, 1)

    return replace(model(linear(), linear()), batch=longer)


@seeded
def items() -> OwnModel:
    """The mean over the items of a microbatch that count; what a step's mean is it cannot say."""
    return replace(
        model(linear(), linear()),
        loss=lambda y, t: loss(y, t) * y.shape[0] / max(int((t[:, 0] > 0).sum()), 1),
    )


@seeded
def tied() -> OwnModel:
    first, last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    last.weight = first.weight
    return model(first, last)


bare = of(linear, linear)
several = of(calls(lambda u, x: (u(x), x)), Two)
integers = of(calls(lambda u, x: u(x).long()), linear)
needs_mask = of(linear, lambda: nn.MultiheadAttention(4, 2))
batch_norm = of(lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)), linear)
spectral = of(lambda: spectral_norm(nn.Linear(4, 4)), linear)
checkpoints = of(calls(lambda u, x: checkpoint(u, x, use_reentrant=False)), linear)
in_place = of(linear, calls(lambda u, x: u(x.mul_(2))))
views = of(calls(lambda u, x: u(x).t().contiguous().t()), calls(lambda u, x: u(torch.relu(u(x)))))
not_a_number = of(linear, calls(lambda u, x: u(x) / 0 * 0))
skips = of(calls(lambda u, x: torch.cat([u(x), x], 1)), calls(lambda u, x: u(x[:, :4]) + x[:, 4:]))
autocasts, casts = of(calls(autocast_to), linear), of(calls(half_inside), linear)
auxiliaries, attentions = of(linear, calls(auxiliary)), of(calls(attention), linear)
routes, groups = of(linear, calls(routed)), of(linear, calls(group_inside))
parameter_free = of(linear, nn.Tanh)


@seeded
def compiled() -> OwnModel:
    stage = calls(lambda u, x: torch.tanh(u(x)))()
    stage.compile(backend="aot_eager")
    return model(linear(), stage)


def steep_gradient(u: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Gives tanh(u(x)), with a gradient that is 65 times larger than it should be."""
    y = torch.tanh(u(x))
    return y + 64 * (y - y.detach())


steep = of(calls(steep_gradient), linear)


def _faint() -> OwnModel:
    whole = of(linear, linear)()
    return replace(whole, loss=lambda y, target: loss(y.float(), target.float()) * 2.0**-20)


faint = seeded(_faint)
