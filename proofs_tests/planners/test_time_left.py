"""What is not begun because the time left does not suffice for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.planners import Plan, PlanOptions, jitter, looks, plan, plan_results
from bubbleproof.planners.jitter import timed_candidates
from bubbleproof.planners.looks import FirstSearch, first_look, preparation
from bubbleproof.planners.plan_results import noise_text
from bubbleproof.solvers import Status
from bubbleproof.solvers.shortening.known_orders import known_orders
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates.bundle import check_bundle
from proofs_tests.patience import PATIENCE

PIPELINE = Pipeline(num_ranks=2, num_microbatches=4, forward=2, backward=4, activation=2)
MANY = PlanSpace(pipeline=PIPELINE.with_changes(num_microbatches=500), chunks=(1, 2))


def test_a_candidate_that_cannot_be_prepared_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("its problem was built")

    monkeypatch.setattr(looks, "relaxation", refuse)
    monkeypatch.setattr(looks, "PREPARED", 1.0)  # seconds for each action
    found = plan(MANY, PlanOptions(time_limit=PATIENCE))
    assert (found.status, found.solved) == (Status.UNKNOWN, ())
    # F and B of 2 stages and 4 stages, of 500 microbatches: 2000 and 4000 actions.
    first, second = found.judged
    assert str(first.reason) == "not begun: its 2,000 actions take about 2000 s to prepare"
    assert str(second.reason) == "not begun: its 4,000 actions take about 4000 s to prepare"
    # Rank 0 computes 2 + 4 ticks 500 times; rank 1 as much, after an F of 2 and before a
    # B of 4 on rank 0. Two chunks halve what is before and after, of rank 1's first stage.
    assert [one.bound for one in found.judged] == [3006, 3003]
    assert check_bundle(MANY, found.bundle).bound == 3003


def test_one_that_fits_is_looked_at_in_time_that_is_short_for_a_larger_one() -> None:
    few = ShapedPipeline(pipeline=PIPELINE, allowed=None)
    asked = FirstSearch(shaped=few, seconds=10 * preparation(PIPELINE))
    assert first_look(asked).found is not None
    many = ShapedPipeline(pipeline=PIPELINE.with_changes(num_microbatches=44), allowed=None)
    seen = first_look(replace(asked, shaped=many))
    assert (seen.found, seen.bound, seen.reason[:9]) == (None, 44 * 6 + 6, "not begun")


def test_out_of_time_no_further_published_order_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, made = known_orders(PIPELINE), list[str]()

    def in_turn(_: Pipeline, __: object) -> Iterator[tuple[str, Program]]:
        for name, program in programs:
            made.append(name)
            yield name, program

    monkeypatch.setattr(looks, "known_in_turn", in_turn)
    # So many seconds as the preparation takes by the book: less than the bound alone does here.
    asked = FirstSearch(
        shaped=ShapedPipeline(pipeline=PIPELINE, allowed=None), seconds=preparation(PIPELINE)
    )
    seen = first_look(asked).found
    assert seen is not None
    assert seen.origin == "gpipe"
    assert made == ["gpipe"]
    made.clear()
    assert first_look(replace(asked, seconds=PATIENCE)).found is not None
    assert made == [name for name, _ in programs]


def test_durations_are_not_sampled_beyond_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    file = read_problem("examples/researcher/plan.toml")
    assert file.plan is not None
    found = plan(file.plan, PlanOptions(time_limit=PATIENCE, threads=1))
    for module in (jitter, plan_results):
        monkeypatch.setattr(module, "jitter_seconds", lambda *_: 40.0)
    assert timed_candidates(found, file.spread, 10.0) == {}
    assert isinstance(found, Plan)
    expected = "not sampled: that takes about 40 s, more than was left"
    assert noise_text(file, found, {}) == expected
    assert len(timed_candidates(found, file.spread, 100 * PATIENCE)) == len(found.solved)
