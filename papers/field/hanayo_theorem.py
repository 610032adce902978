"""Hanayo's waves at tF = tB where p divides m, for all p, m and v.

A *round* is a run of a microbatch down the ranks and up again, 2p tasks. Its forwards and backwards
are 2pv tasks, v rounds. Slot n is the round that begins in tick 2n; its task x = 0 to 2p-1 runs in
tick 2n + x on rank x, or 2p-1-x on the way up. So rank r works on slot n in the ticks

    2n + r        down
    2n + 2p-1-r   up

Round y of microbatch b of group a (p microbatches) is slot a p v + y p + b: every slot from 0 to
m v - 1 is one round (``theory.families.hanayo``). A microbatch's rounds are p slots apart, so
each begins when the one before has ended, and so does the first one of the microbatch that comes p
later when the last one has. Hence at most p microbatches are under way, and a rank holds v chunk
activations of each at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import I, P
from bubbleproof.papers.theorems.rank_rows import unit_bound
from bubbleproof.papers.theorems.terms import Term, all_of, any_of, index, negate
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

V, GROUPS = index("v"), index("groups")
N, OTHER, X = (index(name) for name in ("n", "n2", "x"))
GROUP, PLACE, ROUND = (index(name) for name in ("a", "b", "y"))
SHAPE = (P >= 1, V >= 1, GROUPS >= 1)
RANK = (I >= 0, I <= P - 1)
IN_GROUP = (GROUP >= 0, GROUP <= GROUPS - 1, PLACE >= 0, PLACE <= P - 1, ROUND >= 0, ROUND <= V - 1)
PIECES = P * V * GROUPS  # m v, the number of slots
HINTS = (
    *((e, P) for e in (V - 1 - ROUND, ROUND, V, GROUPS, V - 1)),
    *((e, P * V) for e in (GROUPS - 1 - GROUP, GROUP, GROUPS)),
    (GROUPS - 1, P * V),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveForm:
    """The slot of round y of microbatch b of group a, the ticks of a slot apart, the makespan."""

    slot: Callable[[Term, Term, Term], Term] = lambda a, b, y: a * P * V + y * P + b
    apart: int = 2
    makespan: Term = 2 * (PIECES + P - 1)

    def tick(self, slot: Term, step: Term) -> Term:
        """When task ``step`` of a slot's round runs."""
        return self.apart * slot + step


def places(form: WaveForm) -> list[ObligationPart]:
    """The rounds fill the slots 0 to mv-1, each once, by the order (a, y, b)."""
    a, b, y, slot = GROUP, PLACE, ROUND, form.slot
    zero = 0 * P
    return [
        ("slots: begin at 0", (), slot(zero, zero, zero).equals(0)),
        ("slots: the next microbatch is one slot further", IN_GROUP,
         slot(a, b + 1, y).equals(slot(a, b, y) + 1)),
        ("slots: the next round begins one slot further", (*IN_GROUP, b.equals(P - 1)),
         slot(a, zero, y + 1).equals(slot(a, b, y) + 1)),
        ("slots: the next group begins one slot further",
         (*IN_GROUP, b.equals(P - 1), y.equals(V - 1)),
         slot(a + 1, zero, zero).equals(slot(a, b, y) + 1)),
        ("slots: end at mv-1", (), slot(GROUPS - 1, P - 1, V - 1).equals(PIECES - 1)),
    ]  # fmt: skip


def timing(form: WaveForm) -> list[ObligationPart]:
    """One task at a time, and every task after the one of its microbatch before it."""
    a, b, y, slot, tick = GROUP, PLACE, ROUND, form.slot, form.tick
    down, up = tick(N, I), tick(N, 2 * P - 1 - I)
    zero, last = 0 * P, 2 * P - 1
    apart = negate(N.equals(OTHER))
    own, other = (down, up), (tick(OTHER, I), tick(OTHER, 2 * P - 1 - I))
    met = any_of(*(one.equals(two) for one in own for two in other))
    return [
        ("a rank works on one slot at a time", (*RANK, apart), negate(met)),
        ("down and up on a rank are two ticks", RANK, negate(down.equals(up))),
        ("the next task of a round is a tick later", (X >= 0, last - 1 >= X),
         tick(N, X + 1) >= tick(N, X) + 1),
        ("the next round of a microbatch begins when this one has ended",
         (*IN_GROUP, y <= V - 2), tick(slot(a, b, y + 1), zero) >= tick(slot(a, b, y), last) + 1),
        ("it begins then, not later", (*IN_GROUP, y <= V - 2),
         tick(slot(a, b, y + 1), zero) <= tick(slot(a, b, y), last) + 1),
        ("p microbatches at most are under way: the p-th after begins when it has ended",
         (*IN_GROUP, y.equals(V - 1)),
         tick(slot(a + 1, b, zero), zero) >= tick(slot(a, b, y), last) + 1),
    ]  # fmt: skip


def costs(form: WaveForm) -> list[ObligationPart]:
    """The makespan, and that the last rank's head, work and tail are as long."""
    tick = form.tick
    zero, last = 0 * P, 2 * P - 1
    return [
        ("no task ends after the makespan", (N >= 0, N <= PIECES - 1),
         tick(N, last) + 1 <= form.makespan),
        ("the makespan is reached", (),
         all_of(tick(zero, zero).equals(0), (tick(PIECES - 1, last) + 1).equals(form.makespan))),
        *unit_bound(P - 1, 2 * PIECES, form.makespan, tail=P - 1),
    ]  # fmt: skip


def theorem(form: WaveForm | None = None) -> Theorem:
    """Hanayo at tF = tB: makespan 2(mv+p-1), the least of any schedule in wave placement."""
    form = form or WaveForm()
    parts = (*places(form), *timing(form), *costs(form))
    return Theorem(
        id="hanayo-equal",
        statement=(
            "Hanayo's rounds at tF = tB = 1 with p | m, task x of a round in tick 2n + x of slot "
            "n = a p v + y p + b (round y of microbatch b of group a), are a schedule; every rank "
            "holds p v chunk activations at most; the makespan is 2(mv+p-1), and no schedule in "
            "wave placement is faster"
        ),
        assumptions=(
            "p, v >= 1, p divides m",
            "tF = tB = 1 (or any ticks in common: all starts scale)",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m = p*groups microbatches, v chunks per rank, i rank, n n2 slots, a group, "
            "b microbatch of it, y round, x task of a round"
        ),
        argument=(
            "The slots are 0 to mv-1, each once (induction over the lists), so what holds of any "
            "two slots holds of all tasks; the bound is head, busy time and tail of the last rank "
            "(inductions)"
        ),
        obligations=obligations_of(parts, SHAPE, HINTS),
    )
