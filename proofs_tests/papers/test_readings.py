"""Readings: what they make of a claim, premises that stay, and how they are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.papers.claims import (
    ClaimDecision,
    ClaimVerdict,
    PaperClaim,
    Premise,
    Reading,
    decide,
)
from bubbleproof.papers.claims.claim import contradicting, read_as, reading, stated
from bubbleproof.papers.claims.domain import case, domain
from bubbleproof.papers.claims.reading import ABOUT, EQUAL_TICKS, TWICE, UP_TO, Relation
from bubbleproof.papers.registry import claims
from proofs_tests.sized import sampled

CASES = domain("p = 1 2 3", p=(1, 2, 3))
TICKED = domain("p = 1 2 at equal ticks", p=(1, 2), tF_tB=((1, 1),))


def says(name: str, predicted: str) -> Reading:
    """A reading of which p is measured."""
    return reading(name, "section 1", "p", "==", predicted, CASES)


TRUE, LATE, EARLY = says("true", "p"), says("late", "min(p, 2)"), says("early", "4 - p")


def read(*readings: Reading) -> PaperClaim:
    return read_as("bpipe.x", "section 1", "It is p.", "p", readings)


def proved(decision: ClaimDecision, name: str) -> ClaimDecision:
    findings = (replace(f, is_proved=f.reading.name == name) for f in decision.findings)
    return replace(decision, findings=tuple(findings))


def test_one_reading_that_holds_is_enough_and_the_others_are_told() -> None:
    decision = decide(read(EARLY, TRUE, LATE))
    assert decision.verdict is ClaimVerdict.HOLDS
    assert decision.counterexample is None
    assert decision.deciding is not None
    assert decision.deciding.reading is TRUE
    cases = [str(finding.counterexample) for finding in decision.findings]
    # 4 - 1 = 3 is not 1; min(3, 2) = 2 is not 3.
    assert cases == ["p=1: claimed 3, measured 1", "None", "p=3: claimed 2, measured 3"]
    assert [finding.checked for finding in decision.findings] == [1, 3, 3]
    assert decision.checked == 7


def test_a_paper_is_refuted_only_where_every_reading_fails() -> None:
    assert decide(read(EARLY, LATE)).verdict is ClaimVerdict.REFUTED
    assert str(decide(read(LATE, EARLY)).counterexample) == "p=3: claimed 2, measured 3"


def test_what_is_proved_goes_before_what_holds() -> None:
    again = replace(TRUE, name="again")
    decision = proved(decide(read(EARLY, TRUE, again)), "again")
    assert decision.verdict is ClaimVerdict.PROVED
    assert decision.deciding is not None
    assert decision.deciding.reading is again


def test_two_places_that_exclude_each_other_are_told_as_that() -> None:
    def both(first: str, second: str) -> PaperClaim:
        return contradicting(
            "bpipe.speedup",
            "section 1",
            first,
            "Table 2",
            second,
            "Both give the speed-up.",
            "times",
            case("printed", fast=10, slow=15),
        )

    decision = decide(both("1.6", "slow/fast"))  # 15/10 = 3/2
    assert decision.verdict is ClaimVerdict.CONTRADICTS_ITSELF
    assert str(decision.counterexample) == "fast=10 slow=15: claimed 8/5, measured 3/2"
    assert (decision.claim.source, decision.claim.against) == ("BPipe section 1", "BPipe Table 2")
    assert decide(both("1.5", "slow/fast")).verdict is ClaimVerdict.HOLDS


def test_a_premise_cannot_be_dropped() -> None:
    equal = stated("bpipe.x", "a", "b", "c", "p", "==", "p", TICKED, premises=[EQUAL_TICKS])
    assert [*equal.reading().broken_premises()] == []
    twice = stated("bpipe.x", "a", "b", "c", "p", "==", "p", TICKED, premises=[TWICE])
    broken = [(premise.text, dict(at)) for premise, at in twice.reading().broken_premises()]
    assert broken == [("tB = 2 tF", {"p": p, "tF": 1, "tB": 1}) for p in (1, 2)]
    with pytest.raises(ValueError, match=r"bpipe\.x: tF == tB names tB, tF, no parameter"):
        stated("bpipe.x", "a", "b", "c", "p", "==", "p", CASES, premises=[EQUAL_TICKS])
    for premise in (UP_TO, ABOUT):
        with pytest.raises(ValueError, match=f"its premise '{premise.text}' is dropped by =="):
            replace(TRUE, premises=(premise,))
    assert replace(TRUE, premises=(UP_TO,), relation=Relation.AT_MOST).premises == (UP_TO,)
    with pytest.raises(ValueError, match="premise 'in general' limits neither"):
        Premise(text="in general")


@pytest.mark.parametrize(
    "claim", sampled([*claims().values()], every=2), ids=lambda claim: claim.id
)
def test_the_cases_of_every_reading_meet_its_premises(claim: PaperClaim) -> None:
    for each in claim.readings:
        assert next(each.broken_premises(), None) is None, each.name
        assert each.support


def test_readings_are_told_apart_by_their_names() -> None:
    assert read(EARLY, TRUE).reading("true") is TRUE
    with pytest.raises(ValueError, match=r"which reading is None\? It has early, true"):
        read(EARLY, TRUE).reading()
    with pytest.raises(ValueError, match="two readings share a name: true, true"):
        read(TRUE, TRUE)
