"""The wide domains of the field's and BPipe's claims reach the ends of their ranges."""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import Claim, claims
from bubbleproof.papers.claims.domain import Domain
from proofs_tests.papers.test_claims_added import ADDED_IDS

BY_ID = {
    name: claim
    for name, claim in {**claims("field"), **claims("bpipe")}.items()
    if name not in ADDED_IDS  # they have ranges of their own
}
CLAIMS = {name: claim for name, claim in BY_ID.items() if claim.wide is not None}
# What the paper prints: one configuration, a table, or Figure 4; and what cannot be measured.
PRINTED = {"bpipe.fig4.decisions", "bpipe.appA.example"}


def wide(claim: Claim) -> Domain:
    assert claim.wide is not None
    return claim.wide


def test_every_claim_on_schedules_has_a_wide_domain() -> None:
    on_schedules = {
        claim.id
        for claim in BY_ID.values()
        if {"p", "m"} <= set(claim.domain.names) and "t" not in claim.domain.names
    }
    # What is decided over every order is a search in each case, and keeps to few.
    every = {name for name in on_schedules if "every order" in BY_ID[name].domain.text}
    assert on_schedules - set(CLAIMS) == PRINTED | every


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_wide_domain_holds_the_small_one_and_reaches_16_ranks_and_64_microbatches(
    claim: Claim,
) -> None:
    large = wide(claim)
    assert large.names == claim.domain.names
    rows = {tuple(row) for row in large.table.tolist()}
    assert {tuple(row) for row in claim.domain.table.tolist()} <= rows
    assert large.names[:2] == ("p", "m")
    assert max((p, m) for p, m, *_ in rows) == (16, 64)
    if "v" in large.names:
        assert max(row[large.names.index("v")] for row in rows) == 4


@pytest.mark.parametrize(
    "name",
    [
        "field.gpipe.makespan", "field.1f1b.span-idle", "field.bfs.peak", "field.zb-h1.bubble",
        "bpipe.mu", "bpipe.sec3.3.objective", "bpipe.alg1.minimum", "bpipe.sec3.5.fits",
    ],
)  # fmt: skip
def test_few_microbatches_remainders_and_odd_ranks_are_there(name: str) -> None:
    pairs = {(p, m) for p, m, *_ in wide(CLAIMS[name]).table.tolist()}
    for p in (5, 7, 11, 15):
        counts = {m for rank, m in pairs if rank == p}
        assert min(counts) < p
        assert any(m > p and m % p for m in counts)
        assert max(counts) == 4 * p


def test_ratios_on_both_sides_of_one() -> None:
    for name in ("field.1f1b.makespan", "field.interleaved.bubble-divided", "bpipe.sec3.5.fits"):
        ratios = {tuple(row[-2:]) for row in wide(CLAIMS[name]).table.tolist()}
        assert {(1, 1), (1, 2), (2, 3), (3, 2)} <= ratios
