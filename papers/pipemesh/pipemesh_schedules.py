"""What PipeMesh's claims measure on schedules.

Parameters: ``p`` ranks (the paper's P), ``v`` chunks per rank (M), ``m`` microbatches (B), ``R``
and ``S`` enqueue and dequeue operations, ``e`` and ``d`` the *first* elements of their sequences,
of which the others share the rest as equally as can be (one operation takes all m, and without R
and S there are at most two). Schedules are those of Algorithm 1 *repaired*
(``families.pipemesh_order``) unless a function says ``printed``: as printed it does not always end,
and where it does both give one order. ``tF`` ``tB`` ticks of a pass (1 and 2 unless given), ``c``
ticks of a message (C_PP), ``C`` ticks of a collective of one chunk (C_DP). Ranks count from 0, so
rank r is the paper's stage i = r + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import last_end, on_pipeline
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


def sequences(at: Params) -> Sequences:
    """(e, d) with R and S elements. Precondition: each has at least one microbatch."""
    return _parts(at["e"], at["m"], at.get("R", 2)), _parts(at["d"], at["m"], at.get("S", 2))


def _parts(first: int, total: int, count: int) -> tuple[int, ...]:
    if first >= total:
        return (first,)
    rest, others = total - first, count - 1
    return (first, *(rest // others + (k < rest % others) for k in range(others)))


def is_filled(at: Params) -> bool:
    """Every element of both sequences is at least p, section III-B's requirement."""
    return max(at["e"], at["d"]) <= at["m"] and min(map(min, sequences(at))) >= at["p"]


def family(at: Params) -> PipeMesh:
    return PipeMesh(*sequences(at))


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeMeshShape:
    """What a schedule without collectives and latencies depends on."""

    p: int
    v: int
    m: int
    sequences: Sequences
    forward: int
    backward: int


def _shape(at: Params) -> PipeMeshShape:
    ticks = {"forward": at.get("tF", 1), "backward": at.get("tB", 2)}
    return PipeMeshShape(p=at["p"], v=at["v"], m=at["m"], sequences=sequences(at), **ticks)


def mesh(at: Params) -> FamilyMember:
    return member_of(_shape(at))


@lru_cache(maxsize=64)
def member_of(shape: PipeMeshShape) -> FamilyMember:
    e, d = shape.sequences
    ticks = {"tF": shape.forward, "tB": shape.backward}
    return member("pipemesh", p=shape.p, m=shape.m, v=shape.v, e=e, d=d, **ticks)


def measured(at: Params) -> Measures:
    return measured_of(_shape(at))


@lru_cache(maxsize=4096)  # numbers only: the schedules themselves are not kept
def measured_of(shape: PipeMeshShape) -> Measures:
    made = member_of(shape)
    return measure(made.problem, made.schedule)


def bubble(at: Params) -> int:
    """Ticks of the makespan in which a rank computes nothing."""
    return max(measured(at).idle_ticks)


def slower_by(at: Params, ticks: int) -> int:
    """What the makespan grows by when every backward recomputes ``ticks`` more."""
    more = {**at, "tB": at.get("tB", 2) + ticks}
    return measured(more).makespan - measured(at).makespan


def consecutive(made: FamilyMember, at: Params) -> int:
    """Forwards of rank r before its first backward."""
    program = made.schedule.program
    kinds: list[int] = program.actions.kind[program.resource == at["r"]].tolist()
    return kinds.index(int(Kind.B))


def depth_first(at: Params) -> FamilyMember:
    """Megatron's schedule."""
    return member("interleaved", p=at["p"], m=at["m"], v=at["v"])


def depth_first_peak(at: Params) -> int:
    """Activations of a chunk on rank 0 at the peak."""
    made = depth_first(at)
    return measure(made.problem, made.schedule).peak_activations[0]


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
    return printed_of(_shape(at))[0]


def printed_forwards(at: Params) -> int:
    """Forwards of rank r before its first backward, by Algorithm 1 as printed."""
    return printed_of(_shape(at))[1][at["r"]]


@lru_cache(maxsize=4096)  # numbers only
def printed_of(shape: PipeMeshShape) -> tuple[Measures, tuple[int, ...]]:
    pipeline = Pipeline(
        num_ranks=shape.p,
        num_microbatches=shape.m,
        num_chunks=shape.v,
        forward=shape.forward,
        backward=shape.backward,
    )
    problem = pipeline.problem()
    orders = literal_orders(shape.p, shape.v, *shape.sequences)
    schedule = left_shift(problem, Program.from_orders(orders))
    first = ([label.find("B") >= 0 for label in order].index(True) for order in orders)
    return measure(problem, schedule), tuple(first)


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


def next_chunk(at: Params, kind: Kind) -> int:
    """The chunk that follows chunk ``k`` (from 1) in rank 0's passes of one kind."""
    listed = chunk_runs(at, kind)
    return listed[listed.index(at["k"]) + 1]


def with_latency(at: Params) -> int:
    """The makespan when a message between ranks takes ``c`` ticks, less that with none."""
    late = on_pipeline(family(at), mesh(at).pipeline.with_changes(latency=at["c"]))
    return late.makespan - measured(at).makespan


def with_collectives(at: Params, sharding: Sharding) -> int:
    """T_iter: from the first gather to the end of the last reduction."""
    pipeline = mesh(at).pipeline.with_changes(latency=at.get("c", 0))
    return last_end(family(at), family(at).sharded(pipeline, sharding))


def iteration(at: Params, *, zero: int = 1, gather: int, reduce: int) -> int:
    """T_iter with collectives of these ticks."""
    return with_collectives(at, Sharding(zero=zero, gather=gather, reduce=reduce))


def late(at: Params, *, zero: int = 1, gather: int | None = None, reduce: int | None = None) -> int:
    """T_DP: what collectives of ``C`` ticks (unless given) add to the iteration."""
    C = at.get("C", 0)  # noqa: N806 - the paper's letter
    ticks = {"gather": C if gather is None else gather, "reduce": C if reduce is None else reduce}
    return iteration(at, zero=zero, **ticks) - measured(at).makespan


def sharded_peak(at: Params, zero: int) -> int:
    """Chunks' worth of gathered parameters (ZeRO-3) or unreduced gradients (ZeRO-2) on a rank."""
    ticks, parameter = at["C"], int(zero == 3)
    sharding = Sharding(
        zero=zero, gather=ticks, reduce=ticks, parameter=parameter, gradient=1 - parameter
    )
    pipeline = family(at).sharded(mesh(at).pipeline.with_changes(activation=0), sharding)
    return max(on_pipeline(family(at), pipeline).peak_memory)
