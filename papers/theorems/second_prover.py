"""The second prover: cvc5 answers each obligation too, from the SMT-LIB text that Z3 answers.

cvc5 reads the text with a parser of its own and shares no code with Z3. The logic, linear
arithmetic over integers and reals without quantifiers, is told beside the text.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter

from bubbleproof.papers.theorems.theorem import ObligationProof, SecondAnswer, TheoremProof

LOGIC = "QF_LIRA"


def require_cvc5() -> None:
    """Raise ``ValueError`` where cvc5, an extra, is not installed."""
    if find_spec("cvc5") is None:
        install = 'pip install "bubbleproof[cvc5]"'
        raise ValueError(f"a second answer needs cvc5, which is not installed; run: {install}")


def with_second_answers(proof: TheoremProof, timeout_ms: int = 10_000) -> TheoremProof:
    """The proof with cvc5's answer to each obligation, each within ``timeout_ms`` milliseconds.

    A theorem that Z3 proved and cvc5 does not is DISPUTED, and so is the reverse.
    """
    texts = {o.name: o.script() for o in proof.theorem.obligations}
    parts = tuple(_confirmed(part, texts[part.name], timeout_ms) for part in proof.obligations)
    return replace(proof, obligations=parts)


def _confirmed(part: ObligationProof, text: str, timeout_ms: int) -> ObligationProof:
    begun = perf_counter()
    answer = cvc5_answer(text, timeout_ms)
    second = SecondAnswer(prover="cvc5", answer=answer, seconds=perf_counter() - begun)
    return replace(part, second=second)


def cvc5_answer(text: str, timeout_ms: int) -> str:
    """``unsat``, ``sat`` or ``unknown``: what cvc5 says of declarations and assertions."""
    import cvc5  # an extra

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setLogic(LOGIC)
    solver.setOption("tlimit-per", str(timeout_ms))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"{text}\n", "obligation")
    while not (command := parser.nextCommand()).isNull():
        command.invoke(solver, parser.getSymbolManager())
    result = solver.checkSat()
    return "unsat" if result.isUnsat() else "sat" if result.isSat() else "unknown"
