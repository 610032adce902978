"""A schedule with a certificate: its proof is read, its distance told, its theorem written.

What knows certificates is loaded here alone, so that ``verify`` of a schedule starts without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.verify import Verdict
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.candidates.certified_distance import CertifiedDistance, certified_distance
from bubbleproof.verify.candidates.chosen import plain_of
from bubbleproof.verify.certificates.certificate_rule import Certificate

if TYPE_CHECKING:  # readers are loaded where they are asked for
    from bubbleproof.formats import ScheduleFile


def read_proof_of(certificate: str, given: ScheduleFile) -> Certificate | Cases:
    """What is to show a bound: of the problem, or of what was left open of it."""
    if given.allowed is None or given.pipeline is None:
        from bubbleproof.formats.certificate_json import read_certificate

        return read_certificate(certificate, given.problem)
    from bubbleproof.formats.plans.cases_json import read_proof

    return read_proof(certificate, plain_of(given.pipeline), given.allowed)


def distance_of(
    given: ScheduleFile, verdict: Verdict, certificate: Certificate | Cases
) -> CertifiedDistance:
    """How near the schedule is to what the certificate proves."""
    return certified_distance(given.problem, given.pipeline, given.allowed, verdict, certificate)


def distance_to_json(found: CertifiedDistance) -> dict[str, object]:
    """The distance for programs."""
    return {
        "kind": type(found.certificate).__name__.lower(),
        "objective": found.certificate.objective,
        "bound": found.certificate.bound,
        "ok": found.is_proved,
        "value": found.value,
        "gap": found.gap,
        "statement": found.statement,
    }


def write_theorem(
    target: str, given: ScheduleFile, verdict: Verdict, proof: Certificate | Cases
) -> None:
    """Write ``--coq``'s file. Raises ``ValueError`` for what is no theorem."""
    from bubbleproof.formats.coq.choices_theorem import choices_theorem
    from bubbleproof.formats.coq.coq_theorem import coq_theorem
    from bubbleproof.formats.files import write_text

    if not verdict.ok:
        raise ValueError(f"--coq writes what holds; {given.name} violates a rule (verify it alone)")
    if given.allowed is not None and given.pipeline is not None:
        plain = plain_of(given.pipeline)
        text = choices_theorem(given.problem, given.timed(), plain, given.allowed, proof)
    elif isinstance(proof, Cases):
        raise ValueError("the schedule comes without the choices that the cases are about")
    else:
        text = coq_theorem(given.problem, given.timed(), proof, given.pipeline)
    write_text(target, text)
