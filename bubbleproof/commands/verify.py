"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated.

With ``--spec`` rules 1 to 5 and 8 by their definition alone: no code of the fast checker runs, what
is printed is what ``verify.spec`` finds, and of the other rules no word is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, ratio, say
from bubbleproof.commands.verdicts import asked_semantics, print_verdict
from bubbleproof.formats.format_table import Holds, endings, file_within
from bubbleproof.formats.inputs import is_plan, read_schedule_input
from bubbleproof.formats.pytorch_words import told_of
from bubbleproof.verify import Verdict, join
from bubbleproof.verify.every_rule import check_every_rule
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.spec import Number, breaches, measures, plain_problem, plain_schedule

DECIDED = (Rule.COMPLETE, Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY, Rule.CLAIMS)
OTHERS = tuple(rule for rule in Rule if rule not in DECIDED)
NOT_DECIDED = "not decided"


def run_verify_any(schedule: list[str], request: VerifyRequest) -> int:
    """Verify a schedule, or a plan where a plan is named, or several schedules.

    Each is loaded when it is asked for: a family's schedule is verified without a reader of files.
    """
    if _is_many(schedule, request):
        from bubbleproof.commands.verifying.verify_many import run_verify_many

        return run_verify_many(schedule, request)
    has_proofs = request.certificate is not None and schedule[0].endswith(endings(Holds.PROBLEM))
    if len(schedule) == 1 and not request.spec and (has_proofs or is_plan(schedule[0])):
        from bubbleproof.commands.planning.verify_plan import run_verify_plan

        return run_verify_plan(schedule[0], request)
    return run_verify(schedule, request)


def _is_many(words: Sequence[str], request: VerifyRequest) -> bool:
    """Whether this asks for several schedules, or for files about one."""
    if request.junit is not None or request.sarif is not None:
        return True
    if len(words) == 1:
        return Path(words[0]).is_dir() and file_within(words[0]).is_dir()
    known = endings(Holds.SCHEDULE)
    return all(word.lower().endswith(known) or Path(word).is_dir() for word in words)


def run_verify(schedule: list[str], request: VerifyRequest) -> int:
    """Verify one schedule, and perhaps a certificate of how good it is, and print the verdict."""
    problem, certificate = request.problem, request.certificate
    request.leave_out("one schedule", "workers")
    if request.spec:
        rules = "--spec, which decides rules 1 to 5 and 8 alone"
        request.leave_out(rules, "comm", "runtime", "certificate", "coq")
        return run_spec(schedule, problem=problem, dialect=request.dialect, json=request.json)
    if request.coq is not None and certificate is None:
        raise ValueError("--coq writes a schedule with its certificate: give --certificate too")
    semantics = asked_semantics(request)
    given = read_schedule_input(schedule, dialect=request.dialect, problem=problem)
    if certificate is None:
        verdict = check_every_rule(given.to_judge, semantics)
        return print_verdict(given.name, verdict, request, told_of(given))
    from bubbleproof.formats import certified_schedule as certified

    proof = certified.read_proof_of(certificate, given)
    verdict = check_every_rule(given.to_judge, semantics)
    found = certified.distance_of(given, verdict, proof)
    verdict = join([verdict, Verdict(decisions=(found.decision,))])
    if request.coq is not None:
        certified.write_theorem(request.coq, given, verdict, proof)
    told = certified.distance_to_json(found)
    return print_verdict(given.name, verdict, request, found.statement, told)


def run_spec(
    schedule: Sequence[str], *, problem: str | None, dialect: str | None, json: bool
) -> int:
    """Verify one schedule by the definition. Raises ``ValueError`` where it has no times."""
    given = read_schedule_input(schedule, dialect=dialect, problem=problem)
    plain, timed = plain_problem(given.problem), plain_schedule(given.timed())
    found = breaches(plain, timed)
    if json:
        print_json(
            {
                "name": given.name,
                "ok": not found,
                "rules": [_rule_to_json(rule, found) for rule in Rule],
                "violations": [
                    {"rule": f.rule.name.lower(), "tasks": f.tasks, "at": f.at} for f in found
                ],
                "measured": {n: _plain(v) for n, v in measures(plain, timed.rows).items()},
            }
        )
    else:
        rows = [(rule.name.lower(), _state(rule, found), rule.value) for rule in Rule]
        print_table(f"{given.name}, by the definition", ("rule", "verdict", "statement"), rows)
        for breach in found:
            say(_line(breach))
    return BROKEN if found else HOLDS


def _count(rule: Rule, found: Sequence[Finding]) -> int | None:
    """How often a rule is broken, None where it is not decided."""
    return None if rule in OTHERS else sum(f.rule is rule for f in found)


def _state(rule: Rule, found: Sequence[Finding]) -> str:
    count = _count(rule, found)
    if count is None:
        return NOT_DECIDED
    return f"violated {count}x" if count else "holds"


def _rule_to_json(rule: Rule, found: Sequence[Finding]) -> dict[str, object]:
    count = _count(rule, found)
    return {
        "rule": rule.name.lower(),
        "ok": None if count is None else not count,
        "count": count,
        "verdict": _state(rule, found),
    }


def _line(breach: Finding) -> str:
    rule = breach.rule.name.lower()
    when = "" if breach.at is None else f" at {breach.at}"
    return f"{rule}: {' '.join(breach.tasks) or 'a base load'}{when}"


def _plain(value: Number) -> object:
    return ratio(value) if isinstance(value, Fraction) else value
