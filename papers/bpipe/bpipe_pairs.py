"""BPipe's Algorithm 1 to the letter, for all p, s and m, on 1F1B drawn in pairs.

Stage i at tF = tB = 1: p-i-1 forwards, then a forward and a backward in turn, each forward right
before its backward, and backwards with a bubble between them in the end:

    F(i,j) = i + j                for j < p-i-1
             i + 2j               otherwise
    B(i,j) = 2p-1-i + 2j

On evictor s <= (p-4)/2 let mu = ceil((p+2)/2), N = min(p-s, m) and n = N - mu > 0 (otherwise
nothing moves). Lines 8 to 13 evict x-1 beside F(x) for mu-1 <= x < mu-1+n = N-1. Lines 14 to 24 at
B(y), y away: load y beside the slot before; where that is a forward, F(y+p-s-1), evict beside the
slot before it, which is B(y-1), the microbatch of the third slot before, F(y+p-s-2).

Let R activations lie on the evictor and E of its own on the acceptor when a slot starts, and let
the 0 or 1 a(y) say whether microbatch y is away. Of a pair F(y+p-s-1), B(y) there is one state
R = mu-1-a(y), E = n+a(y): the forward's slot loads y if a(y), the backward's evicts if a(y+1). No
count of what is away is needed: which microbatches they are is up to the algorithm.

Source: BPipe (ICML 2023) section 3.4, Algorithm 1; line numbers are the paper's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.bpipe.bpipe_theorem import MU, ROUNDED_UP, E, N, R, S, X, warmup_state
from bubbleproof.papers.theorems.closed_form import M, P
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    index,
    negate,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

RANK, J, K, Y, A, NEXT = (index(name) for name in ("i", "j", "k", "y", "a", "b"))
MOVED, WARM_UP = N - MU, P - S - 1
EVICTOR = (P >= 4, S >= 0, 2 * S <= P - 4, *ROUNDED_UP)
PEAK = (N <= P - S, N <= M, any_of(N.equals(P - S), N.equals(M)), N >= MU + 1)
STAGE = (P >= 1, M >= 1, RANK >= 0, RANK <= P - 1, J >= 0, J <= M - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAlgorithm:
    """Where line 22 looks for its victim, when the warm-up ends, and what a rank may hold."""

    victim: int = 3
    evicts: Callable[[Term], LogicFormula] = lambda x: all_of(x >= MU - 1, x <= N - 2)
    most: Term = MU


def forward(i: Term, j: Term) -> Term:
    """The slot of F(i, j)."""
    return choose(j <= P - i - 2, i + j, i + 2 * j)


def backward(i: Term, j: Term) -> Term:
    """The slot of B(i, j)."""
    return 2 * P - 1 - i + 2 * j


def drawing() -> list[ObligationPart]:
    """The slots are 1F1B's: inputs are there, one action in a slot, p-i activations at most."""
    i = RANK
    return [
        ("F after F of the rank before", (*STAGE, i >= 1), forward(i, J) > forward(i - 1, J)),
        ("B after B of the rank behind", (*STAGE, i <= P - 2), backward(i, J) > backward(i + 1, J)),
        ("the last rank's B after its F", (*STAGE, i.equals(P - 1)),
         backward(i, J) > forward(i, J)),
        ("forwards follow each other", (*STAGE, J >= 1), forward(i, J) > forward(i, J - 1)),
        ("a forward and a backward share no slot", (*STAGE, K >= 0, K <= M - 1),
         negate(forward(i, J).equals(backward(i, K)))),
        ("no more than p-i activations", (*STAGE, P - i <= J),
         forward(i, J) > backward(i, J - P + i)),
        ("C has 2(m+p-1) slots", (P >= 1, M >= 1),
         (backward(0 * i, M - 1) + 1).equals(2 * (M + P - 1))),
    ]  # fmt: skip


def decisions(form: PrintedAlgorithm) -> list[ObligationPart]:
    """What the lines of the algorithm name: forwards, bubbles and victims that are there."""
    pair, away = Y + WARM_UP, (Y >= MU - 2, Y >= 1, Y <= M - 1)
    beside, other = backward(S, Y) - 1, (J >= 0, J <= M - 1)
    has_forward, has_none = pair <= M - 1, pair >= M
    return [
        ("line 11: C_{i-1} is the forward before", (form.evicts(X),),
         all_of(X >= 1, X <= WARM_UP - 1, forward(S, X - 1).equals(forward(S, X) - 1))),
        ("what is evicted is mu-2 or later, never 0", (form.evicts(X), *away),
         all_of(X - 1 >= MU - 2, pair - 1 >= MU - 2, MU - 2 >= 1)),
        ("no microbatch is evicted twice", (form.evicts(X), *away), pair - 1 > X - 1),
        ("line 19: C_{i-1} is the pair's forward", (*away, has_forward),
         forward(S, pair).equals(beside)),
        ("line 19: C_{i-1} is a bubble without one", (*away, has_none, *other),
         all_of(negate(forward(S, J).equals(beside)), negate(backward(S, J).equals(beside)))),
        ("line 22: C_{i-3} is the forward of the pair before", (*away, has_forward),
         forward(S, pair - 1).equals(backward(S, Y) - form.victim)),
        ("line 22: T_{i-2} is beside the backward before", (*away,),
         (backward(S, Y) - 2).equals(backward(S, Y - 1))),
        ("an evicted microbatch is loaded later", (*away, has_forward),
         backward(S, pair - 1) - 1 > backward(S, Y - 1)),
        ("loads and evictions share no slot", (*away, *other),
         negate((backward(S, Y) - 1).equals(backward(S, J)))),
        ("the warm-up ends before the first load", (form.evicts(X), *away),
         backward(S, Y) - 1 > forward(S, X)),
    ]  # fmt: skip


def _within(form: PrintedAlgorithm, resident: Term, evicted: Term) -> LogicFormula:
    """Both ranks during a slot, the acceptor's own s+1 included."""
    return all_of(resident <= form.most, evicted + S + 1 <= form.most)


def _are(first: tuple[Term, Term], second: tuple[Term, Term]) -> LogicFormula:
    return all_of(*(one.equals(other) for one, other in zip(first, second, strict=True)))


def warmup(form: PrintedAlgorithm) -> list[ObligationPart]:
    """``bpipe.warmup_state`` is an invariant until the pairs, or the backwards, begin."""
    state, evicts = warmup_state(X), choose(form.evicts(X), 1, 0)
    after = state[0] + 1 - evicts, state[1] + evicts
    full, few = (N.equals(P - S),), (N.equals(M), N <= WARM_UP)
    return [
        ("warm-up: within the objective", (X >= 0, X <= N - 1),
         _within(form, state[0] + 1, state[1] + evicts)),
        ("warm-up: one forward more", (X >= 0, X <= N - 2), _are(after, warmup_state(X + 1))),
        ("the first pair starts from mu-1 and n", (*full, X.equals(WARM_UP)),
         _are(state, (MU - 1, MOVED))),
        ("without a pair backwards start from mu and n", (*few, X.equals(N - 1)),
         _are(after, (MU, MOVED))),
    ]  # fmt: skip


def pairs(form: PrintedAlgorithm) -> list[ObligationPart]:
    """R = mu-1-a and E = n+a before a pair, b of the next; the last leaves mu-1 and n."""
    bits = (A >= 0, A <= 1, NEXT >= 0, NEXT <= 1)
    resident, evicted = MU - 1 - A, MOVED + A
    loaded = resident + 1 + A, evicted - A
    return [
        ("a pair's forward is within the objective", bits, _within(form, loaded[0], evicted)),
        ("a pair's backward is within the objective", bits,
         _within(form, loaded[0], loaded[1] + NEXT)),
        ("a pair ends as the next one starts", bits,
         _are((loaded[0] - 1 - NEXT, loaded[1] + NEXT), (MU - 1 - NEXT, MOVED + NEXT))),
        ("the last pair leaves mu-1 and n", bits, _are((loaded[0] - 1, loaded[1]),
                                                       (MU - 1, MOVED))),
    ]  # fmt: skip


def cooldown(form: PrintedAlgorithm) -> list[ObligationPart]:
    """R + a <= mu and E <= n before a bubble; so again before the next, when a backward has run."""
    state = (R >= 0, E >= 0, E <= MOVED, A >= 0, A <= 1, NEXT >= 0, NEXT <= 1, R + A <= MU)
    return [
        ("a load in a bubble is within the objective", state, _within(form, R + A, E)),
        ("a backward leaves room for the next load", state,
         all_of(R + A - 1 + NEXT <= MU, E - A <= MOVED)),
    ]  # fmt: skip


def theorem(form: PrintedAlgorithm | None = None) -> Theorem:
    """Algorithm 1 as printed keeps both ranks of every pair within ceil((p+2)/2) activations."""
    form = form or PrintedAlgorithm()
    of_drawing = obligations_of(drawing(), ())
    of_evictor = obligations_of(
        (*decisions(form), *warmup(form), *pairs(form), *cooldown(form)), (*EVICTOR, *PEAK)
    )
    return Theorem(
        id="bpipe-printed",
        statement=(
            "On 1F1B drawn in pairs Algorithm 1 as printed names a microbatch wherever it evicts "
            "or loads, and keeps evictor s and acceptor p-1-s at most mu = ceil((p+2)/2) "
            "activations in every slot, activations on the move counted on both"
        ),
        assumptions=(
            "p >= 4, s <= (p-4)/2, m >= 1, one chunk per rank",
            "every slot takes one tick, T_i beside C_i",
        ),
        symbols=(
            "p ranks, m microbatches, i rank, s evictor, mu objective, N = min(p-s, m), j k x y "
            "microbatches, R E activations on evictor and acceptor, a b whether y and y+1 are away"
        ),
        argument=(
            "The drawing is a schedule and its slots are those the lines name; induction over "
            "slots: the warm-up, each pair and each bubble keep the state's formula. Where N <= mu "
            "nothing moves, and a stage holds N at most"
        ),
        obligations=(*of_drawing, *of_evictor),
    )
