"""The least makespan of a problem, as a claim may rest on it: with a checked certificate or not.

A claim about the best order of a rule that leaves orders open measures no order of ours but the
optimum. The solver is not believed: its schedule and its bound both went through ``verify``. The
claims are the one part of ``theory`` that asks a solver, and nothing else in ``theory`` asks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program


def least_makespan(problem: Problem, starts: Iterable[tuple[str, Program]] = ()) -> int:
    """The ticks that a checked schedule takes and that a checked certificate proves least.

    ``starts`` are named programs to begin from. Raises ``RuntimeError`` where the solver finds no
    such pair in a minute: then nothing is known, and a claim must not be decided by it.
    """
    from bubbleproof.solvers.options import SolveOptions  # loads engines when they are called
    from bubbleproof.solvers.result import Proof
    from bubbleproof.solvers.solve import solve

    result = solve(problem, SolveOptions(threads=1, certified=True), starts)
    if result.proof is not Proof.CERTIFICATE or result.makespan is None:
        raise RuntimeError(f"no certified optimum: {result.status.value}")
    return result.makespan
