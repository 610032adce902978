"""Rows of models and cuts that have no row among those that are fitted: B200, 12 of Llama 3 70B.

Asked for: time within 8 % and allocated memory within 1.5 % for a model that has no row. Of all
groups that holds for the mean, of other cuts of the same kind of layer for each row. The rows
and their source: ``benchmarks/cost_model_unseen.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cost_model_unseen import Unseen, unseen
from bubbleproof.costs.times.calibration import Calibration, calibrate
from bubbleproof.costs.times.cards import card
from bubbleproof.costs.times.estimate import estimates
from bubbleproof.costs.times.job_rows import rows_of
from bubbleproof.formats.hardware_toml import CALIBRATED, read_hardware
from proofs_tests.costs.measured_cases import B200

TIME, MEMORY = 0.08, 0.015


@pytest.fixture(scope="module")
def fitted() -> Calibration:
    """A fit to the rows of Llama 3 70B."""
    return calibrate(rows_of(B200, measured=True), card("b200"))


@pytest.fixture(scope="module")
def judged(fitted: Calibration) -> list[Unseen]:
    """Every other row of the table."""
    return unseen(fitted)


def plain(each: Unseen) -> bool:
    """Whether the row asks nothing that the fitted ones have not: no context, experts, chunks."""
    return each.row.at.context == each.row.at.expert == each.row.chunks == 1


def dense(each: Unseen) -> bool:
    """Whether its layers have no experts."""
    return each.row.model.experts == 0


def test_another_model_is_within_what_was_asked(judged: list[Unseen]) -> None:
    of_model = [each for each in judged if plain(each)]
    assert len(of_model) == 12
    assert all(each.row.model.name == "llama-3-405b" for each in of_model)
    assert max(abs(each.error) for each in of_model) <= TIME


def test_long_sequences_and_chunks_are_as_well(judged: list[Unseen]) -> None:
    others = [each for each in judged if dense(each) and not plain(each)]
    assert {(each.row.at.context, each.row.chunks) for each in others} == {(4, 1), (8, 1), (1, 2)}
    assert max(abs(each.error) for each in others) <= TIME


def test_every_group_of_rows_is_within_what_was_asked_on_average(judged: list[Unseen]) -> None:
    groups: dict[tuple[object, ...], list[float]] = {}
    for each in judged:
        key = (each.row.model.name, each.row.at.context > 1, each.row.chunks)
        groups.setdefault(key, []).append(abs(each.error))
    assert max(float(np.mean(errors)) for errors in groups.values()) <= TIME


def test_memory_is_within_what_was_asked(judged: list[Unseen]) -> None:
    told = [each for each in judged if each.memory_error is not None]
    assert len(told) == 31
    assert max(abs(each.memory_error or 0) for each in told) <= MEMORY


def test_the_published_shape_is_within_it_as_well(fitted: Calibration) -> None:
    """Without the columns that tell that 16 heads of keys and values ran, 8 are published."""
    rows = "".join(
        f"8,{m * d},1,llama3-405b,4,4096,{t},{d},{p},{ms},{gib}\n"
        for m, t, d, p, ms, gib in ((4, 1, 4, 2, 1074.6, 87.08), (32, 8, 1, 1, 1901.8, 38.57))
    )
    head = B200.partition("\n")[0]
    measured = [line.split(",") for line in rows.split()]
    for found, line in zip(
        estimates(rows_of(f"{head}\n{rows}", measured=False), fitted), measured, strict=True
    ):
        assert found.iteration_ms == pytest.approx(float(line[-2]), rel=TIME)
        assert found.allocated_gib == pytest.approx(float(line[-1]), rel=MEMORY)


def test_the_constants_of_the_package_are_this_fit(fitted: Calibration) -> None:
    kept = read_hardware(CALIBRATED / "b200.toml")
    assert dict(kept.constants) == pytest.approx(dict(fitted.constants), rel=1e-3)
