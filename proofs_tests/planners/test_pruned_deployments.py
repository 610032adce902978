"""What a plan does not time is never better: a few clusters here, twenty by the command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.costs.combinations import Combination
from proofs_tests.planners.pruned_deployments import PAGE, PrunedRow, page, row_of

ROW = PrunedRow(
    number=0,
    framework="any",
    cards=4,
    deployments=9,
    value=10,
    bounded=2,
    best_bounded=10,
    unfit=1,
    fitting=(),
)


@pytest.mark.parametrize("number", [2])
def test_no_pruned_deployment_is_better(number: int) -> None:
    row = row_of(number)
    assert not row.has_fault
    assert row.bounded  # there was something to force
    assert row.unfit
    assert row.best_bounded is not None


def test_a_better_one_is_a_fault() -> None:
    assert not ROW.has_fault
    assert not replace(ROW, value=None, best_bounded=None).has_fault
    assert replace(ROW, best_bounded=9).has_fault
    runs = Combination(tensor=1, data=1, pipeline=4, micro_batch=1, zero=0, scope="none")
    assert replace(ROW, fitting=(runs,)).has_fault
    assert "1 clusters with a better" in page([replace(ROW, best_bounded=9)], "x")


def test_the_page_has_no_fault() -> None:
    text = PAGE.read_text()
    assert ": 0 clusters with a better\n" in text
    assert text.count("none better") == 20
