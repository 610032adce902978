"""The page of features has all of them, and a tenth of it is run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.reference_exec.features_page import FEATURES, Feature

PAGE = Path(__file__).resolve().parents[2] / "docs/measured/features.md"
ROWS = dict(
    line.strip("| ").split(" | ", 1)
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| feature", "| ---"))
)
AGAIN = ["dropout", "frozen first stage", "BatchNorm", "several tensors out of a stage"]


def _named(name: str) -> Feature:
    return next(feature for feature in FEATURES if feature.name == name)


def test_the_page_has_every_feature() -> None:
    assert list(ROWS) == [feature.name for feature in FEATURES]


@pytest.mark.parametrize("name", AGAIN)
def test_a_feature_is_what_the_page_says(name: str) -> None:
    assert _named(name).outcome() == ROWS[name]


def test_what_works_is_told_from_what_does_not() -> None:
    # the negative control: bytes that no schedule can predict are no "works"
    assert (
        _named("bytes that depend on data").outcome().startswith("violated, gradients equal: the")
    )
    assert all(row.startswith(("works", "refused", "violated", "missing")) for row in ROWS.values())
