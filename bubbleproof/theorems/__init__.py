"""Theorems about schedules, for all p, m and durations; Z3 refutes each negated obligation.

``theorems`` lists them, ``prove_all`` proves them. Importing this room does not load Z3; proving
does. The closed forms here are written down a second time, apart from ``theory.families``, and the
tests compare the two tick for tick.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.theorems import (
    bounds,
    bpipe,
    frontier,
    gpipe,
    interleaved,
    interleaved_starts,
    one_f_one_b,
    pipemesh,
    zb_h1,
    zb_h1_durations,
)
from bubbleproof.theorems.theorem import Obligation, Proof, ProofVerdict, Theorem

__all__ = ["Obligation", "Proof", "ProofVerdict", "Theorem", "prove_all", "theorems"]

TIMEOUT_MS = 10_000


def theorems() -> dict[str, Theorem]:
    """Every theorem by its id, bounds first, since others refer to them."""
    listed = (
        *bounds.theorems(),
        *gpipe.theorems(),
        one_f_one_b.theorem(),
        frontier.theorem(),
        interleaved.theorem(),
        interleaved_starts.theorem(),
        pipemesh.theorem(),
        zb_h1.theorem(),
        zb_h1_durations.theorem(),
        bpipe.theorem(),
    )
    return {theorem.id: theorem for theorem in listed}


def prove_all(
    progress: Callable[[Proof], None] | None = None, timeout_ms: int = TIMEOUT_MS
) -> list[Proof]:
    """Prove every theorem, in order; ``progress`` is called with each proof as it is done.

    ``timeout_ms`` limits each Z3 query; what is not decided in time is UNKNOWN.
    """
    from bubbleproof.theorems.prover import prove  # the only way to Z3

    proofs = []
    for theorem in theorems().values():
        proofs.append(prove(theorem, timeout_ms))
        if progress is not None:
            progress(proofs[-1])
    return proofs
