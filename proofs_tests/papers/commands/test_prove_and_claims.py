"""``prove`` and ``claims``: listings, verdicts, JSON and refusals."""

from __future__ import annotations

import json

import pytest

from bubbleproof.papers.claims import ClaimVerdict
from bubbleproof.papers.commands.claims import audit
from bubbleproof.papers.commands.claims_options import ClaimsRequest
from bubbleproof.papers.registry import claims
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.commands.conftest import Run
from proofs_tests.papers.theorems.twins import _one_f_one_b
from proofs_tests.sized import sized


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


def test_a_list_decides_nothing(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def deciding(*_: object, **__: object) -> None:
        raise AssertionError("a list was asked for")

    monkeypatch.setattr("bubbleproof.papers.commands.claims.audit", deciding)
    found = json.loads(command("claims", "--json").out)
    assert [claim["id"] for claim in found["claims"]] == list(claims())
    assert {claim["verdict"] for claim in found["claims"]} == {None}
    assert found["effort"] is None
    assert command("claims").status == 0
    asked = command("claims", "--audit", "--json")
    assert asked.status == 70
    assert "a list was asked for" in asked.err


def test_audit_decides_every_claim(command: Run) -> None:
    limit = sized("2", full="5")
    words = ["--paper", "bpipe", "--limit", limit, "--workers", "1", "--json"]
    found = json.loads(command("claims", "--audit", *words).out)["claims"]
    assert [claim["id"] for claim in found] == list(claims("bpipe"))
    verdicts = {claim["verdict"] for claim in found}
    assert {"HOLDS", "PROVED"} <= verdicts
    assert verdicts <= {verdict.name for verdict in ClaimVerdict}
    assert all(claim["theorem"] for claim in found if claim["verdict"] == "PROVED")
    for claim in found:
        failed = claim["verdict"] in ("REFUTED", "CONTRADICTS_ITSELF")
        assert (claim["counterexample"] is not None) == failed
        for read in claim["readings"]:
            assert (read["counterexample"] is not None) == (read["outcome"] == "REJECTED")


def test_an_audit_decides_the_wide_domains_and_a_quick_one_the_small(command: Run) -> None:
    for words, is_wide in ((["--audit"], True), (["--audit", "--quick"], False)):
        words = [*words, "--paper", "bpipe", "--limit", "1", "--workers", "1", "--json"]
        found = json.loads(command("claims", *words).out)["claims"]
        for claim, known in zip(found, claims("bpipe").values(), strict=True):
            for told, reading in zip(claim["readings"], known.readings, strict=True):
                domain = reading.domain_for(is_wide=is_wide)
                assert (told["name"], told["domain"]) == (reading.name, domain.text)
                assert told["total"] == len(domain.points)
                assert told["checked"] <= 1


def test_the_answer_is_the_same_whoever_decides() -> None:
    chosen = {
        name: claim
        for name, claim in claims("field").items()
        if name.startswith(sized(("field.chimera.",), full=("field.zb-h1.", "field.chimera.")))
    }
    alone, spread = (
        audit(
            chosen, ClaimsRequest(audit=True, limit=sized(40, full=100), workers=count, json=True)
        )
        for count in (1, 2)
    )  # 100 cases are some beyond the heads
    assert alone == spread
    joined = alone["field.chimera.double"].findings[1]
    assert str(joined.counterexample).startswith("p=4 m=8 tF=1 tB=2: ")


def test_a_claim_is_not_proved_by_a_theorem_that_fails(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, wrong = ("interleaved", "bpipe-printed"), next(iter(_one_f_one_b()))
    broken = {**{name: theorems()[name] for name in kept}, "1f1b": wrong.theorem}
    monkeypatch.setattr("bubbleproof.papers.audit.audit.theorems", lambda: broken)
    words = ["claims", "--audit", "--paper", "bpipe", "--limit", "2", "--workers", "1", "--json"]
    found = json.loads(command(*words).out)
    proved = {claim["theorem"] for claim in found["claims"] if claim["verdict"] == "PROVED"}
    assert proved == set(kept)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claims", "--paper", "nosuch"], "no claims of 'nosuch'; the papers are bpipe"),
        (["claims", "--limit", "2"], "--limit goes with --audit"),
        (["claims", "--audit", "--limit", "0"], "--limit must be 1 or more, got 0"),
        (["claims", "--quick"], "--quick goes with --audit"),
        (["claims", "--audit", "--workers", "0"], "workers must be 1 or more, got 0"),
        (
            ["prove", "--timeout", "0"],
            "--timeout must be above 0 and at most 1000000 seconds, got 0.0",
        ),
    ],
)
def test_unusable_words(command: Run, words: list[str], message: str) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
