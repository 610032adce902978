"""DualPipe and DualPipeV for all sizes: what makes the starts of ``eight_steps_starts`` theirs.

Both are proved at once: of a rank only its depth D matters, and of p and m only h and n. In the
obligations p stands for h, m for n and i for D - 1.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.papers.field.eight_steps_starts import (
    Depth,
    StepForm,
    StepMoment,
    early_weight,
)
from bubbleproof.papers.theorems.closed_form import AT_J, I, J, K, M, P
from bubbleproof.papers.theorems.rank_rows import RowMemory, TaskRow
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

HALF, ODD, W, U, PARITY = (index(name) for name in ("e", "o", "w", "u", "parity"))
HERE = Depth(I + 1, HALF, ODD)
SHAPE = (P >= 1, M >= 2 * P, *HERE.is_halved)
OUTERMOST, INNERMOST = I.equals(0), I.equals(P - 1)
IsThere = Callable[[Term], LogicFormula]


def waits(form: StepForm) -> list[ObligationPart]:
    """Down and up again, and each W after its own I."""
    (f0, f0_ends), (f1, f1_ends), (b1, b1_ends), (b0, b0_ends) = form.f0, form.f1, form.b1, form.b0
    outer, deeper = HERE.preceding, HERE.following
    late = (W >= 0, I >= 0, I <= P - 1, (W + I + 1).equals(2 * U + PARITY))
    in_turn = (*late, W <= I)
    parts: list[ObligationPart] = [
        ("F0 after F0 of the rank before", (*AT_J, I >= 1), f0(HERE, J) >= f0_ends(outer, J)),
        ("F1 in the middle after F0", (*AT_J, INNERMOST), f1(HERE, J) >= f0_ends(HERE, J)),
        ("F1 after F1 of the rank before", (*AT_J, I <= P - 2), f1(HERE, J) >= f1_ends(deeper, J)),
        ("B1 after its own F1", AT_J, b1(HERE, J) >= f1_ends(HERE, J)),
        ("B1 after B1 of the rank before", (*AT_J, I >= 1), b1(HERE, J) >= b1_ends(outer, J)),
        ("B0 in the middle after B1", (*AT_J, INNERMOST), b0(HERE, J) >= b1_ends(HERE, J)),
        ("B0 after B0 of the rank before", (*AT_J, I <= P - 2), b0(HERE, J) >= b0_ends(deeper, J)),
        ("B0 after its own F0", AT_J, b0(HERE, J) >= f0_ends(HERE, J)),
        ("an early W after its own I1", (*AT_J, HERE.inside - 1 >= J),
         early_weight(HERE, J) >= b1_ends(HERE, J)),
        ("a late W after its own I1", (*in_turn, PARITY.equals(0)),
         form.weight(HERE, W) >= b1_ends(HERE, M - HERE.number + U)),
        ("a late W after its own I0", (*in_turn, PARITY.equals(1)),
         form.weight(HERE, W) >= b0_ends(HERE, M - P + U)),
        ("a last W after its own I0", (I >= 0, I <= P - 1, W >= I + 1, W <= P - 1),
         form.weight(HERE, W) >= b0_ends(HERE, M - P + W)),
    ]  # fmt: skip
    return parts


def _is_task(place: Term) -> LogicFormula:
    """A place of F0, F1, B1 or B0."""
    return all_of(place >= 0, place <= M - 1)


def _is_early(place: Term) -> LogicFormula:
    """A place of the W of step 3."""
    return all_of(place >= 0, place <= HERE.inside - 1)


def _is_late(place: Term) -> LogicFormula:
    """A place of the W of steps 7 and 8."""
    return all_of(place >= 0, place <= P - 1)


def one_at_a_time(form: StepForm) -> list[ObligationPart]:
    """Tasks of a rank do not overlap, but for a forward and its backward in one task."""
    first = 2 * HERE.inside + HERE.number  # the first F0 of step 4
    kinds: list[tuple[str, tuple[StepMoment, StepMoment], IsThere]] = [
        ("F0", form.f0, _is_task),
        ("F1", form.f1, _is_task),
        ("B1", form.b1, _is_task),
        ("B0", form.b0, _is_task),
        ("early W", (early_weight, lambda at, k: early_weight(at, k) + 1), _is_early),
        ("late W", (form.weight, lambda at, w: form.weight(at, w) + 1), _is_late),
    ]
    joint = {
        ("F0", "B1"): all_of(
            (J - first).equals(K - HERE.inside), first <= J, any_of(HERE.inside >= 1, first < J),
            K - HERE.inside <= M - 2 * P + HERE.number - 1,
        ),
        ("F1", "B0"): all_of(J.equals(K + P), J >= P),
    }  # fmt: skip
    parts: list[ObligationPart] = []
    for n, (one, (start, end), is_there) in enumerate(kinds):
        place = (I >= 0, I <= P - 1, is_there(J))
        grows = start(HERE, K) >= end(HERE, J)
        parts.append((f"{one} in index order", (*place, is_there(K), J + 1 <= K), grows))
        for two, (other, other_end), is_other in kinds[n + 1 :]:
            apart = any_of(other(HERE, K) >= end(HERE, J), start(HERE, J) >= other_end(HERE, K))
            both: tuple[LogicFormula, ...] = (*place, is_other(K))
            if (one, two) in joint:
                is_one = joint[one, two]
                same = all_of(start(HERE, J).equals(other(HERE, K)),
                              end(HERE, J).equals(other_end(HERE, K)))  # fmt: skip
                parts.append((f"{one}&{two} are one task", (*both, is_one), same))
                both = (*both, negate(is_one))
            parts.append((f"{one} and {two} one at a time", both, apart))
    return parts


def tightness(form: StepForm) -> list[ObligationPart]:
    """Each start is 0, the end of an input, or the end of the task before it on the rank."""
    (f0, f0_ends), (f1, f1_ends), (b1, b1_ends), (b0, b0_ends) = form.f0, form.f1, form.b1, form.b0
    q, d = HERE.inside, HERE.number
    joint = J - 2 * q - d

    def after(start: Term, ends: StepMoment, place: Term, at: Depth = HERE) -> LogicFormula:
        return all_of(_is_task(place), start.equals(ends(at, place)))

    def late(start: Term, place: Term) -> LogicFormula:
        return all_of(_is_late(place), start.equals(form.weight(HERE, place) + 1))

    is_outer, is_inner = negate(OUTERMOST), negate(INNERMOST)
    forward, returning = f0(HERE, J), f1(HERE, J)
    turning, ending = b1(HERE, J), b0(HERE, J)
    closing = form.weight(HERE, W)
    main = J - P  # of F1 in step 4
    return [
        ("F0 is tight", AT_J, any_of(
            forward.equals(0),
            all_of(is_outer, after(forward, f0_ends, J, HERE.preceding)),
            after(forward, f0_ends, J - 1),
            after(forward, f1_ends, J - 2 * q - 1),
            after(forward, f1_ends, P - 1 + joint))),
        ("F1 is tight", AT_J, any_of(
            after(returning, f0_ends, 2 * q + J),
            all_of(_is_early(J - d), returning.equals(early_weight(HERE, J - d) + 1)),
            after(returning, f0_ends, 2 * q + d + main),
            after(returning, b1_ends, q + main),
            all_of(is_inner, after(returning, b0_ends, main, HERE.following)))),
        ("B1 is tight", AT_J, any_of(
            after(turning, f1_ends, d + J - 1),
            after(turning, f1_ends, P - 1 + J - q),
            all_of(q <= 0, after(turning, f0_ends, d)),
            all_of(is_outer, after(turning, b1_ends, J, HERE.preceding)))),
        ("B0 is tight", AT_J, any_of(
            after(ending, f0_ends, 2 * q + d + J),
            after(ending, b1_ends, q + J),
            all_of(is_inner, after(ending, b0_ends, J, HERE.following)),
            late(ending, J - M + q))),
        ("a late W is tight", (I >= 0, I <= P - 1, _is_late(W)), any_of(
            after(closing, b0_ends, M - q - 1 + W), late(closing, W - 1))),
    ]  # fmt: skip


def costs(form: StepForm) -> list[ObligationPart]:
    """The peak, released where a backward ends or its W does, and the makespan.

    An I of step 6 or 7 starts after the last forward, so its W plays no part in the peak.
    """

    def released(_: Term, j: Term) -> Term:
        end = form.b1[1](HERE, j)
        return choose(j <= HERE.inside - 1, early_weight(HERE, j) + 1, end)

    (f0, _), (f1, _), (b1, _), (b0, b0_ends) = form.f0, form.f1, form.b1, form.b0
    forwards = (
        TaskRow(name="F0", start=lambda _, j: f0(HERE, j)),
        TaskRow(name="F1", start=lambda _, j: f1(HERE, j)),
    )
    backwards = (
        TaskRow(name="B1", start=lambda _, j: b1(HERE, j), ends=released),
        TaskRow(name="B0", start=lambda _, j: b0(HERE, j), ends=lambda _, j: b0_ends(HERE, j)),
    )
    store = RowMemory(acquiring=forwards, releasing=backwards, most=form.peak)
    last = form.weight(HERE, P - 1) + 1
    ends = [last, form.f0[1](HERE, J), form.f1[1](HERE, J), form.b1[1](HERE, J), b0_ends(HERE, J)]
    late = all_of(b1(HERE, J) >= f1(HERE, M - 1), f0(HERE, M - 1) <= f1(HERE, M - 1))
    return [
        *store.never_above(),
        *store.reached(forwards[1], 0 * J + P, I <= P - 1),
        ("an I of step 6 comes after the last forward", (*AT_J, M - HERE.number <= J), late),
        ("no task ends after the makespan", AT_J, all_of(*(end <= form.makespan for end in ends))),
        ("the makespan is reached", (I >= 0, I <= P - 1), last.equals(form.makespan)),
        ("no start before 0", AT_J, f0(HERE, J) >= 0),
    ]


_STARTS = (
    "the left-shifted starts in closed form; every rank holds {peak} at most, and does; the "
    "makespan is {makespan}"
)


def _theorem(
    name: str, heading: str, sizes: str, letters: str, form: StepForm, **told: str
) -> Theorem:
    parts = (*waits(form), *one_at_a_time(form), *tightness(form), *costs(form))
    return Theorem(
        id=name,
        statement=f"{heading} at tF = tI = tW = 1 and F&B = 3: {_STARTS.format(**told)}",
        assumptions=(
            sizes,
            "tF = tI = tW = 1, a forward and a backward together 3 (or any common multiple)",
            "links take 0 ticks",
        ),
        symbols=(
            f"{letters}; the obligations write p for h, m for n, i for D - 1; D = 2e + o, j k "
            "microbatches of a direction, w late W, u turn"
        ),
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths (induction)"
        ),
        obligations=obligations_of(parts, SHAPE),
    )


def theorem(form: StepForm | None = None) -> Theorem:
    """DualPipe: makespan 3m + p - 2 and peak p + 1."""
    return _theorem(
        "dualpipe",
        "DualPipe, m counting both directions,",
        "even p >= 2, even m >= 2p",
        "p = 2h ranks, m = 2n microbatches, rank r of depth D = min(r, p-1-r) + 1",
        form or StepForm(),
        peak="p+1 activations",
        makespan="3m+p-2",
    )


def v_theorem(form: StepForm | None = None) -> Theorem:
    """DualPipeV: makespan 6m + 2(p-1) and peak 2p + 1."""
    return _theorem(
        "dualpipev",
        "DualPipeV",
        "p >= 1, m >= 2p",
        "p = h ranks, m = n microbatches, rank r of depth D = r + 1",
        form or StepForm(),
        peak="2p+1 chunk activations",
        makespan="6m+2(p-1)",
    )
