"""Windows that are found: their numbers, their ranks, and what they prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from bubbleproof.solvers import SolveOptions, Status, search, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.refutation.excerpt_search import (
    ExcerptSearch,
    ProveExcerpt,
    excerpts_beyond,
    tightest,
    window_counts,
)
from bubbleproof.solvers.search import Search
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import (
    Certificate,
    DirectCertificate,
    refusal,
)
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from proofs_tests.patience import PATIENCE
from proofs_tests.solvers.small import UNEVEN, split


def split_loop(num_microbatches: int, num_ranks: int = 4, capacity: int = 3) -> Problem:
    """F, I and W of 10, 11 and 8 ticks, messages of 1."""
    return split(num_ranks, num_microbatches, capacity, UNEVEN).problem()


def proving(seconds: float) -> ProveExcerpt:
    """What lists, windows and propagation bring within some seconds for each excerpt."""

    def prove(short: Problem, share: float) -> DirectCertificate | None:
        assert 0 < share <= 1
        options = SolveOptions(time_limit=PATIENCE, work=seconds, threads=1)
        found: Certificate | None = Search(short, options).narrowed()
        assert not isinstance(found, MicrobatchWindows)
        return found

    return prove


@pytest.mark.parametrize(
    ("m", "room", "most", "ticks", "counts"),
    [
        # One window of all, or two with 2 of 14 between them, where 3 are in the store at once.
        (12, 3, 12, lambda count: count, Counter({12: 1})),
        (14, 3, 6, lambda count: count, Counter({6: 2})),
        (15, 3, 7, lambda count: count, Counter({6: 1, 7: 1})),
        # A step every 4: 4 + 8 take 3 steps, 6 + 6 two.
        (14, 3, 6, lambda count: count // 4, Counter({4: 1, 8: 1})),
        (26, 3, 8, lambda count: count, Counter({7: 2, 8: 1})),
        # Too many, too short, no room.
        (90, 3, 8, lambda count: count, Counter()),
        (13, 3, 6, lambda count: count, Counter()),
        (14, 0, 6, lambda count: count, Counter()),
    ],
)
def test_numbers_of_microbatches_use_up_the_group(
    m: int, room: int, most: int, ticks: Callable[[int], int], counts: Counter[int]
) -> None:
    assert window_counts(m, room, most, ticks) == counts
    if counts:
        assert sum(counts.elements()) + (counts.total() - 1) * (room - 1) == m


def test_contention_that_a_short_excerpt_learns_counts_in_each_window() -> None:
    """Four ranks with room for 3: 254 ticks for 6 microbatches, 364 for 9 and 474 for 12.

    These are CP-SAT's optima on a model of its own. From the first start to the last end on rank 0
    it takes as long, as every microbatch begins and ends there: so 26 microbatches, as 12, 2 in no
    window and 12, take 948 or more. One machine and volumes show less.
    """
    problem = split_loop(26)
    bounds = lower_bounds(problem)
    life = tightest(problem, bounds)
    assert life is not None
    assert problem.actions[life.first].stage == 0
    windows = ExcerptSearch(problem, bounds, proving(3.0), life, Counter({12: 2}))
    [claim] = windows.certificates(bounds.best.bound)
    assert bounds.best.bound < claim.bound <= 948
    assert refusal(problem, claim) is None
    assert [(each.count, each.times) for each in claim.windows] == [(12, 2)]


def test_nothing_is_claimed_beyond_what_is_known_or_proved() -> None:
    problem = split_loop(26)
    bounds = lower_bounds(problem)
    assert [*excerpts_beyond(10**6, problem, bounds, lambda *_: lower_bounds(problem).best)] == []
    assert [*excerpts_beyond(0, problem, bounds, lambda *_: None)] == []
    unlimited = problem.with_capacity(None)
    assert [*excerpts_beyond(0, unlimited, lower_bounds(unlimited), proving(0.1))] == []


def test_a_store_of_several_chunks_asks_for_none() -> None:
    pipeline = Pipeline(
        num_ranks=4, num_microbatches=16, num_chunks=2, forward=2, backward=4, capacity=6
    )
    problem = pipeline.problem()
    assert tightest(problem, lower_bounds(problem)) is None


def test_solve_refutes_by_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four ranks, room for 3, 36 microbatches: 1,234 ticks by its volume, more by windows.

    So few tasks are left to an engine, unless it is told otherwise; it refutes this one at a look.
    """
    monkeypatch.setattr(search, "MOST_GLANCED", 400)
    monkeypatch.setattr(search, "LOOKING", 0.0)
    problem = split_loop(36)
    assert lower_bounds(problem).best.bound == 1234
    options = SolveOptions(time_limit=600, work=2.0, threads=1, within=1246)
    found = solve(problem, options)
    assert isinstance(found.certificate, MicrobatchWindows)
    assert found.status is Status.INFEASIBLE
    assert refusal(problem, found.certificate) is None
