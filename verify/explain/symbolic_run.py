"""Mistakes of a symbolic run as violations: a sentence, the rows it is about, and their grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.verify.dataflow.runs import Mistake, SymbolicStandstill
from bubbleproof.verify.dataflow.training_step import name
from bubbleproof.verify.explain.grid import step_grid, time_grid
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import SHOWN, RuleDecision, Violation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SymbolicRunReport:
    """Draws on the schedule's times where there is one, else on the program's steps."""

    problem: Problem
    program: Program
    schedule: Schedule | None = None

    def decision(
        self, mistakes: Sequence[Mistake], standstill: SymbolicStandstill | None = None
    ) -> RuleDecision:
        """All mistakes counted, the first few as violations, and where the run came to an end."""
        violations = [
            self._violation(self._sentence(mistake), self._rows(mistake))
            for mistake in mistakes[:SHOWN]
        ]
        if standstill is not None:
            waits = "; ".join(self._sentence(mistake) for mistake in standstill.waiting[:SHOWN])
            rows = [m.work.row for m in standstill.waiting if m.work is not None]
            violations.append(self._violation(f"the run stops, all wait: {waits}", rows))
        count = len(mistakes) + (standstill is not None)
        return RuleDecision(rule=Rule.DATAFLOW, count=count, violations=tuple(violations))

    def _sentence(self, mistake: Mistake) -> str:
        sliced = self.program.actions.is_sliced
        work, fault = mistake.work, mistake.fault
        if work is None:
            return fault.sentence(sliced=sliced)
        where = self.problem.resource_name(work.resource)
        action = name(work.kind, work.part, work.piece, sliced=sliced)
        return f"{action} on {where} {fault.sentence(sliced=sliced)}"

    @staticmethod
    def _rows(mistake: Mistake) -> list[int]:
        rows = [NONE if mistake.work is None else mistake.work.row, mistake.fault.origin]
        return [row for row in dict.fromkeys(rows) if row != NONE]

    def _violation(self, sentence: str, rows: Sequence[int]) -> Violation:
        marked = np.array(sorted(rows), dtype=np.int64)
        at, picture = None, ""
        if len(marked):
            picture = step_grid(self.problem, self.program, marked)
        if self.schedule is not None and len(marked):
            at = int(self.schedule.start[rows[0]])
            task = self.problem.locate(self.program.actions)
            picture = time_grid(self.problem, self.schedule, task, marked)
        return Violation(
            rule=Rule.DATAFLOW,
            tasks=tuple(self.program.actions.label(row) for row in rows),
            at=at,
            message=sentence,
            picture=picture,
        )
