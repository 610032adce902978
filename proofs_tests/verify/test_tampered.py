"""Damaged certificates: none is accepted above the true optimum."""

from __future__ import annotations

import pytest

from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision
from proofs_tests.sized import sized
from proofs_tests.verify import tampered

KINDS = {
    *("one-machine", "one-store", "prices", "windows", "volume", "propagation", "DRUP", "options")
}


@pytest.mark.sweep
def test_what_is_accepted_holds() -> None:
    """60 damaged certificates, 500 with ``BUBBLEPROOF_SWEEP=full``."""
    counts = tampered.sweep(sized(60, full=500))
    assert counts.above == []
    assert counts.tampered == sum(counts.by_kind.values())
    assert set(counts.by_kind) == KINDS
    assert 0 < counts.accepted < counts.tampered / 2


def test_a_checker_that_believes_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = RuleDecision(rule=Rule.CERTIFICATE, count=0, violations=())
    monkeypatch.setattr(tampered, "check_certificate", lambda *_: accepted)
    counts = tampered.sweep(12)
    assert counts.accepted == 12
    assert len(counts.above) > 6  # four of five claim more than the optimum
