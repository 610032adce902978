"""Rule 9 for a certificate of a problem, as the decision of a rule."""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision


def check_certificate(problem: Problem, certificate: Certificate) -> RuleDecision:
    """Accept the certificate, or say why it does not prove its bound."""
    why = refusal(problem, certificate)
    return RuleDecision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
