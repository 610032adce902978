"""Mutation operators on (problem, schedule): each makes one named mistake, or a harmless change.

An ``Operator`` states the rules that may name its mistake (``rules``; a mistake breaks at least one
of them, whatever else it drags along) and its ``nature``: ``wrong`` mutants always break a rule,
``harmless`` ones never, and ``either`` leaves it to the plain checker. An operator returns None
where it does not apply (no split backward, no lag, one resource).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from proofs_tests.verify.mutations import (  # noqa: F401 - defining an operator registers it
    harmless,
    names,
    numbers,
    presence,
    problems,
    times,
)
from proofs_tests.verify.mutations.operators import OPERATORS, Operator
from proofs_tests.verify.tables import Specimen

__all__ = ["OPERATORS", "Mutant", "Operator", "mutants"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mutant:
    """What an operator made of a case."""

    operator: Operator
    specimen: Specimen


def mutants(specimen: Specimen, seed: str, each: int) -> Iterator[Mutant]:
    """``each`` mutants by every operator that applies."""
    for chosen, number in product(OPERATORS, range(each)):
        mutated = chosen.apply(Random(f"{seed} {chosen.name} {number}"), specimen)
        if mutated is not None:
            yield Mutant(operator=chosen, specimen=mutated)
