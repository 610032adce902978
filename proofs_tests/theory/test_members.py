"""The helper of the families' tests can fail: a member that breaks a rule is told by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.theory.families import family, member
from proofs_tests.theory.members import assert_every_rule_holds, measured


def test_a_member_that_breaks_a_rule_is_told() -> None:
    made = member("1f1b", p=2, m=2)
    assert_every_rule_holds(made)
    with pytest.raises(AssertionError, match="memory of rank 0 holds 2"):
        assert_every_rule_holds(replace(made, problem=made.problem.with_capacity(1)))


def test_a_name_and_a_family_are_measured_alike() -> None:
    assert measured("1f1b", p=2, m=3).makespan == 12  # 1 + 3 * 3 + 2
    assert measured(family("1f1b"), p=2, m=3).makespan == 12
