"""Several engines on the same problems, one after the other, as ``bench`` compares them.

All begin alike; a named engine then does the rest, while ``auto`` may also propagate, probe and
turn to several. An engine ``alone`` has no schedule and no other's bound to begin from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bubbleproof.faults import FaultError
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result, Status
from bubbleproof.solvers.search import Search
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

AUTO = "auto"
Starts = Sequence[tuple[str, Program]]
# To compare engines on where there is no problem. Names say p, m and what is particular. The first
# closes by its bounds; the others need a search.
LATE = Pipeline(num_ranks=4, num_microbatches=8, capacity=4, forward=2, backward=4, latency=1)
INSTANCES: dict[str, Pipeline] = {
    "1f1b-p4-m8": Pipeline(num_ranks=4, num_microbatches=8, capacity=4),
    "latency-p4-m8": LATE,
    "latency-p4-m16": LATE.with_changes(num_microbatches=16),
    "released-at-I-p4-m8": Pipeline(
        num_ranks=4,
        num_microbatches=8,
        capacity=8,
        split_backward=True,
        latency=1,
        forward=10,
        input_backward=11,
        weight_backward=8,
        activation=2,
        released_at_input=1,
    ),
    "interleaved-p4-m8-cap8": Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, capacity=8),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """One engine on one problem, perhaps ``alone``: then nobody looks for certificates."""

    entry: str
    engine: str
    result: Result
    alone: bool = False

    @property
    def bound(self) -> int:
        """The certified bound, or what an engine says alone."""
        return self.result.best_bound if self.alone else self.result.lower_bound


def engine_runs(
    entries: Iterable[tuple[str, Problem, Starts]],
    engines: Sequence[str],
    limit: float,
    threads: int,
    *,
    alone: bool,
    tell: Callable[[str], None] | None,
) -> Iterator[EngineRun]:
    """Each engine on each problem, which has a name and the published orders to begin from.

    Parameters
    ----------
    entries, engines
        The problems, and the names of the engines.
    limit, threads
        Seconds for each, and an engine's threads.
    alone
        Whether nothing but the engine decides.
    tell
        Is told what begins.

    Raises
    ------
    FaultError
        Where engines contradict each other.
    KeyboardInterrupt
        Where a Ctrl-C ended a search, after its result.
    """
    for entry, problem, starts in entries:
        results: dict[str, Result] = {}
        for name in engines:
            if tell is not None:
                tell(f"{entry}: {name}")
            options = SolveOptions(engine=name, time_limit=limit, threads=threads)
            search = Search(problem, options, is_certifying=name == AUTO)
            result = results[name] = search.alone() if alone else search.run(starts)
            _require_agreement(results)
            yield EngineRun(entry=entry, engine=name, result=result, alone=alone)
            if options.stop.is_set():  # the search took the Ctrl-C
                raise KeyboardInterrupt


def _require_agreement(results: dict[str, Result]) -> None:
    """Raise ``FaultError`` where one engine's schedule is better than another says is possible."""
    for finder, found in results.items():
        for name, result in results.items():
            is_denied = result.status is Status.INFEASIBLE or result.best_bound > (found.value or 0)
            if found.value is not None and is_denied:
                claim = f"{result.status.name} with the bound {result.best_bound}"
                raise FaultError(name, claim, f"the checker accepts {finder}'s {found.value}")


def is_decided(result: Result) -> bool:
    """Whether it is an optimum, or that there is no schedule."""
    return result.status in (Status.OPTIMAL, Status.INFEASIBLE)
