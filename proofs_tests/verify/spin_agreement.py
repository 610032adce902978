"""Rule 6 beside SPIN: what each says of a program under every semantics, counted.

Programs are PyTorch's tables with communication (``benchmarks.torch_tables``), each placement of
its RECVs, and programs of every family with one mutation. Only programs whose messages match are
compared; crossed channels are seen by order alone, without a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import Semantics, check_communication
from proofs_tests.verify.agreement import cases, orders_of
from proofs_tests.verify.program_mutations import PROGRAM_OPERATORS, Orders, mutate
from proofs_tests.verify.spin_search import searched
from proofs_tests.verify.token_simulator import Wiring

EVERY = tuple(Semantics)
MOVING = tuple(operator for operator in PROGRAM_OPERATORS if operator.nature != "wrong")


@dataclass(slots=True, kw_only=True)
class SpinTally:
    """``verdicts[semantics, verdict]`` of programs, states, and where the two judges disagree."""

    programs: int = 0
    unmatched: int = 0
    states: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


def compare_with_spin(
    tally: SpinTally,
    search: Path,
    named: str,
    problem: Problem,
    orders: Orders,
    semantics: Sequence[Semantics] = EVERY,
) -> bool:
    """Judge one program both ways; False where its messages do not match."""
    verdict = check_communication(problem, Program.from_orders(orders), semantics)
    sentences = [violation.message for violation in verdict.violations]
    if not all(sentence.startswith("deadlock under") for sentence in sentences):
        tally.unmatched += 1
        return False
    wiring = Wiring.of(problem)
    tally.programs += 1
    for decision in verdict.decisions:
        found = searched(search, wiring, orders, decision.detail)
        tally.states += found.states
        seen = "stuck" if found.is_stuck else "free" if found.is_whole else "free as far as seen"
        tally.verdicts[decision.detail, seen] += 1
        if found.is_crossed or found.is_stuck == decision.ok:
            told = "free" if decision.ok else "stuck"
            tally.disagreements.append(f"{named}, {decision.detail}: {told}, SPIN {found}")
    return True


def mutants() -> Iterator[tuple[str, Problem, Orders]]:
    """Programs of all families with one mutation each, without end.

    Programs with EVICT and LOAD are left out: the model has no links.
    """
    members = [case for found in cases(1).values() for case in found]
    wirings = [(case, Wiring.of(case.problem)) for case in members]
    plain = [(case, wires, orders_of(case, wires)) for case, wires in wirings if not wires.movers]
    for number in count():
        for operator in MOVING:
            for case, wires, orders in plain:
                name = f"{operator.name} {number} on {case.name}"
                mutant = mutate(operator, name, wires, orders)
                if mutant is not None:
                    yield name, case.problem, mutant


def mutants_compared(search: Path, total: int) -> SpinTally:
    """So many mutants whose messages match."""
    tally = SpinTally()
    for name, problem, orders in mutants():
        compare_with_spin(tally, search, name, problem, orders)
        if tally.programs >= total:
            return tally
    raise AssertionError("mutants do not end")
