"""Programs as lowering makes them end; with messages where they are used some get stuck.

A few sizes here, all of ``records/deadlock.md`` by its command.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bubbleproof.theory.families import families
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify.communication.semantics import USUAL
from proofs_tests.deadlock_page import at_use, judged, page
from proofs_tests.sized import sized

PAGE = Path(__file__).resolve().parents[2] / "records" / "deadlock.md"
NAMES = sized(("1f1b", "zb-v", "toffload"), full=tuple(families()))
SIZE = sized((2, 3), full=(5, 8))


@pytest.mark.parametrize("name", NAMES)
def test_lowered_programs_end(name: str) -> None:
    tally = judged(name, lower, *SIZE)
    assert tally.judged == tally.covered > 0
    assert not tally.stuck


def test_1f1b_by_hand_gets_stuck_first_with_two_microbatches() -> None:
    """Rank 0 sends F1 before it receives B0, and rank 1 sends B0 before it receives F1.

    With unbounded buffers nobody waits to send.
    """
    tally = judged("1f1b", at_use, 2, 2)
    assert tally.judged == 4
    assert {each: tally.told(each) for each in USUAL} == {
        each: "none" if each == "buffered" else "1, first p=2 m=2" for each in USUAL
    }
    assert "| `1f1b` | 4 | 4 | none | 1, first p=2 m=2 |" in page("", {}, {"1f1b": tally})


def test_the_page_has_every_family_and_none_is_stuck_as_lowered() -> None:
    lowered, used = PAGE.read_text("utf-8").split("\n## ")[1:]
    rows = [re.findall(r"^\| `([\w-]+)` \|", part, re.MULTILINE) for part in (lowered, used)]
    assert rows == [list(families())] * 2
    assert lowered.count("| none | none | none | none | none |") == len(families())
