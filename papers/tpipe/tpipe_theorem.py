"""T-Pipe with two chunks for all p >= 2 and all m: order, peaks, makespan; and its off-loads.

In units of a chunk's forward (tF = 1, tB = 2), with i = p-1-r, x = max(0, ceil((p-3)/6)) and
y = ceil((2p-3)/6), the family runs the tasks of rank r in the order of these starts (Appendix A):

    FS   6j + r                      forward of the shallow chunk
    FD   6j + r + 3 + 6x             forward of the deep chunk
    BD   6j + 3 + 6x + p + 2i        backward of the deep chunk
    BS   6j + 6 + 6x + 6y + p + 2i   backward of the shallow chunk

They are a schedule, one period of 6 units a microbatch. Peaks depend on the order alone
(``docs/guide/formal.md``, lemma 4), so they are counted here. They end too late: the warm-up waits
D = 6x + 3 - p units too long, the cool-down E = 6y + 3 - 2p, both 0 to 5. So, in the same order,

    FS   r for j = 0, 6j + r - D after it
    FD   6j + r + p
    BD   6j + 2p + 2i
    BS   6j + 2p + 2i + 3 + 6y, less E for j = m-1, less max(0, E-4) for j = m-2

ends at 6(m+p-1). No timing of this order ends earlier, whatever tF and tB are: microbatch 0 comes
to the last rank's BD after 2p forwards; on rank p-2 the order has FD(j+1) after BD(j), so the last
rank's BD(j+1) comes a BD on either rank and an FD on either later, 2(tF + tB); the last BD goes up
p ranks, and then BS up p ranks. At tB = 2 tF that is 6(m+p-1) units.

T-Offload adds RELOAD before the first FD of a rank, OFFLOAD after its last BD and STEP after that,
each of a unit on an engine of its own; they end within the same makespan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, PAIR, TB, TF, I, J, M, P
from bubbleproof.papers.theorems.rank_rows import (
    RowMemory,
    TaskRow,
    one_at_a_time,
    same_order,
    waits_for,
)
from bubbleproof.papers.theorems.terms import (
    LogicFormula,
    Term,
    all_of,
    any_of,
    choose,
    implies,
    index,
    negate,
    time,
)
from bubbleproof.papers.theorems.theorem import Obligation, ObligationPart, Theorem, obligations_of

ROUNDS_F, ROUNDS_B = index("x"), index("y")
HOPS = P - 1 - I
SHALLOW, DEEP, HALF, ODD = (index(name) for name in ("S", "T", "h", "o"))


def is_ceiling(value: Term, top: Term, divisor: int) -> LogicFormula:
    """value = ceil(top / divisor)."""
    return all_of(divisor * value >= top, divisor * value <= top + divisor - 1)


SHAPE = (
    P >= 2,
    M >= 1,
    ROUNDS_F >= 0,
    any_of(is_ceiling(ROUNDS_F, P - 3, 6), all_of(ROUNDS_F.equals(0), P <= 3)),
    is_ceiling(ROUNDS_B, 2 * P - 3, 6),
)
COUNTED = (  # the two peaks of Appendix A, and whether p is odd
    is_ceiling(SHALLOW, 4 + 6 * ROUNDS_F + 6 * ROUNDS_B + 3 * P, 6),
    is_ceiling(DEEP, 3 * P - 2, 6),
    P.equals(2 * HALF + ODD),
    ODD >= 0,
    ODD <= 1,
)
EARLY, LATE = 6 * ROUNDS_F + 3 - P, 6 * ROUNDS_B + 3 - 2 * P  # D and E


def ordered(name: str, base: Callable[[Term], Term], ticks: int = 1) -> TaskRow:
    """A row of the published order, a period of 6 units apart."""
    return TaskRow(name=name, start=lambda i, j: 6 * j + base(i), ticks=ticks)


KEYS = (
    ordered("FS", lambda i: i),
    ordered("FD", lambda i: i + 3 + 6 * ROUNDS_F),
    ordered("BD", lambda i: 3 + 6 * ROUNDS_F + P + 2 * (P - 1 - i), 2),
    ordered("BS", lambda i: 6 + 6 * ROUNDS_F + 6 * ROUNDS_B + P + 2 * (P - 1 - i), 2),
)


def shallow_forward(i: Term, j: Term) -> Term:
    """Start of FS in units."""
    return choose(j <= 0, i + 6 * j, 6 * j + i - EARLY)


def deep_forward(i: Term, j: Term) -> Term:
    """Start of FD in units."""
    return 6 * j + i + P


def deep_backward(i: Term, j: Term) -> Term:
    """Start of BD in units."""
    return 6 * j + 2 * P + 2 * (P - 1 - i)


def shallow_backward(i: Term, j: Term) -> Term:
    """Start of BS in units."""
    steady = deep_backward(i, j) + 3 + 6 * ROUNDS_B
    squeezed = choose(all_of(j.equals(M - 2), LATE >= 5), steady - LATE + 4, steady)
    return choose(j >= M - 1, steady - LATE, squeezed)


FS, FD = TaskRow(name="FS", start=shallow_forward), TaskRow(name="FD", start=deep_forward)
BD = TaskRow(name="BD", start=deep_backward, ticks=2)
BS = TaskRow(name="BS", start=shallow_backward, ticks=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundForm:
    """The published order, starts in that order, the peak of rank i, the units idle where the
    chunks change, and the makespan."""

    keys: tuple[TaskRow, ...] = KEYS
    fs: TaskRow = FS
    fd: TaskRow = FD
    bd: TaskRow = BD
    bs: TaskRow = BS
    peak: Term = SHALLOW + DEEP - ODD - I
    windows: tuple[Term, Term] = (P - ROUNDS_F - 1, 2 * (P - ROUNDS_B - 1))
    makespan: Term = 6 * (M + P - 1)

    @property
    def rows(self) -> tuple[TaskRow, ...]:
        return self.fs, self.fd, self.bd, self.bs


def waits(rows: tuple[TaskRow, ...], *, what: str = "") -> list[ObligationPart]:
    """Forwards down both chunks, backwards up both, each after its own forward."""
    fs, fd, bd, bs = rows
    first, last = I.equals(0), I.equals(P - 1)
    parts = [
        waits_for("FS of the rank before", fs, (fs, I - 1), I >= 1),
        waits_for("FD of the rank before", fd, (fd, I - 1), I >= 1),
        waits_for("FS of the last rank", fd, (fs, P - 1), first),
        waits_for("its own FD", bd, (fd, I)),
        waits_for("BD of the next rank", bd, (bd, I + 1), I <= P - 2),
        waits_for("BS of the next rank", bs, (bs, I + 1), I <= P - 2),
        waits_for("BD of rank 0", bs, (bd, 0 * I), last),
        waits_for("its own FS", bs, (fs, I)),
    ]
    return [(what + name, premises, goal) for name, premises, goal in parts]


def peaks(form: RoundForm) -> list[ObligationPart]:
    """Counted in the published order; reached in every period from microbatch S on."""
    fs, fd, bd, bs = form.keys
    store = RowMemory(acquiring=(fs, fd), releasing=(bd, bs), most=form.peak, premises=COUNTED)
    found = store.never_above()
    for row, parity, which in ((fs, 1, "odd"), (fd, 0, "even")):
        premises, units = store.held(row)
        ahead = J + ROUNDS_F + 1 <= M - 1  # FS is so many rounds ahead of FD
        place = (J >= SHALLOW, ahead, HOPS.equals(2 * index("half") + parity))
        name = f"{row.name}: the peak is reached where p-1-r is {which}"
        found.append((name, (*premises, *place), units.equals(form.peak)))
    return found


def costs(form: RoundForm) -> list[ObligationPart]:
    """The makespan is kept and reached."""
    ends = all_of(*(row.end(I, J) <= form.makespan for row in form.rows))
    first, last = form.fs.start(0 * I, 0 * J), form.bs.end(0 * I, M - 1)
    reached = all_of(first.equals(0), last.equals(form.makespan))
    return [
        ("no task ends after the makespan", AT_J, ends),
        ("the makespan is reached", (), reached),
    ]


def chain(form: RoundForm) -> list[ObligationPart]:
    """Any timing of this order, for all tF and tB: the last rank's BD come 2(tF + tB) apart."""
    here, after, other, last, end = (
        time(f"any_{name}") for name in ("here", "next", "FD", "FD_last", "end")
    )
    hop, ranks = index("g"), P
    begun = 2 * ranks * TF + J * 2 * PAIR
    follows = form.keys[1].start(P - 2, J + 1) > form.keys[2].start(P - 2, J)
    ticks = (TF > 0, TB > 0)
    bound = 2 * (M + P - 1) * PAIR
    at_scale = 6 * (M + P - 1)
    return [
        ("on rank p-2 FD(j+1) follows BD(j) in the order", (J >= 0,), follows),
        ("down: a stage later is tF later",
         (*ticks, hop >= 0, here >= hop * TF, after >= here + TF),
         after >= (hop + 1) * TF),
        ("the last rank's BD(j+1) is 2(tF + tB) after BD(j)",
         (*ticks, J >= 0, here >= begun, after >= here + TB, other >= after + TB,
          last >= other + TF, end >= last + TF),
         end >= 2 * ranks * TF + (J + 1) * 2 * PAIR),
        ("up: a stage earlier ends tB later",
         (*ticks, hop >= 0, end >= here + hop * TB, after >= end),
         after + TB >= here + (hop + 1) * TB),
        ("no timing of this order ends earlier",
         (*ticks, here >= 2 * ranks * TF + (M - 1) * 2 * PAIR, end >= here + 2 * ranks * TB),
         end >= bound),
        ("the makespan is that bound at tF = 1, tB = 2", (), form.makespan.equals(at_scale)),
    ]  # fmt: skip


def windows(form: RoundForm) -> list[ObligationPart]:
    """Idle units of every rank while the chunks change: Appendix D's windows of p, x and y.

    Between the first FS and the first FD x more FS run, between the last BD and the last BS y more
    BS, and nothing else.
    """
    (fs, fd, bd, bs), zero = form.keys, 0 * I
    at = (I >= 0, I <= P - 1)
    reload, offload = form.windows
    first = form.fd.start(I, zero) - form.fs.end(I, zero) - ROUNDS_F
    last = form.bs.start(I, M - 1) - form.bd.end(I, M - 1) - 2 * ROUNDS_B
    warming = fs.start(I, J) < fd.start(I, zero)
    cooling = bs.start(I, J) > bd.start(I, M - 1)
    return [
        ("x rounds of FS after the first come before the first FD", AT_J,
         all_of(implies(J <= ROUNDS_F, warming), implies(J >= ROUNDS_F + 1, negate(warming)))),
        ("y rounds of BS before the last come after the last BD", AT_J,
         all_of(implies(J >= M - 1 - ROUNDS_B, cooling),
                implies(J <= M - 2 - ROUNDS_B, negate(cooling)))),
        ("no BD comes before the first FD, no F after the last BD", AT_J,
         all_of(bd.start(I, J) > fd.start(I, zero), bs.start(I, J) > fd.start(I, zero),
                fs.start(I, J) < bd.start(I, M - 1), fd.start(I, J) < bd.start(I, M - 1))),
        ("the first FD leaves p - x - 1 units idle after the first FS", (*at, M >= ROUNDS_F + 1),
         first.equals(reload)),
        ("the last BS leaves 2(p - y - 1) units idle after the last BD", (*at, M >= ROUNDS_B + 1),
         last.equals(offload)),
    ]  # fmt: skip


SYMBOLS = (
    "p ranks, m microbatches, i rank, j k microbatches, x y rounds between the chunks, S and T the "
    "peaks of either chunk, p = 2h + o, FS FD BD BS forwards and backwards of the shallow and the "
    "deep chunk"
)
_ARGUMENT = (
    "The starts keep all waits and the published order, so left-shifted it ends no later; a chain "
    "of work in that order takes as long, by induction over microbatches"
)


def theorem(form: RoundForm | None = None) -> Theorem:
    """T-Pipe's makespan 6(m+p-1) and its peaks."""
    form = form or RoundForm()
    parts = (
        *waits(form.keys, what="published starts: "),
        *((f"published starts: {name}", own, goal) for name, own, goal in one_at_a_time(form.keys)),
        *waits(form.rows),
        *same_order(form.keys, form.rows),
        *peaks(form),
        *costs(form),
        *windows(form),
        *chain(form),
    )
    return Theorem(
        id="tpipe",
        statement=(
            "T-Pipe with two chunks at tF = 1, tB = 2: the published starts are a schedule; in "
            "their order the makespan is 6(m+p-1), and 2(m+p-1)(tF+tB) or more at any tF and tB; "
            "rank r holds S + T - (1 for odd p) - r chunk activations at most, S and T those of "
            "T-Pipe's Appendix A, and does where m > S + x + 1; where m > x, y a rank idles p-x-1 "
            "units before its first FD and 2(p-y-1) between its last BD and its last BS"
        ),
        assumptions=(
            "p >= 2, m >= 1, two chunks per rank",
            "tF = 1, tB = 2 (or any common multiple: all starts scale)",
            "links take 0 ticks",
        ),
        symbols=SYMBOLS,
        argument=_ARGUMENT,
        obligations=obligations_of(parts, SHAPE),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTicks:
    """Ticks of RELOAD, OFFLOAD and STEP of a deep stage."""

    reload: Term | int = 1
    offload: Term | int = 1
    step: Term | int = 1


def transfers(form: RoundForm, ticks: EngineTicks) -> tuple[Obligation, ...]:
    """RELOAD from tick 0 on, OFFLOAD after the last BD, STEP behind it."""
    ends = form.bd.end(I, M - 1) + ticks.offload + ticks.step
    at = (I >= 0, I <= P - 1)
    parts: list[ObligationPart] = [
        ("a rank's state is back before its first FD", at, form.fd.start(I, 0 * J) >= ticks.reload),
        ("OFFLOAD and STEP end within T-Pipe's makespan", at, ends <= form.makespan),
    ]
    return obligations_of(parts, SHAPE)


def offload(form: RoundForm | None = None, ticks: EngineTicks | None = None) -> Theorem:
    """T-Offload takes no longer than T-Pipe."""
    form, ticks = form or RoundForm(), ticks or EngineTicks()
    parts = (*waits(form.rows), *same_order(form.keys, form.rows), *costs(form), *chain(form))
    return Theorem(
        id="toffload",
        statement=(
            "T-Pipe with two chunks and T-Offload at tF = 1, tB = 2, an off-load, a step and a "
            "reload 1 each: the makespan is T-Pipe's 6(m+p-1), all off-loads and steps done by then"
        ),
        assumptions=(
            "p >= 2, m >= 1, two chunks per rank",
            "tF = 1, tB = 2, an off-load, a step and a reload 1 each (or any common multiple)",
            "each rank has an engine for reloads, one for off-loads and one for steps",
            "links take 0 ticks",
        ),
        symbols=SYMBOLS,
        argument=f"{_ARGUMENT}. The transfers run beside these starts",
        obligations=(*obligations_of(parts, SHAPE), *transfers(form, ticks)),
    )
