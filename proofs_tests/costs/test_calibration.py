"""A fit finds what made its rows, refuses what cannot be fitted, and folds share nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import log

import pytest

from bubbleproof.costs.times.calibration import (
    Calibration,
    calibrate,
    cards_by_distance,
    num_fitting,
    scope_pairs,
    uncalibrated,
)
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import starts
from bubbleproof.costs.times.cross_validation import (
    HeldOutEstimate,
    cross_validated,
    folds,
    group_of,
    mean_error,
    regrets,
)
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, rows_of
from proofs_tests.costs.measured_cases import A100, B200
from proofs_tests.sized import sized

CARD = card("a100-80gb")
HEAD = "gpus,global_batch,micro_batch,hidden,heads,layers,sequence,tensor,data,pipeline,scope"


def made_rows(scope: str = "none") -> list[JobRow]:
    """Rows of one node of many shapes, measured by nobody."""
    lines = [
        f"{t * d * p},{8 * d * b},{b},{hidden},16,16,1024,{t},{d},{p},{scope}"
        for hidden in (1024, 2048, 4096)
        for b in (1, 4, 8)
        for t, d, p in ((1, 1, 1), (2, 1, 1), (4, 1, 2), (8, 1, 1), (1, 2, 4), (2, 4, 1))
    ]
    return rows_of("\n".join([HEAD, *lines]), measured=False)


def made_by(rows: list[JobRow], by: Calibration) -> list[JobRow]:
    """The rows as if these constants had been measured."""
    times = estimated_ms(rows, by)
    return [replace(row, measured=time) for row, time in zip(rows, times, strict=True)]


@pytest.fixture(scope="module")
def truth() -> Calibration:
    """Constants off the data sheet."""
    begun = uncalibrated(CARD)
    changes = {
        "matmul": 0.8,
        "attention": 0.8,
        "memory": 1.15,
        "launch": 1.7,
        "group": 0.7,
        "kernels": 1.8,
    }
    values = {name: changes.get(name, 1.0) * value for name, value in begun.constants.items()}
    return replace(begun, constants=values)


@pytest.fixture(scope="module")
def found(truth: Calibration) -> Calibration:
    """The fit to rows that the truth has made."""
    return calibrate(made_by(made_rows(), truth), CARD)


def test_known_constants_are_found_again(truth: Calibration, found: Calibration) -> None:
    rows = made_by(made_rows(), truth)
    truly = truth.constants_of(CARD, rows[0].runs)
    # Not memory: rows say as well that there are more passes over it. Few rows show the kernels.
    for name, near in (("matmul", 0.05), ("launch", 0.05), ("group", 0.15), ("kernels", 0.2)):
        assert found.constants[name] == pytest.approx(truly[name], rel=near), name
    errors = [
        HeldOutEstimate(row=row, fold="", estimated=time)
        for row, time in zip(rows, estimated_ms(rows, found), strict=True)
    ]
    assert mean_error(errors) < 0.02  # what starts and spreads hold back
    assert mean_error([replace(each, estimated=2 * each.estimated) for each in errors]) > 0.9


def test_what_rows_say_nothing_of_stays_at_the_data_sheet(found: Calibration) -> None:
    for name in ("network_group", "network_gradient"):  # no row leaves its node
        assert name not in found.fitted
        assert found.constants[name] == starts(CARD, made_rows()[0].runs)[name]


def test_the_scope_that_rows_do_not_tell_is_found(truth: Calibration) -> None:
    whole = replace(truth, scope_one_node="full")
    silent = [replace(row, tells_scope=False) for row in made_rows()]
    found = calibrate(made_by(silent, whole), CARD)
    assert found.scope_one_node == "full"


def test_scopes_are_tried_where_rows_do_not_tell_and_assumed_where_there_are_none() -> None:
    assert scope_pairs(made_rows(), CARD) == [("none", "full")]  # no row of many nodes
    silent = [replace(row, tells_scope=False) for row in made_rows()]
    assert scope_pairs(silent, CARD) == [("none", "full"), ("full", "full")]
    both = rows_of(A100, measured=True)
    assert set(scope_pairs(both, CARD)) == set(product(("none", "full"), repeat=2))
    assert scope_pairs(rows_of(B200, measured=True), card("b200")) == [("none", "none")]


def test_a_shape_that_was_measured_wrongly_draws_little(
    truth: Calibration, found: Calibration
) -> None:
    """One shape of 18 takes twice as long: the estimates of others move by less than 2 %."""
    rows = made_by(made_rows(), truth)
    shape = group_of(rows[0], 8)
    wrong = [
        replace(row, measured=2 * (row.measured or 0)) if group_of(row, 8) == shape else row
        for row in rows
    ]
    right, drawn = (estimated_ms(rows, by) for by in (found, calibrate(wrong, CARD)))
    others = [place for place, row in enumerate(rows) if group_of(row, 8) != shape]
    assert max(abs(drawn[place] / right[place] - 1) for place in others) < 0.02
    assert drawn != right


def test_fewer_rows_than_constants_tell_one_factor() -> None:
    """With it the logarithms of estimated over measured time have the mean 0."""
    rows = rows_of(B200, measured=True)
    one = calibrate(rows[:3], card("b200"))
    assert one.fitted == ("factor",)
    logs = [
        log(ms / row.measured_ms)
        for ms, row in zip(estimated_ms(rows[:3], one), rows, strict=False)
    ]
    assert sum(logs) == pytest.approx(0, abs=1e-4)
    with pytest.raises(ValueError, match="at least one, got none"):
        calibrate([], card("b200"))
    few = calibrate(rows, card("b200"))
    assert len(few.fitted) <= len(rows)


def test_the_card_is_told_by_the_rows() -> None:
    assert cards_by_distance(rows_of(B200, measured=True))[0].name == "b200"
    nearest = [each.name for each in cards_by_distance(rows_of(A100, measured=True))]
    assert set(nearest[:2]) == {"a100-40gb", "a100-80gb"}


def test_times_do_not_tell_two_sizes_of_memory_apart_and_rows_do() -> None:
    """One row has all 30 layers of h = 3072 on each card: 30 x 12 h h parameters.

    Those are 3.4 x 10^9, of 2 + 2 + 12 bytes each, 54 x 10^9 bytes: beyond 40 GiB, 43 x 10^9.
    """
    rows = rows_of(A100, measured=True)
    small, large = (calibrate(rows, card(name)) for name in ("a100-40gb", "a100-80gb"))
    assert num_fitting(rows, small) < num_fitting(rows, large) == len(rows)
    assert calibrate(rows).card.name == "a100-80gb"
    # Rows that have room on both are those of the nearest.
    fitting = [row for row in rows if num_fitting([row], small)]
    either = 2 * fitting  # as many as constants are fitted
    assert len(fitting) < len(rows) <= len(either)
    assert calibrate(either).card == cards_by_distance(either)[0]


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


FEW = sized({1024}, full={1024, 2048})


@pytest.mark.sweep
def test_a_fold_is_judged_without_what_was_measured_of_it(truth: Calibration) -> None:
    """Rows of one shape measured as twice as long change the estimates of all others alone."""
    rows = [row for row in made_by(made_rows(), truth) if row.model.hidden in FEW]
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


def test_a_scope_is_assumed_only_of_software_that_may_have_run_so() -> None:
    """The A100's rows of many nodes recomputed whole layers; megatron-core's rows did nothing."""
    by = replace(uncalibrated(CARD), scope_many_nodes="full")
    head, line = HEAD.removesuffix(",scope"), "16,16,1,1024,16,16,1024,8,2,1"
    text = f"{head},software\n{line},megatron-deepspeed\n{line},megatron-core"
    scopes = [row.at.scope for row in by.taken(rows_of(text, measured=False))]
    assert scopes == ["full", "none"]
