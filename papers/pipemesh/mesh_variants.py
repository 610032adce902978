"""PipeMesh-Z1, Z2 and Z3 (section VI-E, Figure 15): one level of ZeRO for all parameters.

PipeMesh shards a share of the gradients and of the parameters (``papers.pipemesh.pipemesh_queue``).
A variant shards nothing beyond the optimizer (Z1), all gradients too (Z2), or all parameters as
well (Z3), at the queue and the number of chunks of the system itself, "the same buffer queue size
for all systems". What it keeps more of the model it has less for activations, so it recomputes
more: "a simplified version of PipeMesh's algorithm", read as the least recomputed ticks with which
the queue fits the memory, with no size of the queue to choose beside.

A plan is built and checked like the system's own (``mesh_runs``), and its throughput is one over
the ticks of its schedule. ``MeshPlan.predicted`` is not asked: Eq. 3 to 5, which the shares of
PipeMesh make vanish, are no part of it, and a variant's collectives need not hide.

Not here: PipeMesh w/o ES, "the depth-first pipeline schedule" with ZeRO-3. The paper does not say
how that order holds a queue of q microbatches, nor when it gathers.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction

from bubbleproof.papers.pipemesh.mesh_numbers import MeshNumbers
from bubbleproof.papers.pipemesh.mesh_runs import MeshPlan
from bubbleproof.papers.pipemesh.pipemesh_queue import planned_queue
from bubbleproof.papers.pipemesh.recomputed_operations import least_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshVariant:
    """A level of ZeRO for all; ``gradients`` and ``sharded`` are psi_g / psi and psi_p / psi."""

    name: str
    gradients: int
    sharded: int


VARIANTS = (
    MeshVariant(name="PipeMesh-Z1", gradients=0, sharded=0),
    MeshVariant(name="PipeMesh-Z2", gradients=1, sharded=0),
    MeshVariant(name="PipeMesh-Z3", gradients=1, sharded=1),
)


def variant_plan(meshed: MeshNumbers, size: int, variant: MeshVariant) -> MeshPlan | None:
    """The variant's plan for a queue of ``size`` microbatches; None where nothing fits."""
    queue = replace(
        planned_queue(meshed.mesh, size),
        gradients=Fraction(variant.gradients),
        sharded=Fraction(variant.sharded),
    )
    table = least_ticks(meshed.operations, meshed.base)
    count = len(table)
    if meshed.budget is not None:
        room = queue.most_stored(meshed.budget, is_below=True)
        count = bisect_right(table, room, key=lambda one: one.stored)
    return meshed.plan(queue, table[count - 1]) if count else None
