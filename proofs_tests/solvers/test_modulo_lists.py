"""Modulo lists: schedules that the checker accepts, near the work of the busiest rank."""

from __future__ import annotations

from itertools import islice

import pytest

from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.lists.modulo_lists import ModuloLists, Turn
from bubbleproof.solvers.search import MOST_BOUNDED_FIRST, MOST_TURNS, Search
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

PIPELINES = {
    "loop": Pipeline(num_ranks=4, num_microbatches=20, capacity=3, latency=1),
    "split": Pipeline(
        num_ranks=4, num_microbatches=20, capacity=4, split_backward=True, weight_backward=2
    ),
    "V": Pipeline(num_ranks=3, num_microbatches=12, num_chunks=2, placement="wave", capacity=4),
    "V split": Pipeline(
        num_ranks=4,
        num_microbatches=24,
        num_chunks=2,
        placement="wave",
        capacity=6,
        split_backward=True,
        forward=(2, 3, 2, 2, 2, 5, 2, 2),
        latency=1,
    ),
    "chunks": Pipeline(num_ranks=4, num_microbatches=16, num_chunks=3, capacity=14),
    "bandwidth": Pipeline(num_ranks=3, num_microbatches=9, capacity=3, message=2, bandwidth=2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_every_turn_is_a_schedule(name: str) -> None:
    problem = PIPELINES[name].problem()
    lists = ModuloLists(problem)
    turns = list(lists.turns())
    assert turns
    for turn in turns:
        measured = accepted(problem, lists.schedule(turn))
        # Microbatch m-1 begins m-1 periods after microbatch 0, rounded to ticks.
        assert measured.makespan > (PIPELINES[name].num_microbatches - 1) * turn.rate


def test_periods_are_as_long_as_the_work_where_there_is_room() -> None:
    # One microbatch is 2 chunks of F 1 and B 2 on each of 4 ranks: 6 ticks.
    plenty = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, placement="wave", capacity=16)
    rates = [turn.rate for turn in ModuloLists(plenty.problem()).turns()]
    assert min(rates) == 6


def test_a_tighter_store_costs_a_longer_period() -> None:
    def rate(capacity: int) -> float:
        pipeline = PIPELINES["V split"].with_changes(capacity=capacity)
        return float(min(turn.rate for turn in ModuloLists(pipeline.problem()).turns()))

    assert rate(6) <= rate(4) <= rate(2)


def test_local_search_shortens_a_period() -> None:
    problem = PIPELINES["V split"].problem()
    lists = ModuloLists(problem)
    rates = []
    for turn in islice(lists.turns(), sized(2, full=None)):
        shorter = lists.shortened(turn)
        assert shorter.period <= turn.period
        assert check(problem, lists.schedule(shorter)).ok
        rates.append((shorter.rate, turn.rate))
    assert any(shorter < given for shorter, given in rates)


def test_nothing_is_shortened_once_it_is_over() -> None:
    lists = ModuloLists(PIPELINES["V split"].problem())
    turn = next(turn for turn in lists.turns() if turn.period > lists.least)
    placed, answers = lists.placed, iter([False, True])
    assert lists.shortened(turn, is_over=lambda: next(answers)) is turn
    assert lists.placed == placed + 2 * len(lists.ticks)  # the shorter period, and one change


def test_a_search_whose_clock_has_run_down_takes_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = PIPELINES["V split"].problem()
    asked: list[Turn] = []

    def shortened(_: ModuloLists, turn: Turn, **__: object) -> Turn:
        asked.append(turn)
        return turn

    monkeypatch.setattr(ModuloLists, "shortened", shortened)
    late = Budget(deadline=0.0)
    found = Search(problem, SolveOptions(time_limit=PATIENCE), whole=late).run(()).schedule
    assert found is not None
    assert check(problem, found).ok
    assert not asked
    assert Search(problem, SolveOptions(time_limit=PATIENCE, work=0.01)).run(()).schedule
    assert asked  # work that is counted is done, whatever the clock says


def test_microbatches_that_differ_are_refused_by_the_checker() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=4, capacity=2)
    problem = pipeline.problem()
    lists = ModuloLists(problem)
    turn = next(lists.turns())
    longer = pipeline.with_changes(forward=2).problem()  # the same names, other durations
    assert check(problem, lists.schedule(turn)).ok
    assert not check(longer, lists.schedule(turn)).ok


def test_a_large_instance_has_a_schedule_before_its_bounds() -> None:
    # 16 ranks of 2 chunks: 64 tasks a microbatch, and 10,000 of them are large (or 50,000).
    microbatches = sized(170, full=900)
    pipeline = Pipeline(num_ranks=16, num_microbatches=microbatches, num_chunks=2, capacity=40)
    assert len(pipeline.problem().actions) > sized(MOST_BOUNDED_FIRST, full=MOST_TURNS)
    told: list[tuple[str, int | None, int]] = []
    solve(
        pipeline.problem(),
        SolveOptions(
            time_limit=PATIENCE,
            work=0.01,
            progress=lambda *said: told.append((said[0], *said[1:3])),
        ),
    )
    who, value, bound = told[0]
    assert who == "repeating lists"
    assert value is not None
    assert bound == 0
