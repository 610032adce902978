"""An audit in shards gives what ``decide`` gives, in whatever order the shards are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from bubbleproof.papers.audit import audit as auditing
from bubbleproof.papers.audit.audit import Audit, Shard, decide_shard
from bubbleproof.papers.claims import (
    ClaimDecision,
    ClaimVerdict,
    PaperClaim,
    Reading,
    Relation,
    decide,
)
from bubbleproof.papers.claims.domain import domain
from proofs_tests.sized import sized

WIDE = domain("p <= 8, m <= 30, x <= 3", p=range(1, 9), m=range(1, 31), x=range(1, 4))
SMALL = domain("p <= 2", p=range(1, 3), m=range(1, 31), x=range(1, 4), wide=WIDE)


def claim(name: str, fails: Sequence[tuple[int, int, int]]) -> PaperClaim:
    """A claim that fails in the given cases (p, m, x) and in no other."""
    return read(name, reading("as stated", fails))


def reading(name: str, fails: Sequence[tuple[int, int, int]]) -> Reading:
    return Reading(
        name=name,
        support="a test",
        relation=Relation.EQUAL,
        domain=SMALL,
        predicted=lambda _: Fraction(0),
        measured=lambda at: Fraction(tuple(at.values()) in fails),
    )


def read(name: str, *readings: Reading) -> PaperClaim:
    return PaperClaim(
        id=f"test.{name}",
        paper="test",
        source="a test",
        statement="It is 0.",
        quantity="a number",
        readings=readings,
    )


CLAIMS = {
    each.id: each
    for each in (
        claim("holds", ()),
        claim("fails-first", ((1, 1, 1), (8, 30, 3))),
        claim("fails-late", ((8, 30, 3),)),
        # (5,14,2) and (6,13,2) have the same sum 21 and lie in different cells: the first wins.
        claim("fails-twice", ((6, 13, 2), (5, 14, 2), (7, 20, 1))),
        # In one cell: 7+20+1 is less than 7+20+3.
        claim("fails-in-a-cell", ((7, 20, 3), (7, 20, 1))),
        # Two readings in one shard: one fails at once, the other late.
        read("twice", reading("early", ((1, 1, 1),)), reading("late", ((8, 30, 3),))),
    )
}


def known() -> dict[str, PaperClaim]:
    """Where workers find the claims."""
    return CLAIMS


def audited(
    seed: int, *, is_wide: bool = True, limit: int | None = None
) -> dict[str, ClaimDecision]:
    audit = Audit(chosen=CLAIMS, library=known, is_wide=is_wide, limit=limit)
    todo = audit.shards()
    Random(seed).shuffle(todo)
    for shard in todo:
        audit.note(shard, decide_shard(shard))
    return audit.decisions()


@pytest.mark.parametrize("seed", range(sized(2, full=4)))
@pytest.mark.parametrize("limit", [None, 7, 300])
@pytest.mark.parametrize("is_wide", [True, False])
def test_an_audit_decides_as_decide_does(seed: int, limit: int | None, is_wide: bool) -> None:
    found = audited(seed, is_wide=is_wide, limit=limit)
    assert found == {
        name: decide(each, is_wide=is_wide, limit=limit) for name, each in CLAIMS.items()
    }


def test_the_smallest_counterexample_wins() -> None:
    found = {name: decision.counterexample for name, decision in audited(0).items()}
    params = {name: tuple(case.params.values()) for name, case in found.items() if case}
    early, late = audited(0)["test.twice"].findings
    assert early.counterexample is not None
    assert (early.checked, late.checked) == (1, 8 * 30 * 3)
    assert early.counterexample.params == {"p": 1, "m": 1, "x": 1}
    assert params == {
        "test.fails-first": (1, 1, 1),
        "test.fails-late": (8, 30, 3),
        "test.fails-twice": (5, 14, 2),
        "test.fails-in-a-cell": (7, 20, 1),
        "test.twice": (1, 1, 1),
    }
    assert audited(0)["test.fails-late"].checked == 8 * 30 * 3
    assert audited(0, is_wide=False)["test.fails-late"].verdict is ClaimVerdict.HOLDS


def test_every_case_is_in_one_shard() -> None:
    audit = Audit(chosen=CLAIMS, library=known, is_wide=True)
    places: dict[tuple[str, str], list[int]] = {}
    for shard in audit.shards():
        for part in shard.slices:
            places.setdefault(part.key, []).extend(part.place.tolist())
    assert {key: sorted(found) for key, found in places.items()} == {
        (name, each.name): list(range(8 * 30 * 3))
        for name, claim in CLAIMS.items()
        for each in claim.readings
    }


def test_claims_that_share_a_schedule_meet_in_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "LOAD", 0)  # nothing is joined

    def cells(shard: Shard) -> set[tuple[int, ...]]:
        return {tuple(row[:2]) for part in shard.slices for row in part.rows.tolist()}

    for shard in Audit(chosen=CLAIMS, library=known, is_wide=True).shards():
        assert len(cells(shard)) == 1
        assert len(shard.claims) == len(CLAIMS)


def test_a_domain_without_cases_is_refused() -> None:
    nobody = domain("nobody", p=(), m=(1,))
    empty = read("holds", replace(reading("as stated", ()), domain=replace(SMALL, wide=nobody)))
    with pytest.raises(ValueError, match=r"test.holds: the domain \(nobody\) has no case"):
        Audit(chosen={empty.id: empty}, library=known, is_wide=True).shards()
    with pytest.raises(ValueError, match=r"test.holds: the domain \(nobody\) has no case"):
        decide(empty, is_wide=True)


def test_an_error_names_the_claim_and_the_case() -> None:
    wrong = replace(reading("as stated", ()), measured=lambda at: Fraction(1, at["p"] - 1))
    broken = read("holds", wrong)
    only = {broken.id: broken}
    shards = Audit(chosen=only, library=lambda: only, is_wide=True).shards()
    shard = next(each for each in shards if any(1 in part.rows[:, 0] for part in each.slices))
    with pytest.raises(ZeroDivisionError) as raised:
        decide_shard(shard)
    assert raised.value.__notes__ == [
        "while measuring test.holds (as stated) at {'p': 1, 'm': 30, 'x': 1}"  # the largest first
    ]
