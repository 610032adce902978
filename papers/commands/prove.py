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
from bubbleproof.papers.theorems import Obligation, ProofVerdict, TheoremProof
from bubbleproof.papers.theorems.second_prover import require_cvc5, with_second_answers
from bubbleproof.papers.theorems.theorem import ObligationProof
from bubbleproof.papers.theorems.theorem_library import theorems as known_theorems

LONGEST = 1_000_000  # seconds: Z3 counts milliseconds in 32 bits


def run_prove(theorems: Sequence[str] | None, timeout: float, cvc5: bool, json: bool) -> int:
    """Prove the named theorems (all where none is named) and list what became of each.

    ``timeout`` limits each query, in seconds. With ``cvc5`` each obligation is asked of Z3 and of
    cvc5. Ctrl-C ends it with what was proved so far.
    """
    known = known_theorems()
    for name in theorems or ():
        if name not in known:
            raise ValueError(f"no theorem {name!r}; the theorems are {' '.join(known)}")
    if not 0 < timeout <= LONGEST:
        raise ValueError(f"--timeout must be above 0 and at most {LONGEST} seconds, got {timeout}")
    if cvc5:
        require_cvc5()
    from bubbleproof.papers.theorems.prover import prove  # loads Z3

    proofs, asked = list[TheoremProof](), dict[Obligation, ObligationProof]()
    names, is_whole = list(theorems or known), True
    try:
        for name in names:
            proof = prove(known[name], int(timeout * 1000), asked)
            proofs.append(with_second_answers(proof, int(timeout * 1000)) if cvc5 else proof)
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
    if found & {ProofVerdict.FAILED, ProofVerdict.DISPUTED}:
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
        for told in proof.disputed:
            print_text(f"  {told}")
    header = ("theorem", "verdict", "obligations", "time", *_second_header(proofs))
    print_table("theorems", header, [_row(proof) for proof in proofs])


def _second_header(proofs: Sequence[TheoremProof]) -> tuple[str, ...]:
    """The columns of a second prover, where one was asked."""
    answers = [answer for proof in proofs for answer in proof.second_answers[:1]]
    return (answers[0].prover, "time") if answers else ()


def _row(proof: TheoremProof) -> tuple[str, ...]:
    """One theorem; with how many obligations a second prover calls unsat, and its seconds."""
    count = len(proof.obligations)
    row = (proof.theorem.id, proof.verdict.name.lower(), str(count), f"{proof.seconds:.2f} s")
    answers = proof.second_answers
    if not answers:
        return row
    proved = sum(answer.answer == "unsat" for answer in answers)
    return *row, f"{proved} of {count}", f"{sum(answer.seconds for answer in answers):.2f} s"
