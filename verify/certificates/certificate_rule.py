"""Rule 9: does this certificate prove that no schedule does better than its bound?

``certificate`` judges proofs by propagation, ``one_machine`` those by one resource, and
``one_store`` those by one resource and what a store has room for, ``volume`` those by how long a
store holds what it holds, ``tick_prices`` those by what microbatches must pay, and
``microbatch_windows`` those by what successive microbatches need alone. ``deadlines`` says which
precedences none of them looks at.
"""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup, drup_refusal
from bubbleproof.verify.certificates.deadlines import without_deadlines
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows, windows_refusal
from bubbleproof.verify.certificates.one_machine import OneMachine, one_machine_refusal
from bubbleproof.verify.certificates.one_store import OneStore, one_store_refusal
from bubbleproof.verify.certificates.tick_prices import TickPrices, prices_refusal
from bubbleproof.verify.certificates.volume import Volume, volume_refusal

DirectCertificate = OneMachine | OneStore | Volume | TickPrices | Drup
Certificate = DirectCertificate | MicrobatchWindows


def refusal(problem: Problem, certificate: Certificate) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    problem = without_deadlines(problem)
    if isinstance(certificate, MicrobatchWindows):
        return windows_refusal(problem, certificate, direct_refusal)
    return direct_refusal(problem, certificate)


def direct_refusal(problem: Problem, certificate: DirectCertificate) -> str | None:
    """The same of a certificate that is about the whole problem and no part of it."""
    if isinstance(certificate, Drup):
        return drup_refusal(problem, certificate)
    if isinstance(certificate, OneStore):
        return one_store_refusal(problem, certificate)
    if isinstance(certificate, Volume):
        return volume_refusal(problem, certificate)
    if isinstance(certificate, TickPrices):
        return prices_refusal(problem, certificate)
    return one_machine_refusal(problem, certificate)
