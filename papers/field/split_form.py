"""Split backwards, one stage per rank: what makes starts of F, I and W a family's schedule.

Rank i runs ``warmup(i)`` forwards first; then each I(j) is followed by W(j - delay(i)) and by
F(j + warmup(i)). Durations are those of the form; ``zb_h1_theorem`` and ``zb_h2`` have the
starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import AT_J, AT_K, I, J, K, M, P
from bubbleproof.papers.theorems.terms import (
    Term,
    all_of,
    any_of,
    negate,
)
from bubbleproof.papers.theorems.theorem import ObligationPart

SplitStartOf = Callable[[Term, Term], Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitForm:
    """The starts of F, I and W, their durations, the peak on every rank, and the makespan.

    Rank i begins with ``warmup(i)`` forwards; W(j) comes ``delay(i)`` microbatches after I(j).
    """

    forward: SplitStartOf
    input_backward: SplitStartOf
    weight_backward: SplitStartOf
    ticks: tuple[Term, Term, Term]
    makespan: Term
    peak: Term = P
    warmup: Callable[[Term], Term] = lambda i: P - i
    delay: Callable[[Term], Term] = lambda i: i


def dependencies(form: SplitForm) -> list[ObligationPart]:
    """F waits for the rank before, I for the rank after and its own F, W for its own I."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, _ = form.ticks
    starts = all_of(f(I, J) >= 0, b(I, J) >= 0, w(I, J) >= 0)
    return [
        ("no start before 0", AT_J, starts),
        ("F after F of the rank before", (*AT_J, I >= 1), f(I, J) >= f(I - 1, J) + t_f),
        ("I after I of the next rank", (*AT_J, I <= P - 2), b(I, J) >= b(I + 1, J) + t_i),
        ("I after its own F", AT_J, b(I, J) >= f(I, J) + t_f),
        ("W after its own I", AT_J, w(I, J) >= b(I, J) + t_i),
    ]


def order(form: SplitForm) -> list[ObligationPart]:
    """One task at a time: the warm-up, then I(j), W(j-delay), F(j+warmup) for each j."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, t_w = form.ticks
    later, at = (*AT_J, *AT_K, K >= J + 1), (*AT_J, *AT_K)
    warmup, delay = form.warmup(I), form.delay(I)
    f_before_i, i_before_w = warmup + K - 1 >= J, delay + K >= J
    f_before_w = warmup + delay + K - 1 >= J
    return [
        ("F in index order", later, f(I, K) >= f(I, J) + t_f),
        ("I in index order", later, b(I, K) >= b(I, J) + t_i),
        ("W in index order", later, w(I, K) >= w(I, J) + t_w),
        ("F before I in the order", (*at, f_before_i), b(I, K) >= f(I, J) + t_f),
        ("F after I in the order", (*at, negate(f_before_i)), f(I, J) >= b(I, K) + t_i),
        ("F before W in the order", (*at, f_before_w), w(I, K) >= f(I, J) + t_f),
        ("F after W in the order", (*at, negate(f_before_w)), f(I, J) >= w(I, K) + t_w),
        ("I before W in the order", (*at, i_before_w), w(I, K) >= b(I, J) + t_i),
        ("I after W in the order", (*at, negate(i_before_w)), b(I, J) >= w(I, K) + t_w),
    ]


def tightness(form: SplitForm) -> list[ObligationPart]:
    """Each start is 0 or the end of a task that must come before it."""
    f, b, w = form.forward, form.input_backward, form.weight_backward
    t_f, t_i, t_w = form.ticks
    warmup, delay = form.warmup(I), form.delay(I)
    both = warmup + delay
    return [
        (
            "F is tight",
            AT_J,
            any_of(
                f(I, J).equals(0),
                all_of(I >= 1, f(I, J).equals(f(I - 1, J) + t_f)),
                all_of(J >= 1, f(I, J).equals(f(I, J - 1) + t_f)),
                all_of(warmup <= J, f(I, J).equals(b(I, J - warmup) + t_i)),
                all_of(both <= J, f(I, J).equals(w(I, J - both) + t_w)),
            ),
        ),
        (
            "I is tight",
            AT_J,
            any_of(
                b(I, J).equals(f(I, J) + t_f),
                all_of(I <= P - 2, b(I, J).equals(b(I + 1, J) + t_i)),
                all_of(J >= 1, b(I, J).equals(b(I, J - 1) + t_i)),
                all_of(J + warmup <= M, b(I, J).equals(f(I, J + warmup - 1) + t_f)),
                all_of(delay + 1 <= J, b(I, J).equals(w(I, J - delay - 1) + t_w)),
            ),
        ),
        (
            "W is tight",
            AT_J,
            any_of(
                w(I, J).equals(b(I, J) + t_i),
                all_of(J >= 1, w(I, J).equals(w(I, J - 1) + t_w)),
                all_of(J + delay <= M - 1, w(I, J).equals(b(I, J + delay) + t_i)),
                all_of(J + both <= M, w(I, J).equals(f(I, J + both - 1) + t_f)),
            ),
        ),
    ]
