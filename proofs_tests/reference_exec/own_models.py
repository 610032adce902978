"""Users' models for tests: one that replays, and for each rule one that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel

SHAPE = (3, 4)


def batch(microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of SHAPE."""
    generator = torch.Generator().manual_seed(microbatch)
    drawn = torch.randn(2, *SHAPE, generator=generator)
    return drawn[0], drawn[1]


def batch_of_step(microbatch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of SHAPE, others in each optimizer step."""
    return batch(100 * step + microbatch)


def batch_that_grows(microbatch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One row more in each optimizer step."""
    x, target = batch(microbatch)
    return torch.cat([x, x[:step]]), torch.cat([target, target[:step]])


def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean squared error."""
    return (y - target).square().mean()


def model(*stages: nn.Module) -> OwnModel:
    return OwnModel(stages=stages, batch=batch, loss=loss)


def seeded(build: Callable[[], OwnModel]) -> Callable[[], OwnModel]:
    """The factory with torch's generator seeded for as long as it runs."""

    def factory() -> OwnModel:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(3)  # as manual_seed, without looking at devices
            return build()

    return factory


def of(*stages: Callable[[], nn.Module]) -> Callable[[], OwnModel]:
    """A seeded factory of a model of these stages, each built anew."""
    return seeded(lambda: model(*(stage() for stage in stages)))


def linear() -> nn.Module:
    """A linear of four."""
    return nn.Linear(4, 4)


class Reused(nn.Module):
    """A linear that is called once, and one that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.once, self.twice = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.twice(torch.tanh(self.twice(torch.tanh(self.once(x)))))
        return y


class Unused(nn.Module):
    """A linear that no forward uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.idle = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.used(x)
        return y


@seeded
def plain() -> OwnModel:
    return model(nn.Linear(4, 4), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)))


@seeded
def stepwise() -> OwnModel:
    return replace(plain(), batch=batch_of_step)


@seeded
def growing() -> OwnModel:
    return replace(plain(), batch=batch_that_grows)


def restless() -> OwnModel:
    return model(nn.Linear(4, 4), nn.Linear(4, 4))


class Constant(nn.Module):
    """An output that does not depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(SHAPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.values.to(x.dtype) * 2


@seeded
def cut_off() -> OwnModel:
    return replace(plain(), loss=lambda y, target: loss(y, target).detach())


@seeded
def mismatched_loss() -> OwnModel:
    return replace(plain(), loss=lambda y, target: loss(y[:2], target))


@seeded
def without_loss() -> OwnModel:
    return replace(plain(), loss=None)  # type: ignore[arg-type]  # wrong on purpose


@seeded
def without_modules() -> OwnModel:
    return replace(plain(), stages=[nn.Linear(4, 4), 3])  # wrong on purpose


@seeded
def lists() -> OwnModel:
    given: list[object] = [[1.0], torch.ones(SHAPE)]
    return replace(plain(), batch=lambda _: given)  # type: ignore[arg-type, return-value]  # wrong on purpose


@seeded
def no_data() -> OwnModel:
    return replace(plain(), batch=lambda j: batch(1 // j))


def failing() -> OwnModel:
    raise RuntimeError("no such weights")


def leaving() -> OwnModel:
    raise SystemExit(7)


def nothing() -> int:
    return 0


class Shifted(nn.Module):
    """exp(linear), and -0.0 times a parameter: positive gradients give that nothing but -0.0."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.shift = nn.Linear(4, 4), nn.Parameter(torch.ones(SHAPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.exp(self.linear(x)) + -0.0 * self.shift
        return y


@seeded
def negative_zeros() -> OwnModel:
    return replace(model(nn.Linear(4, 4), Shifted()), loss=lambda y, _: y.sum())


@seeded
def four_stages() -> OwnModel:
    linears = [nn.Linear(4, 4), nn.Linear(4, 4)]
    return replace(model(*linears, Shifted(), Shifted()), loss=lambda y, _: y.sum())


class Convolved(nn.Module):
    """A convolution over the rows, whose two gradients come from one operation."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Conv1d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.kernel(x[None])[0]
        return y.clone()


@seeded
def alike() -> OwnModel:
    return replace(plain(), batch=lambda _: batch(0))


@seeded
def twins() -> OwnModel:
    return replace(plain(), batch=lambda j: (batch(min(j, 1))[0], batch(j)[1]))


misfit = of(lambda: nn.Linear(4, 5), linear)
counted = of(lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)), linear)
paired = of(linear, lambda: nn.RNN(4, 4))
reused, idle, constant = of(Reused, Reused), of(linear, Unused), of(linear, Constant)
convolved, normed = of(Convolved, linear), of(lambda: nn.LayerNorm(4), linear)


@seeded
def zero_head() -> OwnModel:
    """Begins with a last layer of zeros, so that nothing goes back through it."""
    head = nn.Linear(4, 4)
    nn.init.zeros_(head.weight)
    return model(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), head))


class Fading(nn.Module):
    """A linear whose gradients are less than the least number above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x) * 1e-200 * 1e-200  # at once it would be times 0
        return y


fading = of(linear, Fading)
