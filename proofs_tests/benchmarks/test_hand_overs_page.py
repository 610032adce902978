"""The page of plans handed over says what happened: what differs, what is refused, what passed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the page names torch's version")

from benchmarks.hand_overs import PLANS, TARGETS, HandOver, page

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "hand-overs.md"


def test_what_differs_and_what_is_refused_does_not_pass() -> None:
    good = HandOver(plan="deep", order="v=1", target="torch", files=5, checked="the bits")
    rows = [good, replace(good, fault="DIFFERS: the bits"), replace(good, refusal="refused: why")]
    told = page(rows)
    assert "1 of 3 were handed over" in told
    assert [line.split(" | ")[-1] for line in told.splitlines()[-3:]] == [
        "the bits |",
        "DIFFERS: the bits |",
        "refused: why |",
    ]


def test_each_plan_was_handed_to_each_target_and_nothing_differs() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines[2:]]
    assert [(row[0], row[2].strip("`")) for row in cells] == [
        (plan, target) for plan in PLANS for target in TARGETS
    ]
    assert not any("DIFFERS" in row[-1] for row in cells)
    trained = [row[-1] for row in cells if row[2] == "`torch`"]
    assert all("scale_grads on and off" in told for told in trained)
    # Megatron has no split backwards, and everything else is handed over
    refused = [(row[0], row[2]) for row in cells if row[-1].startswith("refused")]
    assert refused == [("split", "`megatron`")]
