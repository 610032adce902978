"""``bubbleproof solve PROBLEM``: the best schedule there is, and how good it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bubbleproof.commands.demand_words import read_demands, why_not
from bubbleproof.commands.options.option_groups import GivenOptions
from bubbleproof.commands.options.shared_options import (
    WITH_JSON,
    DemandOptions,
    SolveOutput,
)
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    end_progress,
    print_answer,
    print_text,
    progress_line,
    say,
)
from bubbleproof.commands.solved_problem import SolvedProblem
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.schedule_file import ScheduleFile, with_claims
from bubbleproof.report.solved_result import ProblemInput, SolvedResult, read_problem_input
from bubbleproof.solvers import ProofOrigin, Result, SolveOptions, Status, solve
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.engines import UNTOLD, require_engine

EXIT = {
    Status.OPTIMAL: HOLDS,
    Status.FEASIBLE: UNDECIDED,
    Status.INFEASIBLE: BROKEN,
    Status.UNKNOWN: UNDECIDED,
}


def run_solve(
    problem: str, search: GivenOptions[SolveOptions], demands: DemandOptions, output: SolveOutput
) -> int:
    """Solve one problem, print the result, and write the schedule where asked."""
    engine = str(search.values["engine"])
    require_engine(engine)
    if output.json:
        output.leave_out(WITH_JSON, "verbose")
    search.leave_out(f"--engine {engine}", *UNTOLD.get(engine, ()))
    source = read_problem_input(problem)
    demanded = read_demands(source.problem, demands)
    options = options_for(source, search, quiet=output.json, verbose=output.verbose)
    if options.objective == "peak":
        output.leave_out("the objective peak, whose proof is in no file", "certificate")
    original = source.problem
    is_wanted = output.certificate is not None or options.certified
    result = solve_input(source, options, demanded, by_cases=is_wanted)
    written = _write_files(output, result)
    causes: tuple[str, ...] = ()
    if result.status is Status.INFEASIBLE and result.given.choices is None:
        causes = why_not(original, options, demanded)
    found = SolvedProblem(result=result, demands=demanded, causes=causes)
    print_answer(found, json=output.json, verbose=output.verbose)
    if not output.json:
        if picture := found.picture():
            print_text(picture)
        for line in written:
            say(line)
    return _status(result, options.certified)


def _write_files(output: SolveOutput, result: SolvedResult) -> list[str]:
    """Write the schedule and the certificate that are asked for and were found; say which."""
    _, certificate = result.certified
    schedule_target = None if result.schedule is None else output.output
    proof_target = None if certificate is None else output.certificate
    if not (schedule_target or proof_target):
        return []
    from bubbleproof.formats import write_schedule

    with written_together(None, schedule_target, proof_target) as (_, schedule, proof):
        if schedule_target is not None:
            write_schedule(schedule, schedule_file(result.given, result))
        if proof_target is not None:
            _write_proof(proof, result)
    written = [f"wrote {target}" for target in (schedule_target, proof_target) if target]
    if schedule_target is not None:
        page = Path(schedule_target).with_suffix(".html")
        written[0] += f"      next: bubbleproof show {schedule_target} -o {page}"
    return written


def _write_proof(path: Path, result: SolvedResult) -> None:
    """Write what shows the bound: of choices in each case, or on what they have in common."""
    from bubbleproof.formats import write_certificate
    from bubbleproof.formats.plans.cases_json import write_proof

    source, choices = result.given, result.given.choices
    problem, certificate = source.problem, result.certificate
    if choices is not None:
        if choices.cases is not None:
            write_proof(path, choices.asked, choices.allowed, choices.cases, name=source.name)
            return
        problem, certificate = choices.floor, choices.floor_certificate
    if certificate is not None:
        write_certificate(path, problem, certificate, name=source.name)


def _status(result: Result, certified: bool) -> int:
    """The exit status: a solver's claim is not enough where a certificate was required."""
    if certified and result.proof is ProofOrigin.ENGINE:
        return UNDECIDED
    return EXIT[result.status]


def options_for(
    source: ProblemInput,
    search: GivenOptions[SolveOptions],
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> SolveOptions:
    """The options of the command line, else those of the problem file, else the defaults."""
    progress = None if quiet else progress_line(source.problem.unit, verbose=verbose)
    return search.options(source.file, progress=progress)


def solve_input(
    source: ProblemInput,
    options: SolveOptions,
    demands: Demands | None = None,
    *,
    by_cases: bool = False,
) -> SolvedResult:
    """Solve, starting from the published orders that fit the problem's shape.

    ``by_cases``: what an engine says over choices is shown case by case where time allows.
    The result's ``given`` is the one that was solved: with the demands' precedences, and with what
    was chosen where the file leaves choices open. Raises ``ValueError`` for both at once.
    """
    with end_progress():
        return _solved(source, options, demands, by_cases)


def _solved(
    source: ProblemInput, options: SolveOptions, demands: Demands | None, by_cases: bool
) -> SolvedResult:
    if source.file is None or source.file.allowed is None:
        result = solve(source.problem, options, source.starts, demands=demands)
        if not demands:
            return SolvedResult.of(source, result, options.engine)
        asked = demands.demanding(source.problem)
        source = replace(source, problem=asked, pipeline=None, is_demanded=True)
        return SolvedResult.of(source, result, options.engine)
    if demands:
        raise ValueError("orders and starts cannot be demanded where the file leaves choices open")
    from bubbleproof.solvers.choices.solving_choices import solve_choices

    given = source.file.pipeline, source.file.allowed
    found = solve_choices(*given, options, source.starts)
    if by_cases:
        from bubbleproof.planners.case_proofs import shown_by_cases

        found = shown_by_cases(*given, found, options)
    chosen = replace(source, problem=found.problem, pipeline=found.pipeline, choices=found)
    return SolvedResult.of(chosen, found.result, options.engine)


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
