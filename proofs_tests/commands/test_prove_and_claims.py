"""``prove`` and ``claims``: listings, verdicts, JSON and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.theorems import theorems
from bubbleproof.theorems.twins import twins
from bubbleproof.theory.claims import Standing, claims
from proofs_tests.commands.conftest import Run


def test_prove_lists_a_theorem_with_its_assumptions(command: Run) -> None:
    answer = command("prove", "1f1b")
    assert answer.status == 0
    assert "assuming p >= 1, m >= 1" in answer.out
    assert "proved" in answer.out


def test_prove_answers_programs(command: Run) -> None:
    found = json.loads(command("prove", "gpipe", "bfs", "--json").out)
    assert found["ok"]
    assert [theorem["id"] for theorem in found["theorems"]] == ["gpipe", "bfs"]
    assert {theorem["verdict"] for theorem in found["theorems"]} == {"PROVED"}


def test_an_unknown_theorem_is_told_the_known_ones(command: Run) -> None:
    answer = command("prove", "nosuch")
    known = " ".join(theorems())
    assert answer.status == 2
    assert answer.err == f"bubbleproof: no theorem 'nosuch'; the theorems are {known}\n"


def test_claims_are_listed(command: Run) -> None:
    answer = command("claims", "--paper", "bpipe")
    assert answer.status == 0
    assert "BPipe" in answer.out


def test_audit_decides_every_claim(command: Run, tmp_path: Path) -> None:
    page = tmp_path / "claims.md"
    answer = command(
        "claims", "--paper", "bpipe", "--limit", "5", "--workers", "1", "--write", page, "--json"
    )
    found = json.loads(answer.out)["claims"]
    assert [claim["id"] for claim in found] == list(claims("bpipe"))
    verdicts = {claim["verdict"] for claim in found}
    assert {"HOLDS", "PROVED", "NOT_REPRODUCIBLE"} <= verdicts
    assert verdicts <= {standing.name for standing in Standing}
    assert all(claim["theorem"] for claim in found if claim["verdict"] == "PROVED")
    for claim in found:
        assert (claim["counterexample"] is not None) == (claim["verdict"] == "REFUTED")
    assert page.read_text().count("\n| ") == len(found) + 1


def test_a_claim_is_not_proved_by_a_theorem_that_fails(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = theorems()
    broken = {**real, "1f1b": twins()[0].theorem}
    monkeypatch.setattr("bubbleproof.commands.audit.theorems", lambda: broken)
    found = json.loads(
        command("claims", "--paper", "bpipe", "--limit", "2", "--workers", "1", "--json").out
    )
    assert not any(claim["verdict"] == "PROVED" for claim in found["claims"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claims", "--paper", "nosuch"], "no claims of 'nosuch'; the papers are bpipe"),
        (["claims", "--limit", "0"], "--limit must be 1 or more, got 0"),
        (["claims", "--audit", "--write", "x.txt"], "the audit's page must end in .md"),
        (["prove", "--timeout", "0"], "--timeout must be above 0 seconds, got 0.0"),
    ],
)
def test_unusable_words(command: Run, words: list[str], message: str) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
