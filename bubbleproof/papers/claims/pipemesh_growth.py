"""How much communication PipeMesh's Eq. 2 to 5 count: their magnitudes, measured on schedules.

Symbols as in ``pipemesh_schedules``; C_g and C_p the ticks of a chunk's sharded gradients and
parameters (C_DP^g and C_DP^p), which are C_DP where all are sharded. The equations subtract from
each collective what B_Z2 or B_Z3 passes beside it hide. All collectives of a rank share one NIC, so
that one pass hides one collective: the passes must be divided, as the planner of section IV-B does.
Then the sum is a bound. What the equations count exactly is how often each collective runs:

    D_o: 2M    D_g: (S-1)M    D_p forward: (R-1)M    D_p backward: S M - 1

Where communication is all that anyone waits for (C_DP beyond all computation) a tick more of it
lengthens the iteration by just that many ticks. Sequences are filled, M >= 1.

Source: Li et al., "PipeMesh" (TPDS 2025) section IV-A, Eq. 2 to 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bubbleproof.papers.claims.claim import Claim, Domain, Params, listed
from bubbleproof.papers.claims.pipemesh import hidden, optimizer_part
from bubbleproof.papers.claims.pipemesh_schedules import family, late, mesh, sequences
from bubbleproof.papers.claims.pipemesh_shapes import SHAPE, Shape
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.tpipe_statement import stated
from bubbleproof.theory.pipelines.sharding import Sharding


def _shapes() -> Iterator[Shape]:
    lengths = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2))
    for (p, m), v, (R, S) in product(((2, 4), (2, 6), (3, 6)), (1, 2, 3), lengths):  # noqa: N806 - the paper's letters
        if max(R, S) * p <= m:
            yield p, m, v, m // R, m // S, R, S


def _cases(text: str, ticks: tuple[int, ...]) -> Domain:
    """The shapes, with C_DP of the given ticks or none."""

    def rows() -> Iterator[Row]:
        chosen: list[Row] = [(C,) for C in ticks] or [()]
        for shape, own in product(_shapes(), chosen):
            yield (*shape, *own)

    names = (*SHAPE, "C") if ticks else SHAPE
    shapes = "P in 2 3, M <= 3, B in 4 6, 1 to 3 equal operations each, filled"
    return listed(f"{shapes}{text}", names, rows)


SLOW = _cases("", ())
TICKED = _cases(", C_DP in 1 4 9", (1, 4, 9))


def lengths(at: Params) -> tuple[int, int, int]:
    """(R, S, M)."""
    e, d = sequences(at)
    return len(e), len(d), at["v"]


def forward_times(at: Params) -> int:
    """(R-1) M, Eq. 4."""
    enqueues, _, chunks = lengths(at)
    return (enqueues - 1) * chunks


def backward_times(at: Params) -> int:
    """S M - 1, Eq. 5."""
    _, dequeues, chunks = lengths(at)
    return dequeues * chunks - 1


def gradient_times(at: Params) -> int:
    """(S-1) M, Eq. 3."""
    _, dequeues, chunks = lengths(at)
    return (dequeues - 1) * chunks


def reduction_passes(at: Params) -> int:
    """B_Z2 as the planner sets it: ceil(C_DP / C_bwd), at most the least dequeue (tB = 2)."""
    return min(-(-at["C"] // 2), min(sequences(at)[1]))


def total(at: Params, reductions: int, gathers: int) -> int:
    """D_o + D_g + D_p with B_Z2 and B_Z3^bwd so many passes, and B_Z3^fwd the least enqueue."""
    ticks, e = at["C"], sequences(at)[0]
    return (
        optimizer_part(at, ticks, ticks)
        + gradient_times(at) * hidden(ticks, 2 * reductions)
        + forward_times(at) * hidden(ticks, min(e))
        + backward_times(at) * hidden(ticks, 2 * gathers)
    )


def undivided(at: Params) -> int:
    """The sum where reductions and gathers may have all passes of an operation, both."""
    passes = min(sequences(at)[1])
    return total(at, passes, passes)


def planned(at: Params) -> int:
    """The sum where the gathers have what the reductions leave, as section IV-B divides them."""
    reductions = reduction_passes(at)
    return total(at, reductions, min(sequences(at)[1]) - reductions)


def _iteration(at: Params, zero: int, whole: int, gradients: int, parameters: int) -> int:
    """T_iter with collectives of these ticks: C_DP, C_g, C_p."""
    sharding = Sharding(
        zero=zero, gather=whole, reduce=whole, regather=parameters, rereduce=gradients
    )
    pipeline = family(at).sharded(mesh(at).pipeline, sharding)
    problem = pipeline.problem()
    schedule = family(at).schedule(pipeline, problem)
    ticks = problem.duration[problem.locate(schedule.program.actions)]
    return int((schedule.start + ticks).max())


def growth(
    at: Params, zero: int, *, whole: int = 0, gradients: int = 0, parameters: int = 0
) -> int:
    """Ticks of T_iter that one tick more of each collective named adds, all beyond computation."""
    slow = 3 * (at["v"] * at["m"] + at["p"])
    before = _iteration(at, zero, slow, slow, slow)
    return _iteration(at, zero, slow + whole, slow + gradients, slow + parameters) - before


CLAIMS: tuple[Claim, ...] = (
    stated("pipemesh.eq4.magnitude", "§IV-A Eq. 4 and 5", "A tick more of C_DP^p adds (R-1)M + SM "
           "- 1 ticks, where computation hides none of it.", "ticks added",
           lambda at: forward_times(at) + backward_times(at), "==",
           lambda at: growth(at, 3, parameters=1), SLOW),
    stated("pipemesh.eq3.magnitude", "§IV-A Eq. 3", "A tick more of C_DP^g adds (S-1)M ticks, "
           "where computation hides none of it.", "ticks added", gradient_times, "==",
           lambda at: growth(at, 3, gradients=1), SLOW),
    stated("pipemesh.eq2.magnitude", "§IV-A Eq. 2", "A tick more of C_DP adds 2M ticks, where "
           "computation hides none of it.", "ticks added", lambda at: 2 * at["v"], "==",
           lambda at: growth(at, 3, whole=1), SLOW),
    stated("pipemesh.sec4A.sum", "§IV-A, after Eq. 5", "T_DP is D_o + D_g + D_p (B_Z2 and B_Z3 "
           "each all passes of an operation).", "ticks added", undivided, "==",
           lambda at: late(at, zero=3), TICKED, "sec4A.sum-planned"),
    stated("pipemesh.sec4A.sum-most", "§IV-A, after Eq. 5", "T_DP is at most D_o + D_g + D_p "
           "(B_Z2 and B_Z3 each all passes of an operation).", "ticks added", undivided, "<=",
           lambda at: late(at, zero=3), TICKED, "sec4A.sum-planned"),
    stated("pipemesh.sec4A.sum-divided", "§IV-A with §IV-B", "T_DP is D_o + D_g + D_p with B_Z2 = "
           "ceil(C_DP / C_bwd) and B_Z3^bwd the passes that are left.", "ticks added", planned,
           "==", lambda at: late(at, zero=3), TICKED, "sec4A.sum-planned"),
    stated("pipemesh.sec4A.sum-planned", "§IV-A with §IV-B, corrected: bubbles and passes to spare "
           "hide more", "With the passes so divided T_DP is at most D_o + D_g + D_p.",
           "ticks added", planned, "<=", lambda at: late(at, zero=3), TICKED),
)  # fmt: skip
