"""Rule 9 for a schedule: does a certificate show its bound, and how near is the schedule to it?

Where nothing is left open the certificate is about the schedule's problem. Where a solver chose, it
is about all choices: a certificate of their relaxation, or ``Cases``. A schedule without fault that
is below the bound shows the certificate to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases, candidate_refusal
from bubbleproof.verify.candidates.chosen import plain_of
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedDistance:
    """How a schedule of the given value (ticks, None without times) stands to a certified bound."""

    certificate: Certificate | Cases
    decision: RuleDecision
    value: int | None
    unit: str
    is_over_choices: bool = False

    @property
    def is_proved(self) -> bool:
        return self.decision.ok

    @property
    def gap(self) -> int | None:
        """Ticks above a bound that is proved."""
        if self.value is None or not self.is_proved:
            return None
        return self.value - self.certificate.bound

    @property
    def statement(self) -> str:
        """One line for people."""
        name, value = self.certificate.objective, f"{self.value} {self.unit}"
        scope = "over these choices" if self.is_over_choices else "for this shape"
        if self.gap is None:
            return f"{name}: nothing is proved about how good the schedule is"
        if self.gap == 0:
            return f"optimal {scope}: {name} {value}, and no schedule has less"
        off, bound = f"within {self.gap} {self.unit} of optimal {scope}", self.certificate.bound
        return f"{off}: {name} {value}, and no schedule is below {bound}"


def certified_distance(
    problem: Problem,
    pipeline: Pipeline | None,
    allowed: AllowedChoices | None,
    verdict: Verdict,
    certificate: Certificate | Cases,
) -> CertifiedDistance:
    """Rule 9 for the certificate, and that a schedule without fault is not below its bound.

    ``verdict`` are the rules of the schedule; ``pipeline`` and ``allowed`` are what it is of and
    what was open when it was made, None where they are not known.
    """
    name, bound, value = certificate.objective, certificate.bound, None
    if verdict.measured is not None and all(decision.ok for decision in verdict.decisions):
        is_makespan = name == "makespan"
        value = verdict.measured.makespan if is_makespan else verdict.measured.span_idle
    why = _refusal(problem, pipeline, allowed, certificate)
    if why is None and value is not None and value < bound:
        why = (
            f"the schedule's {name} is {value}, below the bound {bound} that the certificate "
            "claims for all schedules"
        )
    decision = RuleDecision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
    return CertifiedDistance(
        certificate=certificate,
        decision=decision,
        value=value,
        unit=problem.unit,
        is_over_choices=allowed is not None,
    )


def _refusal(
    problem: Problem,
    pipeline: Pipeline | None,
    allowed: AllowedChoices | None,
    proof: Certificate | Cases,
) -> str | None:
    """Why the proof does not show its bound; None where it does."""
    if allowed is not None and pipeline is not None:
        return candidate_refusal(plain_of(pipeline), allowed, proof)
    if isinstance(proof, Cases):
        return "the schedule comes without the choices that the cases are about"
    return refusal(problem, proof)


def check_certificate(problem: Problem, certificate: Certificate) -> RuleDecision:
    """Accept the certificate, or say why it does not prove its bound."""
    why = refusal(problem, certificate)
    return RuleDecision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
