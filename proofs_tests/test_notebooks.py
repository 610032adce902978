"""The notebooks of ``examples/`` show what their cells show when they run.

``python proofs_tests/shown.py --write examples/researcher/*.ipynb`` writes that into them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.shown import executed, main, texts

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("researcher/*.ipynb"))
SMALL = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["words"]},
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": ["x = 2\n", "print(x)\n", "x + 1"],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 4,
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_show(path: Path) -> None:
    stored = json.loads(path.read_text("utf-8"))
    if ".widget" in texts(stored):
        pytest.importorskip("anywidget", reason="the extra notebook is not installed")
    assert texts(executed(stored)) == texts(stored)
    assert any("image/svg+xml" in json.dumps(cell) for cell in stored["cells"])


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


def test_what_a_cell_prints_and_its_value_are_both_shown() -> None:
    assert texts(executed(SMALL)) == "x = 2\nprint(x)\nx + 1\n2\n\n3\n"


def test_another_output_is_noticed_until_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps(SMALL), "utf-8")
    assert main([str(path)]) == 1
    assert "+3" in capsys.readouterr().out.splitlines()
    assert main(["--write", str(path)]) == 0
    assert main([str(path)]) == 0
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n```\n", "utf-8")
    assert main([str(page)]) == 1
