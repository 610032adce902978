"""Rule 9: does this certificate prove that no schedule does better than its bound?

``certificate`` judges proofs by propagation, ``one_machine`` those by one resource, and
``one_store`` those by one resource and what a store has room for, ``volume`` those by how long a
store holds what it holds, ``crossings`` those by how forwards and backwards hinder each other,
``tick_prices`` those by what microbatches must pay, and ``microbatch_windows`` those by what
successive microbatches need alone.

*Deadlines* are precedences that close a circle and take no time: a bound can do without. ``B``
after ``F`` and, with a lag of -12 ticks, ``F`` after ``B``: so ``B``, of 2 ticks, starts at most 10
after ``F``. Rule 3 knows no difference between such a precedence and any other, and a schedule may
keep both. But longest paths, on which certificates rest, want an order of the tasks.

Lemma. What bounds every schedule of a problem without some of its precedences bounds every schedule
of the problem: that is one of the other as well.

So where precedences have a circle, a certificate is about the problem without those that let a task
start as soon as another starts, or sooner. A circle that is left takes time, and no schedule keeps
it; ``without_deadlines`` leaves it for others to refuse.
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.theory.model.actions import Bools
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.verify.certificates.certificate import Drup, drup_refusal
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.crossings import Crossings, crossings_refusal
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows, windows_refusal
from bubbleproof.verify.certificates.one_machine import OneMachine, one_machine_refusal
from bubbleproof.verify.certificates.one_store import OneStore, one_store_refusal
from bubbleproof.verify.certificates.tick_prices import TickPrices, prices_refusal
from bubbleproof.verify.certificates.volume import Volume, volume_refusal


def without_deadlines(problem: Problem) -> Problem:
    """The problem itself where its precedences have no circle, else without its deadlines."""
    found = deadlines(problem)
    return replace(problem, edges=chosen(problem.edges, ~found)) if found.any() else problem


def deadlines(problem: Problem) -> Bools:
    """Which precedences are deadlines: none where there is no circle."""
    edges = problem.edges
    found: Bools = problem.duration[edges.before] + edges.lag <= 0
    if found.any():
        done = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
        found &= len(done) < problem.num_tasks
    return found


def chosen(edges: Edges, rows: Bools) -> Edges:
    """These of the precedences.

    Parameters
    ----------
    rows
        Of each precedence whether it is kept.
    """
    return Edges(before=edges.before[rows], after=edges.after[rows], lag=edges.lag[rows])


DirectCertificate = OneMachine | OneStore | Volume | Crossings | TickPrices | Drup
Certificate = DirectCertificate | MicrobatchWindows


def refusal(problem: Problem, certificate: Certificate) -> str | None:
    """Why the certificate does not prove its bound; None where it does."""
    if type(certificate.bound) is not int:  # no number is below NaN
        return f"a certificate proves a whole bound, got {certificate.bound}"
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
    if isinstance(certificate, Crossings):
        return crossings_refusal(problem, certificate)
    if isinstance(certificate, TickPrices):
        return prices_refusal(problem, certificate)
    return one_machine_refusal(problem, certificate)
