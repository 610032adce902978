"""PipeMesh's claims on time: the bubble, messages and collectives of sections III-B, IV-A and IV-B.

Symbols as in ``pipemesh``. All collectives of a rank share one NIC, so the passes that hide them
must be divided, as the planner of section IV-B does. How often each collective runs, and what one
tick more of it costs, is in ``pipemesh_growth``.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import PaperClaim, contradicting, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import AT_LEAST, UP_TO, NumberOf, Premise
from bubbleproof.papers.pipemesh import pipemesh_domains as cases
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh import pipemesh_planned as plans
from bubbleproof.papers.pipemesh import pipemesh_schedules as on
from bubbleproof.papers.pipemesh.pipemesh_schedules import sequences
from bubbleproof.theory.model.actions import Kind

SHORTER = Premise(text="C_PP < C_fwd", cases="c < tF")
CHUNKED = Premise(text="M >= 2", cases="v >= 2")


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


def _sharded(zero: int) -> NumberOf:
    """T_DP with ZeRO of that stage."""
    return lambda at: on.late(at, zero=zero)


_TIME = (
    stated("pipemesh.sec4A.bubble", "§IV-A, of Algorithm 1 as printed",
           "Where it ends, T_bubble is (P-1) C_comp.", "idle ticks per rank",
           lambda at: max(on.printed(at).idle_ticks), "==", "bubble_ticks(p, tF+tB)",
           cases.PRINTED_TIMED),
    stated("pipemesh.sec4A.bubble-repaired", "§IV-A; of Algorithm 1 repaired",
           "T_bubble is (P-1) C_comp.", "idle ticks per rank", on.bubble, "==",
           "bubble_ticks(p, tF+tB)", cases.TIMED),
    stated("pipemesh.sec4A.bubble-halves", "§IV-A; of Algorithm 1 repaired",
           "T_bubble is (P-1) C_comp (two halves).", "idle ticks per rank", on.bubble, "==",
           "bubble_ticks(p, tF+tB)", cases.HALVES),
    stated("pipemesh.sec4B.recompute", "§IV-B, Eq. 8; of Algorithm 1 repaired",
           "Recomputing u more ticks of every chunk costs (M B + P - 1) u.", "makespan, longer by",
           lambda at: on.slower_by(at, 2), "==", "2*(v*m + p-1)", cases.FILLED),
    read_as("pipemesh.sec3B.requirement", "§III-B, of Algorithm 1",
            "An element below P adds a bubble.", "idle ticks per rank", [
                reading("as printed, where it ends", "§III-B and Algorithm 1",
                        lambda at: max(on.printed(at).idle_ticks), ">=", "bubble_ticks(p, 3) + 1",
                        cases.SHORT_PRINTED, [CHUNKED]),
                reading("repaired", "§III-B: if the element is smaller", on.bubble, ">=",
                        "bubble_ticks(p, 3) + 1", cases.SHORT, [CHUNKED]),
            ], "sec3B.requirement-ends"),
    stated("pipemesh.sec3B.requirement-ends",
           "ours, for PipeMesh §III-B, of Algorithm 1 repaired: only at the ends",
           "A first enqueue or a last dequeue below P adds a bubble.", "idle ticks per rank",
           on.bubble, ">=", "bubble_ticks(p, 3) + 1", cases.SHORT_ENDS, premises=[CHUNKED]),
    read_as("pipemesh.sec4A.messages", "§IV-A; of Algorithm 1 repaired",
            "Where C_PP < C_fwd, T_PP is 2(P-1) C_PP.", "makespan, longer by", [
                reading("operations of so many more than P microbatches as messages take",
                        "§VI-A: more microbatches than ranks hide all but the first and last",
                        on.with_latency, "==", "message_ticks(p, c)", cases.SPARED, [SHORTER]),
                reading("operations of P microbatches or more", "§III-B's requirement alone",
                        on.with_latency, "==", "message_ticks(p, c)", cases.LINKS, [SHORTER]),
            ]),
)  # fmt: skip
_COMMUNICATION = (
    stated("pipemesh.eq2", "§IV-A Eq. 2; of Algorithm 1 repaired", "Optimizer sharding adds D_o.",
           "ticks added", on.late, "==", _eq2, cases.COLLECTIVES),
    contradicting("pipemesh.eq2.windows", "§IV-A, before Eq. 2: a reduction overlaps with e_1 "
                  "forwards, a gather with d_S backwards; of Algorithm 1 repaired",
                  lambda at: optimizer_part(at, at["C"] + 5, at["C"]),
                  "§III-C: gathers begin with forwards, reductions follow backwards",
                  lambda at: on.late(at, reduce=at["C"] + 5),
                  "What hides a reduction is forwards (it takes 5 ticks more than a gather).",
                  "ticks added", cases.COLLECTIVES),
    stated("pipemesh.eq2.windows-swapped", "§III-C; of Algorithm 1 repaired",
           "A gather hides behind e_1 forwards, a reduction behind d_S backwards.",
           "ticks added (the reduction takes 5 more)", lambda at: on.late(at, reduce=at["C"] + 5),
           "==", lambda at: optimizer_part(at, at["C"], at["C"] + 5), cases.COLLECTIVES),
    read_as("pipemesh.eq3", "§IV-A Eq. 3; of Algorithm 1 repaired",
            "Gradient sharding adds D_g to D_o.", "ticks added", [
                reading("where the planner puts it, hidden: D_g = 0",
                        "§IV-B: psi_g grows as long as it is overlapped", plans.reduced_late, "==",
                        plans.exposed, plans.REDUCED),
                reading("at any C_DP", "Eq. 3 with B_Z2 the least dequeue", _sharded(2), "==",
                        _eq2_and_3, cases.COLLECTIVES),
            ]),
    stated("pipemesh.eq3.bound",
           "ours, for PipeMesh §IV-A Eq. 3, of Algorithm 1 repaired: bubbles hide some of it",
           "Gradient sharding adds at most D_g to D_o.", "ticks added", _sharded(2), "<=",
           _eq2_and_3, cases.COLLECTIVES),
    stated("pipemesh.eq3.count", "§IV-A Eq. 3; of Algorithm 1 repaired",
           "Gradients are reduced (S-1)M times before the last dequeue.",
           "changes of chunk of the backwards before it",
           lambda at: len(on.chunk_runs(at, Kind.B)) - at["v"], "==", "reductions(v, S)",
           cases.VISITS, premises=[CHUNKED]),
    stated("pipemesh.eq4.count", "§IV-A Eq. 4; of Algorithm 1 repaired",
           "Parameters are gathered (R-1)M times for forwards after the first enqueue.",
           "changes of chunk of the forwards after it",
           lambda at: len(on.chunk_runs(at, Kind.F)) - at["v"], "==", "forward_gathers(v, R)",
           cases.VISITS, premises=[CHUNKED]),
    stated("pipemesh.eq5.count", "§IV-A Eq. 5; of Algorithm 1 repaired",
           "Parameters are gathered S M - 1 times for backwards.",
           "changes of chunk of the backwards", lambda at: len(on.chunk_runs(at, Kind.B)) - 1, "==",
           "backward_gathers(v, S)", cases.VISITS, premises=[CHUNKED]),
    read_as("pipemesh.eq5", "§IV-A Eq. 3 to 5; of Algorithm 1 repaired",
            "Parameter sharding adds nothing where passes hide it.", "ticks added", [
                reading("the three kinds of collectives share the passes",
                        "§IV-B: gathers have the passes that reductions leave", _sharded(3), "==",
                        _eq2, cases.SHARED),
                reading("each kind has all the passes", "Eq. 3 to 5 without §IV-B's division",
                        _sharded(3), "==", _eq2, cases.HIDDEN, is_contrast=True),
            ]),
    stated("pipemesh.sec4A.bound", "§IV-A; of Algorithm 1 repaired",
           "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.", "T_iter with ZeRO-1",
           lambda at: on.iteration(at, gather=at["C"], reduce=at["C"]), ">=",
           "least_iteration(p, v, m, 3, 0, C)", cases.COLLECTIVES, premises=[AT_LEAST]),
    stated("pipemesh.sec4A.bound-3", "§IV-A; of Algorithm 1 repaired",
           "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.",
           "T_iter with ZeRO-3 and messages of 2 ticks",
           lambda at: on.iteration(at, zero=3, gather=at["C"], reduce=at["C"]), ">=",
           "least_iteration(p, v, m, 3, c, C)", cases.LATE, premises=[AT_LEAST]),
    stated("pipemesh.sec4A.gradient-buffers", "§IV-A; of Algorithm 1 repaired",
           "Full gradients of up to two chunks lie on a rank (4/M psi_g bytes).", "chunks",
           lambda at: on.sharded_peak(at, 2), "<=", 2, cases.COLLECTIVES, premises=[UP_TO]),
    stated("pipemesh.sec4A.parameter-buffers", "§IV-A; of Algorithm 1 repaired",
           "Full parameters of up to four chunks lie on a rank (8/M psi_p bytes).", "chunks",
           lambda at: on.sharded_peak(at, 3), "<=", 4, cases.COLLECTIVES, premises=[UP_TO]),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_TIME, *_COMMUNICATION)
