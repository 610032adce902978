"""The functions at the door (``import bubbleproof as bp``): each is one call of a room.

Wherever a problem is taken, a ``Pipeline`` serves as well; and where a problem and a schedule are
taken, one thing that holds both does (a family's member, what ``read`` gives for a schedule).
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING

from bubbleproof.theory.families import FamilyMember, families, family, published_programs, register
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.formats import ProblemFile, ScheduleFile
    from bubbleproof.papers.claims.claim import Claim
    from bubbleproof.papers.theorems import Proof
    from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
    from bubbleproof.reference_exec.models.model_spec import ModelSpec
    from bubbleproof.report.picture import Picture
    from bubbleproof.solvers.pareto import Front
    from bubbleproof.solvers.result import Result
    from bubbleproof.theory.model.measures import Measures
    from bubbleproof.verify.verdict import Verdict

Posed = Pipeline | Problem
Path = str | PathLike[str]


def problem_of(posed: object, *, asker: str) -> Problem:
    """The problem of a ``Pipeline`` or a ``Problem``. Raises ``TypeError`` for anything else."""
    if isinstance(posed, Pipeline):
        return posed.problem()
    if isinstance(posed, Problem):
        return posed
    raise TypeError(f"{asker}: expected a Pipeline or a Problem, got {_told(posed)}")


def pair_of(
    posed: object, schedule: object, *, asker: str
) -> tuple[Problem, Schedule, Pipeline | None]:
    """The problem and the schedule that were given, and the pipeline where there is one.

    Raises ``TypeError`` for anything else, and ``ValueError`` where a result or a file has no
    schedule.
    """
    if schedule is None:
        problem, schedule = getattr(posed, "problem", None), getattr(posed, "schedule", None)
        pipeline = getattr(posed, "pipeline", None)
        if not isinstance(problem, Problem):
            raise TypeError(
                f"{asker}: expected a problem and a schedule, or a family's member or a schedule "
                f"file, which hold both, got {_told(posed)}"
            )
    else:
        pipeline = posed if isinstance(posed, Pipeline) else None
        problem = problem_of(posed, asker=asker)
    if isinstance(schedule, Schedule):
        return problem, schedule, pipeline
    inner = getattr(schedule, "schedule", None)
    if isinstance(inner, Schedule):  # a Result
        return problem, inner, pipeline
    if schedule is None or hasattr(schedule, "schedule"):
        raise ValueError(f"{asker}: {_told(schedule or posed)} holds no schedule")
    raise TypeError(f"{asker}: expected a Schedule or a Result, got {_told(schedule)}")


def _told(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else f'{text[:57]}...'}"


def solve(
    posed: Posed,
    *,
    objective: str = "makespan",
    within: int | None = None,
    time_limit: float = 60.0,
    engine: str = "auto",
    certified: bool = False,
    threads: int = 2,
    seed: int = 1,
) -> Result:
    """The best schedule of a problem, and how good it is.

    Parameters
    ----------
    posed
        A ``Pipeline``, whose published orders are tried first, or a ``Problem``.
    objective
        ``makespan``, ``span_idle``, ``makespan-then-peak`` or ``peak``.
    within
        The largest value wanted, in ticks (for ``peak``: the largest makespan).
    time_limit
        Seconds; a time-out is never called infeasible.
    engine
        ``auto``, ``cpsat``, ``pulp``, ``z3`` or ``sat``.
    certified
        Spend the time limit on a certificate where an engine's word is all there is.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for an option out of range.
    """
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search
    from bubbleproof.solvers.options import goal

    options = SolveOptions(
        engine=engine,
        objective=goal(objective),
        within=within,
        time_limit=time_limit,
        seed=seed,
        threads=threads,
        certified=certified,
    )
    return search(problem_of(posed, asker="solve"), options, _published(posed))


def pareto(posed: Posed, *, time_limit: float = 60.0) -> Front:
    """Every trade of makespan (ticks) against peak memory (memory units) that none beats.

    ``time_limit`` is in seconds and for each point.
    """
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers.pareto import pareto as search

    problem = problem_of(posed, asker="pareto")
    return search(problem, SolveOptions(time_limit=time_limit), _published(posed))


def _published(posed: Posed) -> list[tuple[str, Program]]:
    """The published orders that take a pipeline as it is; none for a problem built by hand."""
    return published_programs(posed) if isinstance(posed, Pipeline) else []


def check(posed: Posed | FamilyMember | ScheduleFile, schedule: object = None) -> Verdict:
    """Decide every rule for a schedule: rules 1 to 5, 7 and 8, and 6 once it is lowered.

    ``schedule`` is a ``Schedule`` or a ``Result``; a family's member or a schedule file holds its
    own. A failed check returns violations, it does not raise.
    """
    from bubbleproof.verify import check_whole

    problem, found, _ = pair_of(posed, schedule, asker="check")
    return check_whole(problem, found)


def measure(posed: Posed | FamilyMember | ScheduleFile, schedule: object = None) -> Measures:
    """Makespan (ticks), the four bubbles and the peaks (memory units) of a schedule."""
    from bubbleproof.theory.model.measures import measure as measured

    problem, found, _ = pair_of(posed, schedule, asker="measure")
    return measured(problem, found)


def show(
    posed: Posed | FamilyMember | ScheduleFile,
    schedule: object = None,
    *,
    title: str = "",
    window: tuple[int, int] | None = None,
) -> Picture:
    """A picture of a schedule: a notebook displays it, ``str`` gives a grid, ``save`` a file.

    ``window`` is (first, last) tick.
    """
    from bubbleproof.report.picture import Picture

    problem, found, _ = pair_of(posed, schedule, asker="show")
    return Picture(problem=problem, schedule=found, title=title, window=window)


def replay(
    posed: Posed | FamilyMember | ScheduleFile,
    schedule: object = None,
    *,
    model: ModelSpec | None = None,
    backend: str = "virtual",
    steps: int = 0,
) -> ReplayReport:
    """Run a verified schedule on torch; compare gradients with an oracle and bytes with the model.

    Parameters
    ----------
    model
        Sizes of the model that is trained; by default a small one.
    backend
        ``virtual`` (all ranks in this process) or ``gloo`` (a process per rank).
    steps
        Optimizer steps (SGD) to take; 0 compares one step's gradients alone.

    Raises
    ------
    bubbleproof.reference_exec.replay.NotVerified
        The schedule violates a rule.
    """
    from bubbleproof.reference_exec.models.model_spec import ModelSpec
    from bubbleproof.reference_exec.plans.training import Training
    from bubbleproof.reference_exec.replay import replay as run

    problem, found, _ = pair_of(posed, schedule, asker="replay")
    training = Training(steps=steps) if steps else None
    return run(problem, found, model or ModelSpec(), backend=backend, training=training)


def read(path: Path) -> ProblemFile | ScheduleFile:
    """What a file says: a problem (.toml), or a schedule (.json, or PyTorch's table in .csv).

    Raises ``ValueError`` in one line for content that is not usable.
    """
    from bubbleproof.commands.inputs import read_given
    from bubbleproof.formats import ScheduleFile, read_problem, read_schedule

    name = fspath(path)
    if name.lower().endswith(".toml"):
        return read_problem(name)
    if name.lower().endswith(".json"):
        return read_schedule(name)
    given = read_given([name])
    return ScheduleFile(
        problem=given.problem,
        program=given.program,
        schedule=given.schedule,
        pipeline=given.pipeline,
        name=given.name,
    )


def write(
    path: Path,
    posed: Posed | FamilyMember | ScheduleFile,
    schedule: object = None,
    *,
    name: str = "",
) -> None:
    """Write a schedule: with its problem (.json), as PyTorch's table (.csv), or as a trace.

    A trace ends in ``.perfetto.json``. Raises ``ValueError`` for another ending.
    """
    from bubbleproof.formats import ScheduleFile, write_schedule, write_table, write_trace

    problem, found, pipeline = pair_of(posed, schedule, asker="write")
    target = fspath(path)
    if target.endswith(".perfetto.json"):
        write_trace(target, problem, found)
    elif target.endswith(".csv"):
        write_table(target, found.program, problem=problem)
    elif target.endswith(".json"):
        write_schedule(target, ScheduleFile.of(problem, found, pipeline=pipeline, name=name))
    else:
        raise ValueError(f"write: a file ends in .json, .csv or .perfetto.json, got {target!r}")


def prove(theorem: str, *, timeout: float = 60.0) -> Proof:
    """Prove a theorem for all its sizes by Z3; ``timeout`` is in seconds for each obligation.

    Raises ``ValueError`` listing the theorems where there is none of that name.
    """
    from bubbleproof.papers.theorems import theorems
    from bubbleproof.papers.theorems.prover import prove as proved

    known = theorems()
    if theorem not in known:
        raise ValueError(f"prove: no theorem {theorem!r}; the theorems are {' '.join(known)}")
    return proved(known[theorem], int(timeout * 1000))


def claims(paper: str | None = None) -> Mapping[str, Claim]:
    """What the papers claim, by id: ``bpipe``, ``mepipe``, ``pipemesh``, ``tpipe`` or the field."""
    from bubbleproof.papers.claims.registry import claims as registered

    return registered(paper)


__all__ = (
    "check",
    "claims",
    "families",
    "family",
    "measure",
    "pareto",
    "prove",
    "read",
    "register",
    "replay",
    "show",
    "solve",
    "write",
)
