"""The Problem of a pipeline is made once for equal ones, and nobody writes into what is shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from bubbleproof.testing.strategies import pipelines
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline, problem_of


def columns(problem: Problem) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    parts = (problem.actions, problem.occupancy, problem.edges, problem.events)
    return [
        problem.duration,
        *(getattr(part, name) for part in parts for name in part.__slots__),
    ]


def test_equal_pipelines_have_one_problem_and_others_their_own() -> None:
    one, equal = (Pipeline(num_ranks=2, num_microbatches=3, forward=5) for _ in range(2))
    assert one is not equal
    assert one.problem() is equal.problem()
    assert one.with_changes(unit="us").problem() is not one.problem()


@given(pipelines())
def test_what_is_kept_is_what_would_be_made_anew(pipeline: Pipeline) -> None:
    kept, anew = pipeline.problem(), problem_of(pipeline)
    assert all(map(np.array_equal, columns(kept), columns(anew)))
    assert (kept.resources, kept.stores, kept.unit) == (anew.resources, anew.stores, anew.unit)


@pytest.mark.parametrize("microbatches", [4, 5000])
def test_nobody_writes_into_a_problem(microbatches: int) -> None:
    """Nor into a large one, which is nobody else's: what is refused does not go by its size."""
    problem = Pipeline(num_ranks=2, num_microbatches=microbatches, capacity=9).problem()
    for column in columns(problem):
        with pytest.raises(ValueError, match="read-only"):
            column[:1] = 0


def test_of_large_problems_the_last_is_kept() -> None:
    large, other = (Pipeline(num_ranks=2, num_microbatches=m) for m in (5000, 6000))
    kept = large.problem()
    assert large.problem() is kept
    assert other.problem() is other.problem()
    assert large.problem() is not kept
