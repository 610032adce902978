"""The Pareto front of makespan against peak memory: every trade that no schedule beats.

The peak is the highest load of any rank's memory, base included. With every rank below a cap the
least makespan T(cap) never rises as the cap does, and it is constant from the peak that its
schedule reaches up to the cap. So the front is found by solving a few caps: first the problem's
own, then from each schedule one unit below its peak; with several workers the middle of each open
interval as well. An interval is closed when both its ends have one optimal makespan.

Each point is one ordinary solve with its own time limit, on any ``concurrent.futures.Executor``.
A schedule of one solve fits under every cap from its peak on: where it is below what an engine said
of such a cap, the engine is at fault (``FaultError``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

from bubbleproof.facts import Fact, FactCells, FactSource
from bubbleproof.faults import FaultError
from bubbleproof.parallel import run_all
from bubbleproof.solvers.objectives import below
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.search_state import Method, in_turn
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program

OnPoint = Callable[[int, Result], None]
FrontStarts = tuple[tuple[str, Program], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Front(FactSource):
    """``points``: results by rising peak and falling makespan.

    ``is_exact`` when every makespan is optimal and every gap between two peaks was closed;
    ``refusal`` says why no peak below the first point's is possible (None: not known).
    """

    points: tuple[Result, ...]
    is_exact: bool
    refusal: str | None
    columns: ClassVar[FactCells] = ("peak", "bound", "makespan", "status")

    def facts(self) -> list[Fact]:
        """Whether it is whole, and each point."""
        return [
            Fact(key="is_exact", value=self.is_exact),
            Fact(key="refusal", value=self.refusal),
            Fact(key="front", value=[*map(_point, self.points)]),
            *(
                Fact(
                    label=f"{point.peak}",
                    value=point.makespan,
                    wanted=f"{point.lower_bound}",
                    verdict=point.status.name.lower(),
                )
                for point in self.points
            ),
        ]


def _point(found: Result) -> dict[str, object]:
    return {
        "peak": found.peak,
        "makespan": found.makespan,
        "lower_bound": found.lower_bound,
        "lower_bound_of": f"any schedule of this problem with a peak of {found.peak} or less",
        "engine_bound": found.engine_bound,
        "status": found.status.name,
        "proof": None if found.proof is None else found.proof.name,
        "origin": found.origin,
    }


def pareto(
    problem: Problem,
    options: SolveOptions | None = None,
    starts: Iterable[tuple[str, Program]] = (),
    *,
    executor: Executor | None = None,
    workers: int = 1,
    on_point: OnPoint | None = None,
) -> Front:
    """The front of a problem; ``options.time_limit`` is for each point.

    With more than one of ``workers`` several caps are solved at once; ``on_point(cap, result)``
    hears of each. Ctrl-C ends it with the points found so far.

    Parameters
    ----------
    options
        How each point is solved; its time limit is for each.
    starts
        Programs to begin from, each with a name.
    workers
        How many caps are solved at once, 1 or more.
    on_point
        Hears of each cap and its result.
    """
    options = options or SolveOptions()
    caps = _Caps(problem, options, tuple(starts), spread=workers > 1)
    rounds = caps.rounds(executor, on_point)
    in_turn(rounds, options.stop, options.stop.is_set)
    _require_consistent(caps.solved)
    return _front(caps.solved, caps.lowest, is_interrupted=bool(caps.wanted))


class _Caps:
    """The caps that were solved, and those to solve next."""

    def __init__(
        self, problem: Problem, options: SolveOptions, starts: FrontStarts, *, spread: bool
    ) -> None:
        self.lowest, highest = _range(problem)
        self.solve = partial(_solve, problem, options, starts)
        self.solved: dict[int, Result] = {}
        self.wanted, self.spread = [highest], spread

    def rounds(self, executor: Executor | None, on_point: OnPoint | None) -> Iterator[Method]:
        """A call for each round of caps that can be solved side by side."""
        while self.wanted:
            yield partial(self._solve_wanted, executor, on_point)

    def _solve_wanted(self, executor: Executor | None, on_point: OnPoint | None) -> None:
        def keep(index: int, result: Result) -> None:
            self.solved[self.wanted[index]] = result
            if on_point is not None:
                on_point(self.wanted[index], result)

        try:
            run_all(executor, self.solve, self.wanted, on_done=keep)
        finally:
            self.wanted = _next_caps(self.solved, self.lowest, spread=self.spread)


def _range(problem: Problem) -> tuple[int, int]:
    """A cap that nothing fits under, and one that excludes no schedule."""
    stores = problem.stores[: problem.num_ranks]
    lowest = max((store.base for store in stores), default=0) - 1
    highest = lowest + 1
    events = problem.events
    for number, store in enumerate(stores):
        gained = int(events.delta[(events.store == number) & (events.delta > 0)].sum())
        reach = store.base + gained
        highest = max(highest, reach if store.capacity is None else min(reach, store.capacity))
    return lowest, highest


def _solve(problem: Problem, options: SolveOptions, starts: FrontStarts, cap: int) -> Result:
    """Every rank's memory at most ``cap``."""
    return Search(below(problem, cap + 1), options).run(starts)


def _next_caps(solved: dict[int, Result], lowest: int, *, spread: bool) -> list[int]:
    """The caps to solve next: below the upper end of every open interval, and in its middle."""
    caps = sorted(solved)
    wanted: set[int] = set()
    for low, high in pairwise([lowest, *caps]):
        upper, lower = solved[high], solved.get(low)
        if upper.peak is None or upper.peak - 1 <= low or _is_flat(lower, upper):
            continue
        wanted.add(upper.peak - 1)
        if spread:
            wanted.add((low + upper.peak - 1 + 1) // 2)
    return sorted(wanted - solved.keys(), reverse=True)


def _is_flat(lower: Result | None, upper: Result) -> bool:
    """Whether the makespan cannot change between two caps: the tighter one's bound is met."""
    return (
        lower is not None
        and lower.status is Status.OPTIMAL
        and upper.status is Status.OPTIMAL
        and lower.makespan == upper.makespan
    )


def _require_consistent(solved: dict[int, Result]) -> None:
    """Raise ``FaultError`` where the schedule of one cap is better than another cap allows."""
    for result in solved.values():
        for cap, other in solved.items():
            if result.peak is None or result.makespan is None or cap < result.peak:
                continue
            if other.status is Status.INFEASIBLE:
                claim = f"that no schedule has a peak of at most {cap}"
            elif other.best_bound > result.makespan:
                claim = f"the bound {other.best_bound} for a peak of at most {cap}"
            else:
                continue
            found = f"the checker accepts one of {result.makespan} with a peak of {result.peak}"
            raise FaultError("an engine or a certificate", claim, found)


def _front(solved: dict[int, Result], lowest: int, *, is_interrupted: bool) -> Front:
    points: list[Result] = []
    for cap in sorted(solved, reverse=True):
        result = solved[cap]
        if result.makespan is None or result.peak is None:
            continue
        while points and points[-1].makespan is not None and points[-1].makespan >= result.makespan:
            points.pop()
        points.append(result)
    last = solved[min(solved)] if solved else None
    reason = last.reason if last is not None and last.status is Status.INFEASIBLE else None
    if reason is None and points and points[-1].peak == lowest + 1:
        reason = f"the base load alone is {lowest + 1}"
    is_exact = (
        not is_interrupted
        and reason is not None
        and all(point.status is Status.OPTIMAL for point in points)
        and all(result.status is not Status.UNKNOWN for result in solved.values())
    )
    return Front(points=tuple(reversed(points)), is_exact=is_exact, refusal=reason)
