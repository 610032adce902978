"""What the public strategies promise of the pipelines, problems and schedules they draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import Phase, given, settings
from hypothesis import find as shrunk_find
from hypothesis import strategies as st

from bubbleproof.testing import strategies
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from proofs_tests.verify.plain import broken_rules

T = TypeVar("T")


def find(strategy: st.SearchStrategy[T], holds: Callable[[T], bool]) -> T:
    """An example for which it holds, not shrunk. Raises ``NoSuchExample`` where there is none."""
    quick = settings(max_examples=500, phases=[Phase.generate], derandomize=True, database=None)
    return shrunk_find(strategy, holds, settings=quick)


@st.composite
def timed(draw: st.DrawFn) -> tuple[Problem, Schedule]:
    problem = draw(strategies.problems(capped=False))
    return problem, draw(strategies.schedules(problem))


@given(timed())
def test_drawn_schedules_are_valid_by_both_checkers(made: tuple[Problem, Schedule]) -> None:
    problem, schedule = made
    assert check(problem, schedule).ok
    assert not broken_rules(problem, schedule)


@given(strategies.problems(capped=True))
def test_caps_are_on_every_store_and_above_the_base_load(problem: Problem) -> None:
    for store in problem.stores:
        assert store.capacity is not None
        assert store.capacity >= store.base


def test_some_schedules_wait_longer_than_they_must() -> None:
    def waits(made: tuple[Problem, Schedule]) -> bool:
        problem, schedule = made
        early = left_shift(problem, schedule.program)
        return measure(problem, schedule).makespan > measure(problem, early).makespan

    find(timed(), waits)


def test_caps_bind_for_some_schedules_and_not_for_others() -> None:
    @st.composite
    def capped(draw: st.DrawFn) -> tuple[Problem, Schedule]:
        problem = draw(strategies.problems(capped=True))
        return problem, left_shift(problem, draw(strategies.programs(problem)))

    find(capped(), lambda made: check(*made).ok)
    find(capped(), lambda made: not check(*made).ok)


def test_every_feature_of_a_pipeline_is_drawn() -> None:
    features = {
        "links": lambda p: bool(p.links),
        "uneven slices": lambda p: isinstance(p.forward[0], tuple),
        "cut weights": lambda p: bool(p.weight_parts),
        "mixed splits": lambda p: not isinstance(p.split_backward, bool),
        "residuals": lambda p: min(p.released_at_input) < 0,
        "no duration": lambda p: p.forward == (0,) * p.num_stages,
        "wave": lambda p: p.placement == "wave" and p.num_ranks > 1,
        "bidirectional": lambda p: p.is_bidirectional and p.num_ranks > 1,
    }
    for name, holds in features.items():
        assert isinstance(find(strategies.pipelines(), holds), Pipeline), name


@given(
    strategies.pipelines(
        split=True,
        shape=strategies.shapes(most_ranks=2, most_microbatches=3, most_chunks=1, most_slices=1),
        placements=["loop"],
    )
)
def test_arguments_narrow_what_is_drawn(pipeline: Pipeline) -> None:
    assert pipeline.num_ranks <= 2
    assert pipeline.num_microbatches <= 3
    assert (pipeline.num_chunks, pipeline.num_slices) == (1, 1)
    assert (pipeline.placement, pipeline.split_backward) == ("loop", True)
