"""PipeMesh's planner and its executor: what section IV-B's sequences and shares do when they run.

A case has P ranks, M chunks, B microbatches, a queue of ``q`` and ``C`` ticks of a collective of
all of a chunk (C_DP); C_fwd = 1, C_bwd = 2. The planner gives the sequences e and d, the shares
psi_g and psi_p, and B_Z3^fwd forwards for the gathers of psi_p
(``papers.pipemesh.pipemesh_queue``). Where B C_bwd < S C_DP the last dequeue is as long as it takes
to hide C_DP, and the others share the rest: then it can take more microbatches than q at once, and
the printed program waits for itself.

Source: Li et al., "PipeMesh" (TPDS 2025) section IV-B and Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import floor

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Domain, Params, domain
from bubbleproof.papers.claims.measured_pipelines import last_end
from bubbleproof.papers.claims.reading import Premise
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh.pipemesh_domains import MANY
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue, QueueNumbers, planned_queue
from bubbleproof.papers.pipemesh.pipemesh_schedules import (
    PipeMeshShape,
    measured_of,
    member_of,
    printed_of,
)
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.timing import Deadlock

FORWARD, BACKWARD = 1, 2
MOST_TICKS = 16
EQUAL = Premise(text="B C_bwd >= S C_DP", cases="others == 0")


@lru_cache(maxsize=4096)
def _queue(p: int, v: int, m: int, q: int, ticks: int) -> Queue:
    mesh = QueueNumbers(
        num_ranks=p,
        num_chunks=v,
        num_microbatches=m,
        replicas=2,
        parameters=0,
        forward=FORWARD,
        backward=BACKWARD,
        communication=ticks,
    )
    return planned_queue(mesh, q)


def queue(at: Params) -> Queue:
    """What the planner makes of a queue of q."""
    return _queue(at["p"], at["v"], at["m"], at["q"], at["C"])


def shape(at: Params) -> PipeMeshShape:
    found = queue(at)
    return PipeMeshShape(
        p=at["p"],
        v=at["v"],
        m=at["m"],
        sequences=(found.enqueue, found.dequeue),
        forward=FORWARD,
        backward=BACKWARD,
    )


def is_filled(found: Queue) -> bool:
    """Section III-B: every element is at least P."""
    return min(*found.enqueue, *found.dequeue) >= found.mesh.num_ranks


def has_other_case(found: Queue) -> int:
    """1 where B C_bwd < S C_DP."""
    mesh = found.mesh
    return int(mesh.num_microbatches * mesh.backward < len(found.enqueue) * mesh.communication)


def ends(at: Params) -> int:
    """1 where Algorithm 1 as printed gives a program that ends on the planner's sequences."""
    try:
        printed_of(shape(at))
    except (Deadlock, IndexError):
        return 0
    return 1


def ships(at: Params) -> int:
    """1: the repaired order has a timing (a deadlock would raise)."""
    return int(measured_of(shape(at)).makespan > 0)


def has_enough(at: Params) -> bool:
    """(M-1) e_1 + 2(P-1) <= M B."""
    return forms.warm_up_forwards(at["p"], at["v"], at["q"], 0) <= at["v"] * at["m"]


def is_free(at: Params) -> int:
    """1 where there are forwards enough, and M = 1 or no dequeue needs more than q."""
    found = queue(at)
    needed = forms.buffer(found.enqueue, found.dequeue)
    return int(has_enough(at) and (at["v"] == 1 or needed <= at["q"]))


def reduced_late(at: Params) -> int:
    """T_DP where the gradients that the planner shards are reduced after every dequeue (ZeRO-2)."""
    found, whole = queue(at), shape(at)
    sharding = Sharding(
        zero=2, gather=at["C"], reduce=at["C"], rereduce=floor(at["C"] * found.gradients)
    )
    family = PipeMesh(found.enqueue, found.dequeue)
    pipeline = family.sharded(member_of(whole).pipeline, sharding)
    return last_end(family, pipeline) - measured_of(whole).makespan


def exposed(at: Params) -> int:
    """D_o, Eq. 2."""
    return queue(at).exposed_ticks


def gathering(at: Params) -> int:
    """B_Z3^fwd."""
    return queue(at).buckets[1]


def forwards_before(at: Params) -> int:
    """The fewest forwards of a rank before one of an enqueue but the first; all where it is alone.

    Chunk c of enqueue j comes after all M chunks of the enqueues before and c of its own.
    """
    enqueue, chunks = queue(at).enqueue, at["v"]
    found = [
        chunks * sum(enqueue[:j]) + c * enqueue[j]
        for j in range(1, len(enqueue))
        for c in range(chunks)
    ]
    return min(found, default=chunks * at["m"])


def _plans(at: Params) -> Iterator[tuple[int, int, int]]:
    """(q, the least C_DP, the other case) of each pair of filled sequences."""
    seen = set()
    for q in range(at["p"], at["m"] + 1):
        for ticks in range(1, MOST_TICKS + 1):
            found = _queue(at["p"], at["v"], at["m"], q, ticks)
            sequences = found.enqueue, found.dequeue
            if is_filled(found) and sequences not in seen:
                seen.add(sequences)
                yield q, ticks, has_other_case(found)


def _even(at: Params) -> Iterator[tuple[int, int]]:
    """(q, C_DP) of filled sequences; in the first case S divides B, as B/S of each needs."""
    for q in range(at["p"], at["m"] + 1):
        for ticks in (1, 2, 3, 4, 5, 7, 10, 16):
            found = _queue(at["p"], at["v"], at["m"], q, ticks)
            is_even = len({*found.dequeue}) == 1
            if is_filled(found) and (is_even or has_other_case(found)):
                yield q, ticks


def _text(chunks: str, counts: str) -> str:
    return (
        f"P in 2 3, M in {chunks}, B {counts}, e, d and shares of the planner for every q >= P and "
        "C_DP in 1 2 3 4 5 7 10 16, filled, B/S whole where all dequeues have it"
    )


PLANNED = domain(
    "P in 2 3, M <= 3, B <= 9, e and d of the planner for every queue size q >= P and every C_DP "
    f"up to {MOST_TICKS} C_fwd, filled",
    p=(2, 3),
    m=range(2, 10),
    v=(1, 2, 3),
    q_C_others=_plans,
)
REDUCED = domain(_text("2 3", "<= 6"), p=(2, 3), m=range(2, 7), v=(2, 3), q_C=_even)
GATHERED = domain(_text("5 6", "<= 12"), p=(2, 3), m=range(2, 13), v=(5, 6), q_C=_even)


def _where(text: str, condition: str) -> Domain:
    return domain(f"{PLANNED.text}; {text}", PLANNED.columns, where=condition)


FEW, MUCH = _where("B C_bwd >= S C_DP", "others == 0"), _where("B >= 2P", "m >= 2*p")


CLAIMS: tuple[PaperClaim, ...] = (
    read_as("pipemesh.alg1.planned", "Algorithm 1 and §V, on the sequences of §IV-B",
            "On the sequences that its planner chooses, filled, the executor's program ends.",
            "1 where it ends", [
                reading("with many more microbatches than ranks", "§I: B >> P", ends, "==", 1,
                        MUCH, [MANY]),
                reading("for every queue size", "§IV-B: for each q", ends, "==", 1, PLANNED),
            ], "alg1.planned-ships"),
    stated("pipemesh.alg1.planned-ships",
           "ours, for PipeMesh Algorithm 1 repaired: n_fwd = min((M-1) q + 2(P-i), M B), q the "
           "most microbatches that a dequeue needs",
           "On the planner's sequences the program ends.", "1 where it ends", ships, "==", 1,
           PLANNED),
    stated("pipemesh.alg1.ends-planned", "ours, for PipeMesh Algorithm 1 with §IV-B",
           "On the planner's sequences, filled, the printed program ends exactly where (M-1) q + "
           "2(P-1) <= M B, and M = 1 or no dequeue needs more than q microbatches in the queue.",
           "1 where it ends", ends, "==", is_free, PLANNED),
    stated("pipemesh.alg1.ends-planned-equal", "ours, for PipeMesh Algorithm 1 with §IV-B's first "
           "case, equal dequeues",
           "On the planner's equal dequeues only the length matters: the printed program ends "
           "exactly where (M-1) q + 2(P-1) <= M B.", "1 where it ends", ends, "==",
           lambda at: int(has_enough(at)), FEW, premises=[EQUAL]),
    read_as("pipemesh.sec4B.passes", "§IV-B: B_Z3^fwd = ceil(C_DP^p / C_fwd)",
            "Each enqueue but the first has the B_Z3^fwd forwards before it that the planner's "
            "gathers overlap with.", "forwards", [
                reading("all forwards before the switch of chunk",
                        "§III-C: the passes that occur before the switch, of whichever chunk",
                        forwards_before, ">=", gathering, GATHERED,
                        slack="all M chunks of the first enqueue come before the second"),
                reading("those of one chunk of one enqueue", "§III-C, Figure 9: the forwards of "
                        "the chunk before", lambda at: min(queue(at).enqueue), ">=", gathering,
                        GATHERED),
            ]),
)  # fmt: skip
