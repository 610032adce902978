"""Faults in the executor are seen, each of them; and the sweep knows one that is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.reference_exec import injected_faults
from proofs_tests.reference_exec.fault_cases import CASES
from proofs_tests.reference_exec.injected_faults import (
    CLASSES,
    INJECTED,
    ROOMS,
    Injected,
    page,
    sweep,
)
from proofs_tests.reference_exec.patching import Marks
from proofs_tests.sized import sized

PAGE = Path(__file__).parents[2] / "records" / "injected-faults.md"
# what is kept too long: test_kept_from_birth says of all of it what is told
ELSEWHERE = {"hoarding", "kept_from_birth"}
QUICK = [fault for fault in INJECTED if fault.room not in ELSEWHERE]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "fault",
    sized(QUICK[::6], full=INJECTED),
    ids=lambda fault: fault.name,
)
def test_a_fault_is_seen_or_disclosed(fault: Injected) -> None:
    found = fault.outcome()
    assert found.verdict != "MISSED"
    assert bool(found.seen_by) == (not fault.admitted)


def test_there_are_a_hundred_kinds_and_more() -> None:
    assert len({fault.patch for fault in INJECTED}) >= 125
    assert len({fault.name for fault in INJECTED}) == len(INJECTED)
    assert {fault.case for fault in INJECTED} == {*CASES}
    assert {fault.room for fault in INJECTED} == {r.__name__.rpartition(".")[2] for r in ROOMS}
    assert {fault.room for fault in INJECTED} <= {*CLASSES}


def test_the_page_has_todays_faults_and_none_is_missed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if " on " in line and line[0] == "|"]
    assert [row[1] for row in rows] == [fault.name for fault in INJECTED]
    assert [row[0].removeprefix("| ") for row in rows] == [fault.what for fault in INJECTED]
    assert "MISSED" not in text
    assert f"{len(INJECTED)} faults injected" in text


def _harmless(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Nothing is wrong."""
    del patch
    marks.append("ran")


def _unreached(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    del patch, marks


def test_a_sweep_tells_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    fault = Injected(patch=_harmless, case="1f1b")
    monkeypatch.setattr(injected_faults, "INJECTED", (fault,))
    swept = sweep(told.append)
    assert swept.missed == ("_harmless on 1f1b",)
    assert told == ["_harmless on 1f1b: MISSED"]
    assert str(swept) == (
        "1 faults injected, 0 seen, 0 disclosed as not counted, 1 missed; "
        "1 cases without a fault replay"
    )
    assert "| Nothing is wrong | _harmless on 1f1b |  | MISSED |" in page(swept)


@pytest.mark.parametrize(
    ("admitted", "verdict"),
    [
        ("Operations without a formula", "not counted: the report's list says so"),
        ("What no report says", "MISSED"),
    ],
)
def test_what_is_admitted_must_stand_in_the_report(admitted: str, verdict: str) -> None:
    fault = Injected(patch=_harmless, case="1f1b", admitted=admitted)
    assert fault.outcome().verdict == verdict


def test_a_fault_that_never_ran_is_no_fault() -> None:
    with pytest.raises(RuntimeError, match="_unreached on 1f1b was not injected"):
        Injected(patch=_unreached, case="1f1b").run()
