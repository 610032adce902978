"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated.

With ``--spec`` rules 1 to 5 and 8 by their definition alone: no code of the fast checker runs, what
is printed is what ``verify.spec`` finds, and of the other rules no word is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bubbleproof.commands.options.shared_options import WITH_JSON, VerifyRequest
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    Answer,
    AnswerLine,
    print_answer,
    print_text,
    ratio,
)
from bubbleproof.commands.verdicts import JudgedSchedule, asked_semantics, names_of, print_verdict
from bubbleproof.facts import Fact, FactCells, broken, keyed
from bubbleproof.formats.format_table import Holds, endings, file_within
from bubbleproof.formats.inputs import is_plan, read_schedule_input
from bubbleproof.formats.pytorch_words import told_of
from bubbleproof.report.amounts import time
from bubbleproof.verify import Verdict, join
from bubbleproof.verify.every_rule import check_every_rule
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.spec import Number, breaches, measures, plain_problem, plain_schedule

if TYPE_CHECKING:  # certificates are loaded where one is given
    from bubbleproof.verify.candidates.certified_distance import CertifiedDistance

DECIDED = (Rule.COMPLETE, Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY, Rule.CLAIMS)
OTHERS = tuple(rule for rule in Rule if rule not in DECIDED)
NOT_DECIDED = "not decided"


def run_verify_any(schedule: list[str], request: VerifyRequest) -> int:
    """Verify a schedule, or a plan where a plan is named, or several schedules.

    Each is loaded when it is asked for: a family's schedule is verified without a reader of files.
    """
    if request.json:
        request.leave_out(WITH_JSON, "verbose")
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
        return run_spec(schedule, request)
    if request.coq is not None and certificate is None:
        raise ValueError("--coq writes a schedule with its certificate: give --certificate too")
    semantics = asked_semantics(request)
    given = read_schedule_input(schedule, dialect=request.dialect, problem=problem)
    title = title_of(schedule, given.name)
    judged = partial(JudgedSchedule, name=given.name, title=title, problem=given.problem)
    if certificate is None:
        verdict = check_every_rule(given.to_judge, semantics)
        sentence = told_of(given)
        return print_verdict(judged(verdict=verdict, statement=sentence), request)
    from bubbleproof.formats import certified_schedule as certified

    proof = certified.read_proof_of(certificate, given)
    verdict = check_every_rule(given.to_judge, semantics)
    found = certified.distance_of(given, verdict, proof)
    verdict = join([verdict, Verdict(decisions=(found.decision,))])
    if request.coq is not None:
        certified.write_theorem(request.coq, given, verdict, proof)
    told = certified.distance_to_json(found)
    return print_verdict(judged(verdict=verdict, statement=_how_good(found), proved=told), request)


def _how_good(found: CertifiedDistance) -> str:
    """What a certificate shows, with times as people read them."""
    value, gap = found.value, found.gap
    if value is None or gap is None:
        return found.statement
    scope = "over these choices" if found.is_over_choices else "for this pipeline"
    measured = f"{found.certificate.objective} {time(value, found.unit)}"
    if gap == 0:
        return f"optimal {scope}: {measured}, and no schedule has less"
    bound = time(found.certificate.bound, found.unit)
    off = f"within {time(gap, found.unit)} of optimal {scope}"
    return f"{off}: {measured}, and no schedule is below {bound}"


def title_of(words: Sequence[str], name: str) -> str:
    """What people know a schedule by: its file, else its name."""
    is_file = len(words) == 1 and words[0].lower().endswith(endings(Holds.SCHEDULE))
    return Path(words[0]).name if is_file else name


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainlyJudged(Answer):
    """What ``verify.spec`` finds of a schedule, and what it ``measured``."""

    columns: ClassVar[FactCells] = ("rule", "", "statement", "verdict")
    more: ClassVar[str] = "each rule"
    name: str
    title: str
    found: Sequence[Finding]
    measured: Mapping[str, Number]

    def facts(self) -> Iterator[Fact]:
        """Each rule, each breach and each measure."""
        yield from keyed(name=self.name, ok=not self.found)
        for rule in Rule:
            count = None if rule in OTHERS else sum(each.rule is rule for each in self.found)
            name, state = rule.name.lower(), f"violated {count}x" if count else "holds"
            state = NOT_DECIDED if count is None else state
            ok = None if count is None else not count
            row = {"rule": name, "ok": ok, "count": count, "verdict": state}
            yield Fact(key="rules[]", label=name, value=row, told=rule.value, verdict=state)
        yield Fact(key="violations", value=())
        for each in self.found:
            breach = {"rule": each.rule.name.lower(), "tasks": each.tasks, "at": each.at}
            yield Fact(key="violations[]", value=breach, detail=(_line(each),))
        yield Fact(key="measured", value={n: _plain(v) for n, v in self.measured.items()})

    def lines(self) -> Iterator[AnswerLine]:
        """Valid or not, and by what."""
        names = names_of(dict.fromkeys(each.rule for each in self.found))
        state = f"INVALID ({names})" if names else "VALID (rules 1 to 5 and 8)"
        yield "", f"{self.title}: {state}, by the definition alone"


def run_spec(schedule: Sequence[str], request: VerifyRequest) -> int:
    """Verify one schedule by the definition. Raises ``ValueError`` where it has no times."""
    given = read_schedule_input(schedule, dialect=request.dialect, problem=request.problem)
    plain, timed = plain_problem(given.problem), plain_schedule(given.timed())
    judged = PlainlyJudged(
        name=given.name,
        title=title_of(schedule, given.name),
        found=breaches(plain, timed),
        measured=measures(plain, timed.rows),
    )
    print_answer(judged, json=request.json, verbose=request.verbose)
    for line in () if request.json else broken(judged.facts()):
        print_text(line)
    return BROKEN if judged.found else HOLDS


def _line(breach: Finding) -> str:
    rule = breach.rule.name.lower()
    when = "" if breach.at is None else f" at {breach.at}"
    return f"{rule}: {' '.join(breach.tasks) or 'a base load'}{when}"


def _plain(value: Number) -> object:
    return ratio(value) if isinstance(value, Fraction) else value
