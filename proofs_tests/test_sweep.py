"""The sweep's command in a small form: it counts, writes its page, and fails on what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests import sweep
from proofs_tests.reference_exec import injected_faults
from proofs_tests.solvers import random_optima

NO_FAULTS = injected_faults.Swept(outcomes=(), clean=0)
SMALL = ("--problems", "6", "--certificates", "4", "--candidates", "5", "--workers", "1")


def test_counts_of_parts_are_added_up_field_by_field() -> None:
    parts = [random_optima.Counts(problems=2, wrong_optima=["a"]), random_optima.Counts(problems=3)]
    assert sweep.joined(parts) == random_optima.Counts(problems=5, wrong_optima=["a"])


@pytest.fixture
def quick_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injected_faults, "sweep", lambda _progress: NO_FAULTS)


@pytest.mark.usefixtures("quick_faults")
def test_a_sweep_without_a_fault_writes_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "sweep.md"
    assert sweep.main([*SMALL, "--write", str(page)]) == 0
    told = capsys.readouterr().out
    assert "6 random problems" in told
    assert "4 damaged certificates" in told
    assert "deployments: 5 damaged certificates" in told
    assert all(f"- {line}" in page.read_text("utf-8") for line in told.splitlines())


@pytest.mark.usefixtures("quick_faults")
def test_a_wrong_answer_is_named_and_no_page_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = random_optima.Counts(problems=1, wrong_optima=["7: 14 is claimed"])
    monkeypatch.setattr(sweep, "optima", lambda _count, _pool: wrong)
    page = tmp_path / "sweep.md"
    assert sweep.main([*SMALL, "--write", str(page)]) == 1
    assert "WRONG 7: 14 is claimed" in capsys.readouterr().out
    assert not page.exists()
