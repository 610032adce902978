"""``bubbleproof run PROBLEM.toml`` of a file without a plan: solve, verify, draw and replay.

The published schedules that the file names stand beside the solved one (``run_outcome``).
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from bubbleproof.commands.interrupts import unless_interrupted
from bubbleproof.commands.options.option_groups import GivenOptions
from bubbleproof.commands.output import UNDECIDED, counted, print_json, print_text, status_of
from bubbleproof.commands.run_outcome import (
    RunOutcome,
    RunRequest,
    compare,
    print_comparison,
    rows_to_json,
)
from bubbleproof.commands.solve import EXIT, options_for, schedule_file, solve_input
from bubbleproof.commands.verdicts import section_of
from bubbleproof.formats import ProblemFile, ScheduleFile, write_schedule
from bubbleproof.formats.files import SCHEDULE_NAME
from bubbleproof.report.amounts import Scale, time
from bubbleproof.report.headline import headline
from bubbleproof.report.page import ComparisonRow, ReportPage
from bubbleproof.report.solved_result import ProblemInput, SolvedResult
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.search_limits import SearchLimits
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify import Verdict
from bubbleproof.verify.every_rule import check_every_rule

PACKAGES = ("bubbleproof", "numpy", "ortools")


def run_shape(request: RunRequest, asked: ProblemFile, limits: GivenOptions[SearchLimits]) -> int:
    """Do everything with the shape of a problem file; print its verdicts (or one JSON object)."""
    request.prepare()
    source = ProblemInput.of(asked)
    tasks, ranks = source.problem.num_tasks, source.problem.num_ranks
    request.tell(f"{source.name}: {counted(tasks, 'task')} on {counted(ranks, 'rank')}")
    compared = [compare(asked, item) for item in asked.compare]
    search = GivenOptions(SolveOptions, limits.values)
    options = options_for(source, search, quiet=request.json)
    result = solve_input(source, options)
    source = result.given
    if result.schedule is None:
        if request.json:
            print_json({"published": rows_to_json(compared), **result.to_dict()})
        else:
            if request.verbose:
                print_comparison(source.name, [item.row for item in compared])
            print_text(f"{result.statement}. {result.reason}")
        return EXIT[result.status]
    request.tell("verifying the solved schedule under every communication semantics")
    file = schedule_file(source, result)
    verdict = unless_interrupted(lambda: check_every_rule(file.to_judge), None)
    verified = UNDECIDED if verdict is None else status_of(verdict)
    proof, makespan = result.proof_text, measure(file.problem, file.timed()).makespan
    return RunOutcome(
        name=source.name,
        what="solved schedule",
        line=f"{time(makespan, file.problem.unit)}, {proof}",
        given=replace(file, name=f"{source.name}, solved"),
        verdict=verdict,
        compared=compared,
        rows=[ComparisonRow.of("solved", file.problem, file.timed(), proof=proof)],
        statuses=(verified, EXIT[result.status]),
        to_json=result.to_dict,
        print=lambda: None,
        write=lambda where: write_schedule(where / SCHEDULE_NAME, file),
        report=lambda: _report(asked, result, file, verdict),
    ).finish(request, is_stopped=options.stop.is_set())


def _report(
    asked: ProblemFile,
    result: SolvedResult,
    file: ScheduleFile,
    verdict: Verdict | None,
) -> ReportPage:
    problem, schedule = file.problem, file.timed()
    return ReportPage(
        title=result.given.name,
        headline=headline(problem, schedule, pipeline=file.pipeline),
        summary=_summary(asked, result),
        sections=(section_of(f"solved ({result.origin})", problem, schedule, verdict),),
        versions=tuple((name, version(name)) for name in PACKAGES),
    )


def _summary(file: ProblemFile, result: SolvedResult) -> tuple[tuple[str, str], ...]:
    source = result.given
    pipeline, problem = file.pipeline, source.problem
    caps = [store.capacity for store in problem.stores if store.capacity is not None]
    scale = Scale.of(problem.memory_unit, max(caps, default=0))
    memory = scale.amount(min(caps)) + " at least on each rank" if caps else "unlimited"
    return (
        ("problem", file.description or file.name),
        ("ranks", str(pipeline.num_ranks)),
        ("microbatches", str(pipeline.num_microbatches)),
        ("stages", str(pipeline.num_stages)),
        ("tasks", str(problem.num_tasks)),
        ("memory", memory),
        ("status", result.statement),
        ("proof", result.proof_text),
        ("solve time", f"{result.seconds:.2f} s"),
        *(("chosen", line) for line in (source.choices.chosen if source.choices else ())),
    )
