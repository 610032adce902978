"""Rule 6: do the SENDs and RECVs of a lowered program match, and can it get stuck?

Whether messages match (``steps``) hardly depends on what SEND and RECV wait for; whether the
program can then get stuck (``deadlock``) does, and is decided under each named semantics
(``semantics``, ``waiting_rules``). A rank computes in program order; a computation waits for the
RECVs of its inputs.

Where ranks wait for their own SENDs is part of the program (``send_waits``). EVICT and LOAD may
stand in the programs of their ranks too (``evict_load``), and so may the exchanges of a training
and the barrier before its STEPs (``training_exchanges``). A program that is run several times, each
pass after the other on every rank, needs no more than one pass: no wait leads from a later pass to
an earlier one, so what has no cycle in one has none in all, and channels that match in each pass
match in all.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    without_messages,
)
from bubbleproof.verify.communication.deadlock import deadlocks
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.communication.steps import Steps
from bubbleproof.verify.explain.programs import ProgramFault, violation
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import SHOWN, RuleDecision, Verdict


def check_communication(
    problem: Problem,
    program: Program,
    semantics: Sequence[Semantics] = USUAL,
    *,
    has_barrier: bool = False,
    moment: Ints | None = None,
    tied: Sequence[int] = (),
) -> Verdict:
    """Decide rule 6 for a lowered program, once per semantics.

    Its rows are computations, SENDs, RECVs and waits for SENDs and, posted and waited for, EVICTs
    and LOADs; in a training also REDUCE_GRADs and STEPs, before the first of which all ranks wait
    for each other where it ``has_barrier``.

    Parameters
    ----------
    semantics
        What the verdict is about, one after the other.
    has_barrier
        Whether all ranks wait for each other before the first STEP.
    moment
        A hint: the place of each row in an order of all; wrong ones cost time and change nothing.
    tied
        The stages that share a parameter; by default the first and the last.
    """
    rows = len(program)
    program = program_without_messages(problem, program)
    problem = without_messages(problem)
    moment = moment if len(program) == rows else None
    steps = Steps(problem, program, (has_barrier, tied), moment)
    unmatched = steps.unmatched()
    mistakes = {name: unmatched or steps.crossed(name) for name in semantics}
    stuck = deadlocks(steps, [name for name in semantics if not mistakes[name]])
    decisions = []
    told_before: list[ProgramFault] = []
    for name in semantics:
        wrong = mistakes[name]
        faults = wrong or stuck[name]
        shown = [fault for fault in faults[:SHOWN] if fault not in told_before]
        told_before = wrong or told_before
        told = tuple(violation(problem, program, Rule.COMMUNICATION, fault) for fault in shown)
        decisions.append(
            RuleDecision(
                rule=Rule.COMMUNICATION, count=len(faults), violations=told, detail=name.value
            )
        )
    return Verdict(decisions=tuple(decisions))


def compute_part(program: Program) -> Program:
    """The program without SENDs, RECVs and waits for SENDs."""
    return program.take(~program.actions.is_kind(*COMMUNICATION_KINDS))
