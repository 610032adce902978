"""The second executor: PyTorch's own pipeline runtime on the same program, compared bit for bit.

``run_torch_runtime`` runs a plan by ``torch.distributed.pipelining``, a gloo process per rank.
``compare_with_torch_runtime`` replays a schedule with our ranks first, which verifies it and shows
that they add what the order-matched oracle adds, and compares PyTorch's gradients with both that
oracle and one in PyTorch's order of sums (``torch_table`` says where the two differ, and what a
table cannot say).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from bubbleproof.facts import Fact, FactSource, verdict
from bubbleproof.reference_exec.bits import are_equal, same_bits
from bubbleproof.reference_exec.drivers.gloo import run_gloo
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import replay_plan
from bubbleproof.reference_exec.plans.replay_limits import require_time_limit
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.pytorch import worker as torch_worker
from bubbleproof.reference_exec.pytorch.table import (
    as_pytorch_adds,
    reordered_stages,
    require_sayable,
)
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify.communication.matching import compute_part
from bubbleproof.verify.communication.semantics import Semantics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorchRuntimeReport(FactSource):
    """What PyTorch's runtime made of a program.

    ``replay_ok`` says that our own replay kept all its promises; ``gradients_equal`` and
    ``losses_equal`` that PyTorch's equal ours bit for bit, ``gradients_as_added`` that they equal
    each microbatch alone, summed in PyTorch's order. ``differing`` names the parameters, by stage,
    that do not have our bits; they can only be norms and biases of the ``reordered_stages``.
    ``placed_by`` is who placed SEND and RECV; ``seconds`` that of the processes, start included.
    """

    ranks: int
    stages: int
    microbatches: int
    model: str
    dtype: str
    placed_by: str
    replay_ok: bool
    gradients_equal: bool
    gradients_as_added: bool
    losses_equal: bool
    differing: tuple[str, ...]
    reordered_stages: tuple[int, ...]
    seconds: float
    torch_version: str

    @property
    def ok(self) -> bool:
        """Whether every bit is ours, or explained by PyTorch's order of sums."""
        explained = self.gradients_equal or bool(self.reordered_stages)
        return self.replay_ok and self.gradients_as_added and self.losses_equal and explained

    def facts(self) -> list[Fact]:
        """What was expected of our ranks and of PyTorch's runtime, and what was found."""
        where = f"PyTorch {self.torch_version}, {self.ranks} ranks, {self.model} {self.dtype}"
        ours = "equal" if self.gradients_equal else f"{len(self.differing)} differ"
        if not self.gradients_equal and self.reordered_stages:
            stages = " ".join(map(str, self.reordered_stages))
            ours += f": norms and biases of stages {stages} are summed in another order"
        as_added, losses = (
            "equal" if is_equal else "different"
            for is_equal in (self.gradients_as_added, self.losses_equal)
        )
        bits = "equal bit for bit"
        alone = f"{bits} to each microbatch alone, summed in PyTorch's order"
        kept = "kept" if self.replay_ok else "broken"
        explained = self.gradients_equal or bool(self.reordered_stages)
        cells = (
            ("our own replay", "keeps its promises", kept, self.replay_ok),
            (f"gradients ({where})", f"{bits} to ours, where sums have our order", ours, explained),
            ("gradients", alone, as_added, self.gradients_as_added),
            ("losses", bits, losses, self.losses_equal),
        )
        return [
            Fact(label=label, wanted=wanted, told=told, verdict=verdict(holds))
            for label, wanted, told, holds in cells
        ]

    def to_dict(self) -> dict[str, object]:
        """All fields and ``ok`` for JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        head = f"PyTorch's runtime, {self.ranks} ranks, {self.microbatches} microbatches"
        if self.gradients_equal and self.ok:
            return f"{head}: the same bits as ours"
        kind = "sums in another order" if self.ok else "wrong"
        return f"{head}: {kind}: {', '.join(self.differing) or 'losses or replay'}"


def run_torch_runtime(
    plan: ReplayPlan, *, timeout: float = 60.0, progress: Callable[[str], None] | None = None
) -> list[RankResult]:
    """Run a plan by PyTorch's runtime. Results in rank order, without live bytes.

    A program without SEND and RECV gets PyTorch's own. The plan is not verified here. Raises
    ``ValueError`` for what a table cannot say, ``RankFailed`` where a process ends early.
    """
    require_sayable(plan)
    return run_gloo(plan, timeout=timeout, progress=progress, worker=torch_worker.work)


def compare_with_torch_runtime(
    pipeline: Pipeline,
    schedule: Schedule,
    spec: ModelSpec,
    *,
    program: Program | None = None,
    is_lowered_by_torch: bool = False,
    semantics: Semantics | str = Semantics.BUFFERED,
    timeout: float = 60.0,
    progress: Callable[[str], None] | None = None,
) -> TorchRuntimeReport:
    """Replay a schedule with our ranks and with PyTorch's runtime, and compare all bits.

    ``program`` is the lowered one (``theory.pipelines.programs.lowering.lower`` by default);
    ``is_lowered_by_torch`` lets PyTorch place SEND and RECV itself. ``semantics`` is what the
    program is verified under; on gloo PyTorch's sends do not wait either. Raises as ``replay``
    does, and ``ValueError`` for what a table cannot say.
    """
    require_time_limit(timeout)
    lowered = lower(pipeline.problem(), schedule) if program is None else program
    plan = replay_plan(replicated(pipeline, schedule, spec), lowered)
    require_sayable(plan)
    ours = replay(pipeline, schedule, spec, ReplayOptions(semantics=semantics), program=lowered)
    told = replace(plan, program=compute_part(lowered)) if is_lowered_by_torch else plan
    begun = time.perf_counter()
    results = run_torch_runtime(told, timeout=timeout, progress=progress)
    seconds = time.perf_counter() - begun
    gradients = summed_replicas(results)
    losses = {key[1:]: loss for result in results for key, loss in result.losses.items()}
    with single_threaded():
        expected, expected_losses = order_matched(plan)
        as_added, _ = order_matched(as_pytorch_adds(plan))
    return TorchRuntimeReport(
        ranks=plan.num_ranks,
        stages=plan.num_stages,
        microbatches=plan.num_microbatches,
        model=spec.kind,
        dtype=spec.dtype,
        placed_by="PyTorch" if is_lowered_by_torch else "the program",
        replay_ok=ours.ok,
        gradients_equal=are_equal(gradients, expected),
        gradients_as_added=are_equal(gradients, as_added),
        losses_equal=are_equal(losses, expected_losses),
        differing=_differing(gradients, expected),
        reordered_stages=reordered_stages(plan),
        seconds=seconds,
        torch_version=torch.__version__,
    )


def _differing(found: Gradients, expected: Gradients) -> tuple[str, ...]:
    return tuple(
        f"stage {key[0]} {key[1]}"
        for key in sorted(expected)
        if key not in found or not same_bits(found[key], expected[key])
    )
