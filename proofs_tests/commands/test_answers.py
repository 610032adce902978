"""Answers to the audit: about claims there are, and the page tells their verdicts as decided."""

from __future__ import annotations

import re
from pathlib import Path

from bubbleproof.commands.papers.claims_record import record, verdict_of
from bubbleproof.papers.answers.listed import answers
from bubbleproof.papers.claims import decide
from bubbleproof.papers.claims.registry import claims
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import sampled

ID = re.compile(r"\b(?:bpipe|mepipe|pipemesh|tpipe|field)\.[A-Za-z0-9.-]*[A-Za-z0-9]")


def test_every_answer_is_about_claims_there_are() -> None:
    known = claims()
    for answer in answers():
        assert set(answer.claims) <= known.keys()
        assert answer.found.endswith(".")
        assert answer.change.endswith(".")
    items = [answer.item for answer in answers()]
    assert items == sorted(items)


def test_what_was_estimated_names_claims_there_are() -> None:
    known = claims()
    for claim in known.values():
        if claim.missing is not None:
            for name in ID.findall(f"{claim.missing.input} {claim.missing.estimated}"):
                assert name in known, f"{claim.id} names {name}"


def test_the_page_tells_every_answer_and_the_verdicts(command: Run, tmp_path: Path) -> None:
    page = tmp_path / "readings.md"
    words = ["claims", "--audit", "--quick", "--limit", "1", "--workers", "1"]
    assert command(*words, "--answers", page).status in (0, 1)
    text = page.read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) == len(answers())
    known = claims()
    for row, answer in sampled([*zip(rows, answers(), strict=True)], every=4):
        assert answer.change.replace("|", "\\|") in row
        for name in answer.claims:
            told = verdict_of(record(known[name], decide(known[name], limit=1)))
            # What holds here may be proved there: a theorem is proved anew by the command alone.
            said = re.search(f"`{re.escape(name)}`: (.*?)(<br>| \\| )", row)
            assert said is not None
            assert said[1] == told.replace("|", "\\|") or said[1].startswith("proved")
    assert text.count("\n## ") == 0
    assert f"--answers {page}`: " in text
