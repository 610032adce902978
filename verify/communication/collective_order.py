"""Collectives in the programs of ranks: each where it belongs, as often as it must stand there.

An UNSHARD and a REDUCE_GRAD stand twice in the program of one rank, begun and ended, a RESHARD
once. Those of one rank run one after another: its messages to other replicas carry no tags, and
data are received only when it is known whose they are. All members of a data-parallel group run one
program, so they issue their collectives in one order, and a collective waits only for the same
place of other replicas: where one replica cannot get stuck, all of them together cannot. Whether a
collective stands *where* it must is for rule 7 (``program_of_ends``).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision, Violation

COLLECTIVES = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)


def check_collectives(problem: Problem, program: Program) -> RuleDecision:
    """Whether every collective of the problem stands whole in the program of one rank."""
    found: dict[Action, list[int]] = {
        action: [] for action in problem.actions.take(problem.actions.is_kind(*COLLECTIVES))
    }
    foreign: dict[Action, list[int]] = defaultdict(list)
    for row in np.flatnonzero(program.actions.is_kind(*COLLECTIVES)).tolist():
        action = program.actions[row]
        where = found if action in found else foreign
        where[action].append(int(program.resource[row]))
    violations = [_wrong(a, f"{a} belongs to no collective of the problem") for a in foreign]
    for action, ranks in found.items():
        times = 1 if action.kind is Kind.RESHARD else 2
        if len(ranks) != times or len(set(ranks)) > 1:
            named = " and ".join(f"rank {r}" for r in sorted(set(ranks))) or "no rank"
            must = "once" if times == 1 else "twice"
            sentence = f"{action} stands {len(ranks)} times on {named}, must stand {must} on one"
            violations.append(_wrong(action, sentence))
    return RuleDecision.of(Rule.COMPLETE, violations)


def _wrong(action: Action, sentence: str) -> Violation:
    return Violation(rule=Rule.COMPLETE, tasks=(str(action),), at=None, message=sentence)


def check_one_at_a_time(program: Program) -> RuleDecision:
    """Whether each UNSHARD and REDUCE_GRAD of a rank begins after the one before has ended."""
    under_way: dict[int, Action] = {}
    found: list[Violation] = []
    for action, rank in zip(program.actions, program.resource.tolist(), strict=True):
        if action.kind not in (Kind.UNSHARD, Kind.REDUCE_GRAD):
            continue
        if rank not in under_way:
            under_way[rank] = action
        elif (other := under_way.pop(rank)) != action:
            message = f"{action} on rank {rank} begins before {other} has ended"
            tasks = (str(action), str(other))
            found.append(Violation(rule=Rule.COMMUNICATION, tasks=tasks, at=None, message=message))
    return RuleDecision.of(Rule.COMMUNICATION, found, "collectives")


def program_of_ends(program: Program) -> Program:
    """The program with each collective once, where it ends: its last row on each rank."""
    rows = zip(program.actions, program.resource.tolist(), strict=True)
    last = {(action, rank): row for row, (action, rank) in enumerate(rows)}
    keep = ~program.actions.is_kind(*COLLECTIVES)
    ends = [row for (action, _), row in last.items() if action.kind in COLLECTIVES]
    keep[ends] = True
    return program.take(keep)
