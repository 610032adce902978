"""Lower bounds for *any* schedule: starts are free symbols, bound only by the rules of a problem.

Each bound is an induction whose base, step and end are obligations over the few starts they speak
of; ``any_...`` below are such starts or ends, any real numbers that respect the rules.

Makespan. On the last rank every forward belongs to a stage g >= p-1, so it starts at (p-1) tF or
later (head, induction over stages). From there the rank works through n forwards and n backwards
one at a time (busy, induction over tasks in time order). The last of them is a backward, since each
forward is followed by its own; p-1 more stages come after it (tail). So no schedule of n pieces per
rank ends before (n+p-1)P: GPipe, 1F1B (n = m), TeraPipe (n = ms), breadth-first and interleaved
(n = mv) are all optimal when they reach it.

Memory. Let rank c hold at most K activations, microbatches numbered so that they run in index order
(``verify.certificates.index_order`` shows that any schedule can be renumbered so). Then F(c,j)
starts after B(c,j-K) ends. Whatever ticks stages and links take, let head lead from the first rank
to rank r, tail back from it, and trip from rank c to the last and back. An activation lives at
least trip_c on rank c (round trip), so microbatches from qK on start there at head_c + q trip_c or
later (windows, induction over q), and rank r >= c has all m - qK of them to do then.

Of stages alike, with links that take u ticks to the next rank and w back, L together, that makes
(m+p-1)P + (p-1)L + q((p-c-K)P + (p-1-c)L) ticks on the last rank. For K < min(p-c, m) this exceeds
what it is without a cap, for L = 0 1F1B's: no schedule as fast as 1F1B holds fewer activations than
1F1B on any rank.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.papers.theorems.closed_form import PAIR, SHAPE, TB, TF, I, M, P
from bubbleproof.papers.theorems.terms import LogicFormula, Term, index, time
from bubbleproof.papers.theorems.theorem import Obligation, Theorem

G, A, B, Q, CAP = (index(name) for name in ("g", "a", "b", "q", "K"))
U, W = time("u"), time("w")
LINKS = U + W
HEAD_C, HEAD_R, TAIL_R, TRIP = (time(name) for name in ("head_c", "head_r", "tail_r", "trip_c"))
F_R, B_R = time("f_r"), time("b_r")
HERE, NEXT, END, HEAD = (time(f"any_{name}") for name in ("here", "next", "end", "head"))
_ANY = (
    "tF, tB > 0, equal on all stages",
    "links take 0 ticks",
    "full backwards, run on a rank one task at a time",
)


def _step(
    name: str, premises: tuple[LogicFormula, ...], goal: LogicFormula, *hints: tuple[Term, Term]
) -> Obligation:
    return Obligation(name=name, premises=(*SHAPE, *premises), goal=goal, hints=hints)


def chain_steps() -> tuple[Obligation, ...]:
    """Forwards down the stages, backwards up: g stages take g tF, and g tB."""
    return (
        _step("head, base: stage 0 starts at 0 or later", (HERE >= 0,), 0 * G * TF <= HERE),
        _step("head, step: a stage later is a forward later",
              (G >= 0, G * TF <= HERE, HERE + TF <= NEXT), (G + 1) * TF <= NEXT),
        _step("head, end: on the last rank every stage is p-1 or later",
              (G >= P - 1, G * TF <= HERE), (P - 1) * TF <= HERE, (G - P + 1, TF)),
        _step("tail, step: a stage earlier ends a backward earlier",
              (G >= 0, HERE + G * TB <= END, NEXT + TB <= HERE), NEXT + (G + 1) * TB <= END),
        _step("tail, end: on the last rank p-1 stages or more follow",
              (G >= P - 1, HERE + G * TB <= END), HERE + (P - 1) * TB <= END, (G - P + 1, TB)),
    )  # fmt: skip


def busy_steps(forward: Term = TF, backward: Term = TB) -> tuple[Obligation, ...]:
    """After a forwards and b backwards since HEAD, at least the ticks of all have passed."""
    done = HEAD + A * forward + B * backward
    counts = (A >= 0, B >= 0)
    return (
        _step("busy, step: one more forward", (*counts, done <= HERE, NEXT >= HERE),
              NEXT + forward >= HEAD + (A + 1) * forward + B * backward),
        _step("busy, step: one more backward", (*counts, done <= HERE, NEXT >= HERE),
              NEXT + backward >= HEAD + A * forward + (B + 1) * backward),
        _step("the last task is a backward: each forward ends before its own begins",
              (HERE + forward <= NEXT, backward > 0), NEXT + backward > HERE + forward),
    )  # fmt: skip


def makespan_theorem(makespan: Term | None = None) -> Theorem:
    """No schedule of n forwards and n backwards per rank ends before (n+p-1)P."""
    bound = (M + P - 1) * PAIR if makespan is None else makespan
    return Theorem(
        id="makespan-bound",
        statement=(
            "Any schedule of n full forwards and backwards per rank on p ranks in loop placement "
            "takes at least (n+p-1)P ticks, however much memory it has"
        ),
        assumptions=("p, n >= 1", *_ANY, "stage g on rank g mod p"),
        symbols="p ranks, n pieces per rank (written m), g stage, tF tB ticks (real), P = tF + tB",
        argument="Head, busy time and tail of the last rank, each by induction",
        obligations=(
            *chain_steps(),
            *busy_steps(),
            _step(
                "head, busy time and tail add up",
                (HERE >= (P - 1) * TF + M * TF + M * TB, HERE + (P - 1) * TB <= END),
                bound <= END,
            ),
        ),
    )


DOWN, UP = TF + U, TB + W


def _trip(i: Term) -> Term:
    """(p-i)P + (p-1-i)L: from rank i to the last and back, in ticks."""
    return (P - i) * PAIR + (P - 1 - i) * LINKS


def stages_bound(
    q: Term | int,
    head: Term = HEAD_R,
    tail: Term = TAIL_R,
    trip: Term = TRIP,
    work: Term = F_R + B_R,
) -> Term:
    """q trip + (m - qK) work + head + tail ticks, for rank r where rank c holds K = ``CAP``."""
    return q * trip + (M - q * CAP) * work + head + tail


def stages_theorem(bound: Callable[[Term | int], Term] = stages_bound) -> Theorem:
    """Rank c holding at most K activations makes every rank r >= c wait, whatever stages take."""
    first, last_start, last_end = time("any_F_c"), time("any_F_last"), time("any_end_B_last")
    released, begun, takes = time("any_end_B_c"), time("any_F_r"), time("any_stage_and_link")
    there, work, back, far = (time(f"any_{name}") for name in ("there", "work", "back", "far"))
    window = HEAD_C + Q * TRIP
    at = (Q >= 0, Q * CAP <= M - 1, CAP >= 1, F_R > 0, B_R > 0)
    return Theorem(
        id="stages-bound",
        statement=(
            "Any schedule of m full forwards and backwards per rank, one stage per rank, that "
            "holds at most K activations on rank c takes at least "
            "q trip_c + (m-qK)(f_r+b_r) + head_r + tail_r ticks for every rank r >= c and every q "
            "with qK < m, whatever ticks stages and links take"
        ),
        assumptions=(
            "p, m, K >= 1, 0 <= c <= r < p",
            "stages take more than 0 ticks and links 0 or more, each of its own",
            "full backwards, run on a rank one task at a time",
            "microbatches are identical and numbered in the order they run "
            "(verify.certificates.index_order)",
        ),
        symbols=(
            "m microbatches, K activations, q windows, f_r b_r ticks of rank r, head_r and tail_r "
            "ticks from the first rank to r and back, trip_c from rank c to the last and back"
        ),
        argument=(
            "Ways, round trip, windows, late head, busy time of rank r, tail; by induction. In any "
            "order: Coq, stages_bound of proofs/StagesBound.v"
        ),
        obligations=(
            _step("ways, step: a stage and its link later is so many ticks later",
                  (first + far <= HERE, HERE + takes <= NEXT), first + (far + takes) <= NEXT),
            _step("round trip: rank c to the last and back",
                  (TRIP.equals(there + work + back), last_start >= first + there,
                   last_end >= last_start + work, released >= last_end + back),
                  released >= first + TRIP),
            _step("windows, base", (HERE >= HEAD_C,), HEAD_C + 0 * Q * TRIP <= HERE),
            _step("windows, step: K microbatches later is a round trip later",
                  (*at, window <= HERE, released >= HERE + TRIP, released <= NEXT),
                  HEAD_C + (Q + 1) * TRIP <= NEXT),
            _step("late head: microbatches from qK on reach rank r late",
                  (*at, window <= HERE, NEXT >= HERE, begun >= NEXT + (HEAD_R - HEAD_C)),
                  begun >= HEAD_R + Q * TRIP),
            *busy_steps(F_R, B_R),
            _step("late head, busy time and tail of rank r add up",
                  (*at, HEAD_R + Q * TRIP + (M - Q * CAP) * (F_R + B_R) <= HERE,
                   HERE + TAIL_R <= END),
                  bound(Q) <= END),
            _step("of stages alike on the last rank it is told by their pairs", (),
                  stages_bound(Q, (P - 1) * DOWN, (P - 1) * UP, _trip(I), PAIR)
                  .equals(memory_bound(Q))),
        ),
    )  # fmt: skip


def memory_bound(q: Term | int, i: Term = I, most: Term = CAP, links: Term = LINKS) -> Term:
    """Of stages alike: (m+p-1)P + (p-1)L + q((p-i-K)P + (p-1-i)L) ticks, K = ``most`` on rank i."""
    price = (P - i - most) * PAIR + (P - 1 - i) * links
    return (M + P - 1) * PAIR + (P - 1) * links + q * price
