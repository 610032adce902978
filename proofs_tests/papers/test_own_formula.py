"""``bp.claim``: a formula of one's own holds on a domain, or its least counterexample is told."""

from __future__ import annotations

import pytest

import bubbleproof as bp
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward

P, M = range(2, 5), range(1, 7)


class Unregistered(OneForwardOneBackward):
    """1F1B that no command knows."""

    name = "unregistered"
    title = "unregistered"


def all_forwards_first(p: int, m: int) -> list[list[str]]:
    """GPipe as plain lists."""
    return [
        [*(f"{rank}F{j}" for j in range(m)), *(f"{rank}B{j}" for j in range(m))]
        for rank in range(p)
    ]


def test_a_formula_that_holds_says_on_how_many_cases() -> None:
    found = bp.claim("1f1b", "idle_ratio == (p-1)/(m+p-1)", p=P, m=M)
    assert found.holds
    assert found.is_tight
    assert (found.checked, found.counterexample) == (18, None)  # 3 ranks by 6 microbatches
    assert repr(found) == "<FormulaVerdict: holds in all 18 cases>"


def test_a_formula_that_fails_is_refuted_by_the_smallest_case() -> None:
    # 1F1B holds min(p, m) activations on rank 0: p is wrong first at p = 2, m = 1.
    found = bp.claim("1f1b", "peak_activations == p", p=P, m=M)
    assert not found.holds
    assert found.counterexample is not None
    assert dict(found.counterexample.params) == {"p": 2, "m": 1}
    assert found.counterexample.predicted == 2
    assert found.counterexample.measured == 1
    assert bp.claim("1f1b", "peak_activations == p", where="m >= p", p=P, m=M).holds


def test_a_rank_may_be_named_and_a_bound_may_be_loose() -> None:
    last = bp.claim("1f1b", "peak_activations[0] == min(p, m)", p=P, m=M)
    assert last.holds
    loose = bp.claim("1f1b", "peak_activations <= p + m", p=P, m=M)
    assert loose.holds
    assert not loose.is_tight
    assert "never attained" in repr(loose)


@pytest.mark.parametrize("made", [Unregistered(), "1f1b"])
def test_durations_are_parameters_too(made: Unregistered | str) -> None:
    formula = "makespan == (m+p-1)*(tF+tB)"
    found = bp.claim(made, formula, p=3, m=(4, 5), tF=(1, 2), tB=(1, 3))
    assert (found.holds, found.checked) == (True, 8)


def test_lists_of_ones_own_are_a_family() -> None:
    # GPipe: F and B of one and two ticks, m + p - 1 steps of each; all m are held.
    assert bp.claim(all_forwards_first, "makespan == 3*(m+p-1)", p=P, m=M).holds
    assert bp.claim(all_forwards_first, "peak_activations >= m", p=P, m=M).is_tight


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("idle == 3", "no measure 'idle'"),
        ("makespn == 3", "(did you mean 'makespan'?)"),
        ("makespan = 3", "expected MEASURE ==, <= or >= FORMULA"),
        ("makespan == 3*q", "names q; the domain has p m"),
        ("makespan == p.m", "expected a formula of numbers and names"),
        ("makespan == __import__('os')", "names __import__; the domain has p m"),
        ("makespan == [p]", "expected a formula of numbers and names"),
        ("makespan == (p", "expected a formula, got"),
        ("makespan[0] == 3", "makespan is one number for all ranks"),
        ("idle_ticks[9] == 3", "rank 9 of idle_ticks is none of 2 ranks"),
    ],
)
def test_what_is_no_statement_is_refused(statement: str, told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is looked at
        bp.claim("1f1b", statement, p=(2,), m=(2, 3))
    assert told in str(caught.value)


def test_a_domain_is_needed() -> None:
    with pytest.raises(ValueError, match="a domain is needed, such as p=range"):
        bp.claim("1f1b", "makespan == 3")
    with pytest.raises(ValueError, match="has no case"):
        bp.claim("1f1b", "makespan == 3", where="p > 9", p=P, m=M)
    with pytest.raises(TypeError, match="p must be a whole number, got str '4'"):
        bp.claim("1f1b", "makespan == 3", p="4", m=3)
    with pytest.raises(TypeError, match="the family must be a name, a Family or a function, got"):
        bp.claim(3, "makespan == 3", p=2, m=3)
