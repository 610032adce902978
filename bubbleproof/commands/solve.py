"""``bubbleproof solve PROBLEM``: the best schedule there is, and how good it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from bubbleproof.commands.demand_words import read_demands, why_not
from bubbleproof.commands.options.shared_options import (
    DemandOptions,
    SearchOptions,
    SolveOutput,
    memory_of,
    seconds_of,
)
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    print_json,
    print_table,
    say,
)
from bubbleproof.commands.results import (
    ProblemInput,
    certified,
    engine_text,
    read_problem_input,
    result_rows,
    result_to_json,
)
from bubbleproof.formats import ScheduleFile, write_certificate, write_schedule
from bubbleproof.formats.plans.cases_json import write_proof
from bubbleproof.formats.schedule_file import with_claims
from bubbleproof.solvers import ProofOrigin, Result, SolveOptions, Status, solve
from bubbleproof.solvers.choices.solving_choices import solve_choices
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.engines import UNTOLD, require_engine
from bubbleproof.solvers.options import Goal

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: UNDECIDED,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}


def run_solve(
    problem: str, search: SearchOptions, demands: DemandOptions, output: SolveOutput
) -> int:
    """Solve one problem, print the result, and write the schedule where asked."""
    require_engine(search.engine)
    search.leave_out(f"--engine {search.engine}", *UNTOLD.get(search.engine, ()))
    source = read_problem_input(problem)
    demanded = read_demands(source.problem, demands)
    options = options_for(source, search, quiet=output.json)
    if options.objective == "peak":
        output.leave_out("the objective peak, whose proof is in no file", "certificate")
    original = source.problem
    is_wanted = output.certificate is not None or search.certified
    source, result = solve_input(source, options, demanded, by_cases=is_wanted)
    _write_files(output, source, result)
    causes: tuple[str, ...] = ()
    if result.status is Status.INFEASIBLE and source.choices is None:
        causes = why_not(original, options, demanded)
    if output.json:
        print_json(
            {**result_to_json(source, result), "scope": _scope(demanded), "causes": list(causes)}
        )
    else:
        rows = [*result_rows(source, result), *(("because", cause) for cause in causes)]
        if search.engine != "auto":
            rows.insert(1, ("engine", engine_text(search.engine, result)))
        if demanded:
            rows.insert(1, ("scope", _scope(demanded)))
        print_table(source.name, ("quantity", "value"), rows)
    return _status(result, search.certified)


def _scope(demands: Demands) -> str:
    """Which schedules the status and the bound are about."""
    counts = {"order": len(demands.orders), "start": len(demands.starts)}
    kept = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    if not kept:
        return "all schedules of the problem"
    return f"schedules that keep the {' and '.join(kept)} demanded"


def _write_files(output: SolveOutput, source: ProblemInput, result: Result) -> None:
    """Write the schedule and the certificate that are asked for and were found."""
    _, certificate = certified(source, result)
    schedule_target = None if result.schedule is None else output.output
    proof_target = None if certificate is None else output.certificate
    with written_together(None, schedule_target, proof_target) as (_, schedule, proof):
        if schedule_target is not None:
            write_schedule(schedule, schedule_file(source, result))
        if proof_target is not None:
            _write_proof(proof, source, result)
    for target in (schedule_target, proof_target):
        if target is not None and not output.json:
            say(f"wrote {target}")


def _write_proof(path: Path, source: ProblemInput, result: Result) -> None:
    """Write what shows the bound: of choices in each case, or on what they have in common."""
    problem, certificate, choices = source.problem, result.certificate, source.choices
    if choices is not None:
        if choices.cases is not None:
            write_proof(path, choices.asked, choices.allowed, choices.cases, name=source.name)
            return
        problem, certificate = choices.floor, choices.floor_certificate
    if certificate is not None:
        write_certificate(path, problem, certificate, name=source.name)


def _status(result: Result, certified: bool) -> int:
    """The exit status: an engine's word is not enough where a certificate was asked for."""
    if certified and result.proof is ProofOrigin.ENGINE:
        return UNDECIDED
    return EXIT[result.status]


def options_for(
    source: ProblemInput, search: SearchOptions, *, quiet: bool = False
) -> SolveOptions:
    """The options of the command line, else those of the problem file, else the defaults."""
    file = source.file
    within, objective = search.within, search.objective
    return SolveOptions(
        engine=search.engine,
        objective=cast(Goal, objective or (file.objective if file else "makespan")),
        within=within if within is not None or file is None else file.within,
        time_limit=seconds_of(search.time_limit, file.time_limit if file else None, search.work),
        work=search.work,
        seed=search.seed,
        threads=search.threads,
        certified=search.certified,
        memory=memory_of(search.memory, file.memory if file else None),
        progress=None if quiet else _report,
    )


def _report(who: str, value: int | None, bound: int, seconds: float) -> None:
    best = "no schedule yet" if value is None else f"best {value}"
    say(f"{seconds:7.2f} s  {who:<12} {best}, bound {bound}")


def solve_input(
    source: ProblemInput,
    options: SolveOptions,
    demands: Demands | None = None,
    *,
    by_cases: bool = False,
) -> tuple[ProblemInput, Result]:
    """Solve, starting from the published orders that fit the problem's shape.

    ``by_cases``: what an engine says over choices is shown case by case where time allows.
    The problem given back is the one that was solved: with the demands' precedences, and with what
    was chosen where the file leaves choices open. Raises ``ValueError`` for both at once.
    """
    if source.file is None or source.file.allowed is None:
        result = solve(source.problem, options, source.starts, demands=demands)
        if not demands:
            return source, result
        asked = demands.demanding(source.problem)
        return replace(source, problem=asked, pipeline=None, is_demanded=True), result
    if demands:
        raise ValueError("orders and starts cannot be demanded where the file leaves choices open")
    given = source.file.pipeline, source.file.allowed
    found = solve_choices(*given, options, source.starts)
    if by_cases:
        from bubbleproof.planners.case_proofs import shown_by_cases

        found = shown_by_cases(*given, found, options)
    chosen = replace(source, problem=found.problem, pipeline=found.pipeline, choices=found)
    return chosen, found.result


def schedule_file(source: ProblemInput, result: Result) -> ScheduleFile:
    """The solved schedule with its measured numbers as claims, for ``verify`` to confirm.

    Raises ``ValueError`` where no schedule was found.
    """
    if (found := result.found) is None:
        raise ValueError(f"{source.name}: expected a schedule, got {result.status.value}")
    claimed = with_claims(found.schedule, found.measured)
    allowed = None if source.choices is None else source.choices.allowed
    return ScheduleFile.of(
        source.problem, claimed, pipeline=source.pipeline, name=source.name, allowed=allowed
    )
