"""A process of ``same_step``: one rank, which runs the step that is judged, twice.

Between the steps every rank subtracts ``RATE`` times its gradients from its parameters, so that the
second step shows whether a stage computes with parameters that it should not have any more.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

import torch
import torch.distributed

from bubbleproof.testing.step_loop import Gradients, LiveBytes, Microbatch, live_bytes

RATE = 0.125
STEPS = 2
Step = Callable[[torch.nn.Module, Sequence[Microbatch]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStep:
    """What one step left on one rank: gradients, losses that it returned, and live bytes."""

    gradients: Gradients
    losses: tuple[float, ...]
    peak: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepSeat:
    """One rank's place, and what it runs."""

    rank: int
    ranks: int
    rendezvous: str
    timeout: float
    step: Step
    model: Callable[[], torch.nn.Module]
    batch: tuple[Microbatch, ...]


def run_steps(seat: StepSeat, parent: Connection) -> None:
    """Run the steps and send what they left: a list of ``RankStep``, or a text where one failed."""
    torch.set_num_threads(1)
    gc.freeze()  # what is here now stays; to look through it would cost each step a while
    os.environ |= {"RANK": str(seat.rank), "LOCAL_RANK": str(seat.rank)}
    os.environ |= {"WORLD_SIZE": str(seat.ranks)}
    try:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{seat.rendezvous}",
            rank=seat.rank,
            world_size=seat.ranks,
            timeout=timedelta(seconds=seat.timeout),
        )
        model = seat.model()
        counted = live_bytes(model)
        parent.send([_one_step(seat, model, counted) for _ in range(STEPS)])
    except Exception as error:  # the user's step, whatever it raises
        last = traceback.extract_tb(error.__traceback__)[-1]
        parent.send(f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})")
    with suppress(EOFError, OSError):
        parent.recv()  # until the parent hangs up: connections may end then


def _one_step(seat: StepSeat, model: torch.nn.Module, counted: LiveBytes) -> RankStep:
    with counted.hooks():
        returned = seat.step(model, seat.batch)
    losses = _losses(returned)
    del returned
    gc.collect()
    gradients = {
        name: each.grad.detach().clone()
        for name, each in model.named_parameters()
        if each.grad is not None
    }
    with torch.no_grad():
        for each in model.parameters():
            if each.grad is not None:
                each.sub_(each.grad, alpha=RATE)
                each.grad = None
    return RankStep(gradients=gradients, losses=losses, peak=counted.peak, left=counted.now)


def _losses(returned: object) -> tuple[float, ...]:
    """The losses that a step returned, if it did: numbers, tensors, or a list of them."""
    if returned is None:
        return ()
    if isinstance(returned, torch.Tensor):
        return tuple(returned.detach().double().flatten().tolist())
    if isinstance(returned, list | tuple):
        return tuple(loss for each in returned for loss in _losses(each))
    return (float(returned),) if isinstance(returned, int | float) else ()
