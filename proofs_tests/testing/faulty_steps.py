"""Pipeline steps of two ranks by hand, right and with one mistake each, for ``test_same_step``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import distributed

Microbatch = tuple[torch.Tensor, torch.Tensor]
NAMES = ("first", "second")
WIDTH = 4
_OLD: dict[str, torch.Tensor] = {}
_KEPT: list[torch.Tensor] = []


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    whole = torch.nn.Sequential()
    for name in NAMES:
        whole.add_module(name, torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()))
    return whole.double()


def batch(microbatches: int = 3) -> list[Microbatch]:
    draw = torch.Generator().manual_seed(1)
    shape = (2, WIDTH)
    return [
        (
            torch.randn(shape, generator=draw, dtype=torch.float64),
            torch.randn(shape, generator=draw, dtype=torch.float64),
        )
        for _ in range(microbatches)
    ]


def _stage(whole: torch.nn.Module, given: Sequence[Microbatch], divide: float) -> list[float]:
    """All forwards of this rank's stage, then all backwards, gradients divided by ``divide``."""
    rank = distributed.get_rank()
    part = whole.get_submodule(NAMES[rank])
    losses: list[float] = []
    held = []
    for inputs, target in given:
        if rank == 0:
            output = part(inputs)
            distributed.send(output.detach(), 1)
            held.append((inputs, output))
        else:
            came = torch.empty_like(inputs)
            distributed.recv(came, 0)
            came.requires_grad_()
            loss = torch.nn.functional.mse_loss(part(came), target)
            losses.append(float(loss.detach()))
            held.append((came, loss / divide))
    for into, out in held:
        if rank == 1:
            out.backward()
            assert into.grad is not None
            distributed.send(into.grad, 0)
        else:
            came = torch.empty_like(out)
            distributed.recv(came, 1)
            out.backward(came)
    return losses


def right(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    return _stage(whole, given, len(given))


def undivided(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    return _stage(whole, given, 1)


def divided_twice(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    return _stage(whole, given, len(given) ** 2)


def first_is_dropped(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    return _stage(whole, given[1:], len(given))


def last_is_done_twice(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    return _stage(whole, [*given, given[-1]], len(given))


def stale(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    """The second stage computes with what its parameters were when it began first."""
    part = whole.get_submodule(NAMES[1])
    now = {name: each.detach().clone() for name, each in part.named_parameters()}
    _OLD.update({name: _OLD.get(name, each) for name, each in now.items()})
    for name, each in part.named_parameters():
        each.data.copy_(_OLD[name])
    losses = _stage(whole, given, len(given))
    for name, each in part.named_parameters():
        each.data.copy_(now[name])
    return losses


def keeping(whole: torch.nn.Module, given: Sequence[Microbatch]) -> list[float]:
    """A graph of the first rank lives on."""
    if distributed.get_rank() == 0:
        _KEPT.append(whole.get_submodule(NAMES[0])(given[0][0]))
    return _stage(whole, given, len(given))


def failing(whole: torch.nn.Module, given: Sequence[Microbatch]) -> None:
    raise RuntimeError(f"{len(list(whole.children()))} stages, {len(given)} microbatches")
