"""What PyTorch's pipeline runtime is told and asked: its table of a plan, and its order of sums.

The table has one row per rank, one cell per action, as ``_PipelineScheduleRuntime._load_csv`` reads
it. With SEND and RECV in it the runtime follows them; without, it places its own. It has no words
for slices, parts of W, recomputation, eviction, off-loading or replicated stages. Its losses go by
order of execution, so that microbatches must end in ascending order: any other order would give
wrong gradients without an error. What cannot be said is refused by name.

Two things differ from our ranks, neither in a term of a sum, only in the order of the terms:

- a split backward adds the gradients of *all* parameters in W, where our ranks add those outside of
  GEMMs (norms, biases) in I;
- the first stage's I computes nothing there, and its W does the whole backward.

So the bits are the same as ours wherever a stage's I and W go through its microbatches in one order
and no B comes between the I and the W of another (``reordered_stages`` names where they do not).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from bubbleproof.reference_exec.plans.accumulation import accumulation_orders
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, NONE, Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.pytorch_runtime import (
    SINCE,
    Version,
    completed,
    shown,
    torch_version,
)

COMPUTE_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.OVERLAP_F_B)


def has_communication(plan: ReplayPlan) -> bool:
    """Whether the plan's program has its SENDs and RECVs."""
    return bool(plan.program.actions.is_kind(*COMMUNICATION_KINDS).any())


def table_text(plan: ReplayPlan, *, is_completed: bool = True) -> str:
    """The table of a plan, with messages completed by what the runtime of this torch needs.

    Raises ``ValueError`` naming what a table cannot say.
    """
    require_sayable(plan)
    program = plan.program
    if is_completed and has_communication(plan):
        program = completed(program, this_version())
    orders = program.orders(plan.num_ranks)
    return "".join(",".join(map(str, order)) + "\n" for order in orders)


def this_version() -> Version:
    """That of the torch that is loaded. Raises ``ValueError`` where its tables are not known."""
    return torch_version(torch.__version__)


def require_sayable(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` unless PyTorch's runtime can be told the plan and gets it right."""
    if plan.spec.kind == "own" or plan.spec.vocabulary:
        raise ValueError(
            "PyTorch's runtime is compared on the reference models, without a vocabulary; "
            f"got kind {plan.spec.kind}, vocabulary {plan.spec.vocabulary}"
        )
    actions, version = plan.program.actions, this_version()
    newer = [kind for kind, since in SINCE.items() if since > version and kind in COMPUTE_KINDS]
    if actions.is_kind(*newer).any():
        label = actions.label(int(np.argmax(actions.is_kind(*newer))))
        raise ValueError(f"torch {shown(version)} knows no {newer[0].name}; got {label}")
    foreign = ~actions.is_kind(*COMPUTE_KINDS, *COMMUNICATION_KINDS)
    if foreign.any():
        said = ", ".join(kind.name for kind in COMPUTE_KINDS)
        label = actions.label(int(np.argmax(foreign)))
        raise ValueError(f"a PyTorch table says {said}, SEND and RECV; got {label}")
    if not plan.trains:
        raise ValueError(
            "PyTorch's runtime is compared on training steps; this runs forwards alone"
        )
    if (actions.part != NONE).any():
        label = actions.label(int(np.argmax(actions.part != NONE)))
        raise ValueError(f"a PyTorch table says whole weight gradients; got {label}")
    if plan.num_slices > 1:
        raise ValueError(f"a PyTorch table says whole microbatches; got {plan.num_slices} slices")
    if plan.is_bidirectional:
        raise ValueError(
            "a PyTorch table has each stage on one rank; got a bidirectional placement"
        )
    ends = [
        action.microbatch
        for action in actions
        if action.kind in (Kind.F, Kind.OVERLAP_F_B) and action.stage == plan.num_stages - 1
    ]
    if ends != sorted(ends):
        raise ValueError(
            "PyTorch's runtime numbers losses by order of execution: the forwards of stage "
            f"{plan.num_stages - 1} must ascend; got microbatches {ends}"
        )


def as_pytorch_adds(plan: ReplayPlan) -> ReplayPlan:
    """The same sums in PyTorch's order, for the oracle: each W is a whole backward, I adds nothing.

    >>> from bubbleproof.reference_exec.models.model_spec import ModelSpec
    >>> order = ["0F0", "0F1", "0I0", "0B1", "0W0"]
    >>> program = Program.from_orders([[Action.parse(text) for text in order]])
    >>> plan = ReplayPlan(spec=ModelSpec(), program=program, stage_ranks=(0,), num_microbatches=2)
    >>> [str(action) for action in as_pytorch_adds(plan).order(0)]
    ['0F0', '0F1', '0B1', '0B0']
    """
    orders = [
        [_whole(action) for action in order if action.kind is not Kind.I]
        for order in plan.program.orders(plan.num_ranks)
    ]
    return replace(plan, program=Program.from_orders(orders))


def reordered_stages(plan: ReplayPlan) -> tuple[int, ...]:
    """The stages whose norms and biases PyTorch's runtime sums in another order than our ranks.

    The first two terms of a sum may change places.
    """
    at_weight, at_input = accumulation_orders(plan)
    return tuple(
        sorted(
            stage
            for (stage, rank), order in at_weight.items()
            if _sum_order(order) != _sum_order(at_input[stage, rank])
        )
    )


def _whole(action: Action) -> Action:
    return replace(action, kind=Kind.B) if action.kind is Kind.W else action


def _sum_order(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [*sorted(order[:2]), *order[2:]]
