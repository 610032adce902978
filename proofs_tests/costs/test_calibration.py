"""A fit finds what made its rows, refuses what cannot be fitted, and tells the card by the rows."""

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
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, rows_of
from proofs_tests.costs.made_rows import CARD, HEAD, made_by, made_rows, off_the_sheet
from proofs_tests.costs.measured_cases import A100, B200


@pytest.fixture(scope="module")
def truth() -> Calibration:
    """Constants off the data sheet."""
    return off_the_sheet()


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
    pairs = zip(rows, estimated_ms(rows, found), strict=True)
    errors = [abs(time / row.measured_ms - 1) for row, time in pairs]
    assert sum(errors) < 0.02 * len(rows)  # what starts and spreads hold back


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


def shape_of(row: JobRow) -> tuple[int, int, int]:
    """What alike rows of the made ones have in common."""
    return row.model.hidden, row.at.tensor, row.at.micro_batch


def test_a_shape_that_was_measured_wrongly_draws_little(
    truth: Calibration, found: Calibration
) -> None:
    """One shape of 18 takes twice as long: the estimates of others move by less than 2 %."""
    rows = made_by(made_rows(), truth)
    shape = shape_of(rows[0])
    wrong = [
        replace(row, measured=2 * (row.measured or 0)) if shape_of(row) == shape else row
        for row in rows
    ]
    right, drawn = (estimated_ms(rows, by) for by in (found, calibrate(wrong, CARD)))
    others = [place for place, row in enumerate(rows) if shape_of(row) != shape]
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


def test_a_scope_is_assumed_only_of_software_that_may_have_run_so() -> None:
    """The A100's rows of many nodes recomputed whole layers; megatron-core's rows did nothing."""
    by = replace(uncalibrated(CARD), scope_many_nodes="full")
    head, line = HEAD.removesuffix(",scope"), "16,16,1,1024,16,16,1024,8,2,1"
    text = f"{head},software\n{line},megatron-deepspeed\n{line},megatron-core"
    scopes = [row.at.scope for row in by.taken(rows_of(text, measured=False))]
    assert scopes == ["full", "none"]
