"""Anybody's pipeline step against the loop without a pipeline: gradients, losses, live bytes.

``same_step(step, model, batch, ranks=2)`` runs ``step(model, batch)`` in a process for each rank,
over gloo: ``model()`` makes the whole model there, the same on every rank; ``batch`` has (input,
target) of each microbatch. The step runs its stages however it likes (PyTorch's runtime, a loop of
one's own) and leaves the gradients of what its rank owns in ``.grad``; it may return the losses. It
is run twice, with an update between, and each time compared with the loop. What differs is named by
parameter and by what it is instead (``step_causes``).

>>> from bubbleproof.testing.same_step import same_step
>>> same_step(my_step, my_model, my_batch, ranks=4)  # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import torch

    from bubbleproof.testing.step_causes import RightStep
    from bubbleproof.testing.step_loop import Gradients, Loss, Microbatch
    from bubbleproof.testing.step_process import RankStep, Step

    Model = Callable[[], torch.nn.Module]


STARTUP_SECONDS = 60.0  # for processes to load torch


@dataclass(frozen=True, slots=True, kw_only=True)
class StepComparison:
    """What differs, one sentence each, and the live bytes: each rank's peak, and the loop's."""

    differences: tuple[str, ...]
    peaks: tuple[int, ...]
    loop_peak: int

    def __str__(self) -> str:
        if self.differences:
            return "\n".join(self.differences)
        peaks = " ".join(map(str, self.peaks))
        return f"the same as the loop; live bytes by rank {peaks}, of the loop {self.loop_peak}"


def same_step(
    step: Step,
    model: Model,
    batch: Sequence[Microbatch],
    *,
    ranks: int = 2,
    loss: Loss | None = None,
    gradients: Literal["mean", "sum"] = "mean",
    tolerance: float | None = None,
    timeout: float = 60.0,
) -> StepComparison:
    """Compare a step with the loop.

    Parameters
    ----------
    step, model, batch
        See the module's text. ``step`` and ``model`` are functions of a module, as processes must
        find them.
    ranks
        Processes.
    loss
        Of an output and a target, for the loop; the mean squared error by default.
    gradients
        ``mean`` where the step divides by the microbatches, ``sum`` where it does not.
    tolerance
        Of each gradient's largest entry; by default 64 times the rounding of its type.
    timeout
        Seconds.

    Raises
    ------
    AssertionError
        Where something differs, with every sentence; its ``comparison`` has the whole.
    ValueError
        For a step that ends with an error or not at all, naming the rank.
    """
    import torch

    microbatches = tuple((given, target) for given, target in batch)
    if ranks < 1 or not microbatches:
        raise ValueError(
            f"same_step needs ranks and microbatches, got {ranks} and {len(microbatches)}"
        )
    of_ranks = _run(step, model, microbatches, ranks, timeout)
    scale = 1 / len(microbatches) if gradients == "mean" else 1.0
    found: list[str] = []
    right_steps, loop_peak, losses = _right(model, microbatches, loss, scale)
    for number, (right, wanted) in enumerate(zip(right_steps, losses, strict=True)):
        told = [own[number] for own in of_ranks]
        within = tolerance
        if within is None:
            within = 64 * max(torch.finfo(each.dtype).eps for each in right.right.values())
        found += [f"step {number}: {line}" for line in _compared(told, right, wanted, within)]
        if found:  # what was updated with wrong gradients is wrong in every later step
            break
    found += _kept(of_ranks)
    comparison = StepComparison(
        differences=tuple(found),
        peaks=tuple(max(each.peak for each in own) for own in of_ranks),
        loop_peak=loop_peak,
    )
    if found:
        error = AssertionError(str(comparison))
        error.comparison = comparison  # type: ignore[attr-defined]  # for who catches it
        raise error
    return comparison


def _compared(
    told: list[RankStep], right: RightStep, losses: tuple[float, ...], tolerance: float
) -> list[str]:
    """What differs in one step over all ranks."""
    from bubbleproof.testing.step_causes import differences, same

    gathered: Gradients = {}
    lines = []
    for rank, own in enumerate(told):
        for name, gradient in own.gradients.items():
            if name in gathered and not same(gradient, gathered[name], tolerance):
                lines.append(f"{name}: rank {rank} has another gradient than a rank before it")
            gathered.setdefault(name, gradient)
    lines += differences(gathered, right, tolerance)
    returned = next((own.losses for own in reversed(told) if own.losses), ())
    return lines + _of_losses(returned, losses, tolerance)


def _kept(of_ranks: list[list[RankStep]]) -> list[str]:
    """Ranks that hold more after each step than after the one before: they leak activations."""
    grown = [own[-1].left - own[0].left for own in of_ranks]
    return [
        f"rank {rank} holds {more} bytes of activations more after each step"
        for rank, more in enumerate(grown)
        if more > 0
    ]


def _of_losses(found: tuple[float, ...], wanted: tuple[float, ...], tolerance: float) -> list[str]:
    """Losses are those of the microbatches, or one for all of them: their mean or their sum."""
    if not found:
        return []
    total = sum(wanted)
    choices = [wanted] if len(found) == len(wanted) else [(total,), (total / len(wanted),)]
    for each in choices:
        if len(each) == len(found) and all(
            abs(a - b) <= tolerance * max(abs(b), 1e-30) for a, b in zip(found, each, strict=True)
        ):
            return []
    return [f"losses are {_shown(found)}, the loop's {_shown(wanted)}"]


def _shown(losses: tuple[float, ...]) -> str:
    more = " ..." if len(losses) > 4 else ""
    return " ".join(f"{loss:.6g}" for loss in losses[:4]) + more


def _right(
    model: Model, batch: tuple[Microbatch, ...], loss: Loss | None, scale: float
) -> tuple[list[RightStep], int, list[tuple[float, ...]]]:
    """The loop's steps, with what tells of causes."""
    import torch

    from bubbleproof.testing.step_causes import RightStep
    from bubbleproof.testing.step_loop import loop_step
    from bubbleproof.testing.step_process import RATE, STEPS

    measured = torch.nn.functional.mse_loss if loss is None else loss
    made, losses, peak = model(), [], 0
    steps: list[RightStep] = []
    older: dict[str, torch.Tensor] = {}
    for _ in range(STEPS):
        now = loop_step(made, batch, measured)
        right = now.total(scale)
        stale = {}
        for part in dict.fromkeys(name.partition(".")[0] for name in older):
            with _parameters_of(made, older, part):
                stale[part] = loop_step(made, batch, measured).total(scale)
        parts = [{n: g * scale for n, g in each.items()} for each in now.parts]
        before = steps[-1].right if steps else {}
        steps.append(RightStep(right=right, parts=parts, before=before, stale=stale))
        losses.append(now.losses)
        peak = max(peak, now.peak)
        older = {name: each.detach().clone() for name, each in made.named_parameters()}
        with torch.no_grad():
            for name, each in made.named_parameters():
                if name in right:
                    each.sub_(right[name], alpha=RATE)
    return steps, peak, losses


class _parameters_of:  # noqa: N801 - a context, used as a function
    """The model with the parameters of one part as they were."""

    def __init__(self, model: torch.nn.Module, older: dict[str, torch.Tensor], part: str) -> None:
        self._own = {n: p for n, p in model.named_parameters() if n.partition(".")[0] == part}
        self._now = {name: each.detach().clone() for name, each in self._own.items()}
        self._older = older

    def __enter__(self) -> None:
        for name, each in self._own.items():
            each.data.copy_(self._older[name])

    def __exit__(self, *_: object) -> None:
        for name, each in self._own.items():
            each.data.copy_(self._now[name])


def _run(
    step: Step, model: Model, batch: tuple[Microbatch, ...], ranks: int, timeout: float
) -> list[list[RankStep]]:
    """What each rank's steps left. Raises ``ValueError`` naming the rank that failed first."""
    from bubbleproof.reference_exec.drivers.gloo_server import server_context
    from bubbleproof.testing.step_process import StepSeat, run_steps

    context = server_context()
    lines, processes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            seat = StepSeat(
                rank=rank,
                ranks=ranks,
                rendezvous=str(Path(folder) / "meet"),
                timeout=timeout,
                step=step,
                model=model,
                batch=batch,
            )
            process = context.Process(target=run_steps, args=(seat, theirs), daemon=True)
            process.start()
            theirs.close()
            lines.append(ours)
            processes.append(process)
        try:
            return _answers(lines, timeout)
        finally:
            for line in lines:
                line.close()
            for process in processes:
                process.join(5)
                if process.is_alive():
                    process.kill()


def _answers(lines: list[Connection], timeout: float) -> list[list[RankStep]]:
    """What each process sent, in rank order."""
    from multiprocessing.connection import wait

    found: dict[int, list[RankStep]] = {}
    end = monotonic() + STARTUP_SECONDS + timeout
    while len(found) < len(lines):
        open_lines = {line: rank for rank, line in enumerate(lines) if rank not in found}
        ready = wait(list(open_lines), max(0.0, end - monotonic()))
        if not ready:
            still = ", ".join(str(rank) for rank in open_lines.values())
            raise ValueError(
                f"same_step: ranks {still} did not end in {timeout:g} seconds; a step that hangs "
                "is told by `bubbleproof verify` of its table, or give more timeout"
            )
        for line in ready:
            rank = open_lines[line]  # type: ignore[index]  # one of those waited for
            try:
                told = lines[rank].recv()
            except EOFError:
                told = "its process ended"
            if isinstance(told, str):
                raise ValueError(f"same_step: the step failed on rank {rank}: {told}")
            found[rank] = told
    return [found[rank] for rank in range(len(lines))]
