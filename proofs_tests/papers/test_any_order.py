"""Claims over every tie-break and every order: what is enumerated, and what one order misses."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.claims import ClaimVerdict, decide
from bubbleproof.papers.claims.any_order import least_idle_ratio, least_over_ties
from bubbleproof.papers.claims.decision import decide_reading
from bubbleproof.papers.claims.measured_pipelines import idle_ratio
from bubbleproof.papers.registry import claims
from bubbleproof.theory.families import member
from bubbleproof.theory.families.svpp_literal import svpp_literal, tie_breaks
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.sized import sized

FIGURE_5 = {"p": 4, "m": 2, "v": 2, "s": 2, "tF": 1, "tB": 1}
CLAIMS = claims()


def test_figure_6_has_two_tie_breaks_and_one_takes_table_3s_ticks() -> None:
    # A rank works 2*2*2*2 = 16 ticks. (nsv + p-1) * 2 = 22 ticks idle 6 of 22; 23 idle 7 of 23.
    made = member("svpp", **FIGURE_5)
    orders = list(tie_breaks(made.pipeline, 8))
    first = svpp_literal(made.pipeline, 8, rescheduled=True)
    assert [str(action) for action in orders[0].actions] == [str(a) for a in first.actions]
    assert len({tuple(map(str, order.actions)) for order in orders}) == len(orders) == 2
    schedules = [left_shift(made.problem, order) for order in orders]
    assert all(check(made.problem, schedule).ok for schedule in schedules)
    assert sorted(measure(made.problem, each).makespan for each in schedules) == [22, 23]
    assert least_over_ties(FIGURE_5) == Fraction(6, 22)


def test_ties_are_counted_by_hand() -> None:
    # p = v = s = 1, so only microbatches tie, and all backwards have no children: the first
    # backward of two waits for the first forward alone, so at m = 2 they tie once at most.
    made = member("svpp", p=1, m=2, v=1, s=1, tF=1, tB=1)
    found = {tuple(map(str, order.actions)) for order in tie_breaks(made.pipeline, 1)}
    assert found == {("0F0", "0B0", "0F1", "0B1")}
    # With slices, (1, 0) and (0, 1) have one child each; at m = 1 that is the one tie.
    single = member("svpp", p=2, m=1, v=2, s=2, tF=1, tB=1)
    assert len(list(tie_breaks(single.pipeline, 4))) <= 2


@pytest.mark.parametrize(
    ("name", "at", "least"),
    [
        # 3 microbatches on two ranks and two chunks of 1 + 2 ticks: 18 of work, 3 idle: 1/7.
        ("hanayo", {"p": 2, "m": 3, "v": 2, "tF": 1, "tB": 2}, Fraction(1, 7)),
        # One microbatch alone: the other rank always waits.
        ("chimera", {"p": 2, "m": 1, "tF": 1, "tB": 1}, Fraction(1, 2)),
        # Both directions, two microbatches each way, and nobody waits.
        ("chimera", {"p": 2, "m": 4, "tF": 1, "tB": 2}, Fraction(0)),
    ],
)
def test_the_least_of_every_order(name: str, at: dict[str, int], least: Fraction) -> None:
    assert least_idle_ratio(name)(at) == least
    assert idle_ratio(name)(at) >= least


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("mepipe.section-4.4.bubble-many", ClaimVerdict.HOLDS),
        ("tpipe.sec4.2.interleaved-bubble", ClaimVerdict.HOLDS),
    ],
)
def test_a_claim_says_over_what_it_is_decided(name: str, verdict: ClaimVerdict) -> None:
    claim = CLAIMS[name]
    assert "some " in claim.statement.lower() or "every " in claim.statement
    assert decide(claim, limit=sized(20, full=None)).verdict is verdict


@pytest.mark.parametrize(
    ("name", "reading", "holds"),
    [
        ("mepipe.table3.svpp.bubble-many", "some order within f", True),
        (
            "mepipe.table3.svpp.bubble-many",
            "section 4.3's generator, rescheduled or not",
            False,
        ),
        (
            "mepipe.table3.svpp.bubble-few",
            "section 4.3's generator, rescheduled or not",
            True,
        ),
        (
            "mepipe.table3.svpp.bubble-few",
            "section 4.3's generator, always rescheduled",
            False,
        ),
        (
            "mepipe.table3.hanayo.bubble-many",
            "some order on its placement, at any durations",
            False,
        ),
    ],
)
def test_a_reading_says_over_what_it_is_decided(name: str, reading: str, holds: bool) -> None:
    assert decide_reading(CLAIMS[name].reading(reading)).holds == holds
    assert decide(CLAIMS[name], limit=1).verdict is not ClaimVerdict.REFUTED


def test_table_3s_bubble_is_the_least_of_every_order() -> None:
    # p = n = 3, v = 2, s = 1: 6 samples' chunks of 2 ticks and p-1 = 2 more, 4 idle of 16, within
    # f = v max(p,s) + min(p,s) - 1 = 6.
    at = {"p": 3, "m": 3, "v": 2, "s": 1, "tF": 1, "tB": 1}
    room = least_idle_ratio("svpp", room=lambda _: 6)
    assert idle_ratio("svpp")(at) == room(at) == Fraction(4, 16)
