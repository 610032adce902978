"""The searches of the note on the price of memory: the table is in it, and some cases hold."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.frontier_search import BEGIN, NOTE, SEARCHES, Case, outcome, with_table
from bubbleproof.report.memory_price import memory_price
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.sized import sized


@pytest.mark.parametrize("search", SEARCHES, ids=("odd", "three", "links"))
def test_the_note_tells_how_many_pipelines_a_search_solved(search: object) -> None:
    found = next(one for one in SEARCHES if one is search)
    row = f"| {found.statement} | {found.searched} | {len([*found.cases()])} |"
    assert row in NOTE.read_text("utf-8")


@pytest.mark.parametrize("search", SEARCHES, ids=("odd", "three", "links"))
def test_the_first_cases_of_each_are_as_stated(search: object) -> None:
    found = next(one for one in SEARCHES if one is search)
    cases: list[Case] = [*islice(found.cases(), sized(3, full=10))]
    assert {*map(outcome, cases)} == {"alike"}


def test_the_bound_is_not_always_met_between_steps() -> None:
    """The counterexample of the note: trip 3 * 3 + 4 = 13, and 13 + (6 - 3) * 3 + 2 * (3 + 2)."""
    pipeline = Pipeline(
        num_ranks=3, num_microbatches=6, forward=1, backward=2, latency=1, capacity=3
    )
    price = memory_price(pipeline)
    assert price is not None
    assert (price.least(), price.is_exact()) == (32, False)
    assert outcome((pipeline, 33)) == "alike"


def test_a_note_without_marks_is_refused() -> None:
    assert with_table(f"a\n{BEGIN}b\n<!-- end of what was searched -->\nc", "t\n").count("t\n") == 1
    with pytest.raises(ValueError, match="must have the marks"):
        with_table("nothing", "t")
