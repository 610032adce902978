"""Real models under real schedules: a few cells of what ``model_table`` runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from proofs_tests.reference_exec.model_table import MODELS, ModelCell, cells

pytestmark = [
    pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")
    for name in ("transformers", "peft")
]


def test_every_model_meets_every_schedule_type_and_backend() -> None:
    found = list(cells())
    assert len(found) == len(set(found)) == len(MODELS) * 6 * 2 * 2


@pytest.mark.parametrize(
    ("model", "schedule", "dtype"),
    [
        ("gpt2", "trecomp", "bfloat16"),
        ("resnet", "zb-h1", "float32"),
        ("encoder-decoder", "1f1b", "float32"),
    ],
)
def test_a_cell_holds(model: str, schedule: str, dtype: str, tmp_path: Path) -> None:
    cell = ModelCell(model=model, schedule=schedule, dtype=dtype, backend="virtual")
    verdict, told = cell.told(tmp_path)
    assert verdict == "holds", told


def test_slices_of_an_own_model_are_refused_by_name(tmp_path: Path) -> None:
    cell = ModelCell(model="llama", schedule="svpp", dtype="float32", backend="virtual")
    why = "a model of kind own takes whole samples, got 2 slices"
    assert cell.told(tmp_path) == ("refused", why)
