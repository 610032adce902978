"""Verification before running: what must hold of a schedule, and of the program that is to run.

``check`` decides rules 1 to 5 and 8 of the schedule. Of the lowered program its computations must
be the schedule's, its messages must match and never wait for each other (rule 6), and its data flow
must be that of the pipeline's training step (rule 7), by the schedule's times and by the
program's order. Where EVICT and LOAD, or the STEPs and exchanges of a training, have been put into
the program, rule 6 is asked again; of a training rule 7 is asked over all its passes. Where
collectives have been put in, each must stand there whole, and rule 7 is asked with each where it
ends.
"""

from __future__ import annotations

from bubbleproof.error_base import Error
from bubbleproof.reference_exec.plans.replay_plan import (
    COLLECTIVE_KINDS,
    HOST_KINDS,
    TRANSFER_KINDS,
    ReplayPlan,
)
from bubbleproof.reference_exec.plans.replicated import ReplicatedSchedule
from bubbleproof.reference_exec.plans.stepping import tied_stages
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.lowering import with_rows
from bubbleproof.verify.communication.collective_order import (
    check_collectives,
    check_one_at_a_time,
    program_of_ends,
)
from bubbleproof.verify.communication.matching import check_communication, compute_part
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from bubbleproof.verify.dataflow.passes import check_training
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision, Verdict

REFUSAL = "replay refuses what is not verified"


class NotVerified(Error, ValueError):  # noqa: N818 - the schedule's state
    """A schedule or program that does not pass ``verify``; the message is its first violation."""


def require_ok(verdict: Verdict) -> None:
    """Raise ``NotVerified`` with the first violation, or the first rule left undecided."""
    if verdict.ok:
        return
    if verdict.violations:
        raise NotVerified(f"{REFUSAL}: {verdict.violations[0]}")
    rule, why = verdict.undecided[0]
    raise NotVerified(f"{REFUSAL}: {rule.name.lower()} undecided: {why}")


def first_violations(verdict: Verdict) -> dict[str, str]:
    """The first violation of each broken rule, in one line, by the rule's name."""
    found: dict[str, str] = {}
    for violation in verdict.violations:
        found.setdefault(violation.rule.name.lower(), violation.message)
    return found


def verify_program(
    problem: Problem, whole: ReplicatedSchedule, lowered: Program, semantics: Semantics
) -> Verdict:
    """Whether the computations are the schedule's, and rules 6 and 7 hold.

    ``problem`` is that of the pipeline alone, without collectives of its replicas.
    """
    schedule, ranks = whole.schedule, problem.num_ranks
    engines = schedule.program.take(schedule.program.resource >= ranks)
    decisions = (
        *_same_computations(ranks, schedule, lowered),
        *check_communication(problem, lowered, (semantics,)).decisions,
        check_dataflow(whole.problem, schedule),
        check_dataflow_of_program(whole.problem, with_rows(lowered, engines)),
    )
    return Verdict(decisions=decisions)


def verify_plan(problem: Problem, plan: ReplayPlan, semantics: Semantics) -> Verdict:
    """What was put into a program since: rule 6 with EVICT, LOAD and exchanges, rule 7 with STEPs.

    Nothing where there is none of them. ``problem`` is the pipeline's, collectives included.
    """
    program, training = plan.program, plan.training
    has_barrier = training is not None and training.has_barrier
    tied = tied_stages(plan)
    decisions: list[RuleDecision] = []
    if training is not None or program.actions.is_kind(*TRANSFER_KINDS).any():
        found = check_communication(
            problem, program, (semantics,), has_barrier=has_barrier, tied=tied
        )
        decisions += found.decisions
    if training is not None:
        passes = [program] * training.num_passes
        decisions.append(check_training(problem, passes, has_barrier=has_barrier, tied=tied))
    return Verdict(decisions=tuple(decisions))


def verify_collectives(problem: Problem, schedule: Schedule, program: Program) -> Verdict:
    """Whether the collectives put into a program are whole, and serve what they must (rule 7)."""
    if not problem.actions.is_kind(*COLLECTIVE_KINDS).any():
        return Verdict(decisions=())
    ends, engines = program_of_ends(program), schedule.program
    on_ranks = ~ends.actions.is_kind(*TRANSFER_KINDS, *HOST_KINDS)
    beside = (engines.resource >= problem.num_ranks) & ~engines.actions.is_kind(*COLLECTIVE_KINDS)
    decisions = (
        check_collectives(problem, program),
        check_one_at_a_time(program),
        check_dataflow_of_program(problem, with_rows(ends.take(on_ranks), engines.take(beside))),
    )
    return Verdict(decisions=decisions)


def _same_computations(
    ranks: int, schedule: Schedule, lowered: Program
) -> tuple[RuleDecision, ...]:
    on_ranks = schedule.program.resource < ranks
    compute = compute_part(lowered)
    pairs = (
        (compute.actions, schedule.program.actions.take(on_ranks)),
        (compute.resource, schedule.program.resource[on_ranks]),
    )
    if all(list(found) == list(expected) for found, expected in pairs):
        return ()
    sentence = "the lowered program's computations are not the schedule's, in its order"
    return (RuleDecision.of_sentences(Rule.EXCLUSIVE, [sentence]),)
