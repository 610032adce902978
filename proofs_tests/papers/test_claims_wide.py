"""The wide domains of MEPipe's, T-Pipe's and PipeMesh's claims reach the ends of their ranges."""

from __future__ import annotations

import re

import pytest

from bubbleproof.papers.claims import Reading
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.registry import claims
from proofs_tests.papers.test_claims_added import ADDED_IDS
from proofs_tests.sized import sampled

# Those of ``test_claims_added`` have ranges of their own.
READINGS = [
    (claim.id, reading)
    for name in ("mepipe", "tpipe", "pipemesh")
    for claim in claims(name).values()
    for reading in claim.readings
    if claim.id not in ADDED_IDS
]
ALL_WIDE = [(name, reading) for name, reading in READINGS if reading.wide is not None]
WIDE = sampled(ALL_WIDE, every=3)
IDS = [f"{name}-{reading.name}" for name, reading in WIDE]
SEARCHED = re.compile("every order|all tie-breaks")  # each case is a search
ENDS = {"v": 4, "s": 8}


def values(domain: Domain, name: str) -> set[int]:
    return {point[name] for point in domain.points}


def wide(reading: Reading) -> Domain:
    assert reading.wide is not None
    return reading.wide


@pytest.mark.parametrize(("claim", "reading"), WIDE, ids=IDS)
def test_a_wide_domain_holds_the_small_one(claim: str, reading: Reading) -> None:
    large = wide(reading)
    assert reading.domain.names == large.names, claim
    assert {tuple(row) for row in reading.domain.table.tolist()} <= {
        tuple(row) for row in large.table.tolist()
    }


@pytest.mark.parametrize("reading", [reading for _, reading in WIDE], ids=IDS)
def test_a_wide_domain_reaches_16_ranks_and_odd_ones(reading: Reading) -> None:
    ranks = values(wide(reading), "p")
    assert max(ranks) == 16
    assert {3, 5, 7, 11} <= ranks


@pytest.mark.parametrize("reading", [reading for _, reading in WIDE], ids=IDS)
def test_chunks_and_slices_reach_their_ends(reading: Reading) -> None:
    domain = wide(reading)
    for name, most in ENDS.items():
        if name in domain.names:
            assert max(values(domain, name)) == most


@pytest.mark.parametrize(("claim", "reading"), WIDE, ids=IDS)
def test_microbatches_reach_four_times_the_ranks_or_all_below_them(
    claim: str, reading: Reading
) -> None:
    domain = wide(reading)
    pairs = {(point["p"], point["m"]) for point in domain.points}
    p = max(p for p, _ in pairs)
    counts = {m for rank, m in pairs if rank == p}
    if claim.startswith("tpipe.sec6.4."):  # it is the chunks that vary
        assert counts == {3 * p}
    elif max(counts) < p:
        assert max(counts) == p - 1
        assert min(counts) == 1
    else:
        assert max(counts) == 4 * p


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("mepipe.table3.svpp.bubble-least", {"fewer", "divided", "others"}),
        ("mepipe.table3.svpp.memory-many", {"divided", "others"}),
        ("mepipe.table3.svpp.memory-few", {"fewer"}),
        ("mepipe.table3.hanayo.memory-many", {"divided", "others"}),
        ("tpipe.appA.total", {"fewer", "divided", "others"}),
        ("tpipe.appC.time", {"fewer", "divided", "others"}),
        ("pipemesh.sec4A.bubble-repaired", {"divided", "others"}),
        ("pipemesh.sec3B.requirement-ends", {"fewer", "divided", "others"}),
    ],
)
def test_central_claims_have_every_kind_of_count_and_several_ratios(
    name: str, kinds: set[str]
) -> None:
    domain = wide(next(reading for claim, reading in READINGS if claim == name))
    for p in (7, 16):
        counts = {point["m"] for point in domain.points if point["p"] == p}
        found = {"fewer" if m < p else "divided" if m % p == 0 else "others" for m in counts}
        assert found == kinds
    if "tF" in domain.names:
        ratios = {(point["tF"], point["tB"]) for point in domain.points if point["p"] == 16}
        assert len(ratios) >= 3


def test_no_claim_on_a_sweep_of_ranks_was_left_narrow() -> None:
    # What has more than one p and m and no wide domain names the ranks of a table or a large p, or
    # is a reading that is rejected among those it has.
    narrow = [
        claim
        for claim, reading in READINGS
        if reading.wide is None
        and {"p", "m"} <= set(reading.domain.names)
        and len(values(reading.domain, "p")) > 1
        and max(values(reading.domain, "p")) < 16
        and not SEARCHED.search(reading.domain.text)
    ]
    assert narrow == [
        "pipemesh.eq3",
    ]
