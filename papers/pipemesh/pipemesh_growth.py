"""How much communication PipeMesh's Eq. 2 to 5 count: their magnitudes, measured on schedules.

Symbols as in ``pipemesh_schedules``; C_g and C_p the ticks of a chunk's sharded gradients and
parameters (C_DP^g and C_DP^p), which are C_DP where all are sharded. The equations subtract from
each collective what B_Z2 or B_Z3 passes beside it hide. All collectives of a rank share one NIC, so
that one pass hides one collective: the passes must be divided, as the planner of section IV-B does.
Then the sum is exact where it hides all but D_o, as it does on purpose, and else a bound. What the
equations count exactly is how often each collective runs:

    D_o: 2M    D_g: (S-1)M    D_p forward: (R-1)M    D_p backward: S M - 1

Where communication is all that anyone waits for (C_DP beyond all computation) a tick more of it
lengthens the iteration by just that many ticks. Sequences are filled, M >= 1.

Source: Li et al., "PipeMesh" (TPDS 2025) section IV-A, Eq. 2 to 5.
"""

from __future__ import annotations

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Choice, Domain, Params, domain
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh.pipemesh_schedules import late, sequences, with_collectives
from bubbleproof.theory.pipelines.sharding import Sharding

LENGTHS = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2))


def _equal(text: str, **ticks: Choice) -> Domain:
    """Equal operations of P microbatches or more, with C_DP of the given ticks or none."""

    def operations(at: Params) -> list[tuple[int, int, int, int]]:
        m = at["m"]
        return [(m // R, m // S, R, S) for R, S in LENGTHS if max(R, S) * at["p"] <= m]

    shapes = "P in 2 3, M <= 3, B in 4 6, 1 to 3 equal operations each, filled"
    columns: dict[str, Choice] = {
        "p_m": ((2, 4), (2, 6), (3, 6)),
        "v": (1, 2, 3),
        "e_d_R_S": operations,
        **ticks,
    }
    return domain(f"{shapes}{text}", columns)


SLOW = _equal("")
TICKED = _equal(", C_DP in 1 4 9", C=(1, 4, 9))
COVERED = domain(
    "P in 2 3, M in 2 3, B in 6 12, one or two equal operations each, filled; C_DP in 1 2 and at "
    "most a third of an operation's forwards",
    p_m=((2, 6), (2, 12), (3, 6), (3, 12)),
    v=(2, 3),
    e_d_R_S="((m, m, 1, 1), (m//2, m//2, 2, 2))",
    C=(1, 2),
    where="3*C <= e",
)


def lengths(at: Params) -> tuple[int, int]:
    """(R, S)."""
    e, d = sequences(at)
    return len(e), len(d)


def gathers(at: Params) -> int:
    """(R-1) M + S M - 1."""
    enqueues, dequeues = lengths(at)
    return forms.forward_gathers(at["v"], enqueues) + forms.backward_gathers(at["v"], dequeues)


def reductions(at: Params) -> int:
    """(S-1) M."""
    return forms.reductions(at["v"], lengths(at)[1])


def reduction_passes(at: Params) -> int:
    """B_Z2 as the planner sets it: ceil(C_DP / C_bwd), at most the least dequeue (tB = 2)."""
    return min(-(-at["C"] // 2), min(sequences(at)[1]))


def total(at: Params, reducing: int, gathering: int) -> int:
    """D_o + D_g + D_p with B_Z2 and B_Z3^bwd so many passes, and B_Z3^fwd the least enqueue."""
    ticks, (e, d) = at["C"], sequences(at)
    return (
        forms.optimizer_ticks(at["v"], e, d, (ticks, ticks))
        + reductions(at) * forms.exposed(ticks, 2 * reducing)
        + forms.forward_gathers(at["v"], len(e)) * forms.exposed(ticks, min(e))
        + forms.backward_gathers(at["v"], len(d)) * forms.exposed(ticks, 2 * gathering)
    )


def undivided(at: Params) -> int:
    """The sum where reductions and gathers may have all passes of an operation, both."""
    passes = min(sequences(at)[1])
    return total(at, passes, passes)


def planned(at: Params) -> int:
    """The sum where the gathers have what the reductions leave, as section IV-B divides them."""
    passes = reduction_passes(at)
    return total(at, passes, min(sequences(at)[1]) - passes)


def _iteration(at: Params, zero: int, whole: int, gradients: int, parameters: int) -> int:
    """T_iter with collectives of these ticks: C_DP, C_g, C_p."""
    sharding = Sharding(
        zero=zero, gather=whole, reduce=whole, regather=parameters, rereduce=gradients
    )
    return with_collectives(at, sharding)


def growth(
    at: Params, zero: int, *, whole: int = 0, gradients: int = 0, parameters: int = 0
) -> int:
    """Ticks of T_iter that one tick more of each collective named adds, all beyond computation."""
    slow = 3 * (at["v"] * at["m"] + at["p"])
    before = _iteration(at, zero, slow, slow, slow)
    return _iteration(at, zero, slow + whole, slow + gradients, slow + parameters) - before


CLAIMS: tuple[PaperClaim, ...] = (
    stated("pipemesh.eq4.magnitude", "§IV-A Eq. 4 and 5",
           "A tick more of C_DP^p adds (R-1)M + SM - 1 ticks, where computation hides none of it.",
           "ticks added", lambda at: growth(at, 3, parameters=1), "==", gathers, SLOW),
    stated("pipemesh.eq3.magnitude", "§IV-A Eq. 3",
           "A tick more of C_DP^g adds (S-1)M ticks, where computation hides none of it.",
           "ticks added", lambda at: growth(at, 3, gradients=1), "==", reductions, SLOW),
    stated("pipemesh.eq2.magnitude", "§IV-A Eq. 2",
           "A tick more of C_DP adds 2M ticks, where computation hides none of it.", "ticks added",
           lambda at: growth(at, 3, whole=1), "==", "2*v", SLOW),
    read_as("pipemesh.sec4A.sum", "§IV-A, after Eq. 5",
            "T_DP is D_o + D_g + D_p^fwd + D_p^bwd.", "ticks added", [
                reading("where computation hides gradients' and parameters' collectives",
                        "§IV-B: the planner ensures it, the passes divided",
                        lambda at: late(at, zero=3), "==",
                        planned,
                        COVERED),
                reading("at any C_DP, the passes divided", "§IV-B: B_Z3^bwd is what B_Z2 leaves",
                        lambda at: late(at, zero=3), "==", planned, TICKED),
                reading("at any C_DP, each kind all passes", "Eq. 3 to 5 without §IV-B's division",
                        lambda at: late(at, zero=3), "==", undivided, TICKED, is_contrast=True),
                reading("at most, each kind all passes", "Eq. 3 to 5 without §IV-B's division",
                        lambda at: late(at, zero=3), "<=", undivided, TICKED, is_contrast=True),
            ]),
    stated("pipemesh.sec4A.sum-planned",
           "ours, for PipeMesh §IV-A with §IV-B: bubbles and passes to spare hide more",
           "With the passes divided as the planner does T_DP is at most D_o + D_g + D_p.",
           "ticks added", lambda at: late(at, zero=3), "<=", planned, TICKED),
)  # fmt: skip
