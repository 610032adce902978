"""PipeMesh's claims on its order: sections II-A and IV-A, and Algorithm 1 as printed and repaired.

Symbols as in ``pipemesh``. Where the printed program ends, and on which of the planner's sequences,
is in ``pipemesh_deadlock`` and ``pipemesh_planned``.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import UP_TO
from bubbleproof.papers.pipemesh import pipemesh_domains as cases
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh import pipemesh_schedules as on
from bubbleproof.papers.pipemesh.pipemesh_schedules import sequences
from bubbleproof.theory.model.actions import Kind


def consecutive(at: Params) -> int:
    """Forwards in a row: with the buffer for e_1, and at most all M B."""
    q = forms.buffer(*sequences(at))
    return min(forms.warm_up_forwards(at["p"], at["v"], q, at["r"]) + 1, at["v"] * at["m"])


def _chunk_claim(name: str, line: int, way: str, kind: Kind, printed: str) -> PaperClaim:
    """Which chunk comes after chunk k, by a line of Algorithm 1."""

    def after(at: Params) -> int:
        return on.next_chunk(at, kind)

    return read_as(
        f"pipemesh.alg1.next-{name}",
        f"Algorithm 1 line {line}",
        f"The chunk after chunk k is {printed} mod M {way}.",
        "chunk",
        [
            reading(
                "numbers modulo M, where M is 0",
                f"line {line}: mod M",
                lambda at: after(at) % at["v"],
                "==",
                f"{printed} % v",
                cases.CHUNKS,
            ),
            reading(
                "numbers from 1 to M",
                "lines 5 and 9 count so",
                after,
                "==",
                f"{printed} % v",
                cases.CHUNKS,
            ),
        ],
    )


CLAIMS: tuple[PaperClaim, ...] = (
    read_as("pipemesh.sec2A.consecutive", "§II-A",
            "Depth first, the first stage performs (M-1)P + 2(P-1) consecutive forwards.",
            "forwards", [
                reading("in the warm-up, before one forward and one backward alternate",
                        "§II-A: then each stage enters the 1F1B phase",
                        lambda at: on.consecutive(on.depth_first(at), at) - 1, "==",
                        "(v-1)*p + 2*(p-1)", cases.DEPTH_FIRST),
                reading("before the first backward", "§IV-A counts these: one more",
                        lambda at: on.consecutive(on.depth_first(at), at), "==",
                        "(v-1)*p + 2*(p-1)", cases.DEPTH_FIRST),
            ]),
    stated("pipemesh.sec4A.forwards", "§IV-A, of Algorithm 1 as printed",
           "Where it ends, stage i performs up to e_1(M-1) + 2(P-i) + 1 consecutive forwards.",
           "forwards before the first backward", on.printed_forwards, "<=",
           "warm_up_forwards(p, v, e, r) + 1", cases.PRINTED, premises=[UP_TO]),
    stated("pipemesh.sec4A.forwards-repaired",
           "ours, for PipeMesh §IV-A, of Algorithm 1 repaired: e_1 is too few where dequeues run "
           "ahead of enqueues, and there are no more than M B",
           "Stage i performs min(q(M-1) + 2(P-i) + 1, M B) consecutive forwards, where q is the "
           "most microbatches in the queue when a dequeue begins.",
           "forwards before the first backward", lambda at: on.consecutive(on.mesh(at), at), "==",
           consecutive, cases.STAGES),
    read_as("pipemesh.sec4A.peak", "§IV-A, of Algorithm 1 as printed",
            "Where it ends, M_a is the activations of e_1(M-1) + 2(P-i) + 1 forwards.",
            "peak activations of a chunk", [
                reading("up to that many", "§IV-A: up to so many consecutive forwards",
                        lambda at: on.printed(at).peak_activations[at["r"]], "<=",
                        "warm_up_forwards(p, v, e, r) + 1", cases.PRINTED, [UP_TO]),
                reading("just that many, however few there are", "§IV-A without its up to",
                        lambda at: on.printed(at).peak_activations[at["r"]], "==",
                        "warm_up_forwards(p, v, e, r) + 1", cases.PRINTED, is_contrast=True),
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
           "peak activations of a chunk", on.peak_on, "==", consecutive, cases.STAGES),
    read_as("pipemesh.alg1.runs", "Algorithm 1 and §V, on the sequences that §III-B allows",
            "For filled sequences the executor's program ends.", "1 where it does", [
                reading("with many more microbatches than ranks, and several chunks",
                        "§I: B >> P; §II-A: the model is divided into chunks", on.runs_literally,
                        "==", 1, cases.MANY_FILLED, [cases.MANY, cases.SEVERAL]),
                reading("on any sequences", "§III-B", on.runs_literally, "==", 1, cases.FILLED),
            ], "alg1.ships"),
    stated("pipemesh.alg1.ships",
           "ours, for PipeMesh Algorithm 1 repaired: n_fwd = min((M-1) q + 2(P-i), M B)",
           "For filled sequences the program ends.", "1 where it does", on.runs, "==", 1,
           cases.FILLED),
    _chunk_claim("forward", 20, "forwards", Kind.F, "(k+1)"),
    _chunk_claim("backward", 28, "backwards", Kind.B, "(k-1)"),
)  # fmt: skip
