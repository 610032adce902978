"""Rules 1 to 8 at once, of a schedule as files hold it, and that its pipeline requires its problem.

A program with SEND and RECV of its own is judged as it is; others are lowered first, which needs
every task in its place. The cells of a PyTorch table that are no computations are judged beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.communication.runtime_collectives import check_runtime_collectives
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.required import differences
from bubbleproof.verify.verdict import RuleDecision, Verdict, join
from bubbleproof.verify.whole import check_whole


def check_required(pipeline: Pipeline, problem: Problem) -> RuleDecision:
    """Whether the problem is what the pipeline requires, as the decision of a rule of its own."""
    return RuleDecision.of_sentences(Rule.REQUIRED, differences(pipeline, problem))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenSchedule:
    """A schedule (``made``: a program where it has no times) on its problem.

    ``lowered`` is the author's own program with SEND and RECV, ``cells`` the table with its
    collectives, ``pipeline`` what the problem is said to be of; None where there is none.
    """

    problem: Problem
    made: Schedule | Program
    lowered: Program | None = None
    cells: Program | None = None
    pipeline: Pipeline | None = None


def check_every_rule(given: GivenSchedule, semantics: Sequence[Semantics] = USUAL) -> Verdict:
    """Every rule of the schedule (or of its left-shifted program)."""
    parts = [check_whole(given.problem, given.made, lowered=given.lowered, semantics=semantics)]
    if given.cells is not None:
        cells = check_runtime_collectives(given.problem, given.cells)
        parts.append(Verdict(decisions=(cells,)))
    if given.pipeline is not None:
        requirement = check_required(given.pipeline, given.problem)
        parts.append(Verdict(decisions=(requirement,)))
    return join(parts)
