"""The prover: each obligation's negation goes to Z3 as linear arithmetic.

PROVED needs Z3's ``unsat``. FAILED needs values for all symbols at which plain Python evaluation
(``Obligation.refuted_by``) finds every premise true and the goal false; a model of the linearised
query that does not survive this is no refutation. Values are then sought by fixing the symbols that
occur in products to small numbers, which makes the query exact. Everything else is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from time import perf_counter

import z3  # type: ignore[import-untyped]  # z3 ships no annotations

from bubbleproof.faults import FaultError
from bubbleproof.papers.theorems.polynomials import Coefficient, Symbol
from bubbleproof.papers.theorems.theorem import (
    Obligation,
    ObligationProof,
    ProofVerdict,
    Theorem,
    TheoremProof,
)

SEED = 0
_DURATIONS = (1, 0, 2)
_COUNTS = (1, 2, 3, 4)
_MOST_TRIALS = 256


def prove(
    theorem: Theorem,
    timeout_ms: int = 10_000,
    known: dict[Obligation, ObligationProof] | None = None,
) -> TheoremProof:
    """Prove or refute every obligation, each within ``timeout_ms`` milliseconds per Z3 query.

    ``known`` are those of other theorems in the same run, to which these are added: what theorems
    share (T-Pipe and T-Offload, DualPipe and DualPipeV) is asked once.
    """
    found = {} if known is None else known
    for obligation in theorem.obligations:
        if obligation not in found:
            found[obligation] = prove_obligation(obligation, timeout_ms)
    return TheoremProof(theorem=theorem, obligations=tuple(found[o] for o in theorem.obligations))


def prove_obligation(obligation: Obligation, timeout_ms: int = 10_000) -> ObligationProof:
    """Decide one obligation."""
    begun = perf_counter()
    answer, values = _query(obligation, {}, timeout_ms)
    if answer == z3.unsat:
        verdict, found = ProofVerdict.PROVED, None
    else:
        known = values is not None and obligation.refuted_by(values)
        found = values if known else counter_model(obligation, timeout_ms)
        verdict = ProofVerdict.UNKNOWN if found is None else ProofVerdict.FAILED
    return ObligationProof(
        name=obligation.name,
        verdict=verdict,
        seconds=perf_counter() - begun,
        counter_model=None if found is None else {n: str(x) for n, x in found.items()},
    )


def counter_model(obligation: Obligation, timeout_ms: int) -> dict[str, Coefficient] | None:
    """Values that refute the obligation, with small numbers for the symbols in products."""
    for fixed in _trials(obligation):
        _, values = _query(obligation, fixed, timeout_ms)
        if values is not None and obligation.refuted_by(values):
            return values
    return None


def _trials(obligation: Obligation) -> Iterator[dict[Symbol, Coefficient]]:
    """Small numbers for a set of symbols without which no product is left: durations first."""
    monomials = {m for a in obligation.formula.atoms() for m, _ in a.polynomial.parts}
    chosen: list[Symbol] = []
    while crossed := [m for m in monomials if sum(s not in chosen for s in m) > 1]:
        free = sorted({s for m in crossed for s in m if s not in chosen})
        times = [s for s in free if s.is_time]
        chosen.append(max(times or free, key=lambda s: sum(s in m for m in crossed)))
    ranges = [_DURATIONS if s.is_time else _COUNTS for s in chosen]
    for number, values in enumerate(product(*ranges)):
        if number < _MOST_TRIALS:
            yield dict(zip(chosen, values, strict=True))


def _query(
    obligation: Obligation, fixed: dict[Symbol, Coefficient], timeout_ms: int
) -> tuple[z3.CheckSatResult, dict[str, Coefficient] | None]:
    """Z3's answer to the negation, and the values of all symbols in its model if there is one."""
    solver = z3.SimpleSolver()
    solver.set("random_seed", SEED)
    solver.set("timeout", timeout_ms)
    solver.from_string(obligation.script(fixed))
    begun = perf_counter()
    answer = solver.check()
    if answer == z3.unknown and perf_counter() - begun < timeout_ms / 1000:
        _pass_on_an_interruption(solver)
    if answer != z3.sat:
        return answer, None
    model = solver.model()
    symbols = {s for atom in obligation.formula.atoms() for s in atom.polynomial.symbols}
    values: dict[str, Coefficient] = {}
    for symbol in sorted(symbols):
        if symbol in fixed:
            values[symbol.name] = fixed[symbol]
            continue
        variable = z3.Real(symbol.name) if symbol.is_time else z3.Int(symbol.name)
        values[symbol.name] = _number(model.eval(variable, model_completion=True))
    return answer, values


def _pass_on_an_interruption(solver: z3.Solver) -> None:
    """Raise the Ctrl-C that Z3 took: it cancels a check, which Python does not hear of.

    A check that runs out of time is called canceled too, so this is asked before the time is over.
    """
    if solver.reason_unknown() in ("canceled", "interrupted from keyboard"):
        raise KeyboardInterrupt


def _number(value: z3.ExprRef) -> Coefficient:
    """A Z3 numeral as an exact number."""
    if isinstance(value, z3.IntNumRef):
        return int(value.as_long())
    if not isinstance(value, z3.RatNumRef):
        raise FaultError("z3", f"the value {value}", "linear arithmetic has rational values")
    return Fraction(value.numerator_as_long(), value.denominator_as_long())
