"""``bubbleproof verify PLAN``: a plan's schedule, and the proofs of all its candidates.

PLAN is the ``plan.json`` that a plan wrote (or its folder), which has the winner and its schedule,
or the problem file, of which only the bundle is judged. The candidates are derived from the problem
file anew; ``--problem`` names the one to derive them from in place of the text that a plan carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bubbleproof.commands.output import (
    UNDECIDED,
    counted,
    print_json,
    print_table,
    print_text,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.commands.verify import parse_semantics, run_verify, verify_given
from bubbleproof.formats import read_problem
from bubbleproof.formats.bundle_json import read_bundle
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.plan_json import FORMAT, PlanFile, read_plan
from bubbleproof.theory.pipelines.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, shaped
from bubbleproof.verify import Rule, Verdict, join
from bubbleproof.verify.candidates.bundle import BundleVerdict, check_bundle
from bubbleproof.verify.candidates.chosen import foreign_choice
from bubbleproof.verify.verdict import Decision


def run_verify_any(
    schedule: list[str],
    *,
    problem: str | None,
    comm: list[str] | None,
    certificate: str | None,
    spec: bool,
    dialect: str | None,
    json: bool,
) -> int:
    """Verify a schedule, or a plan where a plan is named."""
    if len(schedule) == 1 and not spec and is_plan(schedule[0], certificate):
        return run_verify_plan(
            schedule[0], problem=problem, comm=comm or (), certificate=certificate, json=json
        )
    return run_verify(
        schedule,
        problem=problem,
        comm=comm,
        certificate=certificate,
        spec=spec,
        dialect=dialect,
        json=json,
    )


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


def run_verify_plan(
    name: str,
    *,
    problem: str | None,
    comm: Sequence[str],
    certificate: str | None,
    json: bool,
) -> int:
    """Verify a plan and perhaps the bundle of its proofs, and print the verdict."""
    path = Path(name) / "plan.json" if Path(name).is_dir() else Path(name)
    plan = None if path.suffix == ".toml" else read_plan(path)
    source = problem or (str(path) if plan is None else None)
    space = _space(source) if source is not None else None
    if space is None:
        assert plan is not None
        space = plan.problem.plan
    assert space is not None
    verdict = Verdict(decisions=()) if plan is None else _verdict(plan, space, comm)
    value = None if plan is None or verdict.measured is None else verdict.measured.makespan
    proved = None
    if certificate is not None:
        proved = _below(check_bundle(space, read_bundle(certificate, space)), value)
        found = Decision.of_sentences(Rule.CERTIFICATE, proved.refusals)
        verdict = join([verdict, Verdict(decisions=(found,))])
    sentence = _sentence(proved, value, space.pipeline.unit)
    title = path.name if plan is None else plan.name
    if json:
        extra = {} if proved is None else {"certificate": _to_json(proved, value, sentence)}
        print_json({"name": title, **verdict_to_json(verdict), **extra})
    else:
        print_table(title, ("rule", "verdict", "statement"), rule_rows(verdict))
        if sentence:
            print_text(sentence)
        for violation in verdict.violations:
            print_text(f"\n{violation}")
    status = status_of(verdict)
    return UNDECIDED if status == 0 and proved is not None and not proved.is_proved else status


def _space(problem: str) -> PlanSpace:
    file = read_problem(problem)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", problem)
    return file.plan


def _verdict(plan: PlanFile, space: PlanSpace, comm: Sequence[str]) -> Verdict:
    """All rules of the schedule, and that its pipeline is one of the winning candidate's."""
    whole = verify_given(plan.schedule, parse_semantics(comm))
    why = _foreign(plan, space)
    found = Decision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
    return join([whole, Verdict(decisions=() if why is None else (found,))])


def _foreign(plan: PlanFile, space: PlanSpace) -> str | None:
    if plan.winner not in space.candidates():
        return f"{plan.winner} is no candidate of the problem"
    if plan.schedule.pipeline is None:
        return "the plan's schedule comes without its pipeline"
    try:
        found = shaped(space, plan.winner)
    except NotLegalError as why:
        return f"{plan.winner} is not legal: {why}"
    why_not = foreign_choice(found.pipeline, found.allowed, plan.schedule.pipeline)
    return None if why_not is None else f"the schedule is none of {plan.winner}: {why_not}"


def _below(proved: BundleVerdict, value: int | None) -> BundleVerdict:
    """The verdict, refused where a schedule without fault is below its bound."""
    if value is None or proved.bound is None or value >= proved.bound:
        return proved
    why = f"the schedule's makespan is {value}, below the bound {proved.bound} of all candidates"
    return replace(proved, refusals=(why,), bound=None)


def _sentence(proved: BundleVerdict | None, value: int | None, unit: str) -> str:
    """One line for people."""
    if proved is None:
        return ""
    if proved.refusals or proved.bound is None:
        return "nothing is proved about how good the plan is"
    by = f"{counted(proved.num_proved, 'candidate')} proved, {proved.num_not_legal} not legal"
    if proved.believed:
        by += f", the others by the word of {' and '.join(proved.believed)}"
    if value is None:
        return f"no schedule over these choices is below {proved.bound} {unit} ({by})"
    if value <= proved.bound:
        return f"optimal over these choices: {value} {unit}, and no schedule has less ({by})"
    gap = value - proved.bound
    return (
        f"within {gap} {unit} of optimal over these choices: {value} {unit}, "
        f"and no schedule is below {proved.bound} ({by})"
    )


def _to_json(proved: BundleVerdict, value: int | None, sentence: str) -> dict[str, object]:
    is_bounded = value is not None and proved.bound is not None
    return {
        "kind": "bundle",
        "objective": "makespan",
        "bound": proved.bound,
        "ok": not proved.refusals,
        "believed": list(proved.believed),
        "proved": proved.num_proved,
        "not_legal": proved.num_not_legal,
        "value": value,
        "gap": (value or 0) - (proved.bound or 0) if is_bounded else None,
        "statement": sentence,
    }
