"""The sweep of the fast checker beside the definition, in a small form; and its page.

``BUBBLEPROOF_SWEEP=full`` judges 100,000 schedules, as the page counts them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import findings
from bubbleproof.verify.finding import Finding, Rule
from proofs_tests.sized import sized
from proofs_tests.verify import spec_sweep
from proofs_tests.verify.random_schedules import EVENT_KINDS
from proofs_tests.verify.spec_sweep import EVENTS, RULES, main, sweep

PAGE = Path(__file__).parents[2] / "records" / "spec-sweep.md"
TOTAL = sized(250, full=100_000)


@pytest.mark.sweep
def test_the_fast_checker_has_the_findings_of_the_definition() -> None:
    counts = sweep(TOTAL)
    assert counts.wrong == []
    assert counts.schedules >= TOTAL
    assert counts.valid >= TOTAL // 10  # one of ten is not changed
    # Of ten schedules 4 are mutated for one of six rules, and in 5 seven events of 48 kinds are.
    assert all(counts.broken[rule] >= TOTAL // 20 for rule in RULES)
    assert all(counts.changed[kind] >= TOTAL // 20 for kind in EVENTS)
    assert all(counts.felt[kind] >= TOTAL // 40 for kind in EVENTS)


def without_the_last(problem: Problem, schedule: Schedule) -> list[Finding]:
    return findings(problem, schedule)[:-1]


def at_no_time(problem: Problem, schedule: Schedule) -> list[Finding]:
    return [found._replace(at=None) for found in findings(problem, schedule)]


def in_the_next_store(problem: Problem, schedule: Schedule) -> list[Finding]:
    return [
        found._replace(where=found.where + (found.rule is Rule.MEMORY))
        for found in findings(problem, schedule)
    ]


@pytest.mark.parametrize("judge", [without_the_last, at_no_time, in_the_next_store])
def test_a_checker_with_other_findings_is_found_out(judge: spec_sweep.Judge) -> None:
    assert sweep(30, judge=judge).wrong != []


def test_a_disagreement_ends_the_command_with_1_and_writes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, words = tmp_path / "page.md", ["--schedules", "20"]
    assert main([*words, "--write", str(page)]) == 0
    assert f"spec_sweep {' '.join(words)} --write" in page.read_text("utf-8")
    assert ": 0 disagreements\n" in page.read_text("utf-8")
    page.unlink()
    real = sweep
    monkeypatch.setattr(
        spec_sweep, "sweep", lambda total, **options: real(total, judge=at_no_time, **options)
    )
    assert main([*words, "--write", str(page)]) == 1
    assert "Finding(rule=" in capsys.readouterr().out
    assert not page.exists()


def test_the_page_counts_enough() -> None:
    text = PAGE.read_text("utf-8")
    (total,) = map(int, re.findall(r"^(\d+) schedules, .*: 0 disagreements$", text, re.M))
    assert total >= 100_000
    broken = {name: int(n) for name, n in re.findall(r"^\| ([a-z]+) \| (\d+) \|", text, re.M)}
    assert broken.keys() == {rule.name.lower() for rule in RULES}
    rows = re.findall(r"^\| ([A-Z_]+) \|(.*)\|$", text, re.M)
    assert [name for name, _ in rows] == [kind.name for kind in EVENT_KINDS]
    changed = [int(n) for _, cells in rows for n in re.findall(r"(\d+) \(", cells)]
    assert len(changed) == len(EVENTS)
    assert min([*broken.values(), *changed]) >= 5_000
