"""Chimera at tF = tB where p divides m, for all even p and all m: the starts in closed form.

h = p/2 microbatches of either direction make a unit, unit n begins at tick 2pn, and microbatch x of
it runs without a wait, 2 ticks after the one before (``theory.families.chimera``). On rank r,

    F down   2pn + 2x + r              B down   2pn + 2x + 2p-1-r
    F up     2pn + 2x + p-1-r          B up     2pn + 2x + p + r

A rank at r >= h is its mirror image p-1-r with the directions exchanged, so r < h is all there is.
At equal ticks r + h + 1 activations are the most that it holds, first when F up of microbatch r of
a unit starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.rank_rows import unit_bound
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    implies,
    index,
)
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of

HALF, UNITS, RANK = index("h"), index("units"), index("r")
SHAPE = (HALF >= 1, UNITS >= 1, RANK >= 0, RANK <= HALF - 1)
RANKS = 2 * HALF
UnitStart = Callable[["UnitPlace", Term], Term]


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """Microbatch ``within`` of unit ``unit`` of one direction."""

    unit: Term
    within: Term

    @property
    def number(self) -> Term:
        """How many of its direction come before it."""
        return self.unit * HALF + self.within

    @property
    def is_there(self) -> LogicFormula:
        """A place of some unit, of however many there may be."""
        return all_of(self.unit >= 0, self.within >= 0, self.within <= HALF - 1)

    @property
    def injected(self) -> Term:
        """The tick at which its first forward starts."""
        return 2 * RANKS * self.unit + 2 * self.within

    @property
    def before(self) -> UnitPlace:
        """The one before it in its direction."""
        is_first = self.within <= 0
        return UnitPlace(
            self.unit - choose(is_first, 1, 0), choose(is_first, HALF - 1, self.within - 1)
        )


HERE, OTHER = (UnitPlace(index(f"n{k}"), index(f"x{k}")) for k in ("", "2"))
NOW = all_of(HERE.is_there, HERE.unit <= UNITS - 1)
STARTS: dict[str, UnitStart] = {
    "F down": lambda at, rank: at.injected + rank,
    "B down": lambda at, rank: at.injected + 2 * RANKS - 1 - rank,
    "F up": lambda at, rank: at.injected + RANKS - 1 - rank,
    "B up": lambda at, rank: at.injected + RANKS + rank,
}
STEPS = {"F down": -1, "B down": 1, "F up": 1, "B up": -1}  # to the rank whose task comes before
HINTS = (
    *((HERE.unit - OTHER.unit + k, HALF) for k in range(-2, 3)),
    (UNITS - 1 - HERE.unit, HALF),
    (HERE.unit, HALF),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitForm:
    """When each task of a microbatch starts, the most that a rank holds, and the makespan."""

    starts: tuple[tuple[str, UnitStart], ...] = tuple(STARTS.items())
    peak: Term = RANK + HALF + 1
    makespan: Term = 2 * RANKS * UNITS + RANKS - 2

    def start(self, name: str, at: UnitPlace, rank: Term = RANK) -> Term:
        """When the task of a microbatch on a rank starts."""
        return dict(self.starts)[name](at, rank)


def timing(form: UnitForm) -> list[ObligationPart]:
    """Waits within a direction, and no two tasks of a rank in one tick."""
    parts: list[ObligationPart] = []
    for name, step in STEPS.items():
        there = (RANK + step >= 0, RANK + step <= RANKS - 1)
        start = form.start(name, HERE)
        after = start >= form.start(name, HERE, RANK + step) + 1
        parts.append((f"{name} after {name} of the rank before it", (NOW, *there), after))
    for way in ("down", "up"):
        own = form.start(f"B {way}", HERE) >= form.start(f"F {way}", HERE) + 1
        parts.append((f"B {way} after its own F", (NOW,), own))
    names = [name for name, _ in form.starts]
    differ = any_of(
        HERE.unit >= OTHER.unit + 1,
        OTHER.unit >= HERE.unit + 1,
        HERE.within >= OTHER.within + 1,
        OTHER.within >= HERE.within + 1,
    )
    for k, one in enumerate(names):
        for two in names[k:]:
            mine, theirs = form.start(one, HERE), form.start(two, OTHER)
            premises = (NOW, OTHER.is_there, *((differ,) if one == two else ()))
            apart = any_of(mine >= theirs + 1, theirs >= mine + 1)
            parts.append((f"{one} and {two} one at a time", premises, apart))
    return parts


def _next(
    form: UnitForm, name: str, now: Term, *, after: int
) -> tuple[tuple[LogicFormula, ...], Term]:
    """The first task of a row whose start plus ``after`` is later than now, and its number."""
    at = UnitPlace(HERE.unit + index(f"ahead of {name}"), index(f"x of {name}"))
    passed = form.start(name, at.before) + after <= now
    premises = (
        at.is_there,
        form.start(name, at) + after > now,
        implies(at.number >= 1, passed),
    )
    return premises, at.number


def memory(form: UnitForm) -> list[ObligationPart]:
    """What a rank holds when a forward starts, and where that is the most."""
    parts: list[ObligationPart] = []
    for name, other in (("F down", "F up"), ("F up", "F down")):
        now, premises, held = form.start(name, HERE), [NOW], HERE.number + 1
        for row, sign, after in ((other, 1, 0), ("B down", -1, 1), ("B up", -1, 1)):
            more, number = _next(form, row, now, after=after)
            premises += more
            held = held + sign * number
        never = f"{name}: live activations never exceed the peak"
        parts.append((never, tuple(premises), held <= form.peak))
        if name == "F up":
            at = (HERE.unit.equals(0), HERE.within.equals(RANK))
            parts.append(("the peak is reached", (*premises, *at), held.equals(form.peak)))
    return parts


def costs(form: UnitForm) -> list[ObligationPart]:
    """The makespan, and that a middle rank's head, work and tail are as long."""
    last = UnitPlace(UNITS - 1, HALF - 1)
    ends = all_of(*(form.start(name, HERE) + 1 <= form.makespan for name, _ in form.starts))
    first = form.start("F down", UnitPlace(0 * HALF, 0 * HALF), 0 * HALF)
    return [
        ("no task ends after the makespan", (NOW,), ends),
        ("the makespan is reached", (),
         all_of(first.equals(0),
                (form.start("B down", last, 0 * HALF) + 1).equals(form.makespan))),
        *unit_bound(HALF - 1, 2 * RANKS * UNITS, form.makespan, tail=HALF - 1),
    ]  # fmt: skip


def _hints() -> tuple[tuple[Term, Term], ...]:
    ahead = [index(f"ahead of {name}") for name in STARTS]
    return (*HINTS, *((step + k, HALF) for step in ahead for k in range(-2, 4)))


def theorem(form: UnitForm | None = None) -> Theorem:
    """Chimera at tF = tB: makespan 2m+p-2, the least there is, and its peaks."""
    form = form or UnitForm()
    parts = (*timing(form), *memory(form), *costs(form))
    return Theorem(
        id="chimera-equal",
        statement=(
            "Chimera at tF = tB = 1 with even p and p | m: microbatch x of unit n starts F on rank "
            "r at 2pn + 2x + r downward and 2pn + 2x + p-1-r upward, B at 2pn + 2x + 2p-1-r and "
            "2pn + 2x + p + r; rank r < p/2 and its mirror image p-1-r hold p/2 + 1 + r "
            "activations at most, and do; the makespan is 2m+p-2, and no schedule of two "
            "directions is faster"
        ),
        assumptions=(
            "even p >= 2, p divides m",
            "tF = tB = 1 (or any ticks in common: all starts scale)",
            "links take 0 ticks",
        ),
        symbols=(
            "p = 2h ranks, m = p*units microbatches of both directions, r rank, n n2 units, x x2 "
            "microbatches of a unit and direction"
        ),
        argument=(
            "The starts keep all waits and tasks of a rank lie in ticks of their own; the bound is "
            "head, busy time and tail of a middle rank (inductions)"
        ),
        obligations=obligations_of(parts, SHAPE, _hints()),
    )
