"""Collectives in the programs of ranks, by hand: PipeMesh on two ranks with ZeRO-3."""

from __future__ import annotations

import pytest

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.collective_order import (
    COLLECTIVES,
    check_collectives,
    check_one_at_a_time,
    program_of_ends,
)
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision
from proofs_tests.verify.dataflow.samples import sharded

PROBLEM = sharded(3).problem


def whole() -> list[str]:
    """Every collective of the problem as often as it must stand, in any order."""
    known = [action for action in PROBLEM.actions if action.kind in COLLECTIVES]
    return [str(a) for a in known for _ in range(1 if a.kind is Kind.RESHARD else 2)]


def judged(order: list[str], *others: str) -> list[str]:
    finding = check_collectives(PROBLEM, Program.from_orders([order, list(others)]))
    assert finding.rule is Rule.COMPLETE
    assert finding.count >= len(finding.violations)
    return [violation.message for violation in finding.violations]


def test_each_stands_whole_in_the_program_of_one_rank() -> None:
    assert judged(whole()) == []
    assert judged(["0F0", *whole(), "0B0"], "1F0") == []
    assert len(whole()) > 10


def test_what_is_missing_foreign_or_split_is_named() -> None:
    rest = [text for text in whole() if text not in ("0UNSHARD", "0RESHARD")]
    pair, free = ["0UNSHARD", "0UNSHARD"], ["0RESHARD"]
    wrong = "0UNSHARD stands {} times on {}, must stand twice on one"
    assert judged([*rest, *pair[:1], *free]) == [wrong.format(1, "rank 0")]
    assert judged([*rest, *pair, *pair[:1], *free]) == [wrong.format(3, "rank 0")]
    assert judged([*rest, *free]) == [wrong.format(0, "no rank")]
    assert judged([*rest, "0UNSHARD", *free], "0UNSHARD") == [wrong.format(2, "rank 0 and rank 1")]
    freed = "0RESHARD stands {} times on {}, must stand once on one"
    assert judged([*rest, *pair]) == [freed.format(0, "no rank")]
    assert judged([*rest, *pair, *free, *free]) == [freed.format(2, "rank 0")]
    assert judged([*whole(), "9UNSHARD"]) == ["9UNSHARD belongs to no collective of the problem"]


def test_three_are_shown_and_all_are_counted() -> None:
    finding = check_collectives(PROBLEM, Program.from_orders([["0F0"], ["1F0"]]))
    assert finding.count == len(set(whole()))
    assert len(finding.violations) == 3
    assert finding.violations[0].tasks == (finding.violations[0].message.split()[0],)


def one_at_a_time(*orders: str) -> RuleDecision:
    finding = check_one_at_a_time(Program.from_orders([order.split() for order in orders]))
    assert (finding.rule, finding.detail) == (Rule.COMMUNICATION, "collectives")
    assert all(violation.rule is Rule.COMMUNICATION for violation in finding.violations)
    return finding


def test_those_of_a_rank_run_one_after_another() -> None:
    fine = "0UNSHARD 0F0 0UNSHARD 0RESHARD 1REDUCE_GRAD 1RESHARD 0F1 1REDUCE_GRAD 0UNSHARD 0B0"
    assert one_at_a_time(fine).ok
    assert one_at_a_time("0UNSHARD 0UNSHARD", "1UNSHARD 1UNSHARD").ok
    crossed = one_at_a_time("0UNSHARD 1REDUCE_GRAD 0UNSHARD 1REDUCE_GRAD", "2UNSHARD 2UNSHARD")
    # 1REDUCE_GRAD ends what 0UNSHARD has begun, and then once more.
    assert crossed.count == 2
    assert {violation.message for violation in crossed.violations} == {
        "1REDUCE_GRAD on rank 0 begins before 0UNSHARD has ended"
    }
    assert crossed.violations[0].tasks == ("1REDUCE_GRAD", "0UNSHARD")
    many = one_at_a_time("0UNSHARD 1UNSHARD " * 5)
    assert (many.count, len(many.violations)) == (5, 3)


@pytest.mark.parametrize(
    ("order", "ends"),
    [
        ("0UNSHARD 0F0 0UNSHARD 0F1 0RESHARD", "0F0 0UNSHARD 0F1 0RESHARD"),
        ("0F0 0F0", "0F0 0F0"),
        ("0UNSHARD 0UNSHARD 0UNSHARD", "0UNSHARD"),
        ("", ""),
    ],
)
def test_each_is_left_where_it_ends(order: str, ends: str) -> None:
    kept = program_of_ends(Program.from_orders([order.split(), ["1UNSHARD", "1F0", "1UNSHARD"]]))
    wanted = [[Action.parse(text) for text in ends.split()]]
    assert kept.orders(2) == [*wanted, [Action.parse(text) for text in ("1F0", "1UNSHARD")]]
