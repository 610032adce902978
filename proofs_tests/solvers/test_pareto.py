"""The Pareto front against exhaustive search at every cap, and on workers of each sort."""

from __future__ import annotations

import pickle
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis.strategies import integers

from bubbleproof.parallel import open_executor
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.solvers.objectives import below
from bubbleproof.solvers.pareto_front import Front, pareto
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from proofs_tests.judged import accepted
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.small import tiny_pipelines

ONE = SolveOptions(threads=1)
WIDE = Pipeline(
    num_ranks=3, num_microbatches=sized(4, full=6), split_backward=True, input_backward=2
).problem()


def pairs(front: Front) -> list[tuple[int | None, int | None]]:
    return [(point.peak, point.makespan) for point in front.points]


def exhaustive(problem: Problem) -> list[tuple[int, int]]:
    """(peak, makespan) of the front by trying every cap."""
    highest = sum(store.base for store in problem.stores) + int(abs(problem.events.delta).sum())
    front: list[tuple[int, int]] = []
    for cap in range(highest + 1):
        best = brute_force(below(problem, cap + 1))
        if best is not None and (not front or best.makespan < front[-1][1]):
            front.append((cap, best.makespan))
    return front


@settings(max_examples=sized(5, full=20))
@given(tiny_pipelines(least=1))
def test_the_front_equals_exhaustive_search(pipeline: Pipeline) -> None:
    problem = pipeline.problem()
    front = pareto(problem, ONE)
    assert pairs(front) == exhaustive(problem)
    assert front.is_exact


def test_every_point_is_a_checked_schedule_and_none_beats_another() -> None:
    front = pareto(WIDE, ONE)
    assert len(front.points) >= 3
    for point in front.points:
        assert point.status is Status.OPTIMAL
        assert point.schedule is not None
        assert check(WIDE, point.schedule).ok
    peaks, makespans = zip(*pairs(front), strict=True)
    assert list(peaks) == sorted(set(peaks))
    assert list(makespans) == sorted(set(makespans), reverse=True)


def test_published_orders_never_lie_below_the_front() -> None:
    pipeline = Pipeline(num_ranks=4, num_microbatches=8)
    front = pareto(pipeline.problem(), ONE)
    for name in ("gpipe", "1f1b"):
        measured = accepted(pipeline.problem(), family(name).schedule(pipeline))
        peak, makespan = max(measured.peak_memory), measured.makespan
        reached = [m for p, m in pairs(front) if p is not None and m is not None and p <= peak]
        assert min(reached) <= makespan
    # 1F1B is on the front: its makespan is least, and under its memory nothing is shorter.
    assert pairs(front)[-1] == (4, 33)


class Counting(Executor):
    """Any executor will do: this one runs a call at once, pickled as another process would."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]  # as its base
        self.calls += 1
        future: Future[object] = Future()
        function, parts = pickle.loads(pickle.dumps((fn, args)))
        future.set_result(function(*parts, **kwargs))
        return future


def test_workers_change_nothing_but_the_order_of_the_work() -> None:
    alone = pairs(pareto(WIDE, ONE))
    counting = Counting()
    assert pairs(pareto(WIDE, ONE, executor=counting, workers=4)) == alone
    assert counting.calls >= len(alone)
    with ThreadPoolExecutor(2) as threads:
        assert pairs(pareto(WIDE, ONE, executor=threads, workers=2)) == alone
    with open_executor(2) as processes:
        assert pairs(pareto(WIDE, ONE, executor=processes, workers=2)) == alone


def test_a_front_cut_short_says_so() -> None:
    options = SolveOptions(threads=1)
    seen: list[int] = []

    def stop_after_two(cap: int, _: object) -> None:
        seen.append(cap)
        if len(seen) == 2:
            options.stop.set()

    front = pareto(WIDE, options, on_point=stop_after_two)
    assert len(seen) == 2
    assert not front.is_exact
    assert front.points


@settings(max_examples=sized(6, full=30))
@given(tiny_pipelines(least=1), integers(1, 3))
def test_no_bound_of_a_point_is_above_what_its_peak_allows(pipeline: Pipeline, work: int) -> None:
    """Each point's bound is of the schedules with its peak or less, also where work is short."""
    problem = pipeline.problem()
    front = pareto(problem, SolveOptions(threads=1, work=work / 100), workers=2)
    for point in front.points:
        assert point.peak is not None
        least = brute_force(below(problem, point.peak + 1))
        assert least is not None
        assert point.lower_bound <= point.best_bound <= least.makespan
