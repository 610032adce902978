"""T-Pipe's claims: which readings hold, what rejects the others, what contradicts what."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.papers.claims import ClaimVerdict, PaperClaim, decide
from bubbleproof.papers.tpipe.tpipe_claims import CLAIMS
from bubbleproof.papers.tpipe.tpipe_domains import TENTHS
from bubbleproof.papers.tpipe.tpipe_formulas import deep_life, least_delay
from bubbleproof.papers.tpipe.tpipe_memory import GIB, SYSTEMS, bytes_of, most_layers
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sampled, sized

BY_ID = {claim.id: claim for claim in CLAIMS}
READ = sampled([claim for claim in CLAIMS if claim.readings], every=2)
LIMIT = sized(16, full=40)  # cases looked at of each reading; what rejects one is among them
# Where two places of the paper exclude each other, and what either gives there.
CONTRADICTED = {
    # Eq. 1 at p = 2: 2 + 4 - 2 = 4; without the forward itself, as a life is defined, 3.
    "appA.eq1-defined": "p=2 m=6: claimed 4, measured 3",
}
# Readings that fail beside one that holds.
REJECTED = {
    # Stages 0 1 0 1: rank 0 warms up with 2 of chunk 1 and 2 of chunk 2, and holds 4 of chunk 1 and
    # 2 of chunk 2 at their own peaks.
    ("sec2.3.skew", "each at its own peak"): "p=2 m=4 tF=1 tB=1: claimed 3/2, measured 2",
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
    ("appA.ratio", "at any durations"): "p=2 m=2 tF=2 tB=1: claimed 1/3, measured 7/19",
    # Stages 0 1 0 1 on 2 ranks: 3 hops each way and microbatch, where 1F1B has 1: 4 * 2 * 3.
    ("appA.rounds", "all of a step"): "p=2 m=4: claimed 16, measured 24",
    # The recomputed block and one of chunk 2, of 4 units.
    ("appC.quarter", "at most, on any number of ranks"): (
        "p=2 m=6 tF=1 tB=1: claimed 1/4, measured 1/2"
    ),
    # 6p + 7(m-1) is 25 at p = 3, m = 2: a recomputation fills a bubble and saves one.
    ("appC.time", "our order, in which a recomputation may fill a bubble"): (
        "p=3 m=2: claimed 25, measured 24"
    ),
    # y = ceil(1/6) = 1: p - y - 1 = 0; x = ceil(-1/6) = 0: p - x - 1 = 1.
    ("appD.eq6-large", "at least, on any number of ranks"): "p=2 m=2 r=0: claimed 4/3, measured 0",
    ("appD.eq8-large", "at least, on any number of ranks"): "p=2 m=2 r=0: claimed 5/3, measured 1",
    # 25 layers of 0.42578125 GiB are 10.6445, half a thousandth too little to be printed so.
    ("sec6.2.1f1b", "by the same layer"): ("p=8 m=64 layers=48: claimed 213/20, measured 2725/256"),
    # Gaps of 2 and 4 cells: of four chunks every second forward and every backward meets a taken
    # cell. Lives of 13, 34, 58, 79 units are 2 + 3 + 5 + 7 rounds of 12, never all at once: 16.
    ("sec6.4.finer", "on any number of ranks"): "p=5 v=4 m=15: claimed 11/15, measured 4/5",
}


def test_ids_are_told_apart_and_there_are_enough() -> None:
    assert len(BY_ID) == len(CLAIMS) >= 40
    assert all(name.startswith("tpipe.") for name in BY_ID)


@pytest.mark.parametrize("claim", READ, ids=lambda claim: claim.id)
def test_each_reading_holds_or_is_rejected_by_its_smallest_case(claim: PaperClaim) -> None:
    name = claim.id.removeprefix("tpipe.")
    decision = decide(claim, limit=LIMIT)
    assert claim.corrected is None
    if name in CONTRADICTED:
        assert decision.verdict is ClaimVerdict.CONTRADICTS_ITSELF
        assert str(decision.counterexample) == CONTRADICTED[name]
        return
    assert decision.verdict is ClaimVerdict.HOLDS
    for finding in decision.findings:
        rejected = REJECTED.get((name, finding.reading.name), "None")
        assert str(finding.counterexample) == rejected, finding.reading.name


def test_what_is_rejected_and_contradicted_is_there() -> None:
    assert {f"tpipe.{name}" for name in CONTRADICTED} == {c.id for c in CLAIMS if c.against}
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


def test_eq_1_is_less_by_the_forward_where_a_life_begins_with_its_completion() -> None:
    # T_fwd_chunk2 + T_bwd_chunk2 - 2 = p + 2p - 2 counts the forward of stage 0 itself.
    for p in range(2, 17):
        words = (p - 1) + 2 * p - 2
        assert deep_life(p) == words + 1


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


def test_the_least_delay_is_where_its_constraint_turns_by_hand() -> None:
    # 3 + 6x - p - (z - x - 1) + 7k: p = 7, x = 1, z = 3: 1; p = 8, x = 1, z = 4: -1.
    assert [least_delay(p) for p in (7, 8)] == [0, 1]
