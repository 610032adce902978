"""A schedule and its verdict as a section of a page."""

from __future__ import annotations

from bubbleproof.commands.output import rule_rows
from bubbleproof.report.page import ScheduleSection
from bubbleproof.report.table_rows import ReplayRow, VerdictRow
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.standstill import Standstill
from bubbleproof.verify import Verdict


def section_of(
    name: str,
    problem: Problem,
    schedule: Schedule,
    verdict: Verdict | None,
    *,
    replay: tuple[ReplayRow, ...] = (),
    stopped: Standstill | None = None,
) -> ScheduleSection:
    """The section; ``verdict`` is None where none was reached. A rule's state is one word."""
    rows = [] if verdict is None else rule_rows(verdict)
    return ScheduleSection(
        name=name,
        problem=problem,
        schedule=schedule,
        verdicts=tuple(
            VerdictRow(rule, state.split(" ")[0], detail) for rule, state, detail in rows
        ),
        violations=() if verdict is None else tuple(map(str, verdict.violations)),
        replay=replay,
        stopped=stopped,
    )
