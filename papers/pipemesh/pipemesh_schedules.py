"""What PipeMesh's claims measure on schedules.

Parameters: ``p`` ranks (the paper's P), ``v`` chunks per rank (M), ``m`` microbatches (B), ``R``
and ``S`` enqueue and dequeue operations, ``e`` and ``d`` the *first* elements of their sequences,
of which the others share the rest as equally as can be (one operation takes all m, and without R
and S there are at most two). Where a case has ``q`` in their place, its sequences are those that
the planner of section IV-B makes of a queue of q. Schedules are those of Algorithm 1 *repaired*
(``families.pipemesh_order``) unless a function says ``printed``: as printed it does not always end,
and where it does both give one order. ``tF`` ``tB`` ticks of a pass (1 and 2 unless given), ``c``
ticks of a message (C_PP), ``C`` ticks of a collective of one chunk (C_DP). Ranks count from 0, so
rank r is the paper's stage i = r + 1.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor

from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import last_end, on_pipeline
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue, QueueNumbers, planned_queue
from bubbleproof.theory.families import member
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.pipemesh_order import buffer_size, literal_orders
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift

Sequences = tuple[tuple[int, ...], tuple[int, ...]]
Shape = tuple[int, int, int, Sequences, int, int]  # p, v, m, sequences, ticks of either pass


@lru_cache(maxsize=4096)
def queue_of(p: int, v: int, m: int, q: int, ticks: int) -> Queue:
    """What the planner makes of a queue of q, at C_fwd = 1, C_bwd = 2 and two replicas."""
    mesh = QueueNumbers(
        num_ranks=p,
        num_chunks=v,
        num_microbatches=m,
        replicas=2,
        parameters=0,
        forward=1,
        backward=2,
        communication=ticks,
    )
    return planned_queue(mesh, q)


def queue(at: Params) -> Queue:
    return queue_of(at["p"], at["v"], at["m"], at["q"], at.get("C", 0))


def sequences(at: Params) -> Sequences:
    """(e, d) with R and S elements. Precondition: each has at least one microbatch."""
    if "q" in at:
        return queue(at).enqueue, queue(at).dequeue
    return _parts(at["e"], at["m"], at.get("R", 2)), _parts(at["d"], at["m"], at.get("S", 2))


def _parts(first: int, total: int, count: int) -> tuple[int, ...]:
    return (first, *forms.equal_parts(total - first, count - 1 if first < total else 0))


def is_filled(at: Params) -> bool:
    """Every element of both sequences is at least p, section III-B's requirement."""
    return max(at["e"], at["d"]) <= at["m"] and min(map(min, sequences(at))) >= at["p"]


def family(at: Params) -> PipeMesh:
    return PipeMesh(*sequences(at))


def _shape(at: Params) -> Shape:
    """What a schedule without collectives and latencies depends on."""
    return at["p"], at["v"], at["m"], sequences(at), at.get("tF", 1), at.get("tB", 2)


def mesh(at: Params) -> FamilyMember:
    return _member_of(_shape(at))


@lru_cache(maxsize=64)
def _member_of(shape: Shape) -> FamilyMember:
    p, v, m, (e, d), forward, backward = shape
    return member("pipemesh", p=p, m=m, v=v, e=e, d=d, tF=forward, tB=backward)


def measured(at: Params) -> Measures:
    return _measured_of(_shape(at))


@lru_cache(maxsize=4096)  # numbers only: the schedules themselves are not kept
def _measured_of(shape: Shape) -> Measures:
    made = _member_of(shape)
    return measure(made.problem, made.schedule)


def bubble(at: Params) -> int:
    """Ticks of the makespan in which a rank computes nothing."""
    return max(measured(at).idle_ticks)


def expected_forwards(at: Params) -> int:
    """Forwards of rank r before its first backward (section IV-A, the buffer for e_1), of M B."""
    q = forms.buffer(*sequences(at))
    return min(forms.warm_up_forwards(at["p"], at["v"], q, at["r"]) + 1, at["v"] * at["m"])


def peak_on(at: Params) -> int:
    """Activations of a chunk on rank r at the peak."""
    return measured(at).peak_activations[at["r"]]


def ends_as_printed(at: Params) -> bool:
    """Whether Algorithm 1 as printed gives a program that ends, for filled sequences.

    Its backwards find what they ask for (q = e_1, or M = 1), and no rank warms up with more
    forwards than there are.
    """
    ahead = (at["v"] - 1) * at["e"] + 2 * (at["p"] - 1)
    return ahead <= at["v"] * at["m"] and (at["v"] == 1 or buffer_size(*sequences(at)) == at["e"])


def printed(at: Params) -> Measures:
    """The measures of Algorithm 1 as printed; raises where its program does not end."""
    return _printed_of(_shape(at))


@lru_cache(maxsize=4096)  # numbers only
def _printed_of(shape: Shape) -> Measures:
    p, v, m, (e, d), forward, backward = shape
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, num_chunks=v, forward=forward, backward=backward
    )
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(literal_orders(p, v, e, d)))
    return measure(problem, schedule)


def runs_literally(at: Params) -> int:
    """1 where Algorithm 1 as printed gives a program that ends, 0 where it does not."""
    try:
        printed(at)
    except (Deadlock, IndexError):
        return 0
    return 1


def runs(at: Params) -> int:
    """1: the schedule that ships has a timing (a deadlock would raise)."""
    return int(measured(at).makespan > 0)


def chunk_runs(at: Params, kind: Kind) -> list[int]:
    """The chunks of rank 0's passes of one kind, equal neighbours once; from 1, as in the paper."""
    program = mesh(at).schedule.program
    own = (program.resource == 0) & (program.actions.kind == int(kind))
    chunks: list[int] = (program.actions.stage[own] // at["p"] + 1).tolist()
    return [chunk for i, chunk in enumerate(chunks) if i == 0 or chunk != chunks[i - 1]]


def with_latency(at: Params) -> int:
    """The makespan when a message between ranks takes ``c`` ticks, less that with none."""
    late = on_pipeline(family(at), mesh(at).pipeline.with_changes(latency=at["c"]))
    return late.makespan - measured(at).makespan


def with_collectives(at: Params, sharding: Sharding) -> int:
    """T_iter: from the first gather to the end of the last reduction."""
    pipeline = mesh(at).pipeline.with_changes(latency=at.get("c", 0))
    return last_end(family(at), family(at).sharded(pipeline, sharding))


def iteration(at: Params, zero: int, more: int = 0) -> int:
    """T_iter with collectives of ``C`` ticks, a reduction ``more``."""
    sharding = Sharding(zero=zero, gather=at["C"], reduce=at["C"] + more)
    return with_collectives(at, sharding)


def late(at: Params, zero: int = 1, more: int = 0) -> int:
    """T_DP: what collectives of ``C`` ticks add to the iteration, a reduction of ``more``."""
    return iteration(at, zero, more) - measured(at).makespan


def planned_late(at: Params) -> int:
    """T_DP where the gradients that the planner shards are reduced after every dequeue (ZeRO-2)."""
    ticks = at["C"]
    again = floor(ticks * queue(at).gradients)
    sharding = Sharding(zero=2, gather=ticks, reduce=ticks, rereduce=again)
    return with_collectives(at, sharding) - measured(at).makespan


def sharded_peak(at: Params, zero: int) -> int:
    """Chunks' worth of gathered parameters (ZeRO-3) or unreduced gradients (ZeRO-2) on a rank."""
    ticks, parameter = at["C"], int(zero == 3)
    sharding = Sharding(
        zero=zero, gather=ticks, reduce=ticks, parameter=parameter, gradient=1 - parameter
    )
    pipeline = family(at).sharded(mesh(at).pipeline.with_changes(activation=0), sharding)
    return max(on_pipeline(family(at), pipeline).peak_memory)
