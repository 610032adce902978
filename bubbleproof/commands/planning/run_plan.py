"""``bubbleproof run PROBLEM.toml``: of a file that is planned the plan, of another its shape.

The table of schedules ends with the file's own configuration, and then the plan. The folder
holds, beside what any run writes (``run_outcome``), what ``plan -o`` writes and
``certificate.json``, the proofs of all candidates. Of a model on a cluster the best deployment's
pipeline is drawn and replayed, one small process for each of its ranks.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bubbleproof.commands.options.option_groups import GivenOptions
from bubbleproof.commands.options.shared_options import ShownParts
from bubbleproof.commands.output import counted, print_json
from bubbleproof.commands.planning.cluster_answer import ClusterQuestion
from bubbleproof.commands.planning.plan import options_of
from bubbleproof.commands.planning.plan_answer import AskedPlan, FoundAnswer
from bubbleproof.commands.planning.plan_lines import deployment_text, iteration_text
from bubbleproof.commands.planning.plan_report import own_shape
from bubbleproof.commands.planning.problem_answer import ProblemQuestion
from bubbleproof.commands.run import run_shape
from bubbleproof.commands.run_outcome import (
    PublishedComparison,
    RunOutcome,
    RunRequest,
    compare,
    print_comparison,
    rows_to_json,
)
from bubbleproof.formats import read_problem
from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
from bubbleproof.formats.plans.plan_folder import winner_schedule
from bubbleproof.planners import Plan, SolvedCandidate
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.configuration_words import more, shape_text
from bubbleproof.planners.outcome import Outcome
from bubbleproof.report.amounts import time
from bubbleproof.report.page import ComparisonRow
from bubbleproof.solvers import Status
from bubbleproof.solvers.search_limits import SearchLimits
from bubbleproof.theory.pipelines.shapes.space_scope import with_cuts


def run_problem(
    problem: str,
    limits: GivenOptions[SearchLimits],
    output: str | None,
    backend: str,
    verbose: bool,
    json: bool,
) -> int:
    """Do everything with one problem file and print what came of it (or one JSON object)."""
    request = RunRequest(
        problem=problem, output=output, backend=backend, verbose=verbose, json=json
    )
    if is_cluster_file(problem):
        return _run(ClusterQuestion.of(problem), [], limits, request)
    file = read_problem(problem)
    if file.plan is None:
        return run_shape(request, file, limits)
    request.tell(f"{file.name}: {counted(len(file.plan.candidates()), 'candidate')}")
    compared = [compare(file, item) for item in file.compare]
    return _run(ProblemQuestion(path=problem, file=file), compared, limits, request)


def _run(
    asked: AskedPlan,
    compared: list[PublishedComparison],
    limits: GivenOptions[SearchLimits],
    request: RunRequest,
) -> int:
    request.prepare()
    options = options_of(limits, asked, quiet=request.json)
    answer = asked.answer(options)
    if not isinstance(answer, FoundAnswer):
        if request.json:
            print_json({"published": rows_to_json(compared), **answer.to_json()})
        else:
            if request.verbose:
                print_comparison(answer.name, [item.row for item in compared])
            answer.print(ShownParts(verbose=request.verbose))
        return answer.exit_status

    def write(where: Path) -> None:
        answer.write(where)
        for proofs in answer.proofs:
            proofs(where / "certificate.json")

    return RunOutcome(
        name=answer.name,
        what="plan",
        given=winner_schedule(answer.name, answer.plan.space, answer.plan.winner),
        verdict=answer.plan.verdict,
        compared=compared,
        rows=_rows(asked, answer.plan),
        statuses=(answer.exit_status,),
        to_json=answer.to_json,
        line=_line(asked, answer),
        print=partial(answer.print, ShownParts(verbose=True)),
        write=write,
        report=answer.report,
    ).finish(request, is_stopped=options.stop.is_set())


def _line(asked: AskedPlan, answer: FoundAnswer) -> str:
    """The plan in a line: what it takes, and how good it is."""
    plan = answer.plan
    if isinstance(answer.found, ClusterPlan) and isinstance(asked, ClusterQuestion):
        found, of = answer.found, counted(len(answer.found.rows), "deployment")
        told = f"{deployment_text(found)}: {iteration_text(asked.file, found)}"
        value, bound, cuts = found.value, found.lower_bound, found.cuts
    else:
        value, bound, of = plan.value, plan.lower_bound, counted(len(plan.judged), "configuration")
        unit, cuts = plan.winner.pipeline.unit, with_cuts(plan.space)
        told = f"{shape_text(plan.winner.candidate)}: {time(value, unit)}"
    if answer.found.status is Status.OPTIMAL:
        by = f" (uncertified bound of {' and '.join(plan.believed)})" if plan.believed else ""
        return f"{told}, proved optimal over {of}{cuts}{by}"
    return f"{told}, {more(value, bound)} above the lower bound of {of}"


def _rows(asked: AskedPlan, found: Plan) -> list[ComparisonRow]:
    """What the file's own shape gives, where it tells one, and the plan."""
    rows = []
    today = own_shape(asked.file, found) if isinstance(asked, ProblemQuestion) else None
    if today is not None and today is not found.winner:
        proof = f"no schedule of this shape is below {today.bound}"
        if today.status is Outcome.OPTIMAL:
            proof = f"optimal for this shape: {proof}"
        rows.append(_row("this shape", today, proof))
    proof = f"{found.statement}: lower bound {found.lower_bound} ({found.bounded})"
    return [*rows, _row("the plan", found.winner, proof)]


def _row(name: str, one: SolvedCandidate, proof: str) -> ComparisonRow:
    label = f"{name} ({shape_text(one.candidate)})"
    return ComparisonRow.of(label, one.pipeline.problem(), one.schedule, proof=proof)
