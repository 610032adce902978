"""Mutation operators on lowered programs: orders of computations, SENDs and RECVs per rank.

As in ``mutations``: a ``wrong`` operator's mutants fail under every semantics, those of a
``harmless`` one under none, and ``either`` leaves it to the token simulator. Operators that find
nothing to change return None.
"""

from __future__ import annotations

from random import Random

from proofs_tests.verify.program_mutations import (  # noqa: F401 - defining one registers it
    faults,
    moves,
    transfers,
    waits,
)
from proofs_tests.verify.program_mutations.operators import (
    PROGRAM_OPERATORS,
    TRANSFER_OPERATORS,
    Orders,
    ProgramOperator,
)
from proofs_tests.verify.token_links import Verdict
from proofs_tests.verify.token_simulator import Wiring

__all__ = ["PROGRAM_OPERATORS", "TRANSFER_OPERATORS", "Orders", "ProgramOperator", "mutate"]


def mutate(chosen: ProgramOperator, seed: str, wiring: Wiring, orders: Orders) -> Orders | None:
    """The operator's mutant of a copy of the orders."""
    try:
        return chosen.apply(Random(seed), wiring, [list(row) for row in orders])
    except Verdict as end:
        raise AssertionError(f"the unmutated program is {end}") from end
