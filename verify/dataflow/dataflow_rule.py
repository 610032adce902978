"""Rule 7 on a schedule, and on a program without times; see the package's text."""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, NONE, Bools, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    schedule_without_messages,
    without_messages,
)
from bubbleproof.verify.dataflow.machine import SymbolicMachine
from bubbleproof.verify.dataflow.mistakes import SymbolicAction
from bubbleproof.verify.dataflow.plain_steps import is_plainly_right
from bubbleproof.verify.dataflow.runs import RunnableRow, by_order, by_time
from bubbleproof.verify.dataflow.training_step import TrainingStep, action_columns
from bubbleproof.verify.explain.symbolic_run import SymbolicRunReport
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision


def check_dataflow(problem: Problem, schedule: Schedule) -> RuleDecision:
    """Rule 7 for a schedule: every action uses what is there at its start.

    A message takes no time here (rule 3 knows lags). Rows that name no task of the problem are left
    to rule 1. Raises ``NoTrainingStep`` for a problem that rule 7 does not speak of.
    """
    schedule = schedule_without_messages(problem, schedule)
    problem = without_messages(problem)
    if is_plainly_right(problem, schedule):
        return RuleDecision(rule=Rule.DATAFLOW, count=0, violations=())
    step = TrainingStep.of(problem)
    task = problem.locate(schedule.program.actions)
    machine = SymbolicMachine(step, problem.num_ranks, is_explicit=False)
    rows = _rows(problem, schedule.program, machine)
    end = schedule.start + problem.ticks(task)
    mistakes = by_time(machine, rows, schedule.start.tolist(), end.tolist())
    report = SymbolicRunReport(problem=problem, program=schedule.program, schedule=schedule)
    return report.decision(mistakes)


def check_dataflow_of_program(problem: Problem, program: Program) -> RuleDecision:
    """Rule 7 for orders without times, with SEND and RECV rows or without any.

    Where ranks wait for each other the run cannot end, which is reported as one violation. Raises
    ``NoTrainingStep`` for a problem that rule 7 does not speak of.
    """
    program = program_without_messages(problem, program)
    problem = without_messages(problem)
    step = TrainingStep.of(problem)
    is_explicit = bool(program.actions.is_kind(*COMMUNICATION_KINDS).any())
    machine = SymbolicMachine(step, problem.num_ranks, is_explicit=is_explicit)
    mistakes, standstill = by_order(machine, _rows(problem, program, machine))
    return SymbolicRunReport(problem=problem, program=program).decision(mistakes, standstill)


def _rows(problem: Problem, program: Program, machine: SymbolicMachine) -> list[RunnableRow]:
    """The works of each row; none for foreign rows, and for all but one of a task's resources."""
    columns = (program.resource, *action_columns(program.actions), _is_repeat(problem, program))
    rows: list[RunnableRow] = []
    for row, (r, k, g, j, slice_, piece, b_stage, b_microbatch, is_repeat) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        works = [SymbolicAction(row, r, Kind(k), (g, j, slice_), piece)]
        if works[0].kind is Kind.OVERLAP_F_B:
            works = [
                SymbolicAction(row, r, Kind.F, (g, j, slice_)),
                SymbolicAction(row, r, Kind.B, (b_stage, b_microbatch, slice_)),
            ]
        is_run = not is_repeat and all(machine.is_known(work) for work in works)
        rows.append(tuple(works) if is_run else ())
    return rows


def _is_repeat(problem: Problem, program: Program) -> Bools:
    """Mask of the rows of tasks on several resources that stand on another than the first."""
    task = problem.locate(program.actions)
    first = np.full(problem.num_tasks + 1, NONE)
    first[problem.occupancy.task[::-1]] = problem.occupancy.resource[::-1]
    count = np.bincount(problem.occupancy.task, minlength=problem.num_tasks + 1)
    shared = (task != NONE) & (count[task] > 1)
    mask: Bools = shared & (program.resource != first[task])
    return mask
