"""All rules at once: ``check`` of a schedule, rule 6 of its lowered program, and rule 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.lowering import lower_with_moments, with_rows
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    with_messages_in_order,
)
from bubbleproof.verify.check import check, check_program
from bubbleproof.verify.communication.matching import check_communication, compute_part
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from bubbleproof.verify.dataflow.training_step import NoTrainingStep
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import Verdict, join


def check_whole(
    problem: Problem,
    given: Schedule | Program,
    *,
    lowered: Program | None = None,
    semantics: Sequence[Semantics] = USUAL,
) -> Verdict:
    """Rules 1 to 5, 7 and 8 of a schedule (a program's is the left-shifted one), and rule 6.

    ``lowered`` is the author's own program with SEND and RECV, judged as it is; a ``given`` program
    may hold them itself. Otherwise the schedule is lowered first, which needs every task in place.
    Rule 7 is decided of the author's own SEND and RECV too, and of a program that has no times.
    """
    schedule: Schedule | None
    if isinstance(given, Schedule):
        verdict, schedule = check(problem, given), given
    else:
        bare = program_without_messages(problem, given)
        compute = compute_part(bare)
        if len(compute) < len(bare):
            lowered = given
            given = with_messages_in_order(problem, compute)
        verdict, schedule = check_program(problem, given)
    flow = _dataflow(problem, schedule, given if isinstance(given, Program) else None, lowered)
    waits = _without_deadlines(problem)  # no program waits for a deadline
    moment = None
    if lowered is None and schedule is not None:
        lowered, moment = lower_with_moments(waits, schedule)
    if lowered is None:
        why = "the program cannot be lowered: it has no times"
        undecided = Verdict(decisions=(), undecided=((Rule.COMMUNICATION, why),))
        return join([verdict, undecided, flow])
    return join([verdict, check_communication(waits, lowered, semantics, moment=moment), flow])


def _without_deadlines(problem: Problem) -> Problem:
    """The problem without deadlines, whose rule is loaded where a precedence may be one."""
    if (problem.duration[problem.edges.before] + problem.edges.lag > 0).all():
        return problem
    from bubbleproof.verify.certificates.certificate_rule import without_deadlines

    return without_deadlines(problem)


def _dataflow(
    problem: Problem, schedule: Schedule | None, program: Program | None, lowered: Program | None
) -> Verdict:
    """Rule 7 by time and, where there is an author's own, of the program with SEND and RECV."""
    own = lowered if lowered is not None else program if schedule is None else None
    try:
        decisions = [] if schedule is None else [check_dataflow(problem, schedule)]
        if own is not None:
            flow = check_dataflow_of_program(problem, _with_engines(problem, own, schedule))
            decisions.append(flow if lowered is None else replace(flow, detail="messages"))
    except NoTrainingStep as why:
        reason = f"rule 7 speaks of whole training steps; of this problem: {why}"
        return Verdict(decisions=(), inapplicable=((Rule.DATAFLOW, reason),))
    return Verdict(decisions=tuple(decisions))


def _with_engines(problem: Problem, program: Program, schedule: Schedule | None) -> Program:
    """The program with the schedule's rows on links and engines where it has none of its own."""
    ranks = problem.num_ranks
    if schedule is None or (program.resource >= ranks).any():
        return program
    return with_rows(program, schedule.program.take(schedule.program.resource >= ranks))
