"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.output import (
    print_json,
    print_table,
    print_text,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.commands.pytorch_words import told_of
from bubbleproof.commands.shared_options import VerifyRequest
from bubbleproof.formats import ScheduleFile, read_certificate
from bubbleproof.formats.cases_json import read_proof
from bubbleproof.report.page import ScheduleSection
from bubbleproof.report.table_rows import ReplayRow, VerdictRow
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.standstill import Standstill
from bubbleproof.verify import Rule, Semantics, Verdict, check_whole, join
from bubbleproof.verify.candidates.cases import Cases, candidate_refusal
from bubbleproof.verify.candidates.chosen import plain_of
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal
from bubbleproof.verify.communication.runtime_collectives import check_runtime_collectives
from bubbleproof.verify.required import check_required
from bubbleproof.verify.verdict import RuleDecision


def run_verify(schedule: list[str], request: VerifyRequest) -> int:
    """Verify one schedule, and perhaps a certificate of how good it is, and print the verdict."""
    problem, comm, certificate = request.problem, request.comm or (), request.certificate
    if request.spec:
        from bubbleproof.commands.verify_spec import run_spec

        if comm or certificate is not None:
            raise ValueError("--spec decides rules 1 to 5 and 8 alone: no --comm, no --certificate")
        return run_spec(schedule, problem=problem, dialect=request.dialect, json=request.json)
    semantics = parse_semantics(comm)
    given = read_schedule_input(schedule, dialect=request.dialect, problem=problem)
    proof = None if certificate is None else _proof(certificate, given)
    verdict = verify_given(given, semantics)
    if proof is None:
        return print_verdict(given.name, verdict, request, told_of(given))
    standing = stand(given, verdict, proof)
    verdict = join([verdict, Verdict(decisions=standing.decisions)])
    return print_verdict(given.name, verdict, request, standing.sentence, standing.to_json())


def print_verdict(
    name: str,
    verdict: Verdict,
    request: VerifyRequest,
    sentence: str = "",
    proved: dict[str, object] | None = None,
) -> int:
    """The verdict, how good the schedule is proved to be, and the exit status."""
    if request.json:
        extra: dict[str, object] = {} if proved is None else {"certificate": proved}
        extra |= {"statement": sentence} if sentence and proved is None else {}
        print_json({"name": name, **verdict_to_json(verdict), **extra})
        return status_of(verdict)
    print_table(name, ("rule", "verdict", "statement"), rule_rows(verdict))
    if sentence:
        print_text(sentence)
    for violation in verdict.violations:
        print_text(f"\n{violation}")
    return status_of(verdict)


def _proof(certificate: str, given: ScheduleFile) -> Certificate | Cases:
    """What is to show a bound: of the problem, or of what was left open of it."""
    if given.allowed is None or given.pipeline is None:
        return read_certificate(certificate, given.problem)
    return read_proof(certificate, plain_of(given.pipeline), given.allowed)


def _refusal(given: ScheduleFile, proof: Certificate | Cases) -> str | None:
    """Why the proof does not show its bound; None where it does."""
    if given.allowed is not None and given.pipeline is not None:
        return candidate_refusal(plain_of(given.pipeline), given.allowed, proof)
    if isinstance(proof, Cases):
        return "the schedule comes without the choices that the cases are about"
    return refusal(given.problem, proof)


def parse_semantics(names: Sequence[str]) -> tuple[Semantics, ...]:
    """The named communication semantics; all of them when none is named."""
    known = {semantics.value: semantics for semantics in Semantics}
    for name in names:
        if name not in known:
            raise ValueError(f"--comm must be one of {' '.join(known)}, got {name!r}")
    return tuple(known[name] for name in names) or tuple(Semantics)


def verify_given(given: ScheduleFile, semantics: Sequence[Semantics]) -> Verdict:
    """Rules 1 to 8 of the schedule (or its left-shifted program).

    A program with its own SEND and RECV is judged as it is; others are lowered first, which needs
    every task in its place.
    """
    made = given.compute if given.schedule is None else given.schedule
    verdict = check_whole(given.problem, made, lowered=given.lowered, semantics=semantics)
    if given.table is not None and given.collectives:
        cells = check_runtime_collectives(given.problem, given.table)
        verdict = join([verdict, Verdict(decisions=(cells,))])
    if given.pipeline is None:
        return verdict
    requirement = check_required(given.pipeline, given.problem)
    return join([verdict, Verdict(decisions=(requirement,))])


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedDistance:
    """How a schedule of the given value (ticks, None without times) stands to a certified bound."""

    certificate: Certificate | Cases
    decisions: tuple[RuleDecision, ...]
    value: int | None
    unit: str
    is_over_choices: bool = False

    @property
    def is_proved(self) -> bool:
        return all(decision.ok for decision in self.decisions)

    @property
    def gap(self) -> int | None:
        """Ticks above a bound that is proved."""
        if self.value is None or not self.is_proved:
            return None
        return self.value - self.certificate.bound

    @property
    def sentence(self) -> str:
        """One line for people."""
        name, value = self.certificate.objective, f"{self.value} {self.unit}"
        scope = "over these choices" if self.is_over_choices else "for this shape"
        if self.gap is None:
            return f"{name}: nothing is proved about how good the schedule is"
        if self.gap == 0:
            return f"optimal {scope}: {name} {value}, and no schedule has less"
        off, bound = f"within {self.gap} {self.unit} of optimal {scope}", self.certificate.bound
        return f"{off}: {name} {value}, and no schedule is below {bound}"

    def to_json(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "kind": type(self.certificate).__name__.lower(),
            "objective": self.certificate.objective,
            "bound": self.certificate.bound,
            "ok": self.is_proved,
            "value": self.value,
            "gap": self.gap,
            "statement": self.sentence,
        }


def stand(
    given: ScheduleFile, verdict: Verdict, certificate: Certificate | Cases
) -> CertifiedDistance:
    """Rule 9 for the certificate, and that a schedule without fault is not below its bound."""
    name, bound, value = certificate.objective, certificate.bound, None
    if verdict.measured is not None and all(decision.ok for decision in verdict.decisions):
        is_makespan = name == "makespan"
        value = verdict.measured.makespan if is_makespan else verdict.measured.span_idle
    why = _refusal(given, certificate)
    if why is None and value is not None and value < bound:
        why = (
            f"the schedule's {name} is {value}, below the bound {bound} that the certificate "
            "claims for all schedules"
        )
    decision = RuleDecision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
    return CertifiedDistance(
        certificate=certificate,
        decisions=(decision,),
        value=value,
        unit=given.problem.unit,
        is_over_choices=given.allowed is not None,
    )


def section_of(
    name: str,
    problem: Problem,
    schedule: Schedule,
    verdict: Verdict | None,
    *,
    replay: tuple[ReplayRow, ...] = (),
    stopped: Standstill | None = None,
) -> ScheduleSection:
    """The section; ``verdict`` is None where none was reached. A rule's state is one word."""
    rows = [] if verdict is None else rule_rows(verdict)
    return ScheduleSection(
        name=name,
        problem=problem,
        schedule=schedule,
        verdicts=tuple(
            VerdictRow(rule, state.split(" ")[0], detail) for rule, state, detail in rows
        ),
        violations=() if verdict is None else tuple(map(str, verdict.violations)),
        replay=replay,
        stopped=stopped,
    )
