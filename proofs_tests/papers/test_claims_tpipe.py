"""T-Pipe's claims: which readings hold, and what rejects the others."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.claims import ClaimVerdict, PaperClaim, decide
from bubbleproof.papers.tpipe.tpipe_claims import CLAIMS
from bubbleproof.papers.tpipe.tpipe_domains import TENTHS
from bubbleproof.papers.tpipe.tpipe_memory import GIB, SYSTEMS, bytes_of, most_layers
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sampled, sized

BY_ID = {claim.id: claim for claim in CLAIMS}
READ = sampled([*CLAIMS], every=2)
LIMIT = sized(16, full=40)  # cases looked at of each reading; what rejects one is among them
# Readings that fail beside one that holds.
REJECTED = {
    # 3 of chunk 1 and 1 of chunk 2, of 4 units.
    ("sec4.1.peak", "at most, on any number of ranks"): (
        "p=2 m=3 tF=1 tB=1: claimed 3/4, measured 1"
    ),
    # Interleaved 1F1B holds 5 on two ranks.
    ("sec4.1.half", "at most half, on any number of ranks"): (
        "p=2 m=4 tF=1 tB=1: claimed 5/2, measured 4"
    ),
    # 1/3 of T-Pipe's 3 * 6 units is idle, 1/5 of interleaved 1F1B's 12 + 3.
    ("sec4.1.double", "of the total time"): "p=2 m=2: claimed 2/5, measured 1/3",
    # 4 of chunk 1 and 2 of chunk 2, never at once.
    ("appA.joint", "the sum itself"): "p=3 m=4 tF=1 tB=1: claimed 6, measured 5",
    # The recomputed block and one of chunk 2, of 4 units.
    ("appC.quarter", "at most, on any number of ranks"): (
        "p=2 m=6 tF=1 tB=1: claimed 1/4, measured 1/2"
    ),
    # 25 layers of 0.42578125 GiB are 10.6445, half a thousandth too little to be printed so.
    ("sec6.2.1f1b", "by the same layer"): ("p=8 m=64 layers=48: claimed 213/20, measured 2725/256"),
}


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 25
    assert all(name.startswith("tpipe.") for name in BY_ID)


@pytest.mark.parametrize("claim", READ, ids=lambda claim: claim.id)
def test_each_reading_holds_or_is_rejected_by_its_smallest_case(claim: PaperClaim) -> None:
    name = claim.id.removeprefix("tpipe.")
    decision = decide(claim, limit=LIMIT)
    assert claim.corrected is None
    assert decision.verdict is ClaimVerdict.HOLDS
    for finding in decision.findings:
        rejected = REJECTED.get((name, finding.reading.name), "None")
        assert str(finding.counterexample) == rejected, finding.reading.name


def test_what_is_rejected_is_there() -> None:
    for name, reading in REJECTED:
        assert BY_ID[f"tpipe.{name}"].reading(reading)


def test_the_whole_range_of_the_central_claims() -> None:
    for name in sampled(("appA.total", "appA.ratio", "appA.joint-exact", "appC.time"), every=2):
        decision = decide(BY_ID[f"tpipe.{name}"])
        assert decision.verdict is ClaimVerdict.HOLDS
        assert decision.is_complete


def test_depths_are_those_that_fit_and_no_deeper_one_does() -> None:
    for system, (_, chunks, _) in SYSTEMS.items():
        layers = most_layers(system)
        for tenths in (TENTHS[0], TENTHS[-1]):
            room = tenths * GIB // 10
            assert bytes_of(system, layers) <= room < bytes_of(system, layers + 8 * chunks)


def test_measurements_are_those_of_the_families() -> None:
    for p, m in ((1, 3), (4, 12), (7, 21)):
        params = make_parameters({"p": p, "m": m})
        plain, recomputed = TPipe().member(params), TRecomp().member(params)
        got = measure(plain.problem, plain.schedule)
        assert value("appA.joint", p=p, m=m) == max(got.peak_activations)
        assert value("appA.ratio", p=p, m=m) == got.idle_ratio
        got = measure(recomputed.problem, recomputed.schedule)
        assert value("appC.total", p=p, m=m) == max(got.peak_activations)


def value(name: str, **at: int) -> Fraction:
    return Fraction(BY_ID[f"tpipe.{name}"].readings[0].measured(at))
