"""BPipe's claims: what is refuted and what mends it, teeth, and a second route to the values."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial

import pytest

from bubbleproof.papers.bpipe import bpipe_claims, bpipe_schedules
from bubbleproof.papers.bpipe.bpipe_literal import literal, paired
from bubbleproof.papers.bpipe.bpipe_schedules import BPIPE as BALANCED
from bubbleproof.papers.bpipe.bpipe_schedules import pairs, printed
from bubbleproof.papers.bpipe.bpipe_search import held_during, least_capacity, least_evictions
from bubbleproof.papers.claims import ClaimDecision, ClaimVerdict, decide
from bubbleproof.theory.families import member
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sized

BASE = BALANCED.base
BPIPE = {claim.id: claim for claim in bpipe_claims.CLAIMS}


LIMIT: int | None = sized(16, full=None)  # cases of a claim that are looked at here
# Refuted by a later one.
LATE: dict[str, int | None] = {
    "bpipe.appB.fits-forward": sized(150, full=None),
    "bpipe.sec3.3.evictions": sized(40, full=None),
}


@cache
def decided(name: str) -> ClaimDecision:
    return decide(BPIPE[name], limit=LATE.get(name, LIMIT))


def counterexample(name: str, reading: str) -> str:
    """What rejects a reading beside one that holds."""
    assert decided(name).verdict is ClaimVerdict.HOLDS
    (found,) = (each for each in decided(name).findings if each.reading.name == reading)
    assert found.counterexample is not None, name
    return str(found.counterexample)


@pytest.mark.sweep
def test_what_holds_and_what_is_refuted() -> None:
    verdicts = {name: decided(name).verdict for name in BPIPE}
    assert set(verdicts.values()) == {ClaimVerdict.HOLDS}
    rejected = {
        (name, finding.reading.name): str(finding.counterexample)
        for name in BPIPE
        for finding in decided(name).findings
        if not finding.holds
    }
    # Each by hand below; of the placement see test_claims_bpipe_counts.
    assert rejected == {
        ("bpipe.sec3.3.evictions", "in all"): "p=4 m=7 s=0: claimed 2, measured 3",
        ("bpipe.appB.fits-forward", "at any durations"): (
            "p=4 m=8 tF=2 tB=1: claimed 33, measured 34"
        ),
        ("bpipe.sec3.5.one-node", "one replica after the other"): (
            "p=5 t=2 d=2 g=4: claimed 0, measured 1/2"
        ),
    }
    for decision in map(decided, BPIPE):
        for finding in decision.findings:
            wanted = min(finding.total, LATE.get(decision.claim.id, LIMIT) or finding.total)
            assert finding.checked == wanted > 0 or not finding.holds


def test_four_stages_evict_three_of_seven_microbatches() -> None:
    # mu_opt = 3, so (4-0) - 3 + 1 = 2 are claimed. Stage 0 evicts 1 in the warm-up, 3 when it loads
    # 1, and 5 when it loads 3; with 6 microbatches F5 is the last forward and 5 need not go.
    found = counterexample("bpipe.sec3.3.evictions", "in all")
    assert found == "p=4 m=7 s=0: claimed 2, measured 3"


def test_a_transfer_as_long_as_a_forward_costs_time_where_backwards_are_shorter() -> None:
    # tF = 2, tB = 1, t = 2: between B2 and B3 an evict and a load take 4 ticks, B and F take 3.
    # At m = 8, (8+3)*3 = 33 ticks become 34; up to m = 7 the bubbles before B0 absorb the delay.
    found = counterexample("bpipe.appB.fits-forward", "at any durations")
    assert found == "p=4 m=8 tF=2 tB=1: claimed 33, measured 34"


@pytest.mark.parametrize(("p", "m"), [(1, 2), (4, 8), (5, 11), (6, 18), (8, 16)])
def test_measurements_are_those_of_the_families(p: int, m: int) -> None:
    plain, balanced = member("1f1b", p=p, m=m), member("bpipe", p=p, m=m)
    mu = measure(plain.problem, plain.schedule).peak_activations
    peaks = measure(balanced.problem, balanced.schedule).peak_activations
    table = balanced.schedule.program.actions
    for s in range(p):
        at = {"p": p, "m": m, "s": s}
        assert value("bpipe.mu", at) == mu[s]
        assert value("bpipe.sec3.3.acceptor", at) == peaks[p - 1 - s]
        moved = [a for a in table if a.kind is Kind.EVICT and a.stage == s]
        assert value("bpipe.sec3.3.evictions", at, "in all") == len(moved)
    assert value("bpipe.sec3.3.objective", {"p": p, "m": m}) == max(peaks)


@pytest.mark.parametrize(("p", "m", "v"), [(3, 6, 2), (4, 8, 2), (4, 12, 3)])
def test_interleaved_measurements_are_those_of_the_families(p: int, m: int, v: int) -> None:
    plain, balanced = (member(f, p=p, m=m, v=v) for f in ("interleaved", "bpipe-interleaved"))
    mu = measure(plain.problem, plain.schedule).peak_activations
    at = {"p": p, "m": m, "v": v}
    assert [value("bpipe.appA.mu", {**at, "s": s}) for s in range(p)] == list(mu)
    peaks = measure(balanced.problem, balanced.schedule).peak_activations
    assert value("bpipe.appA.objective", at) == max(peaks)


def value(name: str, at: dict[str, int], reading: str | None = None) -> Fraction:
    return Fraction(BPIPE[name].reading(reading).measured(at))


def test_figure_4s_decisions_by_either_drawing() -> None:
    # F3 stands in slot 3, or in slot 6 before B0: line 22 looks there for B1 in slot 9.
    eager = computation_slots(BASE, 4, 8)
    for drawn, third in ((eager, 3), (paired(eager), 6)):
        slots = drawn[0]
        assert len(slots) == 22
        assert [str(slots[i]) for i in (0, 9, 18)] == ["0F0", "0B1", "None"]
        assert slots.index(Action.parse("0F3")) == third


def test_algorithm_1_in_pairs_moves_what_the_text_says() -> None:
    # 1 leaves beside F2; 3 beside B0, when F3 has run; 1 comes back before B1 beside F4, and so on.
    found = [
        (each.slot, each.kind.name, each.microbatch) for each in literal(pairs(4, 8)[0], 4, 0, 8)
    ]
    assert found == [
        (2, "EVICT", 1),
        (7, "EVICT", 3),
        (8, "LOAD", 1),
        (11, "EVICT", 5),
        (12, "LOAD", 3),
        (16, "LOAD", 5),
    ]
    # Rank 0 holds 3 of 4, rank 3 its own and two of them, one on the move; 1 and 2 stay.
    assert printed(4, 8) == (0, (3, 3, 2, 3))


def test_what_names_a_bubble_is_no_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpipe_schedules, "pairs", partial(computation_slots, BASE))
    bpipe_schedules.printed.cache_clear()
    with pytest.raises(ValueError, match="at p=4 m=8 Algorithm 1 names the microbatch of a bubble"):
        printed(4, 8)


def acts(*texts: str) -> tuple[Action | None, ...]:
    return tuple(None if text == "." else Action.parse(text) for text in texts)


def test_the_search_finds_what_a_hand_finds() -> None:
    # Three activations, room for two. 0 must leave beside F1; 1 and 2 fill the rank beside F2, so
    # one of them must leave before 0 can come back: 2 evictions, and two slots to do it in.
    idle = acts(*"........")
    slots = acts("0F0", "0F1", "0F2", ".", ".", "0B0", "0B1", "0B2")
    assert held_during(slots) == [1, 2, 3, 3, 3, 3, 2, 1]
    assert least_evictions(slots, idle, 3) == 0
    assert least_evictions(slots, idle, 2) == 2
    assert least_evictions(slots, idle, 1) is None
    tight = acts("0F0", "0F1", "0F2", "0B0", "0B1", "0B2")
    assert least_evictions(tight, idle[:6], 2) is None
    # An acceptor that is full itself takes nothing.
    full = acts("1F0", "1F1", ".", ".", ".", ".", ".", "1B0")
    assert least_evictions(slots, full, 2) is None
    # The pair of both: rank 0 must keep 3 where rank 1 has no room; a lone middle rank keeps 3.
    assert least_capacity((slots, full)) == 3
    assert least_capacity((slots,)) == 3
