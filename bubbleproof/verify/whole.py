"""All rules at once: what ``check`` decides of a schedule, and rule 6 of its lowered program."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.theory.lowering import lower
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule
from bubbleproof.verify.check import check, check_program
from bubbleproof.verify.communication import Semantics, check_communication, compute_part
from bubbleproof.verify.verdict import Rule, Verdict, join


def check_whole(
    problem: Problem,
    given: Schedule | Program,
    *,
    lowered: Program | None = None,
    semantics: Sequence[Semantics] = tuple(Semantics),
) -> Verdict:
    """Rules 1 to 5 and 8 of a schedule (a program's is the left-shifted one), and rule 6.

    ``lowered`` is the author's own program with SEND and RECV, judged as it is; a ``given`` program
    may hold them itself. Otherwise the schedule is lowered first, which needs every task in place.
    """
    schedule: Schedule | None
    if isinstance(given, Schedule):
        verdict, schedule = check(problem, given), given
    else:
        compute = compute_part(given)
        if len(compute) < len(given):
            lowered = given
        verdict, schedule = check_program(problem, compute)
    if lowered is None and schedule is not None:
        lowered = lower(problem, schedule)
    if lowered is None:
        why = "the program cannot be lowered: it has no times"
        return join([verdict, Verdict(findings=(), undecided=((Rule.COMMUNICATION, why),))])
    return join([verdict, check_communication(problem, lowered, semantics)])
