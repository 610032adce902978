"""Rows left out share nothing with those that are fitted; regret is what a choice costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.held_out_rows import (
    HeldOutEstimate,
    cross_validated,
    folds,
    group_of,
    mean_error,
    regrets,
)
from bubbleproof.costs.times.calibration import calibrate
from bubbleproof.costs.times.job_rows import rows_of
from proofs_tests.costs.made_rows import CARD, made_by, made_rows, off_the_sheet
from proofs_tests.costs.measured_cases import A100
from proofs_tests.sized import sized

FEW = sized({1024}, full={1024, 2048})


def test_no_group_is_on_both_sides_of_a_fold() -> None:
    rows = rows_of(A100, measured=True) + made_rows()
    found = list(folds(rows, 8))
    assert sorted(place for fold in found for place in fold.out) == list(range(len(rows)))
    for fold in found:
        out = {group_of(rows[place], 8) for place in fold.out}
        assert len(out) == 1
        assert not out & {group_of(rows[place], 8) for place in fold.fitted}
        assert len(fold.out) + len(fold.fitted) == len(rows)
        if fold.is_model:  # a model of many nodes has no row of many nodes left
            names = {rows[place].model.name for place in fold.out}
            far = [rows[place] for place in fold.fitted if rows[place].gpus > 8]
            assert not names & {row.model.name for row in far}


@pytest.mark.sweep
def test_a_fold_is_judged_without_what_was_measured_of_it() -> None:
    """Rows of one shape measured as twice as long change the estimates of all others alone."""
    rows = [row for row in made_by(made_rows(), off_the_sheet()) if row.model.hidden in FEW]
    whole = calibrate(rows, CARD)
    shape = group_of(rows[0], 8)
    wrong = [
        replace(row, measured=2 * (row.measured or 0)) if group_of(row, 8) == shape else row
        for row in rows
    ]
    one, other = (cross_validated(each, whole) for each in (rows, wrong))
    for before, after in zip(one, other, strict=True):
        if group_of(before.row, 8) == shape:
            assert before.estimated == after.estimated
    assert [each.estimated for each in one] != [each.estimated for each in other]


def test_regret_is_what_the_choice_costs() -> None:
    """Two alternatives of 10 and 12 ms: choosing the second costs a fifth."""
    first, second = made_rows()[:2]
    first, second = replace(first, measured=10.0), replace(second, measured=12.0)
    second = replace(second, gpus=first.gpus, global_batch=first.global_batch)
    judged = [
        HeldOutEstimate(row=first, fold="", estimated=9.0),
        HeldOutEstimate(row=second, fold="", estimated=8.0),
    ]
    assert list(regrets(judged).values()) == [pytest.approx(0.2)]
    judged = [replace(judged[0], estimated=7.0), judged[1]]
    assert list(regrets(judged).values()) == [0]


def test_the_mean_error_counts_both_signs() -> None:
    """An estimate of 8 and of 12 ms of rows of 10 ms: a fifth off each."""
    row = replace(made_rows()[0], measured=10.0)
    judged = [HeldOutEstimate(row=row, fold="", estimated=each) for each in (8.0, 12.0)]
    assert mean_error(judged) == pytest.approx(0.2)
