"""What each process of the second executor runs: one rank of PyTorch's own pipeline runtime.

The rank reads its table from a file, as PyTorch's users would have it do, and runs one step with
the model, data and loss of a replay; of our own runtime nothing is used. A replay's losses add up
to that of the batch, so that gradients are not to be scaled (``scale_grads=False``); what becomes
of them where they are is the business of ``work_scaled``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any  # arguments of torch's, each of its own type

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

from bubbleproof.reference_exec.drivers.gloo_worker import ParentLine, Seat, join_group
from bubbleproof.reference_exec.drivers.rank_report import RankReport
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.reference import (
    Named,
    Stage,
    gradients_of,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.pytorch.table import (
    has_communication,
    table_text,
    this_version,
)
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.pipelines.programs.pytorch_runtime import OUTPUTS_SINCE, SCALES_SINCE


class _PlainStage(nn.Module):
    """A stage of a reference model, called with its input alone."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.stage(x, None)
        return y


class _Watched(list[_Action]):
    """A rank's actions; while they are run, the parent is told the plan's action they are at.

    PyTorch's own additions (collectives, messages where it places them) are not the plan's.
    """

    def __init__(self, actions: list[_Action], seat: Seat, line: ParentLine) -> None:
        super().__init__(actions)
        self._line = line
        self._expected = [str(action) for action in seat.plan.order(seat.rank)]

    def __iter__(self) -> Iterator[_Action]:
        done = 0
        for action in super().__iter__():
            self._line.at(done)
            yield action
            done += done < len(self._expected) and str(action) == self._expected[done]
        self._line.at(done)

    def __deepcopy__(self, memo: dict[int, object]) -> list[_Action]:
        return self[:]  # PyTorch copies the schedule when it reports an error


def work(seat: Seat, line: ParentLine) -> RankReport:
    """Run one rank in a process group of the plan's own, which is there when this returns."""
    return _reported(seat, line, RuntimeRequest())


def work_scaled(seat: Seat, line: ParentLine) -> RankReport:
    """The same with ``scale_grads=True``, PyTorch's default: gradients are divided by m."""
    return _reported(seat, line, RuntimeRequest(is_scaled=True))


def work_scaled_as_it_stands(seat: Seat, line: ParentLine) -> RankReport:
    """The same on a table with the plan's own rows alone, without REDUCE_GRAD and waits."""
    return _reported(seat, line, RuntimeRequest(is_scaled=True, is_completed=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRequest:
    """How PyTorch's runtime is asked to run a plan."""

    is_scaled: bool = False
    is_completed: bool = True
    returns_outputs: bool = False


def _reported(seat: Seat, line: ParentLine, asked: RuntimeRequest) -> RankReport:
    logging.disable()  # the runtime logs its whole schedule beside the error that it raises
    try:
        return _run(seat, line, asked)
    except Exception as error:  # whatever it is, the parent has to hear of it, and where it was
        return RankReport.failed(error, _place(seat, line))


def _place(seat: Seat, line: ParentLine) -> str:
    order, position = seat.plan.order(seat.rank), line.position[0]
    return f" at {order[position]}" if 0 <= position < len(order) else ""


def _run(seat: Seat, line: ParentLine, asked: RuntimeRequest) -> RankReport:
    join_group(seat, timedelta(seconds=seat.timeout))
    rank = TorchRank(seat, line, asked)
    line.ready()
    losses = rank.step()
    result = RankResult(
        gradients=rank.gradients(),
        losses={(0, j, 0): loss.detach() for j, loss in enumerate(losses)},
        live_bytes=(),
    )
    return RankReport(result=result)


class TorchRank:
    """One rank of PyTorch's runtime with its model, data and table, ready for a step.

    Precondition: the process group is there.
    """

    def __init__(
        self, seat: Seat, line: ParentLine | None = None, asked: RuntimeRequest | None = None
    ) -> None:
        plan = seat.plan
        self._modules = {stage: Stage(plan.spec, stage) for stage in plan.stages_of(seat.rank)}
        self._rank, self._asked = seat.rank, asked or RuntimeRequest()
        self._runtime = _runtime(seat, self._modules, self._asked)
        if line is not None:
            self.wrap_actions(lambda actions: _Watched(actions, seat, line))
        self._inputs = _data(plan, self._modules)
        self._target = _targets(plan, self._modules)

    @property
    def actions(self) -> list[_Action]:
        """What the runtime does in a step, with what it adds to the table."""
        found: list[_Action] = self._runtime.pipeline_order_with_comms[self._rank]
        return found

    def wrap_actions(self, wrapped: Callable[[list[_Action]], list[_Action]]) -> None:
        """Let the runtime go through these in their place."""
        self._runtime.pipeline_order_with_comms[self._rank] = wrapped(self.actions)

    def parameter_gradients(self) -> list[torch.Tensor | None]:
        """Those that there are by now."""
        return [each.grad for module in self._modules.values() for each in module.parameters()]

    def step(self) -> list[torch.Tensor]:
        """One training step; the losses of the microbatches, on the last stage's rank."""
        losses: list[torch.Tensor] = []
        wanted: dict[str, Any] = {}
        if this_version() >= OUTPUTS_SINCE:
            wanted["return_outputs"] = self._asked.returns_outputs
        self._runtime.step(*self._inputs, target=self._target, losses=losses, **wanted)
        return losses

    def gradients(self) -> Named:
        """The gradients of the steps since they were last dropped, summed."""
        return gradients_of(self._modules)

    def drop_gradients(self) -> None:
        """Forget them."""
        for module in self._modules.values():
            module.zero_grad(set_to_none=True)


def _runtime(
    seat: Seat, modules: dict[int, Stage], asked: RuntimeRequest
) -> _PipelineScheduleRuntime:
    """PyTorch's runtime with the table loaded."""
    plan = seat.plan
    example = torch.empty(plan.spec.shape, dtype=DTYPES[plan.spec.dtype])
    stages = [
        PipelineStage(
            _PlainStage(module),
            stage,
            plan.num_stages,
            torch.device("cpu"),
            input_args=example.clone().requires_grad_(stage > 0),
            output_args=example.clone().requires_grad_(),
        )
        for stage, module in modules.items()
    ]

    def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return microbatch_loss(plan.spec, y, target, plan.num_microbatches)

    runtime = _PipelineScheduleRuntime(  # type: ignore[no-untyped-call]  # torch leaves it untyped
        stages, plan.num_microbatches, loss_fn=loss, **_of_version(plan, asked)
    )
    path = Path(seat.rendezvous).with_name(f"table-{seat.rank}.csv")
    path.write_text(table_text(plan, is_completed=asked.is_completed), encoding="ascii")
    runtime._load_csv(str(path), "compute_comms" if has_communication(plan) else "compute_only")
    return runtime


def _of_version(plan: ReplayPlan, asked: RuntimeRequest) -> dict[str, Any]:
    """Arguments that not all versions have: before 2.7 nothing is scaled, and ranks are told."""
    if this_version() < SCALES_SINCE:
        return {"stage_index_to_group_rank": dict(enumerate(plan.stage_ranks))}
    return {"scale_grads": asked.is_scaled}


def _data(plan: ReplayPlan, modules: dict[int, Stage]) -> tuple[torch.Tensor, ...]:
    """The whole batch where the first stage is; PyTorch cuts it into microbatches."""
    if 0 not in modules:
        return ()
    return (torch.cat([microbatch_input(plan.spec, j) for j in range(plan.num_microbatches)]),)


def _targets(plan: ReplayPlan, modules: dict[int, Stage]) -> torch.Tensor | None:
    if plan.num_stages - 1 not in modules:
        return None
    return torch.cat([microbatch_target(plan.spec, j) for j in range(plan.num_microbatches)])
