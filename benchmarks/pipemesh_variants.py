"""Figure 15 of PipeMesh: Falcon 66B with one level of ZeRO for all parameters, beside ours.

Ours is what built schedules take: the system's own plan and the variants' of
``papers.pipemesh.mesh_variants``, all with the printed M and q and the memory of Megatron, which
the problem file has. *As printed* recomputes what section VI-E says a variant recomputes beside.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from benchmarks.paper_numbers import Number, number_table
from bubbleproof.papers.pipemesh.mesh_numbers import MeshNumbers
from bubbleproof.papers.pipemesh.mesh_runs import MeshPlan, checked
from bubbleproof.papers.pipemesh.mesh_variants import VARIANTS, variant_plan
from bubbleproof.papers.pipemesh.pipemesh_planner import printed_plan
from bubbleproof.papers.pipemesh.recomputed_operations import Selection
from bubbleproof.papers.planning.paper_choice import AcceptedSchedule

MIB = 1 << 20
LOSSES = {"PipeMesh-Z1": "6.0 %", "PipeMesh-Z2": "4.2 %", "PipeMesh-Z3": "2.7 %"}
ALWAYS = ("norm 1", "norm 2", "gelu")  # section VI-A: Falcon's norms and GeLU
BESIDE = {  # of a chunk
    "PipeMesh-Z1": {"query": 1, "up": 1},
    "PipeMesh-Z2": {"query": 2},
}
HEAD = """## Figure 15: one level of ZeRO for all

Falcon 66B with PipeMesh's M and q. What throughput each variant loses against PipeMesh, by the
ticks of built schedules with their collectives. Order and cause come out: Z1 and Z2 hold more of
the model, so they recompute more. The sizes fall short. The planner shards all parameters here
({share}), where section VI-A prints 86.9 %, so PipeMesh and Z3 are one plan, and nothing of Z3's
communication shows on links at their nominal bandwidth.
PipeMesh w/o ES (9.7 %) cannot be had: how the depth-first order holds q microbatches is not told.

"""


def section(meshed: MeshNumbers) -> str:
    """The part of the page."""
    own = own_plan(meshed)
    share = f"{100 * float(own.queue.sharded):.1f} %"
    return HEAD.format(share=share) + number_table(variant_numbers(meshed))


def own_plan(meshed: MeshNumbers) -> MeshPlan:
    """PipeMesh's own."""
    plan = printed_plan(meshed)
    assert plan is not None
    return plan


def variant_numbers(meshed: MeshNumbers) -> list[Number]:
    """The variants' losses, in per cent of PipeMesh's throughput."""
    own = own_plan(meshed)
    found = []
    for variant in VARIANTS:
        plan = variant_plan(meshed, own.queue.size, variant)
        assert plan is not None
        found.append(
            Number(
                name=f"{variant.name}, less throughput",
                printed=LOSSES[variant.name],
                ours=loss(own, plan),
                why=f"the least that fits: {told(plan)}",
            )
        )
        if variant.name in BESIDE:
            as_printed = with_beside(plan, BESIDE[variant.name])
            found.append(
                Number(
                    name=f"{variant.name}, as printed",
                    printed=LOSSES[variant.name],
                    ours=loss(own, as_printed),
                    why=f"section VI-E's: {told(as_printed)}{above(meshed, as_printed)}",
                )
            )
    return found


def with_beside(plan: MeshPlan, beside: dict[str, int]) -> MeshPlan:
    """The plan with all norms and GeLUs recomputed, and so many operations of each name beside."""
    left, stored = dict(beside), plan.selection.stored
    flags = []
    for one, was in zip(plan.operations, plan.selection.recomputed, strict=True):
        again = one.name in ALWAYS or left.get(one.name, 0) > 0
        left[one.name] = left.get(one.name, 0) - 1
        stored += one.size * (was - again)
        flags.append(again)
    chosen = Selection(recomputed=tuple(flags), stored=stored, cost=0)
    return replace(plan, selection=chosen, plain=plan.plain.with_changes(capacity=None))


def above(meshed: MeshNumbers, plan: MeshPlan) -> str:
    """By how much it exceeds the memory, by the planner's count; empty where it fits."""
    assert meshed.budget is not None
    more = plan.queue.total_bytes(plan.selection.stored) - meshed.budget
    return f" ({float(more / MIB):.1f} MiB above the memory)" if more > 0 else ""


def told(plan: MeshPlan) -> str:
    """What a chunk recomputes."""
    flags = zip(plan.operations, plan.selection.recomputed, strict=True)
    names = [one.name for one, again in flags if again]
    return ", ".join(f"{name} x{names.count(name)}" for name in dict.fromkeys(names)) or "nothing"


def loss(own: MeshPlan, plan: MeshPlan) -> Fraction:
    """Per cent of the own plan's throughput that a plan loses."""
    return 100 * (1 - Fraction(ticks_of(own), ticks_of(plan)))


@lru_cache
def ticks_of(plan: MeshPlan) -> int:
    """Of its built and checked schedule."""
    run = checked(plan)
    assert isinstance(run, AcceptedSchedule), run
    return run.ticks
