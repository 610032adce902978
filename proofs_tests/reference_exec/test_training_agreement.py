"""Verdicts on trainings against their runs: what is judged right runs right, and nothing else.

STEPs, exchanges, collectives and messages of right programs are moved at random. Rules 6 and 7
judge the program; the run, under the same semantics, shows whether it ends with the right weights.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from bubbleproof.reference_exec.broken import BrokenProgram, MessageMismatch
from bubbleproof.reference_exec.drivers.virtual import ReplayStalled, run_virtual
from bubbleproof.reference_exec.evidence.compare import weight_difference, whole_results
from bubbleproof.reference_exec.evidence.training_oracle import ExpectedTraining, matched_training
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import lowered_program, replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import ReplicatedSchedule, replicated
from bubbleproof.reference_exec.plans.stepping import without_training
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.verification import verify_collectives, verify_plan
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.verdict import Verdict, join
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.sized import paired, sized

TIED = replace(TINY, vocabulary=5, tied=True)
MOVES = sized(4, full=400)  # one under each semantics


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A family's training; with ``levels`` two replicas share its parameters so."""

    family: str
    spec: ModelSpec = TINY
    replicas: int = 1
    levels: str = ""

    def whole(self) -> ReplicatedSchedule:
        case = family_case(self.family, p=2, m=2)
        levels = ZeroLevels.parse(self.levels) if self.levels else None
        spec = self.spec.on(case.pipeline.num_stages)
        return replicated(case.pipeline, case.schedule, spec, replicas=self.replicas, levels=levels)


TRAININGS = {
    "split": Trained(family="zb-h1"),
    "two ranks": Trained(family="chimera"),
    "tied": Trained(family="1f1b", spec=TIED),
    "a host": Trained(family="toffload"),
    "replicas": Trained(family="zb-h1", replicas=2),
    "shards on two ranks": Trained(family="chimera", replicas=2, levels="3,norm=1"),
}


def moved(plan: ReplayPlan, choice: random.Random) -> ReplayPlan:
    """The plan with a STEP, a collective or a message moved somewhere on its rank."""
    orders = plan.program.orders(plan.num_ranks)
    order = choice.choice(orders)
    words = choice.choice((("STEP",), ("STEP", "REDUCE"), ("SEND", "RECV")))
    movable = [i for i, a in enumerate(order) if any(w in a.kind.name for w in words)]
    action = order.pop(choice.choice(movable))
    is_message = words[0] == "SEND"
    place = len(order) - choice.randrange(6) if is_message else choice.randrange(len(order) + 1)
    order.insert(place, action)
    return replace(plan, program=Program.from_orders(orders))


def verdict_of(whole: ReplicatedSchedule, plan: ReplayPlan, semantics: Semantics) -> Verdict:
    collectives = verify_collectives(whole.problem, whole.schedule, without_training(plan))
    return join([verify_plan(whole.problem, plan, semantics), collectives])


def goes_right(
    plan: ReplayPlan, semantics: Semantics, seed: int, expected: ExpectedTraining
) -> bool:
    """Whether a run comes to its end with the weights that it should have."""
    try:
        results = run_virtual(plan, semantics=semantics, seed=seed)
    except (BrokenProgram, MessageMismatch, ReplayStalled):
        return False
    whole = whole_results(plan, results, expected.gradients)
    return not weight_difference(plan, whole, expected.weights)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "has_barrier"), paired([*TRAININGS], [False, True]))
def test_what_is_judged_right_runs_right(name: str, has_barrier: bool) -> None:
    training = Training(optimizer="momentum", steps=2, has_barrier=has_barrier)
    whole = TRAININGS[name].whole()
    plan = replay_plan(whole, lowered_program(whole), training)
    expected, choice = matched_training(plan), random.Random(f"{name} {has_barrier}")
    wrong = 0
    for number in range(MOVES):
        other = moved(plan, choice) if number else plan
        semantics = USUAL[number % len(USUAL)]
        verdict = verdict_of(whole, other, semantics)
        assert verdict.ok == goes_right(other, semantics, number, expected), (
            f"{[str(a) for a in other.program.actions]} under {semantics}: {verdict}"
        )
        wrong += not verdict.ok
    assert 0 < wrong < MOVES
