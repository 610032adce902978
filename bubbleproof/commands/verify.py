"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.commands.inputs import ScheduleInput, read_schedule_input
from bubbleproof.commands.output import (
    print_json,
    print_table,
    print_text,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.formats import read_certificate
from bubbleproof.verify import Rule, Semantics, Verdict, check_whole, join
from bubbleproof.verify.certificates.certificate import Certificate
from bubbleproof.verify.certificates.rule import check_certificate
from bubbleproof.verify.required import check_required
from bubbleproof.verify.verdict import Decision


def run_verify(
    schedule: Sequence[str],
    *,
    problem: str | None,
    comm: Sequence[str],
    certificate: str | None = None,
    dialect: str | None,
    json: bool,
) -> int:
    """Verify one schedule, and perhaps a certificate of how good it is, and print the verdict."""
    semantics = parse_semantics(comm)
    given = read_schedule_input(schedule, dialect=dialect, problem=problem)
    proof = None if certificate is None else read_certificate(certificate, given.problem)
    verdict = verify_given(given, semantics)
    standing = None
    if proof is not None:
        standing = stand(given, verdict, proof)
        verdict = join([verdict, Verdict(decisions=standing.decisions)])
    if json:
        extra = {} if standing is None else {"certificate": standing.to_json()}
        print_json({"name": given.name, **verdict_to_json(verdict), **extra})
    else:
        print_table(given.name, ("rule", "verdict", "statement"), rule_rows(verdict))
        if standing is not None:
            print_text(standing.sentence)
        for violation in verdict.violations:
            print_text(f"\n{violation}")
    return status_of(verdict)


def parse_semantics(names: Sequence[str]) -> tuple[Semantics, ...]:
    """The named communication semantics; all of them when none is named."""
    known = {semantics.value: semantics for semantics in Semantics}
    for name in names:
        if name not in known:
            raise ValueError(f"--comm must be one of {' '.join(known)}, got {name!r}")
    return tuple(known[name] for name in names) or tuple(Semantics)


def verify_given(given: ScheduleInput, semantics: Sequence[Semantics]) -> Verdict:
    """Rules 1 to 8 of the schedule (or its left-shifted program).

    A program with its own SEND and RECV is judged as it is; others are lowered first, which needs
    every task in its place.
    """
    own = given.program if given.has_communication else None
    made = given.compute if given.schedule is None else given.schedule
    verdict = check_whole(given.problem, made, lowered=own, semantics=semantics)
    if given.pipeline is None:
        return verdict
    requirement = check_required(given.pipeline, given.problem)
    return join([verdict, Verdict(decisions=(requirement,))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a schedule of the given value (ticks, None without times) stands to a certified bound."""

    certificate: Certificate
    decisions: tuple[Decision, ...]
    value: int | None
    unit: str

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
        name, bound = self.certificate.objective, self.certificate.bound
        if self.gap is None:
            return f"{name}: nothing is proved about how good the schedule is"
        value = f"{name} {self.value} {self.unit}"
        if self.gap == 0:
            return f"optimal: {value}, and no schedule has less"
        return (
            f"within {self.gap} {self.unit} of optimal: {value}, and no schedule is below {bound}"
        )

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


def stand(given: ScheduleInput, verdict: Verdict, certificate: Certificate) -> Standing:
    """Rule 9 for the certificate, and that a schedule without fault is not below its bound."""
    value = None
    if verdict.measured is not None and all(decision.ok for decision in verdict.decisions):
        by_name = {"makespan": verdict.measured.makespan, "span_idle": verdict.measured.span_idle}
        value = by_name[certificate.objective]
    decisions = [check_certificate(given.problem, certificate)]
    if value is not None and decisions[0].ok and value < certificate.bound:
        message = (
            f"the schedule's {certificate.objective} is {value}, "
            f"below the bound {certificate.bound} that the certificate claims for all schedules"
        )
        decisions = [Decision.of_sentences(Rule.CERTIFICATE, [message])]
    return Standing(
        certificate=certificate, decisions=tuple(decisions), value=value, unit=given.problem.unit
    )
