"""Rule 9 as a decision; ``certificate`` is what judges."""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Certificate, refusal
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import Decision


def check_certificate(problem: Problem, certificate: Certificate) -> Decision:
    """Accept the certificate, or say why it does not prove its bound."""
    why = refusal(problem, certificate)
    return Decision.of_sentences(Rule.CERTIFICATE, [] if why is None else [why])
