"""PipeMesh's claims: memory, time and collectives of its schedules, and its planner's sequences.

Symbols: P ranks, M chunks per rank, B microbatches, e_1 the first enqueue and d_S the last dequeue,
C_comp = tF + tB ticks of a chunk, C_PP of a message, C_DP of a collective, H(a, b) = max(0, a - b).
The paper counts stages i from 1. Sequences are named by their first element and their length (see
``pipemesh_schedules``); "filled": every element is at least P, as section III-B requires. A claim's
source says which algorithm is meant: as printed it does not always end (``alg1.runs``; where it
does both give one order), repaired it is ``families.pipemesh_order``.

Equations 2 to 5 subtract from each collective what B_Z2 or B_Z3 passes beside it hide. All
collectives of a rank share one NIC, so that one pass hides one collective: the passes must be
divided, as the planner of section IV-B does. Then the sum is exact where it hides all but D_o, as
it does on purpose, and else a bound. What the equations count exactly is how often each collective
runs.

Source: Li et al., "PipeMesh: Achieving Memory-Efficient Computation-Communication Overlap for
Training Large Language Models" (TPDS 2025).
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import (
    PaperClaim,
    contradicting,
    read_as,
    reading,
    stated,
)
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import AT_LEAST, UP_TO, NumberOf
from bubbleproof.papers.pipemesh import pipemesh_domains as cases
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh import pipemesh_schedules as on
from bubbleproof.theory.model.actions import Kind

_BUBBLE, _MORE = "bubble_ticks(p, tF+tB)", "bubble_ticks(p, 3) + 1"
_FORWARDS, _MESSAGES = "warm_up_forwards(p, v, e, r) + 1", "message_ticks(p, c)"


def _optimizer(at: Params, forward: int = 0, backward: int = 0) -> int:
    """D_o; so many ticks more are hidden behind forwards and behind backwards."""
    whole = at["C"] + forward, at["C"] + backward
    return forms.optimizer_ticks(at["v"], *on.sequences(at), whole)


def _eq2_and_3(at: Params) -> int:
    """With the most passes that B_Z2 may be, the least dequeue."""
    d = on.sequences(at)[1]
    late = forms.reductions(at["v"], len(d)) * forms.exposed(at["C"], 2 * min(d))
    return _optimizer(at) + late


def _late(zero: int) -> NumberOf:
    """T_DP with ZeRO of that stage."""
    return lambda at: on.late(at, zero)


_ORDER = (
    stated("pipemesh.sec4A.peak", "§IV-A, of Algorithm 1 as printed",
        "Where it ends, M_a is the activations of e_1(M-1) + 2(P-i) + 1 forwards.",
        "peak activations of a chunk", lambda at: on.printed(at).peak_activations[at["r"]], "<=",
        _FORWARDS, cases.PRINTED, premises=[UP_TO]),
    stated("pipemesh.sec4A.peak-repaired",
        "ours, for PipeMesh §IV-A, of Algorithm 1 repaired: e_1 is too few where dequeues run "
        "ahead of enqueues, and there are no more than M B",
        "The activations of stage i peak at min(q(M-1) + 2(P-i) + 1, M B), where q is the most "
        "microbatches in the queue when a dequeue begins.",
        "peak activations of a chunk", on.peak_on, "==", on.expected_forwards, cases.STAGES),
    read_as("pipemesh.alg1.runs", "Algorithm 1 and §V, on the sequences that §III-B allows",
        "For filled sequences the executor's program ends.", "1 where it does", [
            reading("with many more microbatches than ranks, and several chunks",
                "§I: B >> P; §II-A: the model is divided into chunks", on.runs_literally, "==", 1,
                cases.MANY_FILLED, [cases.MANY, cases.SEVERAL]),
            reading("on any sequences", "§III-B", on.runs_literally, "==", 1, cases.FILLED),
        ], "alg1.ships"),
    stated("pipemesh.alg1.ships",
        "ours, for PipeMesh Algorithm 1 repaired: n_fwd = min((M-1) q + 2(P-i), M B)",
        "For filled sequences the program ends.", "1 where it does", on.runs, "==", 1,
        cases.FILLED),
    read_as("pipemesh.alg1.planned", "Algorithm 1 and §V, on the sequences of §IV-B",
        "On the sequences that its planner chooses, filled, the executor's program ends.",
        "1 where it ends", [
            reading("with many more microbatches than ranks", "§I: B >> P", on.runs_literally, "==",
                1, cases.PLANNED_MANY, [cases.MANY]),
            reading("for every queue size", "§IV-B: for each q", on.runs_literally, "==", 1,
                cases.PLANNED),
        ], "alg1.planned-ships"),
    stated("pipemesh.alg1.planned-ships", "ours, for PipeMesh Algorithm 1 repaired: n_fwd = "
        "min((M-1) q + 2(P-i), M B), q the most microbatches that a dequeue needs",
        "On the planner's sequences the program ends.", "1 where it ends", on.runs, "==", 1,
        cases.PLANNED),
    stated("pipemesh.sec6A.ends", "§VI-A and Algorithm 1 as printed",
        "On the sequences of Table IV's configurations the executor's program ends.",
        "1 where it ends", on.runs_literally, "==", 1, cases.QUEUES),
)  # fmt: skip
_TIME = (
    stated("pipemesh.sec4A.bubble-repaired", "§IV-A; of Algorithm 1 repaired",
        "T_bubble is (P-1) C_comp.", "idle ticks per rank", on.bubble, "==", _BUBBLE, cases.TIMED),
    stated("pipemesh.sec3B.requirement", "§III-B, of Algorithm 1 repaired",
        "An element below P adds a bubble.", "idle ticks per rank", on.bubble, ">=", _MORE,
        cases.SHORT, "sec3B.requirement-ends", premises=[cases.CHUNKED]),
    stated("pipemesh.sec3B.requirement-ends",
        "ours, for PipeMesh §III-B, of Algorithm 1 repaired: only at the ends",
        "A first enqueue or a last dequeue below P adds a bubble.", "idle ticks per rank",
        on.bubble, ">=", _MORE, cases.SHORT_ENDS, premises=[cases.CHUNKED]),
    stated("pipemesh.sec4A.messages", "§IV-A and §VI-A; of Algorithm 1 repaired",
        "Where C_PP < C_fwd, T_PP is 2(P-1) C_PP: more microbatches than ranks hide all messages "
        "but the first and last.", "makespan, longer by", on.with_latency, "==", _MESSAGES,
        cases.SPARED, premises=[cases.SHORTER]),
)  # fmt: skip
_COMMUNICATION = (
    stated("pipemesh.eq2", "§IV-A Eq. 2; of Algorithm 1 repaired", "Optimizer sharding adds D_o.",
        "ticks added", on.late, "==", _optimizer, cases.COLLECTIVES),
    contradicting("pipemesh.eq2.windows", "§IV-A, before Eq. 2: a reduction overlaps with e_1 "
        "forwards, a gather with d_S backwards; of Algorithm 1 repaired",
        lambda at: _optimizer(at, forward=5),
        "§III-C: gathers begin with forwards, reductions follow backwards",
        lambda at: on.late(at, more=5),
        "What hides a reduction is forwards (it takes 5 ticks more than a gather).", "ticks added",
        cases.COLLECTIVES),
    read_as("pipemesh.eq3", "§IV-A Eq. 3; of Algorithm 1 repaired",
        "Gradient sharding adds D_g to D_o.", "ticks added", [
            reading("where the planner puts it, hidden: D_g = 0",
                "§IV-B: psi_g grows as long as it is overlapped", on.planned_late, "==",
                lambda at: on.queue(at).exposed_ticks, cases.REDUCED),
            reading("at any C_DP", "Eq. 3 with B_Z2 the least dequeue", _late(2), "==", _eq2_and_3,
                cases.COLLECTIVES),
        ]),
    stated("pipemesh.eq3.bound",
        "ours, for PipeMesh §IV-A Eq. 3, of Algorithm 1 repaired: bubbles hide some of it",
        "Gradient sharding adds at most D_g to D_o.", "ticks added", _late(2), "<=", _eq2_and_3,
        cases.COLLECTIVES),
    stated("pipemesh.eq3.count", "§IV-A Eq. 3; of Algorithm 1 repaired",
        "Gradients are reduced (S-1)M times before the last dequeue.",
        "changes of chunk of the backwards before it",
        lambda at: len(on.chunk_runs(at, Kind.B)) - at["v"], "==", "reductions(v, S)", cases.VISITS,
        premises=[cases.CHUNKED]),
    stated("pipemesh.eq4.count", "§IV-A Eq. 4; of Algorithm 1 repaired",
        "Parameters are gathered (R-1)M times for forwards after the first enqueue.",
        "changes of chunk of the forwards after it",
        lambda at: len(on.chunk_runs(at, Kind.F)) - at["v"], "==", "forward_gathers(v, R)",
        cases.VISITS, premises=[cases.CHUNKED]),
    stated("pipemesh.eq5.count", "§IV-A Eq. 5; of Algorithm 1 repaired",
        "Parameters are gathered S M - 1 times for backwards.", "changes of chunk of the backwards",
        lambda at: len(on.chunk_runs(at, Kind.B)) - 1, "==", "backward_gathers(v, S)", cases.VISITS,
        premises=[cases.CHUNKED]),
    stated("pipemesh.eq5", "§IV-A Eq. 3 to 5 with §IV-B's division of passes; of Algorithm 1 "
        "repaired", "Parameter sharding adds nothing where passes hide it.", "ticks added",
        _late(3), "==", _optimizer, cases.SHARED),
    stated("pipemesh.sec4A.bound", "§IV-A; of Algorithm 1 repaired",
        "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.", "T_iter with ZeRO-1",
        lambda at: on.iteration(at, 1), ">=", "least_iteration(p, v, m, 3, 0, C)",
        cases.COLLECTIVES, premises=[AT_LEAST]),
    stated("pipemesh.sec4A.gradient-buffers", "§IV-A; of Algorithm 1 repaired",
        "Full gradients of up to two chunks lie on a rank (4/M psi_g bytes).", "chunks",
        lambda at: on.sharded_peak(at, 2), "<=", 2, cases.COLLECTIVES, premises=[UP_TO]),
    stated("pipemesh.sec4A.parameter-buffers", "§IV-A; of Algorithm 1 repaired",
        "Full parameters of up to four chunks lie on a rank (8/M psi_p bytes).", "chunks",
        lambda at: on.sharded_peak(at, 3), "<=", 4, cases.COLLECTIVES, premises=[UP_TO]),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_ORDER, *_TIME, *_COMMUNICATION)
