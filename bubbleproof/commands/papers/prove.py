"""``bubbleproof prove``: the theorems, their assumptions and obligations, proved anew."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    INTERRUPTED,
    UNDECIDED,
    print_json,
    print_table,
    print_text,
    say,
)
from bubbleproof.papers.theorems import ProofVerdict, TheoremProof
from bubbleproof.papers.theorems.theorem_library import require_z3
from bubbleproof.papers.theorems.theorem_library import theorems as known_theorems

LONGEST = 1_000_000  # seconds: Z3 counts milliseconds in 32 bits


def run_prove(theorems: Sequence[str] | None, timeout: float, json: bool) -> int:
    """Prove the named theorems (all where none is named) and list what became of each.

    ``timeout`` limits each query to Z3, in seconds. Ctrl-C ends it with what was proved so far.
    """
    known = known_theorems()
    for name in theorems or ():
        if name not in known:
            raise ValueError(f"no theorem {name!r}; the theorems are {' '.join(known)}")
    if not 0 < timeout <= LONGEST:
        raise ValueError(f"--timeout must be above 0 and at most {LONGEST} seconds, got {timeout}")
    require_z3()
    from bubbleproof.papers.theorems.prover import prove  # loads Z3

    proofs: list[TheoremProof] = []
    names, is_whole = list(theorems or known), True
    try:
        for name in names:
            proofs.append(prove(known[name], int(timeout * 1000)))
            if not json:
                _report(proofs[-1])
    except KeyboardInterrupt:
        is_whole = False
    status = _status(proofs) if is_whole else INTERRUPTED
    if json:
        print_json({"ok": status == HOLDS, "theorems": [proof.to_dict() for proof in proofs]})
    else:
        _print(proofs)
        if not is_whole:
            say(f"interrupted before {', '.join(names[len(proofs) :])}")
    return status


def _report(proof: TheoremProof) -> None:
    say(f"{proof.seconds:6.2f} s  {proof.theorem.id}: {proof.verdict.name.lower()}")


def _status(proofs: Sequence[TheoremProof]) -> int:
    found = {proof.verdict for proof in proofs}
    if ProofVerdict.FAILED in found:
        return BROKEN
    return UNDECIDED if ProofVerdict.UNKNOWN in found else HOLDS


def _print(proofs: Sequence[TheoremProof]) -> None:
    for proof in proofs:
        theorem = proof.theorem
        print_text(f"\n{theorem.id}: {theorem.statement}", style="bold")
        for assumption in theorem.assumptions:
            print_text(f"  assuming {assumption}")
        for part in proof.obligations:
            if part.counter_model is not None:
                values = ", ".join(
                    f"{name} = {value}" for name, value in part.counter_model.items()
                )
                print_text(f"  {part.name} fails at {values}")
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
