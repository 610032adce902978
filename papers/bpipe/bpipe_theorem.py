"""BPipe's invariant: neither rank of a pair ever holds more than mu = ceil((p+2)/2) activations.

BPipe (ICML 2023, section 3.4) plans transfers beside the slots of 1F1B's schedule at tF = tB. On an
evictor s < (p-1)/2 let N = min(p-s, m) be 1F1B's peak, N > mu (otherwise nothing moves) and
n = N - mu. Let R activations lie on the evictor and E on its acceptor when a slot starts.

    warm-up    F(x), x < N, starts with E = max(0, x-mu+1), R = x - E; it evicts for
               mu-1 <= x <= N-2
    steady     B(y) starts with R = mu, E = n; a plain round B, F moves nothing; where the next
               backward's activation lies on the acceptor, B evicts one and F loads that one
    cool-down  backwards with bubbles between; a bubble may load

An activation on the move counts on both ends for the whole slot, the running forward's counts, and
so does that of a running backward. The acceptor's own 1F1B holds at most s+1 (theorem ``1f1b``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import P
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, choose, index
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

S, MU, N, X, R, E = (index(name) for name in ("s", "mu", "N", "x", "R", "E"))
MOVED = N - MU
ROUNDED_UP = (2 * MU >= P + 2, 2 * MU <= P + 3)
PAIR = (P >= 1, S >= 0, 2 * S <= P - 2, N <= P - S, MU <= N - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What each rank of a pair may hold, what mu is, and when the warm-up evicts."""

    most: Term = MU
    rounded: tuple[LogicFormula, ...] = ROUNDED_UP
    evicts: Callable[[Term], LogicFormula] = lambda x: all_of(x >= MU - 1, x <= N - 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One slot: what computes (F or B add or use one) and what moves, each 0 or 1, as terms."""

    forward: int = 0
    backward: int = 0
    evict: Term | int = 0
    load: int = 0

    def evictor_holds(self, resident: Term) -> Term:
        """The most on the evictor while the slot runs: all that leaves is still there."""
        return resident + self.forward + self.load

    def acceptor_holds(self, evicted: Term) -> Term:
        """The evictor's activations on the acceptor while the slot runs."""
        return evicted + self.evict

    def after(self, resident: Term, evicted: Term) -> tuple[Term, Term]:
        """(R, E) when the next slot starts."""
        moved = self.load - self.evict
        return resident + self.forward - self.backward + moved, evicted - moved


def warmup_state(x: Term) -> tuple[Term, Term]:
    """(R, E) when F(x) of the warm-up starts; x = N is the first backward."""
    evicted = choose(x <= MU - 1, 0, x - MU + 1)
    return x - evicted, evicted


def _is(left: tuple[Term, Term], right: tuple[Term, Term]) -> LogicFormula:
    return all_of(*(a.equals(b) for a, b in zip(left, right, strict=True)))


def _within(slot: Slot, state: tuple[Term, Term], balance: Balance) -> LogicFormula:
    """Both ranks within ``most`` during a slot, the acceptor's own s + 1 included."""
    resident, evicted = state
    return all_of(
        slot.evictor_holds(resident) <= balance.most,
        slot.acceptor_holds(evicted) + S + 1 <= balance.most,
    )


def warmup(balance: Balance) -> list[ObligationPart]:
    """The state formula is an invariant of the warm-up, which ends in the steady state."""
    slot = Slot(forward=1, evict=choose(balance.evicts(X), 1, 0))
    at, state = (X >= 0, X <= N - 1), warmup_state(X)
    return [
        ("warm-up: starts empty", (), _is(warmup_state(0 * X), (0 * X, 0 * X))),
        ("warm-up: within the objective", at, _within(slot, state, balance)),
        ("warm-up: one forward more", (X >= 0, X <= N - 2),
         _is(slot.after(*state), warmup_state(X + 1))),
        ("warm-up: ends in the steady state", (X.equals(N - 1),),
         _is(slot.after(*state), (MU, MOVED))),
    ]  # fmt: skip


def steady(balance: Balance) -> list[ObligationPart]:
    """A round B, F keeps R = mu and E = n, whether or not it moves anything."""
    parts: list[ObligationPart] = []
    start = (MU + 0 * X, MOVED)
    for name, first, second in (
        ("plain round", Slot(backward=1), Slot(forward=1)),
        ("round with transfers", Slot(backward=1, evict=1), Slot(forward=1, load=1)),
    ):
        between = first.after(*start)
        holds = all_of(_within(first, start, balance), _within(second, between, balance))
        parts += [
            (f"{name}: within the objective", (), holds),
            (f"{name}: ends as it started", (), _is(second.after(*between), start)),
        ]
    parts.append(("something lies idle to evict beside a backward", (), MU - 1 >= 1))
    return parts


def cooldown(balance: Balance) -> list[ObligationPart]:
    """R <= mu and E <= n before a backward; R <= mu - 1 after it, so a bubble may load."""
    at = (R >= 0, R <= MU, E >= 0, E <= MOVED)
    backward, load = Slot(backward=1), Slot(load=1)
    after, filled = backward.after(R, E), load.after(R, E)
    return [
        ("cool-down: a backward is within the objective", at, _within(backward, (R, E), balance)),
        ("cool-down: a backward leaves room", at, all_of(after[0] <= MU - 1, after[1] <= MOVED)),
        ("cool-down: a load is within the objective", (*at, R <= MU - 1, E >= 1),
         _within(load, (R, E), balance)),
        ("cool-down: a load keeps the bounds", (*at, R <= MU - 1, E >= 1),
         all_of(filled[0] <= MU, filled[1] >= 0, filled[1] <= MOVED)),
    ]  # fmt: skip


def theorem(balance: Balance | None = None) -> Theorem:
    """No rank of a BPipe pair holds more than ceil((p+2)/2) activations at any time."""
    balance = balance or Balance()
    parts = (*warmup(balance), *steady(balance), *cooldown(balance))
    return Theorem(
        id="bpipe",
        statement=(
            "BPipe's transfers keep evictor s and acceptor p-1-s at most mu = ceil((p+2)/2) "
            "activations in every slot, activations on the move counted on both"
        ),
        assumptions=(
            "p, m >= 1, one chunk per rank",
            "transfers as planned beside the slots of 1F1B at tF = tB, each within its slot",
            "the acceptor's own activations are 1F1B's (theorem 1f1b: s+1 at most)",
        ),
        symbols=(
            "p ranks, s evictor, mu objective, N = min(p-s, m), x forward, R E activations on "
            "evictor and acceptor"
        ),
        argument=(
            "Induction over slots: each kind of slot keeps the state's formula and the bounds. "
            "That no plan of transfers of any schedule as fast as 1F1B holds less, from m = 2p on: "
            "Coq, bpipe_is_best of proofs/BestPlan.v"
        ),
        obligations=obligations_of(parts, (*PAIR, *balance.rounded)),
    )
