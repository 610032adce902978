"""The wide domains of the field's and BPipe's claims reach the ends of their ranges."""

from __future__ import annotations

import pytest

from bubbleproof.papers.claims import Reading
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.registry import claims
from proofs_tests.papers.test_claims_added import ADDED_IDS

READINGS = [
    (name, reading)
    for name, claim in {**claims("field"), **claims("bpipe")}.items()
    for reading in claim.readings
    if name not in ADDED_IDS  # they have ranges of their own
]
WIDE = [(name, reading) for name, reading in READINGS if reading.wide is not None]


def wide(reading: Reading) -> Domain:
    assert reading.wide is not None
    return reading.wide


def named(name: str) -> Domain:
    """The wide domain of a claim's first reading."""
    return wide(next(reading for claim, reading in WIDE if claim == name))


def test_every_claim_on_schedules_has_a_wide_domain() -> None:
    narrow = {
        name
        for name, reading in READINGS
        if {"p", "m"} <= set(reading.domain.names)
        and "t" not in reading.domain.names
        and reading.wide is None
        and "every order" not in reading.domain.text  # a search in each case, which keeps to few
    }
    assert narrow == set()


@pytest.mark.parametrize(
    ("claim", "reading"), WIDE, ids=[f"{name}-{reading.name}" for name, reading in WIDE]
)
def test_a_wide_domain_holds_the_small_one_and_reaches_16_ranks_and_64_microbatches(
    claim: str, reading: Reading
) -> None:
    large = wide(reading)
    assert large.names == reading.domain.names, claim
    rows = {tuple(row) for row in large.table.tolist()}
    assert {tuple(row) for row in reading.domain.table.tolist()} <= rows
    assert large.names[:2] == ("p", "m")
    assert max((p, m) for p, m, *_ in rows) == (16, 64)
    if "v" in large.names:
        assert max(row[large.names.index("v")] for row in rows) == 4


@pytest.mark.parametrize(
    "name",
    [
        "field.gpipe.makespan",
        "field.1f1b.span-idle",
        "field.bfs.peak",
        "field.gpipe.peak",
        "bpipe.mu",
        "bpipe.sec3.3.objective",
        "bpipe.alg1.minimum",
        "bpipe.sec3.5.fits",
    ],
)
def test_few_microbatches_remainders_and_odd_ranks_are_there(name: str) -> None:
    pairs = {(p, m) for p, m, *_ in named(name).table.tolist()}
    for p in (5, 7, 11, 15):
        counts = {m for rank, m in pairs if rank == p}
        assert min(counts) < p
        assert any(m > p and m % p for m in counts)
        assert max(counts) == 4 * p


def test_ratios_on_both_sides_of_one() -> None:
    for name in ("field.1f1b.makespan", "field.interleaved.bubble", "bpipe.sec3.5.fits"):
        ratios = {tuple(row[-2:]) for row in named(name).table.tolist()}
        assert {(1, 1), (1, 2), (2, 3), (3, 2)} <= ratios
