"""What is wrong with a program: its sentence, and the grid of steps around the rows it is about."""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.explain.grid import step_grid
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import Violation

ProgramFault = tuple[str, list[int]]  # a sentence, and the rows that it is about


def violation(problem: Problem, program: Program, rule: Rule, fault: ProgramFault) -> Violation:
    """The fault of a program, its rows marked in the grid."""
    sentence, rows = fault
    marked = np.array(sorted(rows), dtype=np.int64)
    return Violation(
        rule=rule,
        tasks=tuple(str(program.actions[row]) for row in rows),
        at=None,
        message=sentence,
        picture=step_grid(problem, program, marked) if len(rows) else "",
    )
