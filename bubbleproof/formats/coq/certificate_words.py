"""Certificates in the words of ``proofs/``: what their checkers are given beside a problem."""

from __future__ import annotations

from bubbleproof.formats.coq.coq_words import (
    certificate_edges,
    edge_text,
    lines_text,
    list_text,
    task_text,
)
from bubbleproof.formats.coq.free_edges import groups_text, lives_text, ways_text
from bubbleproof.formats.coq.price_list import prices_text
from bubbleproof.formats.coq.trail_words import TrailWords
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.one_machine import OneMachine, longest_paths
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import TickPrices
from bubbleproof.verify.certificates.volume import Volume


def one_machine_text(problem: Problem, certificate: OneMachine) -> str:
    """The certificate with its least head and tail, as ``proofs/OneMachine.v`` has it.

    Raises ``ValueError`` where precedences have a cycle.
    """
    if (paths := longest_paths(problem, certificate.objective, certificate.resource)) is None:
        raise ValueError("the problem's precedences have a cycle")
    heads, tails = (min(column[each] for each in certificate.tasks) for column in paths)
    crowd = list_text(map(task_text, certificate.tasks))
    return f"Certificate {certificate.resource} {crowd} ({heads}) ({tails}) ({certificate.bound})"


def one_store_text(certificate: OneStore) -> str:
    """The certificate as ``proofs/OneStore.v`` has it."""
    numbers = (
        certificate.resource,
        certificate.store,
        certificate.begin,
        certificate.end,
        certificate.bound,
    )
    return f"StoreClaim {' '.join(f'({number})' for number in numbers)}"


def volume_text(problem: Problem, certificate: Volume) -> str:
    """The certificate with the ways through its lifecycles, as ``proofs/Volume.v`` has it."""
    ways = ways_text(problem, certificate.store)
    return f"VolumeClaim ({certificate.store}) {ways} ({certificate.bound})"


def shown_text(problem: Problem, certificate: Certificate) -> str:
    """The certificate, with all that justifies free edges, as ``proofs/Shown.v`` has it.

    Raises
    ------
    ValueError
        For a kind that ``proofs/`` has no theorem of, and for precedences in a cycle.
    """
    if isinstance(certificate, TickPrices):
        return f"ByPrices ({prices_text(problem, certificate)})"
    if isinstance(certificate, OneMachine):
        kind, text = "ByMachine", f"({one_machine_text(problem, certificate)})"
    elif isinstance(certificate, OneStore):
        kind, text = "ByStore", f"({one_store_text(certificate)})"
    elif isinstance(certificate, Volume):
        kind, text = "ByVolume", f"({volume_text(problem, certificate)})"
    elif isinstance(certificate, Drup):
        kind, text = "ByTrail", f"({certificate.bound}) {trail_text(problem, certificate)}"
    else:
        raise ValueError(
            f"--coq writes proofs by prices (TickPrices), one resource (OneMachine), one store "
            f"(OneStore), what it holds for how long (Volume) or propagation (Drup), got a "
            f"{type(certificate).__name__}"
        )
    free = free_text(problem, every_chain=isinstance(certificate, Drup))
    return f"{kind} ({free})\n  {text}"


def free_text(problem: Problem, *, every_chain: bool = False) -> str:
    """Groups, lives (``lives_of``) and the edges that these justify."""
    edges = lines_text([*map(edge_text, certificate_edges(problem))])
    lives = lives_text(problem, every_chain=every_chain)
    return f"Free [{groups_text(problem)}]\n  [{lives}]\n  [{edges}]"


def trail_text(problem: Problem, certificate: Drup) -> str:
    """The trail of its lemmas for ``proofs/Trail.v``; ``ValueError`` where that has no words."""
    return f"[{lines_text([*TrailWords(problem, certificate).items()])}]"
