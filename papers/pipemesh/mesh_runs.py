"""PipeMesh's plans as pipelines with collectives, built and checked.

A plan (queue, what is recomputed) becomes a pipeline whose backwards take the recomputed ticks
beside, whose activations are what a pass stores, and whose collectives are tasks on NICs
(``theory.pipelines.sharding``): all parameters of a chunk are gathered before its first forwards,
all gradients reduced after its last backwards; ZeRO-3's share is gathered again and ZeRO-2's share
reduced after every operation. Static memory is what is never sharded.

``runs_as_printed`` holds Algorithm 1 as printed against the paper's own count: its order must end,
and take (M B + P - 1) C_comp where links take nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from bubbleproof.papers.pipemesh.pipemesh_queue import Queue
from bubbleproof.papers.pipemesh.recomputed_operations import RecomputedOperation, Selection
from bubbleproof.papers.planning.paper_choice import AcceptedSchedule, verified_run
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.pipemesh_order import literal_orders
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshPlan:
    """A queue and what is recomputed, of a plain pipeline whose chunks have ``operations``.

    ``candidate`` is the one that the plain pipeline is, ``beside`` static memory of a rank that is
    no model state.
    """

    plain: Pipeline
    candidate: Candidate | None
    operations: tuple[RecomputedOperation, ...]
    beside: int
    queue: Queue
    selection: Selection

    @property
    def recomputed_ticks(self) -> int:
        return self.selection.ticks(self.operations)

    @property
    def is_plain(self) -> bool:
        """Whether it is an order of the plain pipeline: nothing recomputed, nothing sharded."""
        mesh = self.queue.mesh
        return not (mesh.parameters or mesh.communication or any(self.selection.recomputed))

    @property
    def predicted(self) -> int:
        """T_iter as the paper counts it."""
        return self.queue.iteration_ticks(self.recomputed_ticks)


def built(plan: MeshPlan) -> Pipeline:
    """The pipeline of a plan."""
    if plan.is_plain:
        return plan.plain
    plain, queue, mesh = plan.plain, plan.queue, plan.queue.mesh
    zero = 3 if queue.sharded else 2 if queue.gradients else 1
    more = plan.recomputed_ticks
    p = plain.num_ranks
    static = plan.beside + ceil(_unsharded(queue) * mesh.parameters)
    each, others = Fraction(2 * mesh.parameters, mesh.num_chunks), 1 - Fraction(1, mesh.replicas)
    sharding = Sharding(
        zero=zero,
        gather=mesh.communication,
        reduce=mesh.communication,
        regather=ceil(mesh.communication * queue.sharded),
        rereduce=ceil(mesh.communication * queue.gradients),
        parameter=ceil(each * queue.sharded * (1 if mesh.own_shard else others)),
        gradient=ceil(each * queue.gradients),
    )
    pipeline = plain.with_changes(
        backward=tuple(tuple(t + more for t in row) for row in plain.ticks.backward.tolist()),
        activation=plan.selection.stored,
        static=tuple(static if stage < p else 0 for stage in range(plain.num_stages)),
    )
    return _family(queue).sharded(pipeline, sharding)


def _unsharded(queue: Queue) -> Fraction:
    """Bytes per parameter that lie on a rank all the time."""
    replicas = queue.mesh.replicas
    shares = (queue.gradients, queue.sharded)
    return Fraction(12, replicas) + sum(2 * (1 - s) + 2 * s / replicas for s in shares)


def _family(queue: Queue) -> PipeMesh:
    return PipeMesh(queue.enqueue, queue.dequeue)


def checked(plan: MeshPlan) -> AcceptedSchedule | str:
    """The plan's schedule, of Algorithm 1 repaired, or what is wrong with it."""
    pipeline = built(plan)
    candidate = plan.candidate if plan.is_plain else None
    return verified_run(pipeline, _family(plan.queue).program(pipeline), candidate)


def runs_as_printed(plan: MeshPlan) -> str | None:
    """What goes wrong with Algorithm 1 as printed; None where it runs as the paper counts."""
    queue, plain = plan.queue, plan.plain
    p, chunks = plain.num_ranks, plain.num_chunks
    even = plain.with_changes(latency=0, bandwidth=None, links=(), capacity=None, sharding=None)
    problem = even.problem()
    try:
        orders = literal_orders(p, chunks, queue.enqueue, queue.dequeue)
        schedule = left_shift(problem, Program.from_orders(orders))
    except IndexError:
        return f"q = {queue.size}: Algorithm 1 takes a pass where none is left"
    except UntimedProgram:
        return f"q = {queue.size}: Algorithm 1's order deadlocks"
    mesh = queue.mesh
    more = step_ticks(problem, schedule) - mesh.passes * (mesh.forward + mesh.backward)
    if more > 0:
        return f"q = {queue.size}: {more} more ticks of bubble than (P-1) C_comp"
    return None
