"""``bubbleproof verify PLAN``: a plan's schedule, and the proofs of all its candidates.

PLAN is the ``plan.json`` that a plan wrote (or its folder), which has the winner and its schedule,
or the problem file, of which only the bundle is judged. The candidates are derived from the problem
file anew; ``--problem`` names the one to derive them from in place of the text that a plan carries.
Pipelines that a plan has beside the file's shapes are candidates too, if they train the same step;
what they hold and move is taken from the plan, and the sentence says so.

Of a file that starts from a model and a cluster the deployments are derived anew, by ``costs``: the
bundle has to bound the candidates of every one, and what counts is the iteration, the makespan and
what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bubbleproof.commands.output import HOLDS, UNDECIDED, counted
from bubbleproof.commands.shared_options import VerifyRequest
from bubbleproof.commands.verify import parse_semantics, print_verdict, run_verify, verify_given
from bubbleproof.formats import read_problem
from bubbleproof.formats.bundle_json import read_bundle, read_deployment_bundles
from bubbleproof.formats.cluster_deployments import Deployments, all_counted, deployments
from bubbleproof.formats.cluster_toml import ClusterFile, is_cluster_file, read_cluster_file
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.plan_json import FORMAT, PlanFile, read_plan
from bubbleproof.theory.pipelines.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, shaped
from bubbleproof.theory.pipelines.timing import step_ticks
from bubbleproof.verify import Rule, Verdict, join
from bubbleproof.verify.candidates.bundle import BundleVerdict, check_bundle, check_deployments
from bubbleproof.verify.candidates.chosen import foreign_choice, foreign_step
from bubbleproof.verify.verdict import RuleDecision

UNIT = "us"  # of every deployment's problem


def run_verify_any(schedule: list[str], request: VerifyRequest) -> int:
    """Verify a schedule, or a plan where a plan is named."""
    is_one = len(schedule) == 1 and not request.spec
    if is_one and is_plan(schedule[0], request.certificate):
        return run_verify_plan(schedule[0], request)
    return run_verify(schedule, request)


def is_plan(name: str, certificate: str | None) -> bool:
    """Whether this names a plan: its file, its folder, or a problem file with a bundle."""
    path = Path(name)
    if path.is_dir():
        return True
    if path.suffix == ".toml":
        return certificate is not None
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)


def run_verify_plan(name: str, request: VerifyRequest) -> int:
    """Verify a plan and perhaps the bundle of its proofs, and print the verdict."""
    path = Path(name) / "plan.json" if Path(name).is_dir() else Path(name)
    plan = None if path.suffix == ".toml" else read_plan(path)
    source = request.problem or (str(path) if plan is None else None)
    scope = _scope(source, plan, with_proofs=request.certificate is not None)
    verdict = Verdict(decisions=()) if plan is None else _verdict(plan, scope, request.comm or ())
    title = path.name if plan is None else plan.name
    if request.certificate is None:
        return print_verdict(title, verdict, request)
    value = None
    if plan is not None and verdict.measured is not None and verdict.ok:
        value = _value(plan, verdict.measured.makespan) + scope.after
    proved = _below(scope.check(request.certificate), value, scope)
    found = RuleDecision.of_sentences(Rule.CERTIFICATE, proved.refusals)
    verdict = join([verdict, Verdict(decisions=(found,))])
    sentence = _sentence(proved, value, scope)
    told = _to_json(proved, value, sentence, scope)
    status = print_verdict(title, verdict, request, sentence, told)
    return status if status != HOLDS or proved.is_proved else UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scope:
    """What is to be bounded: a space, or those of all ``every`` deployments.

    ``space`` is that of the plan's schedule, None where there is none; ``after`` ticks follow it.
    """

    space: PlanSpace | None
    after: int = 0
    every: Deployments | None = None

    @property
    def unit(self) -> str:
        return UNIT if self.space is None else self.space.pipeline.unit

    @property
    def objective(self) -> str:
        return "makespan" if self.every is None else "iteration"

    @property
    def words(self) -> tuple[str, str]:
        """What is bounded, and over what."""
        if self.every is None:
            return "schedule", "these choices"
        return "iteration", "these deployments and choices"

    def check(self, certificate: str) -> BundleVerdict:
        if self.every is not None:
            bundles = read_deployment_bundles(certificate, self.every)
            return check_deployments(self.every.deployed, bundles)
        assert self.space is not None
        return check_bundle(self.space, read_bundle(certificate, self.space))


def _scope(source: str | None, plan: PlanFile | None, *, with_proofs: bool) -> _Scope:
    """Derived from the file ``source``, or from what the plan carries."""
    if source is not None and is_cluster_file(source):
        return _of_cluster(read_cluster_file(source), plan)
    if source is not None:
        file = read_problem(source)
        if file.plan is None:
            raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", source)
        return _Scope(space=file.plan if plan is None else plan.beside(file.plan))
    assert plan is not None
    if plan.cluster is not None and with_proofs:
        return _of_cluster(plan.cluster, plan)
    assert plan.problem.plan is not None  # the reader sees to it
    return _Scope(space=plan.beside(plan.problem.plan))


def _of_cluster(file: ClusterFile, plan: PlanFile | None) -> _Scope:
    every = deployments(file, all_counted(file))
    if plan is None:
        return _Scope(space=None, every=every)
    own = next((one for one in every.deployed if one.name == plan.deployment), None)
    if own is None:
        expected = f"a deployment of {file.name}"
        raise UnusableInput("deployment", expected, plan.deployment or "nothing", plan.name)
    space = plan.beside(own.space)
    after = replace(own, space=space).follows(plan.winner)
    return _Scope(space=space, after=after, every=every.with_space(own.name, space))


def _verdict(plan: PlanFile, scope: _Scope, comm: Sequence[str]) -> Verdict:
    """All rules of the schedule, and that its pipeline is one of the winning candidate's."""
    whole = verify_given(plan.schedule, parse_semantics(comm))
    assert scope.space is not None
    why = _foreign(plan, scope.space)
    found = RuleDecision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
    return join([whole, Verdict(decisions=() if why is None else (found,))])


def _value(plan: PlanFile, makespan: int) -> int:
    """The makespan; of a pipeline beside the file's shapes, with what its hosts and NICs do."""
    if plan.winner.beside and plan.schedule.schedule is not None:
        return step_ticks(plan.schedule.problem, plan.schedule.schedule)
    return makespan


def _foreign(plan: PlanFile, space: PlanSpace) -> str | None:
    if plan.winner not in space.candidates():
        return f"{plan.winner} is no candidate of the problem"
    if plan.schedule.pipeline is None:
        return "the plan's schedule comes without its pipeline"
    if plan.winner.beside:
        own = dict(space.others)[plan.winner.beside]
        if own != plan.schedule.pipeline:
            return f"the schedule is none of {plan.winner}: it has another pipeline"
        why = foreign_step(space, own)
        return None if why is None else f"{plan.winner} trains another step: {why}"
    try:
        found = shaped(space, plan.winner)
    except NotLegalError as why:
        return f"{plan.winner} is not legal: {why}"
    why_not = foreign_choice(found.pipeline, found.allowed, plan.schedule.pipeline)
    return None if why_not is None else f"the schedule is none of {plan.winner}: {why_not}"


def _below(proved: BundleVerdict, value: int | None, scope: _Scope) -> BundleVerdict:
    """The verdict, refused where a schedule without fault is below its bound."""
    if value is None or proved.bound is None or value >= proved.bound:
        return proved
    why = (
        f"the schedule's {scope.objective} is {value:,}, below the bound {proved.bound:,} of all "
        f"{'candidates' if scope.every is None else 'deployments'}"
    )
    return replace(proved, refusals=(why,), bound=None)


def _sentence(proved: BundleVerdict, value: int | None, scope: _Scope) -> str:
    """One line for people."""
    if proved.refusals or proved.bound is None:
        return "nothing is proved about how good the plan is"
    by, unit, (thing, over) = _by(proved, scope), scope.unit, scope.words
    if value is None:
        return f"no {thing} over {over} is below {proved.bound:,} {unit} ({by})"
    if value <= proved.bound:
        return f"optimal over {over}: {value:,} {unit}, and no {thing} has less ({by})"
    gap = value - proved.bound
    return (
        f"within {gap:,} {unit} of optimal over {over}: {value:,} {unit}, "
        f"and no {thing} is below {proved.bound:,} ({by})"
    )


def _by(proved: BundleVerdict, scope: _Scope) -> str:
    """What the bound rests on."""
    by = f"{counted(proved.num_proved, 'candidate')} proved"
    if scope.every is None:
        by += f", {proved.num_not_legal} not legal"
    else:
        by += f", {proved.num_without_room} of them without room for a microbatch"
        by = f"{counted(len(scope.every.deployed), 'deployment')}: {by}"
        by += f"; {scope.every.num_not_legal} more have no legal pipeline"
    if scope.space is not None and scope.space.others:
        number = counted(len(scope.space.others), "pipeline")
        by += f"; {number} of the plan beside the file's shapes, memory and collectives as it tells"
    if proved.believed:
        by += f", the others by the word of {' and '.join(proved.believed)}"
    return by


def _to_json(
    proved: BundleVerdict, value: int | None, sentence: str, scope: _Scope
) -> dict[str, object]:
    is_bounded = value is not None and proved.bound is not None
    more = {}
    if scope.every is not None:
        more = {
            "deployments": len(scope.every.deployed),
            "deployments_not_legal": scope.every.num_not_legal,
            "without_room": proved.num_without_room,
        }
    return {
        "kind": "bundle",
        "objective": scope.objective,
        "bound": proved.bound,
        "ok": not proved.refusals,
        "believed": list(proved.believed),
        "proved": proved.num_proved,
        "not_legal": proved.num_not_legal,
        **more,
        "value": value,
        "gap": (value or 0) - (proved.bound or 0) if is_bounded else None,
        "statement": sentence,
    }
