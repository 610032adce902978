"""The searches at the door (``import bubbleproof as bp``): ``solve``, ``repair``, ``pareto``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bubbleproof.arguments import (
    checked,
    door_function,
    hears,
    number,
)
from bubbleproof.door_given import schedule_file, stated

if TYPE_CHECKING:
    from bubbleproof.arguments import Progress
    from bubbleproof.door_types import GivenFirst, GivenProblem
    from bubbleproof.report.solved_result import ProblemInput, SolvedResult
    from bubbleproof.solvers.options import Progress as SearchProgress
    from bubbleproof.solvers.pareto_front import Front
    from bubbleproof.solvers.repair_search import NoRepair, Repair
    from bubbleproof.solvers.result import Result


@door_function
def solve(
    problem: GivenProblem,
    *,
    objective: str = "makespan",
    within: int | None = None,
    time_limit: float | None = None,
    work: float | None = None,
    engine: str = "auto",
    certified: bool = False,
    threads: int = 2,
    seed: int = 1,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> SolvedResult:
    """The best schedule of a problem, and how good it is.

    Parameters
    ----------
    problem
        A ``Pipeline``, whose published orders are tried first, or a ``Problem``; or the path of a
        problem file (.toml), or what ``read`` gives for it.
    objective
        ``makespan``, ``span_idle``, ``makespan-then-peak`` or ``peak``.
    within
        The largest value wanted, in ticks (for ``peak``: the largest makespan).
    time_limit
        Seconds, by default 60, and no limit beside ``work``; a time-out is never called infeasible.
    work
        Units of work of about a second each, in place of seconds: the result repeats exactly.
    engine
        ``auto``, ``cpsat``, ``pulp``, ``z3`` or ``sat``.
    certified
        Require a certificate: spend the time limit on one where a solver's bound has none.
    threads, seed
        Of the engine.
    memory
        What an engine may take: bytes, or a text such as ``"4 GiB"``. One that needs more is lost,
        which ``losses`` of the result tell.
    progress
        Hears of whatever improves, a line of text each.

    Returns
    -------
    SolvedResult
        A ``Result``: status, schedule, lower bound (ticks) and what proves it.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for an option of another type or out of range.
    """
    given = locals()  # the options by name
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.report.solved_result import SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search

    source = _source_of(problem, "solve")
    asked = checked(SolveOptions, given, bytes_of, asker="solve")
    options = SolveOptions.asked(asked, progress=_improvements(progress, "solve"))
    return SolvedResult.of(source, search(source.problem, options, source.starts), engine)


def _improvements(progress: Progress | None, asker: str) -> SearchProgress:
    """Who hears of a better schedule or bound."""
    hear = hears(progress, asker=asker)

    def improved(who: str, best: int | None, bound: int, seconds: float) -> None:
        have = "no schedule yet" if best is None else f"best {best}"
        hear(f"{seconds:.1f} s  {have}, lower bound {bound}  ({who})")

    return improved


@door_function
def repair(
    schedule: GivenFirst,
    *,
    problem: GivenProblem | None = None,
    time_limit: float = 60.0,
    progress: Progress | None = None,
) -> Repair | NoRepair:
    """The valid schedule that moves the fewest tasks of a broken one.

    Parameters
    ----------
    schedule
        Whatever holds one, as ``check`` takes it.
    problem
        Repair it on this problem, as ``solve`` takes it.
    time_limit
        Seconds.
    progress
        Hears of whatever improves, a line of text each.

    Returns
    -------
    Repair
        ``schedule``, what was ``moved`` and ``added``, whether fewer moves suffice, and the
        ``result``, whose status and bound are about the problem alone.
    NoRepair
        That the problem has no schedule, or that none was found in the time (``status``).

    Raises
    ------
    TypeError, ValueError
        As ``check`` does, and for a time limit that is none.
    """
    from bubbleproof.report.solved_result import ProblemInput, SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search
    from bubbleproof.solvers.repair_search import NoRepair
    from bubbleproof.solvers.repair_search import repair as mend

    given = schedule_file(schedule, asker="repair", problem=problem)
    options = SolveOptions(
        time_limit=number(time_limit, "time_limit", asker="repair"),
        progress=_improvements(progress, "repair"),
    )
    found = mend(given.problem, given.compute, options)
    source = ProblemInput(name=given.name, problem=given.problem, pipeline=given.pipeline)
    if found is None:
        return NoRepair(plain=SolvedResult.of(source, search(given.problem, options)))
    return replace(found, result=SolvedResult.of(source, found.result))


@door_function
def pareto(
    problem: GivenProblem, *, time_limit: float = 60.0, progress: Progress | None = None
) -> Front:
    """Every trade of makespan against peak memory that no other beats in both.

    Parameters
    ----------
    problem
        As ``solve`` takes it.
    time_limit
        Seconds for each point.
    progress
        Hears of each point, a line of text.

    Returns
    -------
    Front
        ``points`` from the least peak (memory units) to the least makespan (ticks), a ``Result``
        each, and whether the front is proved to be whole.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for a time limit that is none.
    """
    from bubbleproof.report.solved_result import SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers.pareto_front import pareto as search

    source = _source_of(problem, "pareto")
    options = SolveOptions(time_limit=number(time_limit, "time_limit", asker="pareto"))
    hear = hears(progress, asker="pareto")

    def solved(cap: int, point: Result) -> None:
        hear(f"at most {cap}: {point!r}")

    found = search(source.problem, options, source.starts, on_point=solved)
    return replace(found, points=tuple(SolvedResult.of(source, each) for each in found.points))


def _source_of(given: GivenProblem, asker: str) -> ProblemInput:
    """The problem to solve, with its name where it has one."""
    from bubbleproof.report.solved_result import ProblemInput

    problem, pipeline, name = stated(given, asker=asker)
    return ProblemInput(name=name, problem=problem, pipeline=pipeline)
