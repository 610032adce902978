"""``bubbleproof prove``: the theorems, their assumptions and obligations, proved anew."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    console,
    print_json,
    print_table,
    say,
)
from bubbleproof.theorems import Proof, ProofVerdict, theorems


def run_prove(ids: Sequence[str], *, timeout: float, as_json: bool) -> int:
    """Prove the named theorems (all where none is named) and list what became of each.

    ``timeout`` limits each query to Z3, in seconds.
    """
    known = theorems()
    for name in ids:
        if name not in known:
            raise ValueError(f"no theorem {name!r}; the theorems are {' '.join(known)}")
    if timeout <= 0:
        raise ValueError(f"--timeout must be above 0 seconds, got {timeout}")
    from bubbleproof.theorems.prover import prove  # loads Z3

    proofs = []
    for name in ids or known:
        proofs.append(prove(known[name], int(timeout * 1000)))
        if not as_json:
            _report(proofs[-1])
    if as_json:
        print_json(
            {"ok": _status(proofs) == HOLDS, "theorems": [proof.to_dict() for proof in proofs]}
        )
    else:
        _print(proofs)
    return _status(proofs)


def _report(proof: Proof) -> None:
    say(f"{proof.seconds:6.2f} s  {proof.theorem.id}: {proof.verdict.name.lower()}")


def _status(proofs: Sequence[Proof]) -> int:
    found = {proof.verdict for proof in proofs}
    if ProofVerdict.FAILED in found:
        return BROKEN
    return UNDECIDED if ProofVerdict.UNKNOWN in found else HOLDS


def _print(proofs: Sequence[Proof]) -> None:
    for proof in proofs:
        theorem = proof.theorem
        out = console()
        out.print(f"\n{theorem.id}: {theorem.statement}", markup=False, style="bold")
        for assumption in theorem.assumptions:
            out.print(f"  assuming {assumption}", markup=False, highlight=False)
        for part in proof.obligations:
            if part.counter_model is not None:
                values = ", ".join(
                    f"{name} = {value}" for name, value in part.counter_model.items()
                )
                out.print(f"  {part.name} fails at {values}", markup=False, highlight=False)
    rows = [
        (
            proof.theorem.id,
            proof.verdict.name.lower(),
            str(len(proof.obligations)),
            f"{proof.seconds:.2f} s",
        )
        for proof in proofs
    ]
    print_table("theorems", ("theorem", "verdict", "obligations", "time"), rows)
