"""``bubbleproof verify PLAN``: a plan's schedule, and the proofs of all its candidates.

PLAN is the ``plan.json`` that a plan wrote (or its folder), which has the winner and its schedule,
or the problem file, of which only the bundle is judged. The candidates are derived from the problem
file anew; ``--problem`` names the one to derive them from in place of the text that a plan carries.
Pipelines that a plan has beside the file's shapes are candidates too, if they train the same step
and are what the papers' planners make of the file's numbers, which is derived anew as well.

Of a file that starts from a model and a cluster the deployments are derived anew, by ``costs``: the
bundle has to bound the candidates of every one, and what counts is the iteration, the makespan and
what follows it. What decides is ``verify.candidates.plan_rule``.
"""

from __future__ import annotations

from pathlib import Path

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import HOLDS, UNDECIDED
from bubbleproof.commands.verdicts import JudgedSchedule, asked_semantics, print_verdict
from bubbleproof.formats.inputs import read_plan_input
from bubbleproof.formats.plans.bundle_json import read_bundle
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.plans.plan_scope import (
    ChoicesToBound,
    PlanQuestion,
    bound_of_file,
    plan_question,
)
from bubbleproof.report.certified_plan import distance_to_json
from bubbleproof.verify import Verdict
from bubbleproof.verify.candidates.plan_verdict import (
    PlanDistance,
    PlanVerdict,
    check_bound,
    check_distance,
    check_winner,
)
from bubbleproof.verify.every_rule import check_every_rule


def run_verify_plan(name: str, request: VerifyRequest) -> int:
    """Verify a plan and perhaps the bundle of its proofs, and print the verdict.

    ``name`` is its file or its folder; or a problem file, where a bundle is given.
    """
    request.leave_out("a plan", "dialect", "workers")
    if request.coq is not None and request.certificate is None:
        raise ValueError("--coq writes a plan with its candidates' proofs: give --certificate too")
    if (plan := read_plan_input([name])) is not None:
        return _verify_file(plan, request)
    return _verify_bound(Path(name), request.certificate or "", request)


def _verify_bound(path: Path, certificate: str, request: VerifyRequest) -> int:
    """The bundle of a problem file, where there is no plan."""
    request.leave_out("proofs without a schedule", "comm", "runtime", "coq")
    bound = bound_of_file(request.problem or path)
    judged = check_bound(bound.scope, bound.check(certificate))
    return _print_judged(path.name, judged, request)


def _verify_file(plan: PlanFile, request: VerifyRequest) -> int:
    is_whole = request.certificate is not None
    asked = plan_question(plan, request.problem, is_whole=is_whole)
    whole = check_every_rule(plan.schedule.to_judge, asked_semantics(request))
    checked = check_winner(asked.plan, whole, asked.anew)
    if request.certificate is None:
        return print_verdict(_judged_plan(plan.name, checked, plan), request)
    proved = asked.bound.check(request.certificate)
    judged = check_distance(asked.plan, checked, asked.bound.scope, proved)
    if request.coq is not None:
        _write_theorem(request.coq, request.certificate, asked, judged)
    return _print_judged(plan.name, judged, request, plan)


def _write_theorem(target: str, certificate: str, asked: PlanQuestion, judged: PlanVerdict) -> None:
    """Write ``--coq``'s file. Raises ``ValueError`` for what is no theorem."""
    from bubbleproof.formats.coq.plan_theorem import plan_theorem
    from bubbleproof.formats.files import write_text

    if not judged.ok:
        raise ValueError("--coq writes what holds; the plan or its proofs do not (verify it alone)")
    if not isinstance(asked.bound, ChoicesToBound):
        raise ValueError("--coq writes plans of a problem file, not of a model on a cluster")
    bundle = read_bundle(certificate, asked.bound.scope.space)
    write_text(target, plan_theorem(asked.plan, bundle))


def _judged_plan(
    name: str, verdict: Verdict, plan: PlanFile | None, found: PlanDistance | None = None
) -> JudgedSchedule:
    """The answer about a plan, or about the proofs of its problem alone."""
    return JudgedSchedule(
        name=name,
        title=name,
        verdict=verdict,
        problem=None if plan is None else plan.schedule.problem,
        statement="" if found is None else found.statement,
        proved=None if found is None else distance_to_json(found),
    )


def _print_judged(
    name: str, judged: PlanVerdict, request: VerifyRequest, plan: PlanFile | None = None
) -> int:
    found = judged.distance
    status = print_verdict(_judged_plan(name, judged.verdict, plan, found), request)
    return status if status != HOLDS or found.proved.is_proved else UNDECIDED
