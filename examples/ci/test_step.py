"""The tier of a framework's tests that needs no GPU: schedules by rules, one step by its gradients.

    cd examples/ci; python -m pytest .

takes well under a minute on two cores. Put your own step, model and batch into
``pipeline_step.py``, and your own tables into ``tables/``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline_step import batch, model, step

from bubbleproof.testing.assertions import assert_valid, assert_valid_file
from bubbleproof.testing.same_step import same_step
from bubbleproof.theory.families import member

TABLES: list[Path] = sorted((Path(__file__).parent / "tables").glob("*.csv"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_every_table_is_right(table: Path) -> None:
    assert_valid_file(table)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_orders_hold_for_odd_numbers_of_microbatches(ranks: int) -> None:
    made = member("1f1b", p=ranks, m=2 * ranks + 1)
    assert_valid(made.problem, made.schedule)


def test_a_step_has_the_gradients_of_the_loop() -> None:
    same_step(step, model, batch(), ranks=2)
