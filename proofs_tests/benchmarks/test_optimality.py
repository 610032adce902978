"""The optimality survey: what it calls optimal, beaten and capped."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.optimality import Case, capped, decide, legal_sizes, markdown
from bubbleproof.theory.families import families, member


def test_1f1b_is_optimal_under_its_own_memory() -> None:
    case = decide("1f1b", 3, 4, time_limit=10)
    # (m + p - 1)(tF + tB) = 6 * 3
    assert (case.published, case.best, case.bound, case.verdict) == (18, 18, 18, "optimal")


def test_capacities_are_the_schedules_own_peaks() -> None:
    small = member("1f1b", p=3, m=4)
    stores = capped(small.problem, small.schedule).stores
    assert [store.capacity for store in stores] == [3, 2, 1]


def test_a_longer_schedule_is_beaten() -> None:
    case = decide("zb-h2", 5, 5, time_limit=10)
    # Five microbatches of 3 ticks behind 4 forwards of 1 tick: no schedule ends before 19, and
    # ZB-H2's order, made for m >= 2p - 1, leaves gaps.
    assert case.verdict == "beaten"
    assert case.best < case.published
    assert case.excess == Fraction(case.published - case.best, case.best)


def test_every_family_has_a_row() -> None:
    names = {name for name, _, _ in legal_sizes(4, 8)}
    assert names == set(families())
    case = Case(family="x", p=1, m=2, published=6, best=6, bound=6, verdict="optimal")
    assert "| x | 1 | 1 | 0 | 0 | 0 |  |  |" in markdown([case], 1)
