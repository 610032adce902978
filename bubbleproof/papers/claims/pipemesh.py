"""PipeMesh's claims on schedules: sections II-A, III-B, IV and Algorithm 1.

Symbols: P ranks, M chunks per rank, B microbatches, e_1 the first enqueue and d_S the last dequeue,
C_comp = tF + tB ticks of a chunk, C_PP of a message, C_DP of a collective, H(a, b) = max(0, a - b).
The paper counts stages i from 1. Sequences are named by their first element and their length (see
``pipemesh_schedules``); "filled": every element is at least P, as section III-B requires. A claim's
source says which algorithm is meant: as printed it does not always end (``alg1.runs``), repaired it
is ``families.pipemesh_order``. Bytes and tables are in ``pipemesh_memory``, ``pipemesh_tables`` and
``pipemesh_training``.

Source: Li et al., "PipeMesh: Achieving Memory-Efficient Computation-Communication Overlap for
Training Large Language Models" (TPDS 2025).
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.costs import pipemesh_formulas as forms
from bubbleproof.papers.claims import (
    pipemesh_deadlock,
    pipemesh_growth,
    pipemesh_memory,
    pipemesh_tables,
    pipemesh_training,
)
from bubbleproof.papers.claims import pipemesh_domains as cases
from bubbleproof.papers.claims import pipemesh_schedules as on
from bubbleproof.papers.claims.claim import Claim, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.pipemesh_schedules import sequences
from bubbleproof.theory.model.actions import Kind


def consecutive(at: Params) -> int:
    """Forwards in a row: with the buffer for e_1, and at most all M B."""
    q = forms.buffer(*sequences(at))
    return min(forms.warm_up_forwards(at["p"], at["v"], q, at["r"]) + 1, at["v"] * at["m"])


def optimizer_part(at: Params, forward: int, backward: int) -> int:
    """D_o with so many ticks to hide behind forwards and behind backwards."""
    return forms.optimizer_ticks(at["v"], *sequences(at), (forward, backward))


def _eq2(at: Params) -> int:
    return optimizer_part(at, at["C"], at["C"])


def _eq2_and_3(at: Params) -> int:
    """With the most passes that B_Z2 may be, the least dequeue."""
    d = sequences(at)[1]
    late = forms.reductions(at["v"], len(d)) * forms.exposed(at["C"], 2 * min(d))
    return _eq2(at) + late


_ORDER = (
    stated("pipemesh.sec2A.warm-up", "§II-A",
           "Depth first, the first stage warms up with (M-1)P + 2(P-1) forwards before one forward "
           "and one backward alternate.", "forwards before the alternation",
           lambda at: on.consecutive(on.depth_first(at), at) - 1, "==", "(v-1)*p + 2*(p-1)",
           cases.DEPTH_FIRST),
    stated("pipemesh.sec2A.consecutive", "§II-A",
           "Depth first, the first stage performs (M-1)P + 2(P-1) consecutive forwards.",
           "forwards before the first backward", lambda at: on.consecutive(on.depth_first(at), at),
           "==", "(v-1)*p + 2*(p-1)", cases.DEPTH_FIRST, "sec2A.consecutive-1"),
    stated("pipemesh.sec2A.consecutive-1", "§II-A, corrected as §IV-A counts: one more",
           "Depth first, the first stage performs (M-1)P + 2(P-1) + 1 consecutive forwards.",
           "forwards before the first backward", lambda at: on.consecutive(on.depth_first(at), at),
           "==", "(v-1)*p + 2*(p-1) + 1", cases.DEPTH_FIRST),
    stated("pipemesh.sec4A.forwards", "§IV-A, of Algorithm 1 as printed",
           "Where it ends, stage i performs up to e_1(M-1) + 2(P-i) + 1 consecutive forwards.",
           "forwards before the first backward", on.printed_forwards, "<=",
           "warm_up_forwards(p, v, e, r) + 1", cases.PRINTED),
    stated("pipemesh.sec4A.forwards-repaired",
           "§IV-A, of Algorithm 1 repaired: e_1 is too few where dequeues run ahead of enqueues, "
           "and there are no more than M B",
           "Stage i performs min(q(M-1) + 2(P-i) + 1, M B) consecutive forwards, where q is the "
           "most microbatches in the queue when a dequeue begins.",
           "forwards before the first backward", lambda at: on.consecutive(on.mesh(at), at), "==",
           consecutive, cases.STAGES),
    stated("pipemesh.sec4A.peak", "§IV-A, of Algorithm 1 as printed",
           "Where it ends, the activations of stage i peak at e_1(M-1) + 2(P-i) + 1.",
           "peak activations of a chunk", lambda at: on.printed(at).peak_activations[at["r"]], "==",
           "warm_up_forwards(p, v, e, r) + 1", cases.PRINTED, "sec4A.peak-all"),
    stated("pipemesh.sec4A.peak-all",
           "§IV-A, of Algorithm 1 as printed, corrected: there are no more than M B",
           "Where it ends, the activations of stage i peak at min(e_1(M-1) + 2(P-i) + 1, M B).",
           "peak activations of a chunk", lambda at: on.printed(at).peak_activations[at["r"]], "==",
           "min(warm_up_forwards(p, v, e, r) + 1, v*m)", cases.PRINTED),
    stated("pipemesh.sec4A.peak-halves", "§IV-A",
           "With two halves the activations of the first stage peak at e_1(M-1) + 2(P-1) + 1.",
           "peak activations of a chunk", lambda at: on.peak_on({**at, "r": 0}), "==",
           "warm_up_forwards(p, v, e, 0) + 1", cases.HALVES),
    stated("pipemesh.sec4A.peak-repaired", "§IV-A, of Algorithm 1 repaired, as the forwards are",
           "The activations of stage i peak at min(q(M-1) + 2(P-i) + 1, M B).",
           "peak activations of a chunk", on.peak_on, "==", consecutive, cases.STAGES),
    stated("pipemesh.alg1.runs", "Algorithm 1", "For filled sequences the executor's program ends.",
           "1 where it does", on.runs_literally, "==", 1, cases.FILLED, "alg1.ships"),
    stated("pipemesh.alg1.ships", "Algorithm 1, corrected: n_fwd = min((M-1) q + 2(P-i), M B)",
           "For filled sequences the program ends.", "1 where it does", on.runs, "==", 1,
           cases.FILLED),
    stated("pipemesh.alg1.next-forward", "Algorithm 1 line 20",
           "The chunk after chunk k is (k+1) mod M, chunks counted from 1.",
           "chunk of the next forwards", lambda at: on.next_chunk(at, Kind.F), "==", "(k+1) % v",
           cases.CHUNKS, "alg1.next-forward-1"),
    stated("pipemesh.alg1.next-forward-1", "Algorithm 1 line 20, corrected",
           "The chunk after chunk k is 1 + (k mod M).", "chunk of the next forwards",
           lambda at: on.next_chunk(at, Kind.F), "==", "1 + k % v", cases.CHUNKS),
    stated("pipemesh.alg1.next-backward", "Algorithm 1 line 28",
           "The chunk after chunk k is (k-1) mod M backwards, chunks counted from 1.",
           "chunk of the next backwards", lambda at: on.next_chunk(at, Kind.B), "==", "(k-1) % v",
           cases.CHUNKS, "alg1.next-backward-1"),
    stated("pipemesh.alg1.next-backward-1", "Algorithm 1 line 28, corrected",
           "The chunk after chunk k is 1 + ((k-2) mod M) backwards.", "chunk of the next backwards",
           lambda at: on.next_chunk(at, Kind.B), "==", "1 + (k-2) % v", cases.CHUNKS),
)  # fmt: skip
_TIME = (
    stated("pipemesh.sec4A.bubble", "§IV-A, of Algorithm 1 as printed",
           "Where it ends, T_bubble is (P-1) C_comp.", "idle ticks per rank",
           lambda at: max(on.printed(at).idle_ticks), "==", "bubble_ticks(p, tF+tB)",
           cases.PRINTED_TIMED),
    stated("pipemesh.sec4A.bubble-repaired", "§IV-A", "T_bubble is (P-1) C_comp.",
           "idle ticks per rank", on.bubble, "==", "bubble_ticks(p, tF+tB)", cases.TIMED),
    stated("pipemesh.sec4A.bubble-halves", "§IV-A", "T_bubble is (P-1) C_comp (two halves).",
           "idle ticks per rank", on.bubble, "==", "bubble_ticks(p, tF+tB)", cases.HALVES),
    stated("pipemesh.sec4B.recompute", "§IV-B, Eq. 8",
           "Recomputing u more ticks of every chunk costs (M B + P - 1) u.", "makespan, longer by",
           lambda at: on.slower_by(at, 2), "==", "2*(v*m + p-1)", cases.FILLED),
    stated("pipemesh.sec3B.requirement-printed", "§III-B, of Algorithm 1 as printed",
           "Where it ends, an element below P adds a bubble (M >= 2).", "idle ticks per rank",
           lambda at: max(on.printed(at).idle_ticks), ">=", "bubble_ticks(p, 3) + 1",
           cases.SHORT_PRINTED, "sec3B.requirement-ends"),
    stated("pipemesh.sec3B.requirement", "§III-B", "An element below P adds a bubble (M >= 2).",
           "idle ticks per rank", on.bubble, ">=", "bubble_ticks(p, 3) + 1", cases.SHORT,
           "sec3B.requirement-ends"),
    stated("pipemesh.sec3B.requirement-ends", "§III-B, corrected: only at the ends",
           "A first enqueue or a last dequeue below P adds a bubble (M >= 2).",
           "idle ticks per rank", on.bubble, ">=", "bubble_ticks(p, 3) + 1", cases.SHORT_ENDS),
    stated("pipemesh.sec4A.messages", "§IV-A", "Where C_PP < C_fwd, T_PP is 2(P-1) C_PP.",
           "makespan, longer by", on.with_latency, "==", "message_ticks(p, c)", cases.LINKS,
           "sec4A.messages-2"),
    stated("pipemesh.sec4A.messages-2",
           "§IV-A, corrected: operations must have microbatches to spare",
           "Where C_PP < C_fwd and every element is at least 2P, T_PP is 2(P-1) C_PP.",
           "makespan, longer by", on.with_latency, "==", "message_ticks(p, c)", cases.WIDE),
)  # fmt: skip
_COMMUNICATION = (
    stated("pipemesh.eq2", "§IV-A Eq. 2", "Optimizer sharding adds D_o.", "ticks added", on.late,
           "==", _eq2, cases.COLLECTIVES),
    stated("pipemesh.eq2.windows", "§IV-A, before Eq. 2",
           "A reduction hides behind e_1 forwards, a gather behind d_S backwards.",
           "ticks added (the reduction takes 5 more)", lambda at: on.late(at, reduce=at["C"] + 5),
           "==", lambda at: optimizer_part(at, at["C"] + 5, at["C"]), cases.COLLECTIVES,
           "eq2.windows-swapped"),
    stated("pipemesh.eq2.windows-swapped", "§IV-A, before Eq. 2, corrected: the other way round",
           "A gather hides behind e_1 forwards, a reduction behind d_S backwards.",
           "ticks added (the reduction takes 5 more)", lambda at: on.late(at, reduce=at["C"] + 5),
           "==", lambda at: optimizer_part(at, at["C"], at["C"] + 5), cases.COLLECTIVES),
    stated("pipemesh.eq3", "§IV-A Eq. 3", "Gradient sharding adds D_g to D_o.", "ticks added",
           lambda at: on.late(at, zero=2), "==", _eq2_and_3, cases.COLLECTIVES, "eq3.bound"),
    stated("pipemesh.eq3.bound", "§IV-A Eq. 3, corrected: bubbles hide some of it",
           "Gradient sharding adds at most D_g to D_o.", "ticks added",
           lambda at: on.late(at, zero=2), "<=", _eq2_and_3, cases.COLLECTIVES),
    stated("pipemesh.eq3.count", "§IV-A Eq. 3",
           "Gradients are reduced (S-1)M times before the last dequeue.",
           "changes of chunk of the backwards before it",
           lambda at: len(on.chunk_runs(at, Kind.B)) - at["v"], "==", "reductions(v, S)",
           cases.VISITS),
    stated("pipemesh.eq4.count", "§IV-A Eq. 4",
           "Parameters are gathered (R-1)M times for forwards after the first enqueue.",
           "changes of chunk of the forwards after it",
           lambda at: len(on.chunk_runs(at, Kind.F)) - at["v"], "==", "forward_gathers(v, R)",
           cases.VISITS),
    stated("pipemesh.eq5.count", "§IV-A Eq. 5",
           "Parameters are gathered S M - 1 times for backwards.",
           "changes of chunk of the backwards", lambda at: len(on.chunk_runs(at, Kind.B)) - 1, "==",
           "backward_gathers(v, S)", cases.VISITS),
    stated("pipemesh.eq5", "§IV-A Eq. 3 to 5",
           "Parameter sharding adds nothing where each kind of collective fits its passes alone.",
           "ticks added", lambda at: on.late(at, zero=3), "==", _eq2, cases.HIDDEN, "eq5.shared"),
    stated("pipemesh.eq5.shared", "§IV-A and IV-B, corrected: the collectives share the passes",
           "Parameter sharding adds nothing where three collectives fit every operation's passes.",
           "ticks added", lambda at: on.late(at, zero=3), "==", _eq2, cases.SHARED),
    stated("pipemesh.sec4A.bound", "§IV-A",
           "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.", "T_iter with ZeRO-1",
           lambda at: on.iteration(at, gather=at["C"], reduce=at["C"]), ">=",
           "least_iteration(p, v, m, 3, 0, C)", cases.COLLECTIVES),
    stated("pipemesh.sec4A.bound-3", "§IV-A",
           "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.",
           "T_iter with ZeRO-3 and messages of 2 ticks",
           lambda at: on.iteration(at, zero=3, gather=at["C"], reduce=at["C"]), ">=",
           "least_iteration(p, v, m, 3, c, C)", cases.LATE),
    stated("pipemesh.sec4A.gradient-buffers", "§IV-A",
           "Full gradients of at most two chunks lie on a rank (4/M psi_g bytes).", "chunks",
           lambda at: on.sharded_peak(at, 2), "<=", 2, cases.COLLECTIVES),
    stated("pipemesh.sec4A.parameter-buffers", "§IV-A",
           "Full parameters of at most four chunks lie on a rank (8/M psi_p bytes).", "chunks",
           lambda at: on.sharded_peak(at, 3), "<=", 4, cases.COLLECTIVES),
)  # fmt: skip


def _with_algorithm(claim: Claim) -> Claim:
    """The claim, whose source says that it is about Algorithm 1 repaired unless it says which."""
    if "Algorithm 1" in claim.source or "§II-A" in claim.source:
        return claim
    return replace(claim, source=f"{claim.source}; of Algorithm 1 repaired")


CLAIMS: tuple[Claim, ...] = (
    *map(_with_algorithm, (*_ORDER, *_TIME, *_COMMUNICATION)),
    *pipemesh_memory.CLAIMS,
    *pipemesh_tables.CLAIMS,
    *pipemesh_training.CLAIMS,
    *pipemesh_deadlock.CLAIMS,
    *pipemesh_growth.CLAIMS,
    *pipemesh_tables.BATCHES,
)
