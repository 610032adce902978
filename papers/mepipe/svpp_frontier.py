"""The time-memory frontier of slices: the least makespan with s + k slices a rank, one chunk.

m samples of s slices, one stage a rank; rank 0 holds at most s + k slices, 0 <= k < s and
k <= p-1 (k = p-1 is Table 3's largest f). With P = tF + tB the least makespan of any schedule is

    (m (s + p-1-k) + k) P

*At least.* Say that a sample is complete when its last slice's forward has started on rank 0; no
backward of it runs before. Its first backward on rank 0 ends p P later or later still (round trip).
Until then rank 0 holds its s slices, so k of all others at most, and one more for each backward of
its that has ended. So no two are complete and unreleased at once, as k < s, and the next sample's
slice k + n starts behind n + 1 of its backwards; since the first of these ended, n forwards and n
backwards have run: n P. The next sample, complete with slice s-1, is (p + s-1-k) P later, and after
the last one come its round trip and s-1 backwards more.

*Reached.* With L = (s + p-1-k) P, d = p-1-r, place y of a sample's backwards and all of sample 0
and the first k slices of sample 1 early,

    B(j,y)     j L + (p-1+s) tF + y P + d tB      for j < m-1, and + y tB for j = m-1
    F(0,x)     (r + x) tF
    F(1,x)     (r + s + x) tF for x < k, x < d;  (p-1+s) tF + (x-d) P + (d+1) tB  for d <= x < k
    F(j,x)     behind B(j-1, x-k) of rank 0, or B(j-2, s-k+x) where x < k,  r tF later

keeps all waits, and s + k slices on every rank. SVPP's order with f = s + k ends as soon where
tF <= tB (compared by a test).

Source: MEPipe (EuroSys 2025) section 4.2 and Table 3 for f; the bound and its proof are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, I, M, P
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    index,
    time,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

S, EXTRA = index("s"), index("k")
SHAPE = (P >= 1, M >= 1, S >= 1, EXTRA >= 0, EXTRA <= S - 1, EXTRA <= P - 1, TF > 0, TB > 0)
RANK = (I >= 0, I <= P - 1)
FIRST = (P - 1 + S) * TF  # the last rank's first backward
GAP = S + P - 1 - EXTRA  # pairs from one sample to the next


@dataclass(frozen=True, slots=True)
class SlicePlace:
    """Slice ``place`` of sample ``sample``; backwards count slices from the last."""

    sample: Term
    place: Term

    @property
    def is_there(self) -> LogicFormula:
        """One of m samples, one of s slices."""
        return all_of(self.sample >= 0, self.sample <= M - 1, self.place >= 0, self.place <= S - 1)

    def is_before(self, other: SlicePlace) -> LogicFormula:
        """An earlier sample, or an earlier place of the same."""
        return any_of(
            self.sample + 1 <= other.sample,
            all_of(self.sample.equals(other.sample), self.place + 1 <= other.place),
        )


HERE, OTHER = SlicePlace(index("j"), index("x")), SlicePlace(index("j2"), index("y"))
BOTH = (HERE.is_there, OTHER.is_there)
SliceStart = Callable[[Term, SlicePlace], Term]


def backward(rank: Term, at: SlicePlace) -> Term:
    """Start of B(j, y) in ticks."""
    spread = choose(at.sample <= M - 2, at.place * PAIR, at.place * TB)
    return at.sample * GAP * PAIR + FIRST + spread + (P - 1 - rank) * TB


def forward(rank: Term, at: SlicePlace) -> Term:
    """Start of F(j, x) in ticks."""
    j, x, d = at.sample, at.place, P - 1 - rank
    returned = FIRST + (P - 1) * TB + TB + rank * TF  # B(0,0) has ended on rank 0; r tF later
    second = choose(x <= d - 1, (rank + S + x) * TF, FIRST + (x - d) * PAIR + (d + 1) * TB)
    behind = returned + (j - 1) * GAP * PAIR + (x - EXTRA) * PAIR
    ahead = returned + (j - 2) * GAP * PAIR + (S - EXTRA + x) * PAIR
    steady = choose(x >= EXTRA, behind, choose(j <= 1, second, ahead))
    return choose(j <= 0, (rank + x) * TF, steady)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFrontier:
    """The starts, the slices that a rank holds, and the makespan."""

    forward: SliceStart = forward
    backward: SliceStart = backward
    most: Term = S + EXTRA
    makespan: Term = (M * GAP + EXTRA) * PAIR


def waits(form: SliceFrontier) -> list[ObligationPart]:
    """Neighbouring ranks, the last rank's own forwards, and one task at a time."""
    f, b, last = form.forward, form.backward, P - 1
    here = (*RANK, HERE.is_there)
    ordered = (*RANK, *BOTH, HERE.is_before(OTHER))
    complete = SlicePlace(HERE.sample, S - 1)
    apart = any_of(
        b(I, OTHER) >= f(I, HERE) + TF,
        f(I, HERE) >= b(I, OTHER) + TB,
    )
    return [
        ("no start before 0", here, all_of(f(I, HERE) >= 0, b(I, HERE) >= 0)),
        ("F after F of the rank before", (*here, I >= 1), f(I, HERE) >= f(I - 1, HERE) + TF),
        ("B after B of the next rank", (*here, I <= P - 2), b(I, HERE) >= b(I + 1, HERE) + TB),
        ("the last rank's B after all F of the sample", (HERE.is_there,),
         b(last, HERE) >= f(last, complete) + TF),
        ("F in order", ordered, f(I, OTHER) >= f(I, HERE) + TF),
        ("B in order", ordered, b(I, OTHER) >= b(I, HERE) + TB),
        ("F and B one at a time", (*RANK, *BOTH), apart),
    ]  # fmt: skip


def costs(form: SliceFrontier) -> list[ObligationPart]:
    """F waits for the backward s + k places before it; the makespan is kept and reached."""
    f, b, zero = form.forward, form.backward, 0 * I
    number = HERE.sample * S + HERE.place - OTHER.sample * S - OTHER.place
    end = b(zero, SlicePlace(M - 1, S - 1)) + TB
    return [
        ("no more slices than stated: F starts after the backward as many places before ends",
         (*RANK, *BOTH, number.equals(form.most)), f(I, HERE) >= b(I, OTHER) + TB),
        ("no task ends after the makespan", (*RANK, HERE.is_there),
         b(I, HERE) + TB <= form.makespan),
        ("the makespan is reached", (),
         all_of(f(zero, SlicePlace(zero, zero)).equals(0), end.equals(form.makespan))),
    ]  # fmt: skip


def bound(form: SliceFrontier) -> list[ObligationPart]:
    """Any schedule; ``any_...`` are starts and ends on rank 0."""
    complete, released, then, end, here = (
        time(f"any_{name}") for name in ("complete", "released", "next", "end", "here")
    )
    hop, n, sample, others, ended = (index(name) for name in ("g", "n", "a", "others", "ended"))
    f_done, b_done = index("forwards"), index("backwards")
    done = released + f_done * TF + b_done * TB
    busy = (f_done >= 0, b_done >= 0, here >= done, then >= here)
    behind = (sample >= 0, complete >= (S - 1) * TF + sample * GAP * PAIR)
    return [
        ("first sample: one more slice is tF later", (n >= 0, here >= n * TF),
         here + TF >= (n + 1) * TF),
        ("down: g ranks later is g * tF later", (hop >= 0, then >= here + hop * TF),
         then + TF >= here + (hop + 1) * TF),
        ("up: g ranks earlier ends g * tB later", (hop >= 0, end >= here + hop * TB),
         end + TB >= here + (hop + 1) * TB),
        ("round trip: a complete sample's first backward ends pP later",
         (here >= complete + P * TF, released >= here + P * TB), released >= complete + P * PAIR),
        ("beside a complete sample there is room for k slices, and one more for each released",
         (ended >= 0, S - ended + others <= form.most), others <= EXTRA + ended),
        ("so no other is complete before it releases", (ended <= 0, others <= EXTRA + ended),
         others <= S - 1),
        ("busy: one more forward", busy,
         then + TF >= released + (f_done + 1) * TF + b_done * TB),
        ("busy: one more backward", busy,
         then + TB >= released + f_done * TF + (b_done + 1) * TB),
        ("slice k + n of the next: n forwards and n backwards have run since the first release",
         (n >= 0, f_done >= n, b_done >= n, here >= done), here >= released + n * PAIR),
        ("the next sample is complete a gap later",
         (*behind, released >= complete + P * PAIR, then >= released + (S - 1 - EXTRA) * PAIR),
         then >= (S - 1) * TF + (sample + 1) * GAP * PAIR),
        ("after the last come its round trip and s-1 backwards",
         (complete >= (S - 1) * TF + (M - 1) * GAP * PAIR, released >= complete + P * PAIR,
          end >= released + (S - 1) * TB),
         end >= form.makespan),
    ]  # fmt: skip


def _hints() -> tuple[tuple[Term, Term], ...]:
    """Signs of what two cases leave: gaps between samples, places within one."""
    apart = HERE.sample - OTHER.sample
    counts = (
        *(P - 1 - I, I, S - 1 - EXTRA, P - 1 - EXTRA, EXTRA, HERE.place, OTHER.place),
        *(HERE.place - OTHER.place, HERE.place - EXTRA, OTHER.place - EXTRA, S - 1 - HERE.place),
        *(S - 1 - OTHER.place, HERE.place - P + 1 + I, OTHER.place - P + 1 + I, P - 1 - I - EXTRA),
    )
    gaps = (
        *(apart + n for n in range(-3, 4)),
        *(at.sample - n for at in (HERE, OTHER) for n in range(3)),
        *(M - n - at.sample for at in (HERE, OTHER) for n in (1, 2)),
    )
    n, f_done, b_done = (index(name) for name in ("n", "forwards", "backwards"))
    return (
        (f_done - n, TF),
        (b_done - n, TB),
        *((count, ticks) for count in counts for ticks in (TF, TB)),
        *((gap * GAP, ticks) for gap in gaps for ticks in (TF, TB)),
        *((gap, GAP) for gap in gaps),
        *((gap, S) for gap in gaps),
    )


def theorem(form: SliceFrontier | None = None) -> Theorem:
    """Least makespan with s + k slices a rank: (m (s+p-1-k) + k)(tF + tB)."""
    form = form or SliceFrontier()
    parts = (*waits(form), *costs(form), *bound(form))
    return Theorem(
        id="svpp-frontier",
        statement=(
            "With one chunk, s slices and at most s+k slices held on rank 0 (or on every rank), "
            "0 <= k < s and k <= p-1, the least makespan is exactly (m(s+p-1-k) + k)P: every slice "
            "more saves (m-1)P, until k = p-1 gives the least of all, (m*s+p-1)P"
        ),
        assumptions=(
            "p, m, s >= 1, 0 <= k <= min(s, p) - 1",
            "tF, tB > 0, equal on all ranks and slices",
            "full backwards, run on a rank one task at a time",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m samples, s slices, s+k slices held, i rank, j j2 samples, x y slices in "
            "the order they run, tF tB ticks of a slice (real), P = tF + tB"
        ),
        argument=(
            "The closed form is a schedule of that makespan and memory. Samples are taken in the "
            "order in which they are complete on rank 0; round trip, room for others and busy time "
            "put each behind the one before (inductions)"
        ),
        obligations=obligations_of(parts, SHAPE, _hints()),
    )
