"""T-Recomp with two chunks, the shallow one recomputed, for all p >= 2 and all m: order and peaks.

In units of a chunk's forward (tF = 1, tB = 2, a recomputation 1), with i = p-1-r hops to the last
rank, z = ceil((p-1)/2), x = max(0, ceil((p+z-4)/7)) and y = max(0, ceil((2p-4)/7)), the family runs
the tasks of rank r in the order of these starts (T-Pipe section 4.2, Appendices B and C):

    FS   7j - 5 - 7x - i - floor(i/2)   forward of the shallow chunk
    FD   7j - 1 - i - ceil(i/2)         forward of the deep chunk
    BD   7j + 2i                        backward of the deep chunk
    R    7j + 2i + 3 + 7y               the shallow chunk's forward again
    BS   7j + 2i + 4 + 7y               backward of the shallow chunk

They are a schedule, 7 units a microbatch. A shallow activation lies on its rank while its forward
runs and from R to the end of BS. So rank r holds floor((p-r)/2) + 1 at most, which Appendix C has
of rank 0, and does.

It can end sooner. In the same order, from tick 0 on and with T = 2p + z, E = 4 + 7y - 2p,

    FS   r + j, or T + 7j - 5 - 7x - i - floor(i/2) if that is later
    FD   T + 7j - 1 - i - ceil(i/2)
    BD   T + 7j + 2i
    BS   T + 7j + 2i + 4 + 7y, less E for j = m-1, less max(0, E-4) for j = m-2
    R    a unit before BS

ends at 7(m-1) + 6p + z. Measured for p = 2 to 16, the left-shifted
order ends sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, HalvedIndex, I, J, M, P
from bubbleproof.papers.theorems.rank_rows import RowMemory, TaskRow, one_at_a_time, same_order
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, any_of, choose, index
from bubbleproof.papers.theorems.theorem import ObligationPart, Theorem, obligations_of
from bubbleproof.papers.tpipe.tpipe_theorem import is_ceiling

ROUNDS_F, ROUNDS_B, GAPS = index("x"), index("y"), index("z")
HERE = HalvedIndex(P - 1 - I, index("h"), index("o"))  # hops, of rank i of the obligations
FIRST = HalvedIndex(P - 1, index("h0"), index("o0"))
LAST = HalvedIndex(0 * P, 0 * P, 0 * P)
BEGIN, LATE = 2 * P + GAPS, 4 + 7 * ROUNDS_B - 2 * P  # T and E
HopStart = Callable[[HalvedIndex, Term], Term]


def _at_least_zero(value: Term, top: Term, divisor: int) -> LogicFormula:
    """value = max(0, ceil(top / divisor))."""
    rounded = all_of(value >= 0, is_ceiling(value, top, divisor))
    return any_of(rounded, all_of(value.equals(0), top <= 0))


SHAPE = (
    P >= 2,
    M >= 1,
    is_ceiling(GAPS, P - 1, 2),
    _at_least_zero(ROUNDS_F, P + GAPS - 4, 7),
    _at_least_zero(ROUNDS_B, 2 * P - 4, 7),
    *HERE.is_halved,
)


def shallow_forward(at: HalvedIndex, j: Term) -> Term:
    """When FS comes in the published order."""
    return 7 * j - 5 - 7 * ROUNDS_F - at.number - at.half


def deep_forward(at: HalvedIndex, j: Term) -> Term:
    """When FD comes in the published order."""
    return 7 * j - 1 - at.number - at.ceiling


def deep_backward(at: HalvedIndex, j: Term) -> Term:
    """When BD comes in the published order."""
    return 7 * j + 2 * at.number


def recomputation(at: HalvedIndex, j: Term) -> Term:
    """When R comes in the published order."""
    return deep_backward(at, j) + 3 + 7 * ROUNDS_B


def shallow_backward(at: HalvedIndex, j: Term) -> Term:
    """When BS comes in the published order."""
    return deep_backward(at, j) + 4 + 7 * ROUNDS_B


def begun(at: HalvedIndex, j: Term) -> Term:
    """Start of FS in units."""
    steady, soonest = BEGIN + shallow_forward(at, j), P - 1 - at.number + j
    return choose(steady >= soonest, steady, soonest)


def ended(at: HalvedIndex, j: Term) -> Term:
    """Start of BS in units."""
    steady = BEGIN + shallow_backward(at, j)
    squeezed = choose(all_of(j.equals(M - 2), LATE >= 5), steady - LATE + 4, steady)
    return choose(j >= M - 1, steady - LATE, squeezed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedForm:
    """FS, FD, BD, R and BS, by hops: when each comes, in a schedule or in the published order."""

    fs: HopStart
    fd: HopStart
    bd: HopStart
    r: HopStart
    bs: HopStart

    @property
    def rows(self) -> tuple[TaskRow, ...]:
        """The rows of rank i of the obligations."""
        starts = {"FS": self.fs, "FD": self.fd, "BD": self.bd, "R": self.r, "BS": self.bs}
        return tuple(_row(name, start) for name, start in starts.items())


def _row(name: str, start: HopStart) -> TaskRow:
    ticks = 2 if name.startswith("B") else 1
    return TaskRow(name=name, start=lambda _, j: start(HERE, j), ticks=ticks)


PUBLISHED = RecomputedForm(
    fs=shallow_forward, fd=deep_forward, bd=deep_backward, r=recomputation, bs=shallow_backward
)
STARTS = RecomputedForm(
    fs=begun,
    fd=lambda at, j: BEGIN + deep_forward(at, j),
    bd=lambda at, j: BEGIN + deep_backward(at, j),
    r=lambda at, j: ended(at, j) - 1,
    bs=ended,
)
PEAK, MAKESPAN = HERE.ceiling + 1, 7 * (M - 1) + 6 * P + GAPS


def waits(form: RecomputedForm) -> list[ObligationPart]:
    """Forwards down both chunks, backwards up both; R after its own FS, BS after its own R."""
    fs, fd, bd, r, bs = form.fs, form.fd, form.bd, form.r, form.bs
    before, behind = HERE.following, HERE.preceding
    return [
        ("FS after FS of the rank before", (*AT_J, I >= 1), fs(HERE, J) >= fs(before, J) + 1),
        ("FD after FD of the rank before", (*AT_J, I >= 1), fd(HERE, J) >= fd(before, J) + 1),
        ("FD of rank 0 after FS of the last rank", (*AT_J, *FIRST.is_halved),
         fd(FIRST, J) >= fs(LAST, J) + 1),
        ("BD after its own FD", AT_J, bd(HERE, J) >= fd(HERE, J) + 1),
        ("BD after BD of the next rank", (*AT_J, I <= P - 2), bd(HERE, J) >= bd(behind, J) + 2),
        ("BS after BS of the next rank", (*AT_J, I <= P - 2), bs(HERE, J) >= bs(behind, J) + 2),
        ("BS of the last rank after BD of rank 0", (*AT_J, *FIRST.is_halved),
         bs(LAST, J) >= bd(FIRST, J) + 2),
        ("BS after its own R", AT_J, bs(HERE, J) >= r(HERE, J) + 1),
        ("R after its own FS", AT_J, r(HERE, J) >= fs(HERE, J) + 1),
    ]  # fmt: skip


def peaks(published: RecomputedForm, most: Term) -> list[ObligationPart]:
    """Counted in the published order: FS while it runs, FD until BD, R until BS."""
    fs, fd, bd, r, bs = published.rows
    store = RowMemory(acquiring=(fs, fd, r), releasing=(fs, bd, bs), most=most)
    premises, units = store.held(r)
    where = (J >= P, J <= M - P - 1)
    reached = ("the peak is reached by every R from p to m-p-1", (*premises, *where))
    return [*store.never_above(), (*reached, units.equals(most))]


def theorem(
    form: RecomputedForm = STARTS,
    published: RecomputedForm = PUBLISHED,
    peak: Term = PEAK,
    makespan: Term = MAKESPAN,
) -> Theorem:
    """T-Recomp's order is a schedule, its peaks, and a makespan that it keeps to."""
    of_order = (*waits(published), *one_at_a_time(published.rows))
    ends = all_of(*(row.end(I, J) <= makespan for row in form.rows))
    parts = (
        *((f"published starts: {name}", own, goal) for name, own, goal in of_order),
        *waits(form),
        *same_order(published.rows, form.rows),
        *peaks(published, peak),
        ("no task ends after the bound", AT_J, ends),
    )
    return Theorem(
        id="trecomp-rounds",
        statement=(
            "T-Pipe with two chunks and T-Recomp at tF = 1, tB = 2, a recomputation 1: the "
            "published starts are a schedule; in their order rank r holds floor((p-r)/2) + 1 chunk "
            "activations at most, and does where m > 2p, and the makespan is at most "
            "7(m-1) + 6p + ceil((p-1)/2)"
        ),
        assumptions=(
            "p >= 2, m >= 1, two chunks per rank",
            "tF = 1, tB = 2, a recomputation 1 (or any common multiple: all starts scale)",
            "a recomputed activation weighs nothing from its forward's end to R's start",
            "links take 0 ticks",
        ),
        symbols=(
            "p ranks, m microbatches, i rank, j k microbatches, p-1-i = 2h + o hops, z = "
            "ceil((p-1)/2), x y rounds between the chunks, FS FD BD R BS as published"
        ),
        argument=(
            "The starts keep all waits and the published order, so left-shifted it ends no later; "
            "peaks follow from the order"
        ),
        obligations=obligations_of(parts, SHAPE),
    )
