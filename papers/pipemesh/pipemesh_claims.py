"""PipeMesh's claims: order, time and collectives of its schedules, its planner, and their bytes.

Symbols: P ranks, M chunks per rank, B microbatches, e_1 the first enqueue and d_S the last dequeue,
C_comp = tF + tB ticks of a chunk, C_PP of a message, C_DP of a collective, C_g and C_p of a chunk's
sharded gradients and parameters (C_DP^g and C_DP^p), H(a, b) = max(0, a - b), psi parameters of a
rank, D replicas. The paper counts stages i from 1. Sequences are named by their first element and
their length (see ``pipemesh_schedules``); "filled": every element is at least P, as section III-B
requires. A claim's source says which algorithm is meant: as printed it does not always end
(``alg1.runs``; where it does is ``alg1.ends``), repaired it is ``families.pipemesh_order``.

Equations 2 to 5 subtract from each collective what B_Z2 or B_Z3 passes beside it hide. All
collectives of a rank share one NIC, so that one pass hides one collective: the passes must be
divided, as the planner of section IV-B does. Then the sum is exact where it hides all but D_o, as
it does on purpose, and else a bound. What the equations count exactly is how often each collective
runs. Where communication is all that anyone waits for (C_DP beyond all computation) a tick more of
it lengthens the iteration by just that many ticks.

Source: Li et al., "PipeMesh: Achieving Memory-Efficient Computation-Communication Overlap for
Training Large Language Models" (TPDS 2025).
"""

from __future__ import annotations

from fractions import Fraction

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


def gathers(at: Params) -> int:
    """(R-1) M + S M - 1."""
    e, d = on.sequences(at)
    return forms.forward_gathers(at["v"], len(e)) + forms.backward_gathers(at["v"], len(d))


def reductions(at: Params) -> int:
    """(S-1) M."""
    return forms.reductions(at["v"], len(on.sequences(at)[1]))


def _total(at: Params, reducing: int, gathering: int) -> int:
    """D_o + D_g + D_p with B_Z2 and B_Z3^bwd so many passes, and B_Z3^fwd the least enqueue."""
    e, d = on.sequences(at)
    return (
        _optimizer(at)
        + reductions(at) * forms.exposed(at["C"], 2 * reducing)
        + forms.forward_gathers(at["v"], len(e)) * forms.exposed(at["C"], min(e))
        + forms.backward_gathers(at["v"], len(d)) * forms.exposed(at["C"], 2 * gathering)
    )


def undivided(at: Params) -> int:
    """The sum where reductions and gathers may have all passes of an operation, both."""
    passes = min(on.sequences(at)[1])
    return _total(at, passes, passes)


def planned(at: Params) -> int:
    """The sum where the gathers have what B_Z2 = ceil(C_DP / C_bwd) leaves (section IV-B)."""
    least = min(on.sequences(at)[1])
    passes = min(-(-at["C"] // 2), least)
    return _total(at, passes, least - passes)


def _late(zero: int) -> NumberOf:
    """T_DP with ZeRO of that stage."""
    return lambda at: on.late(at, zero)


def _held(zero: int, whole: bool = False) -> NumberOf:
    """Gradients (ZeRO-2) or parameters (ZeRO-3): whole, a shard, and the full ones held, in psi."""

    def held(at: Params) -> Fraction:
        share = Fraction(1) if whole else Fraction(at["share"], 36)
        chunks = Fraction(on.most_chunks(at["M"], zero), at["M"])
        return 2 * (1 - share + share * (Fraction(1, at["D"]) + chunks))

    return held


def _saves(at: Params) -> int:
    return int(_held(3, whole=True)(at) < 2)


def _next_chunk(name: str, line: int, way: str, kind: Kind, printed: str) -> PaperClaim:
    """Which chunk comes after chunk k, by a line of Algorithm 1."""

    def after(at: Params) -> int:
        return on.next_chunk(at, kind)

    told = f"The chunk after chunk k is {printed} mod M {way}."
    return read_as(f"pipemesh.alg1.next-{name}", f"Algorithm 1 line {line}", told, "chunk", [
        reading("numbers modulo M, where M is 0", f"line {line}: mod M",
            lambda at: after(at) % at["v"], "==", f"{printed} % v", cases.CHUNKS),
        reading("numbers from 1 to M", "lines 5 and 9 count so", after, "==", f"{printed} % v",
            cases.CHUNKS),
    ])  # fmt: skip


_ORDER = (
    read_as("pipemesh.sec2A.consecutive", "§II-A",
        "Depth first, the first stage performs (M-1)P + 2(P-1) consecutive forwards.", "forwards", [
            reading("in the warm-up, before one forward and one backward alternate",
                "§II-A: then each stage enters the 1F1B phase",
                lambda at: on.consecutive(on.depth_first(at), at) - 1, "==", "(v-1)*p + 2*(p-1)",
                cases.DEPTH_FIRST),
            reading("before the first backward", "§IV-A counts these: one more",
                lambda at: on.consecutive(on.depth_first(at), at), "==", "(v-1)*p + 2*(p-1)",
                cases.DEPTH_FIRST),
        ]),
    stated("pipemesh.sec4A.forwards", "§IV-A, of Algorithm 1 as printed",
        "Where it ends, stage i performs up to e_1(M-1) + 2(P-i) + 1 consecutive forwards.",
        "forwards before the first backward", on.printed_forwards, "<=", _FORWARDS, cases.PRINTED,
        premises=[UP_TO]),
    stated("pipemesh.sec4A.forwards-repaired", "ours, for PipeMesh §IV-A, of Algorithm 1 repaired: "
        "e_1 is too few where dequeues run ahead of enqueues, and there are no more than M B",
        "Stage i performs min(q(M-1) + 2(P-i) + 1, M B) consecutive forwards, where q is the most "
        "microbatches in the queue when a dequeue begins.", "forwards before the first backward",
        lambda at: on.consecutive(on.mesh(at), at), "==", on.expected_forwards, cases.STAGES),
    read_as("pipemesh.sec4A.peak", "§IV-A, of Algorithm 1 as printed",
        "Where it ends, M_a is the activations of e_1(M-1) + 2(P-i) + 1 forwards.",
        "peak activations of a chunk", [
            reading("up to that many", "§IV-A: up to so many consecutive forwards",
                lambda at: on.printed(at).peak_activations[at["r"]], "<=", _FORWARDS, cases.PRINTED,
                [UP_TO]),
            reading("just that many, however few there are", "§IV-A without its up to",
                lambda at: on.printed(at).peak_activations[at["r"]], "==", _FORWARDS, cases.PRINTED,
                is_contrast=True),
        ]),
    stated("pipemesh.sec4A.peak-all",
        "ours, for PipeMesh §IV-A, of Algorithm 1 as printed: there are no more than M B",
        "Where it ends, the activations of stage i peak at min(e_1(M-1) + 2(P-i) + 1, M B).",
        "peak activations of a chunk", lambda at: on.printed(at).peak_activations[at["r"]], "==",
        "min(warm_up_forwards(p, v, e, r) + 1, v*m)", cases.PRINTED),
    stated("pipemesh.sec4A.peak-halves", "§IV-A; of Algorithm 1 repaired",
        "With two halves the activations of the first stage peak at e_1(M-1) + 2(P-1) + 1.",
        "peak activations of a chunk", lambda at: on.peak_on({**at, "r": 0}), "==",
        "warm_up_forwards(p, v, e, 0) + 1", cases.HALVES),
    stated("pipemesh.sec4A.peak-repaired",
        "ours, for PipeMesh §IV-A, of Algorithm 1 repaired, as the forwards are",
        "The activations of stage i peak at min(q(M-1) + 2(P-i) + 1, M B).",
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
    _next_chunk("forward", 20, "forwards", Kind.F, "(k+1)"),
    _next_chunk("backward", 28, "backwards", Kind.B, "(k-1)"),
)  # fmt: skip
PLANNER = (
    stated("pipemesh.alg1.ends", "ours, for PipeMesh Algorithm 1: a criterion",
        "For filled sequences the printed program ends exactly where (M-1) e_1 + 2(P-1) <= M B, "
        "and M = 1 or e_1 is at least q, the most microbatches in the queue when a dequeue begins.",
        "1 where it ends", on.runs_literally, "==", on.is_free, cases.FEW_FILLED),
    stated("pipemesh.alg1.ends-only", "ours, for PipeMesh Algorithm 1: a criterion",
        "Whatever the elements, the printed program ends nowhere else.", "1 where it ends",
        on.runs_literally, "<=", on.is_free, cases.ANY),
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
    stated("pipemesh.alg1.ends-planned", "ours, for PipeMesh Algorithm 1 with §IV-B",
        "On the planner's sequences, filled, the printed program ends exactly where (M-1) q + "
        "2(P-1) <= M B, and M = 1 or no dequeue needs more than q microbatches in the queue.",
        "1 where it ends", on.runs_literally, "==", on.is_free, cases.PLANNED),
    stated("pipemesh.alg1.ends-planned-equal",
        "ours, for PipeMesh Algorithm 1 with §IV-B's first case, equal dequeues",
        "On the planner's equal dequeues only the length matters: the printed program ends exactly "
        "where (M-1) q + 2(P-1) <= M B.", "1 where it ends", on.runs_literally, "==",
        lambda at: int(on.has_enough(at)), cases.PLANNED_EVENLY, premises=[cases.EQUAL]),
    stated("pipemesh.sec4B.passes", "§IV-B: B_Z3^fwd = ceil(C_DP^p / C_fwd); §III-C, Figure 9: the "
        "forwards of the chunk before", "Each enqueue but the first has the B_Z3^fwd forwards "
        "before it that the planner's gathers overlap with.",
        "forwards of one chunk of one enqueue", lambda at: min(on.queue(at).enqueue), ">=",
        lambda at: on.queue(at).buckets[1], cases.GATHERED, "sec4B.passes-all"),
    stated("pipemesh.sec4B.passes-all", "ours, for PipeMesh §IV-B, with the passes that occur "
        "before the switch (§III-C) read as those of all chunks", "Before each enqueue but the "
        "first come the B_Z3^fwd forwards that the planner's gathers overlap with, of whichever "
        "chunk.", "forwards before it", on.forwards_before, ">=",
        lambda at: on.queue(at).buckets[1], cases.GATHERED,
        slack="all M chunks of the first enqueue come before the second"),
    stated("pipemesh.sec6A.two", "§VI-A", "The enqueue sequences of Table IV contain two elements.",
        "enqueue operations of the planner", lambda at: len(on.sequences(at)[0]), "==", 2,
        cases.QUEUES),
    stated("pipemesh.sec6A.ends", "§VI-A and Algorithm 1 as printed",
        "On the sequences of Table IV's configurations the executor's program ends.",
        "1 where it ends", on.runs_literally, "==", 1, cases.QUEUES),
)  # fmt: skip
_TIME = (
    stated("pipemesh.sec4A.bubble", "§IV-A, of Algorithm 1 as printed",
        "Where it ends, T_bubble is (P-1) C_comp.", "idle ticks per rank",
        lambda at: max(on.printed(at).idle_ticks), "==", _BUBBLE, cases.PRINTED_TIMED),
    stated("pipemesh.sec4A.bubble-repaired", "§IV-A; of Algorithm 1 repaired",
        "T_bubble is (P-1) C_comp.", "idle ticks per rank", on.bubble, "==", _BUBBLE, cases.TIMED),
    stated("pipemesh.sec4A.bubble-halves", "§IV-A; of Algorithm 1 repaired",
        "T_bubble is (P-1) C_comp (two halves).", "idle ticks per rank", on.bubble, "==", _BUBBLE,
        cases.HALVES),
    stated("pipemesh.sec4B.recompute", "§IV-B, Eq. 8; of Algorithm 1 repaired",
        "Recomputing u more ticks of every chunk costs (M B + P - 1) u.", "makespan, longer by",
        lambda at: on.slower_by(at, 2), "==", "2*(v*m + p-1)", cases.FILLED),
    read_as("pipemesh.sec3B.requirement", "§III-B, of Algorithm 1",
        "An element below P adds a bubble.", "idle ticks per rank", [
            reading("as printed, where it ends", "§III-B and Algorithm 1",
                lambda at: max(on.printed(at).idle_ticks), ">=", _MORE, cases.SHORT_PRINTED,
                [cases.CHUNKED]),
            reading("repaired", "§III-B: if the element is smaller", on.bubble, ">=", _MORE,
                cases.SHORT, [cases.CHUNKED]),
        ], "sec3B.requirement-ends"),
    stated("pipemesh.sec3B.requirement-ends",
        "ours, for PipeMesh §III-B, of Algorithm 1 repaired: only at the ends",
        "A first enqueue or a last dequeue below P adds a bubble.", "idle ticks per rank",
        on.bubble, ">=", _MORE, cases.SHORT_ENDS, premises=[cases.CHUNKED]),
    read_as("pipemesh.sec4A.messages", "§IV-A; of Algorithm 1 repaired",
        "Where C_PP < C_fwd, T_PP is 2(P-1) C_PP.", "makespan, longer by", [
            reading("operations of so many more than P microbatches as messages take",
                "§VI-A: more microbatches than ranks hide all but the first and last",
                on.with_latency, "==", _MESSAGES, cases.SPARED, [cases.SHORTER]),
            reading("operations of P microbatches or more", "§III-B's requirement alone",
                on.with_latency, "==", _MESSAGES, cases.LINKS, [cases.SHORTER]),
        ]),
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
    stated("pipemesh.eq2.windows-swapped", "§III-C; of Algorithm 1 repaired",
        "A gather hides behind e_1 forwards, a reduction behind d_S backwards.",
        "ticks added (the reduction takes 5 more)", lambda at: on.late(at, more=5), "==",
        lambda at: _optimizer(at, backward=5), cases.COLLECTIVES),
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
    read_as("pipemesh.eq5", "§IV-A Eq. 3 to 5; of Algorithm 1 repaired",
        "Parameter sharding adds nothing where passes hide it.", "ticks added", [
            reading("the three kinds of collectives share the passes",
                "§IV-B: gathers have the passes that reductions leave", _late(3), "==", _optimizer,
                cases.SHARED),
            reading("each kind has all the passes", "Eq. 3 to 5 without §IV-B's division", _late(3),
                "==", _optimizer, cases.HIDDEN, is_contrast=True),
        ]),
    stated("pipemesh.sec4A.bound", "§IV-A; of Algorithm 1 repaired",
        "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.", "T_iter with ZeRO-1",
        lambda at: on.iteration(at, 1), ">=", "least_iteration(p, v, m, 3, 0, C)",
        cases.COLLECTIVES, premises=[AT_LEAST]),
    stated("pipemesh.sec4A.bound-3", "§IV-A; of Algorithm 1 repaired",
        "T_iter is at least (M B + P - 1) C_comp + T_PP + 2 C_DP.",
        "T_iter with ZeRO-3 and messages of 2 ticks", lambda at: on.iteration(at, 3), ">=",
        "least_iteration(p, v, m, 3, c, C)", cases.LATE, premises=[AT_LEAST]),
    stated("pipemesh.sec4A.gradient-buffers", "§IV-A; of Algorithm 1 repaired",
        "Full gradients of up to two chunks lie on a rank (4/M psi_g bytes).", "chunks",
        lambda at: on.sharded_peak(at, 2), "<=", 2, cases.COLLECTIVES, premises=[UP_TO]),
    stated("pipemesh.sec4A.parameter-buffers", "§IV-A; of Algorithm 1 repaired",
        "Full parameters of up to four chunks lie on a rank (8/M psi_p bytes).", "chunks",
        lambda at: on.sharded_peak(at, 3), "<=", 4, cases.COLLECTIVES, premises=[UP_TO]),
)  # fmt: skip
GROWTH = (
    stated("pipemesh.eq4.magnitude", "§IV-A Eq. 4 and 5",
        "A tick more of C_DP^p adds (R-1)M + SM - 1 ticks, where computation hides none of it.",
        "ticks added", lambda at: on.growth(at, parameters=1), "==", gathers, cases.SLOW),
    stated("pipemesh.eq3.magnitude", "§IV-A Eq. 3",
        "A tick more of C_DP^g adds (S-1)M ticks, where computation hides none of it.",
        "ticks added", lambda at: on.growth(at, gradients=1), "==", reductions, cases.SLOW),
    stated("pipemesh.eq2.magnitude", "§IV-A Eq. 2",
        "A tick more of C_DP adds 2M ticks, where computation hides none of it.", "ticks added",
        lambda at: on.growth(at, whole=1), "==", "2*v", cases.SLOW),
    read_as("pipemesh.sec4A.sum", "§IV-A, after Eq. 5", "T_DP is D_o + D_g + D_p^fwd + D_p^bwd.",
        "ticks added", [
            reading("where computation hides gradients' and parameters' collectives",
                "§IV-B: the planner ensures it, the passes divided", _late(3), "==", planned,
                cases.COVERED),
            reading("at any C_DP, the passes divided", "§IV-B: B_Z3^bwd is what B_Z2 leaves",
                _late(3), "==", planned, cases.TICKED),
            reading("at any C_DP, each kind all passes", "Eq. 3 to 5 without §IV-B's division",
                _late(3), "==", undivided, cases.TICKED, is_contrast=True),
            reading("at most, each kind all passes", "Eq. 3 to 5 without §IV-B's division",
                _late(3), "<=", undivided, cases.TICKED, is_contrast=True),
        ]),
    stated("pipemesh.sec4A.sum-planned",
        "ours, for PipeMesh §IV-A with §IV-B: bubbles and passes to spare hide more",
        "With the passes divided as the planner does T_DP is at most D_o + D_g + D_p.",
        "ticks added", _late(3), "<=", planned, cases.TICKED),
)  # fmt: skip
_BYTES = (
    stated("pipemesh.sec4A.gradients", "§IV-A",
        "M_g is up to 2(psi - psi_g) + (2/D + 4/M) psi_g bytes.", "bytes per parameter", _held(2),
        "<=", "gradient_bytes(M, D, share/36)", cases.SHARES, premises=[UP_TO]),
    stated("pipemesh.sec4A.parameters", "§IV-A",
        "M_p is up to 2(psi - psi_p) + (2/D + 8/M) psi_p bytes.", "bytes per parameter", _held(3),
        "<=", "parameter_bytes(M, D, share/36)", cases.SHARES, premises=[UP_TO]),
    read_as("pipemesh.sec4A.few-chunks", "§IV-A",
        "M_p is no smaller than 2 psi up to M = 4, so ZeRO-3 begins above it.",
        "1 where ZeRO-3 saves parameter memory", [
            reading("up to M = 4 it saves nothing", "§IV-A: no smaller than 2 psi", _saves, "==", 0,
                cases.FEW),
            reading("above M = 4 it always saves", "§IV-A says only where it is not enabled",
                _saves, "==", 1, cases.MORE, is_contrast=True),
        ]),
    stated("pipemesh.sec4A.enough-chunks", "ours, for PipeMesh §IV-A: M > 4 D/(D-1)",
        "ZeRO-3 saves parameter memory exactly where 1/D + 4/M < 1.", "1 where it saves", _saves,
        "==", "1 if M*(D-1) > 4*D else 0", cases.MORE),
    stated("pipemesh.sec6A.falcon-mesh", "§VI-A and Table IV",
        "With 43.5 MB a layer and q = 12, PipeMesh's M_a on Falcon is 11.6 GB.", "GiB",
        # Chunks of 3 layers.
        lambda _: max(on.measured({"p": 4, "v": 8, "m": 24, "q": 12}).peak_activations)
        * 3 * Fraction("43.5") / 1024, "~1", "11.6", cases.ONE),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_ORDER, *PLANNER, *_TIME, *_COMMUNICATION, *GROWTH, *_BYTES)
