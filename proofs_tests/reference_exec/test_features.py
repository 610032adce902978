"""The page of features has all of them, and a tenth of it is run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.reference_exec.cases import family_case, run
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
    outcome = _named("bytes that depend on data").outcome()
    assert outcome.startswith("said by name: gradients and weights equal; the model's saved bytes")
    assert all(row.startswith(("works", "refused", "said", "missing")) for row in ROWS.values())


def test_a_compiled_stage_is_replayed_without_its_accounts() -> None:
    spec = _named("torch.compile'd stage").spec
    report = run(family_case("zb-h1", p=2, m=3), spec, count_bytes=False, count_work=False)
    assert report.ok, report.failures
