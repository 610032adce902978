"""``bubbleproof solve PROBLEM``: the best schedule there is, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from bubbleproof.commands.demands import read_demands, why_not
from bubbleproof.commands.inputs import Posed, read_posed
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    print_json,
    print_table,
    say,
)
from bubbleproof.commands.results import certified, result_rows, result_to_json
from bubbleproof.formats import ScheduleFile, write_certificate, write_schedule
from bubbleproof.solvers import Proof, Result, SolveOptions, Status, solve
from bubbleproof.solvers.choices import solve_choices
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.options import Goal
from bubbleproof.theory.families import families
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.schedule import Claim, Program, Schedule

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: UNDECIDED,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}
DEFAULT_TIME_LIMIT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveFlags:
    """The command line of ``solve``; None where the problem file or a default decides."""

    engine: str = "auto"
    objective: str | None = None
    within: int | None = None
    time_limit: float | None = None
    seed: int = 1
    threads: int = 2
    certified: bool = False
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    keep: str | None = None
    keep_ranks: str | None = None
    keep_until: int | None = None
    target: str | None = None
    certificate: str | None = None
    as_json: bool = False


def run_solve(path: str, flags: SolveFlags) -> int:
    """Solve one problem, print the result, and write the schedule where asked."""
    for what, target in (("schedule", flags.target), ("certificate", flags.certificate)):
        if target is not None and not target.endswith(".json"):
            raise ValueError(f"the {what}'s file must end in .json, got {target!r}")
    posed = read_posed(path)
    demands = read_demands(
        posed.problem,
        require=flags.require,
        forbid=flags.forbid,
        keep=flags.keep,
        keep_ranks=flags.keep_ranks,
        keep_until=flags.keep_until,
    )
    options = options_for(
        posed,
        engine=flags.engine,
        objective=flags.objective,
        within=flags.within,
        time_limit=flags.time_limit,
        seed=flags.seed,
        threads=flags.threads,
        certified=flags.certified,
        quiet=flags.as_json,
    )
    original = posed.problem
    posed, result = solve_posed(posed, options, demands)
    if flags.target is not None and result.schedule is not None:
        write_schedule(flags.target, schedule_file(posed, result))
        if not flags.as_json:
            say(f"wrote {flags.target}")
    proved, certificate = certified(posed, result)
    if flags.certificate is not None and certificate is not None:
        write_certificate(flags.certificate, proved, certificate, name=posed.name)
        if not flags.as_json:
            say(f"wrote {flags.certificate}")
    causes: tuple[str, ...] = ()
    if result.status is Status.INFEASIBLE and posed.choices is None:
        causes = why_not(original, options, demands)
    if flags.as_json:
        print_json({**result_to_json(posed, result), "causes": list(causes)})
    else:
        rows = [*result_rows(posed, result), *(("because", cause) for cause in causes)]
        print_table(posed.name, ("quantity", "value"), rows)
    return _status(result, flags.certified)


def _status(result: Result, certified: bool) -> int:
    """The exit status: an engine's word is not enough where a certificate was asked for."""
    if certified and result.proof is Proof.ENGINE:
        return UNDECIDED
    return EXIT[result.status]


def options_for(
    posed: Posed,
    *,
    engine: str = "auto",
    objective: str | None = None,
    within: int | None = None,
    time_limit: float | None = None,
    seed: int = 1,
    threads: int = 2,
    certified: bool = False,
    quiet: bool = False,
) -> SolveOptions:
    """The options of the command line, else those of the problem file, else the defaults."""
    file = posed.file
    in_file = file.time_limit if file is not None else None
    limit = time_limit if time_limit is not None else in_file
    return SolveOptions(
        engine=engine,
        objective=cast(Goal, objective or (file.objective if file else "makespan")),
        within=within if within is not None or file is None else file.within,
        time_limit=DEFAULT_TIME_LIMIT if limit is None else limit,
        seed=seed,
        threads=threads,
        certified=certified,
        progress=None if quiet else _report,
    )


def _report(who: str, value: int | None, bound: int, seconds: float) -> None:
    best = "no schedule yet" if value is None else f"best {value}"
    say(f"{seconds:7.2f} s  {who:<12} {best}, bound {bound}")


def solve_posed(
    posed: Posed, options: SolveOptions, demands: Demands | None = None
) -> tuple[Posed, Result]:
    """Solve, starting from the published orders that fit the problem's shape.

    The problem given back is the one that was solved: with the demands' precedences, and with what
    was chosen where the file leaves choices open. Raises ``ValueError`` for both at once.
    """
    starts = [] if posed.pipeline is None else published_programs(posed.pipeline)
    if posed.file is None or posed.file.allowed is None:
        result = solve(posed.problem, options, starts, demands=demands)
        if not demands:
            return posed, result
        return replace(posed, problem=demands.demanding(posed.problem), pipeline=None), result
    if demands:
        raise ValueError("orders and starts cannot be demanded where the file leaves choices open")
    found = solve_choices(posed.file.pipeline, posed.file.allowed, options, starts)
    chosen = replace(posed, problem=found.problem, pipeline=found.pipeline, choices=found)
    return chosen, found.result


def published_programs(pipeline: Pipeline) -> list[tuple[str, Program]]:
    """The orders of all families that take the pipeline as it is."""
    return [
        (name, family.program(pipeline))
        for name, family in families().items()
        if family.refusal(pipeline) is None
    ]


def schedule_file(posed: Posed, result: Result) -> ScheduleFile:
    """The solved schedule with its measured numbers as claims, for ``verify`` to confirm."""
    assert result.schedule is not None
    assert result.measured is not None
    claims: dict[str, Claim] = {
        "makespan": result.measured.makespan,
        "idle_ratio": result.measured.idle_ratio,
        "peak_memory": result.measured.peak_memory,
    }
    claimed = Schedule(program=result.schedule.program, start=result.schedule.start, claims=claims)
    pipeline = posed.pipeline if posed.choices is None else None
    return ScheduleFile.of(posed.problem, claimed, pipeline=pipeline, name=posed.name)
