"""Rule 9: does this certificate prove that no schedule does better than its bound?

Every certificate claims ``objective >= bound`` for all schedules of one problem; the objective is
``makespan`` or ``span_idle`` (``theory.measures``), in ticks. Its checker recomputes what it needs
from the problem and shares no code with the solvers.
"""

from __future__ import annotations

from bubbleproof.theory.problem import Problem
from bubbleproof.verify.certificate_machine import OneMachine, one_machine_refusal
from bubbleproof.verify.certificate_propagation import Propagation, Step, propagation_refusal
from bubbleproof.verify.drup import Drup, Lemma, drup_refusal
from bubbleproof.verify.verdict import Finding, Rule, Violation

OBJECTIVES = ("makespan", "span_idle")

Certificate = OneMachine | Propagation | Drup

__all__ = [
    "OBJECTIVES", "Certificate", "Drup", "Lemma", "OneMachine", "Propagation", "Step",
    "check_certificate",
]  # fmt: skip


def check_certificate(problem: Problem, certificate: Certificate) -> Finding:
    """Accept the certificate, or say why it does not prove its bound."""
    why = _refusal(problem, certificate)
    violations = (
        () if why is None else (Violation(rule=Rule.CERTIFICATE, tasks=(), at=None, message=why),)
    )
    return Finding(rule=Rule.CERTIFICATE, count=len(violations), violations=violations)


def _refusal(problem: Problem, certificate: Certificate) -> str | None:
    if certificate.objective not in OBJECTIVES:
        return f"the objective must be makespan or span_idle, got {certificate.objective!r}"
    match certificate:
        case OneMachine():
            return one_machine_refusal(problem, certificate)
        case Propagation():
            return propagation_refusal(problem, certificate)
        case Drup():
            return drup_refusal(problem, certificate)
