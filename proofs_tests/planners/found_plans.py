"""A space that leaves gaps; plans that a test expects to be found, or wants the value of."""

from __future__ import annotations

from bubbleproof.planners import CandidateResult, NoPlanFound, Plan, SolvedCandidate
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

# Uneven stages: a little work leaves gaps between values and bounds.
GAPS = PlanSpace(
    pipeline=Pipeline(
        num_ranks=4,
        num_microbatches=12,
        forward=(6, 8, 6, 8),
        backward=20,
        latency=1,
        input_backward=10,
        weight_backward=(10, 8, 10, 8),
        activation=2,
        capacity=6,
    ),
    chunks=(1, 2),
    backward=("whole", "split"),
)


def found_plan(found: Plan | NoPlanFound) -> Plan:
    """The plan. Precondition: there is one."""
    assert isinstance(found, Plan), found
    return found


def value_found(found: Plan | NoPlanFound | CandidateResult) -> int | None:
    """What a plan or a candidate takes; None where it has no schedule."""
    return found.value if isinstance(found, Plan | SolvedCandidate) else None
