"""Families are what they cite: on every shape that they accept, by their sources' own words."""

from __future__ import annotations

import pytest
from typer import Typer
from typer.testing import CliRunner

import benchmarks.family_audit as audited
from benchmarks.family_audit import STATEMENTS, SourceStatement, audit, shapes
from bubbleproof.theory.families import families
from proofs_tests.sized import sized


@pytest.mark.sweep
@pytest.mark.parametrize("name", families())
def test_a_family_shown_under_a_source_is_what_the_source_says(name: str) -> None:
    """All shapes with p <= 6, m <= 12, v <= 4, s <= 3 where ``BUBBLEPROOF_SWEEP`` is full."""
    most = sized((4, 9, 3, 2), full=(6, 12, 4, 3))
    found = audit(name, list(shapes(families()[name], *most)))
    assert found.accepted
    # Where the order is the source's a statement of the source speaks, and each of them holds.
    assert not found.published or found.counts
    assert all(not count.broken for count in found.counts), found.counts
    # What a family adds to another one never fills the fullest rank more.
    assert not found.fuller


def test_the_audit_finds_a_statement_that_does_not_hold_and_a_fuller_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = SourceStatement("peak 1", "1", STATEMENTS["1f1b"][0].measured)
    monkeypatch.setitem(STATEMENTS, "1f1b", (wrong,))
    found = audit("1f1b", [(2, 2, 1, 1), (1, 3, 1, 1)])
    assert found.counts[-1].broken == ((2, 2, 1, 1),)  # min(p, m) is 2 there, 1 on one rank
    # All m microbatches lie on a GPipe rank, min(p, m) on a 1F1B rank.
    monkeypatch.setitem(audited.SIBLINGS, "gpipe", "1f1b")
    assert audit("gpipe", [(2, 2, 1, 1), (2, 3, 1, 1)]).fuller == ((2, 3, 1, 1),)


def test_the_command_prints_a_row_per_statement() -> None:
    app = Typer()
    app.command()(audited.main)
    printed = CliRunner().invoke(app, ["-p", "2", "-m", "3", "--only", "hanayo,bpipe"]).output
    # p = 1, 2, m = 1, 2, 3 and v = 1 to 4 are 24 shapes; none is Hanayo's own order.
    assert "| hanayo | 24 | 0 |" in printed
    assert "| 0 (1f1b) |" in printed
