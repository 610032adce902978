"""``prove`` and ``claims``: listings, verdicts, JSON and refusals."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from bubbleproof.commands.papers.claims import audit
from bubbleproof.commands.papers.claims_options import ClaimsRequest
from bubbleproof.commands.papers.claims_page import markdown, page, with_section
from bubbleproof.commands.papers.claims_record import Record, record
from bubbleproof.papers.claims import ClaimDecision, ClaimVerdict, Counterexample, decide
from bubbleproof.papers.claims.registry import claims
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.papers.theorems.twins import _one_f_one_b
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import sized


def test_prove_lists_a_theorem_with_its_assumptions(command: Run) -> None:
    answer = command("prove", "1f1b")
    assert answer.status == 0
    assert "assuming p >= 1, m >= 1" in answer.out
    assert "proved" in answer.out


def test_prove_lists_the_shapes_of_a_family_that_repeats(command: Run) -> None:
    answer = command("prove", "trecomp-interleaved")
    assert answer.status == 0
    words = " ".join(answer.out.split())
    # A microbatch is 2 F, an R and 2 B of 2, 7 ticks on each rank, and the bubble up to six ranks
    # is 3(p-1) (claim tpipe.sec4.2.interleaved-bubble-6): 7*8 + 3 = 59.
    assert "[p=2 m%2=0: m = 8 + 2n, makespan 59 + 14n, peaks 3 1]" in words
    assert "the shapes listed, and m from the least on" in words


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

    monkeypatch.setattr("bubbleproof.commands.papers.claims.audit", deciding)
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
    assert {"HOLDS", "PROVED", "NOT_REPRODUCIBLE"} <= verdicts
    assert verdicts <= {verdict.name for verdict in ClaimVerdict}
    assert all(claim["theorem"] for claim in found if claim["verdict"] == "PROVED")
    for claim in found:
        failed = claim["verdict"] in ("REFUTED", "CONTRADICTS_ITSELF")
        assert (claim["counterexample"] is not None) == failed
        for read in claim["readings"]:
            assert (read["counterexample"] is not None) == (read["outcome"] == "REJECTED")


VERDICT = re.compile(
    r"(?P<arithmetic>arithmetic )?"
    r"(?P<verdict>proved|holds|refuted|contradicts itself|not reproducible)"
    r"(?: by theorem (?P<theorem>\S+))?(?: \(read as: (?P<reading>.*?)\))?"
    r"(?:; see (?P<corrected>\S+))?(?:: (?P<why>.*))?"
)
READING = re.compile(
    r"(?P<before>.*): (?P<outcome>proved|holds|rejected)"
    r"(?: \((?P<checked>\d+) of (?P<total>\d+) cases (?:measured|computed|counted.*?)\))?"
    r"(?: at (?P<params>[^:]*): claimed (?P<claimed>\S+), \w+ (?P<measured>[^\s;]+))?"
    r"(?P<loose>; bound not attained.*)?"
)


PAPERS = sized(["--paper", "pipemesh"], full=[])  # one that has every verdict but "refuted"


@pytest.mark.sweep
def test_page_and_json_tell_the_same_of_every_claim(command: Run, tmp_path: Path) -> None:
    page = tmp_path / "claims.md"
    words = ["claims", "--audit", "--quick", "--limit", "2", "--workers", "1", *PAPERS]
    found = json.loads(command(*words, "--write", page, "--json").out)["claims"]
    rows = [
        re.split(r"(?<!\\) \| ", line[2:-2])
        for line in page.read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| claim")
    ]
    assert [row[0] for row in rows] == [claim["id"] for claim in found]
    for (_, source, statement, read, verdict), claim in zip(rows, found, strict=True):
        texts = [claim[name].replace("|", "\\|") for name in ("source", "statement")]
        assert [source, statement] == texts
        said = VERDICT.fullmatch(verdict)
        assert said is not None, verdict
        assert said["verdict"].upper().replace(" ", "_") == claim["verdict"]
        if claim["verdict"] == "NOT_REPRODUCIBLE":
            assert verdict.startswith(f"not reproducible: {claim['missing']}")
            assert verdict.endswith(f"; estimated instead: {claim['estimated'] or 'nothing'}")
            continue
        if claim["verdict"] != "CONTRADICTS_ITSELF":
            assert (said["arithmetic"] is not None) == (claim["standing"] == "ARITHMETIC")
        assert said["corrected"] == (claim["corrected"] if said["verdict"] == "refuted" else None)
        assert said["theorem"] == (claim["theorem"] if said["verdict"] == "proved" else None)
        assert said["reading"] in (None, claim["reading"])
        for cell, reading in zip(read.split("<br>"), claim["readings"], strict=True):
            tells_the_same(cell, reading)


def tells_the_same(cell: str, reading: Record) -> None:
    """A page's cell and the JSON of one reading."""
    said = READING.fullmatch(cell)
    assert said is not None, cell
    assert said["before"].endswith(reading["domain"].replace("|", "\\|"))
    for premise in reading["premises"]:
        assert premise in said["before"]
    assert said["outcome"].upper() == reading["outcome"]
    if reading["outcome"] == "REJECTED":
        at = {n: int(v) for n, v in (pair.split("=") for pair in said["params"].split())}
        case = {"params": at, "claimed": said["claimed"], "measured": said["measured"]}
        assert case == reading["counterexample"]
    else:
        assert (int(said["checked"]), int(said["total"])) == (reading["checked"], reading["total"])
        assert (said["loose"] is None) == reading["tight"]


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


def test_the_page_says_how_it_came_about(command: Run, tmp_path: Path) -> None:
    page = tmp_path / "claims.md"
    words = ["claims", "--audit", "--quick", "--paper", "bpipe", "--limit", "1", "--workers", "1"]
    command(*words, "--write", page)
    third = page.read_text().splitlines()[2]
    written = "`bubbleproof claims --audit --quick --paper bpipe --limit 1 --write"
    assert third.startswith(f"Generated by {written} {page}`: ")
    assert " cases looked at in " in third


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
        (["claims", "--write", "x.md"], "--write goes with --audit"),
        (["claims", "--audit", "--limit", "0"], "--limit must be 1 or more, got 0"),
        (["claims", "--quick"], "--quick goes with --audit"),
        (["claims", "--audit", "--workers", "0"], "workers must be 1 or more, got 0"),
        (["claims", "--audit", "--write", "x.txt"], "the page of --write must end in .md"),
        (["claims", "--audit", "--answers", "x"], "the page of --answers must end in .md, got 'x'"),
        (["claims", "--answers", "x.md"], "--answers goes with --audit"),
        (
            ["claims", "--audit", "--answers", "x.md", "--paper", "bpipe"],
            "--answers takes every paper's claims: leave out --paper",
        ),
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


def told(*verdicts: tuple[str, int, ClaimVerdict]) -> list[Record]:
    """Records of the first claims of papers, as if so decided: (paper, place, verdict)."""
    found = []
    for paper, place, verdict in verdicts:
        claim = list(claims(paper).values())[place]
        case = Counterexample(params={"p": 2}, predicted=Fraction(1), measured=Fraction(2))
        (finding,) = decide(claim, limit=1).findings
        changed = replace(
            finding,
            counterexample=case if verdict is ClaimVerdict.REFUTED else None,
            is_proved=verdict is ClaimVerdict.PROVED,
        )
        decision = ClaimDecision(claim=claim, findings=(changed,))
        assert decision.verdict is verdict
        found.append(record(claim, decision))
    return found


def test_the_page_says_what_changed_against_the_one_it_replaces(tmp_path: Path) -> None:
    holds, refuted, proved = ClaimVerdict.HOLDS, ClaimVerdict.REFUTED, ClaimVerdict.PROVED
    target = tmp_path / "claims.md"
    first = told(("bpipe", 0, refuted), ("bpipe", 1, holds), ("bpipe", 2, holds))
    text = page(target, None, first, "`first`", "1 case")
    assert "Against the page" not in text
    target.write_text(text)
    later = told(("bpipe", 0, holds), ("bpipe", 1, proved), ("tpipe", 0, refuted))
    line = "1 holds -> proved; 1 refuted -> holds; 1 new (1 refuted); 1 gone; 0 as before."
    assert f"\nAgainst the page it replaces: {line}\n" in page(
        target, None, later, "`second`", "1 case"
    )
    again = page(target, None, first, "`third`", "1 case")
    assert "\nAgainst the page it replaces: 3 as before.\n" in again
    assert target.read_text() == text, "the page itself is for the command to write"


def test_one_papers_section_can_be_decided_anew_and_says_so() -> None:
    holds = ClaimVerdict.HOLDS
    first, second, third = told(("bpipe", 0, holds), ("bpipe", 1, holds), ("tpipe", 0, holds))
    page = markdown([first, second, third], "`first`", "one case")
    changed = with_section(page, "bpipe", [first], "`second`", "two cases")
    assert changed.count("Decided anew by `second`: two cases. Against the page it replaces: ") == 1
    assert "1 gone; 1 as before." in changed
    assert first["id"] in changed
    assert second["id"] not in changed
    assert changed.partition("\n## tpipe\n")[2] == page.partition("\n## tpipe\n")[2]
    assert changed.partition("\n## bpipe\n")[0] == page.partition("\n## bpipe\n")[0]
