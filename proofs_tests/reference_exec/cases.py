"""Schedules to replay: families, and random valid programs for any pipeline."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import torch

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import lowered_program, replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.families import families
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import left_shift

TINY = ModelSpec(hidden=4, heads=2, sequence=3, batch=1)


def own(name: str, module: str = "own_models", dtype: str = "float64") -> ModelSpec:
    """A model of the tests' own, by the name of its factory."""
    factory = f"proofs_tests.reference_exec.{module}:{name}"
    return ModelSpec(kind="own", factory=factory, dtype=dtype)


# GPipe on two ranks with two microbatches, and two ways to cross its messages.
SENDER = ["0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"]
RECEIVER = ["1RECV_F0", "1RECV_F1", "1F0", "1F1", "1B0", "1SEND_B0", "1B1", "1SEND_B1"]
SWAPPED_SENDS = ["0F0", "0F1", "0SEND_F1", "0SEND_F0", *SENDER[4:]]
SWAPPED_RECEIVES = ["1RECV_F1", "1RECV_F0", *RECEIVER[2:]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A pipeline with a valid schedule and its lowered program."""

    pipeline: Pipeline
    problem: Problem
    schedule: Schedule
    lowered: Program

    def plan(self, spec: ModelSpec = TINY, program: Program | None = None) -> ReplayPlan:
        """A plan of the lowered program, or of another one on the same stages.

        The lowered program gets its transfers; another one is taken as it is.
        """
        whole = replicated(self.pipeline, self.schedule, spec)
        plan = replay_plan(whole, lowered_program(whole))
        return plan if program is None else replace(plan, program=program)

    def orders(self) -> list[list[str]]:
        """The actions of each rank's whole program, transfers included."""
        program = self.plan().program
        return [[str(a) for a in order] for order in program.orders(self.pipeline.num_ranks)]


def family_case(name: str, **params: int | None) -> Case:
    """A published schedule: p, m, v, s, tF, ... as in ``FamilyParameters``."""
    member: FamilyMember = families()[name].member(FamilyParameters(**params))  # type: ignore[arg-type]  # fields by name
    return Case(
        pipeline=member.pipeline,
        problem=member.problem,
        schedule=member.schedule,
        lowered=lower(member.problem, member.schedule),
    )


def run(case: Case, spec: ModelSpec = TINY, **options: object) -> ReplayReport:
    """Replay a case, with the options of ``replay``."""
    return replay_with(case.pipeline, case.schedule, spec, **options)


def replay_with(
    pipeline: Pipeline, schedule: Schedule, spec: ModelSpec, /, **options: object
) -> ReplayReport:
    """``replay`` with what its options and it itself take by name."""
    own = {name: options.pop(name) for name in ("program", "progress", "pool") if name in options}
    given = ReplayOptions(**options)  # type: ignore[arg-type]  # tests pass what they mean
    return replay(pipeline, schedule, spec, given, **own)  # type: ignore[arg-type]  # likewise


def random_case(pipeline: Pipeline, seed: int) -> Case:
    """A random valid program: a random topological order of the tasks, cut into resources."""
    problem = pipeline.problem()
    used = problem.occupancy
    resource = dict(zip(used.task.tolist(), used.resource.tolist(), strict=True))
    choice = random.Random(seed)
    waiting = np.bincount(problem.edges.after, minlength=problem.num_tasks).tolist()
    after: dict[int, list[int]] = {}
    edges = zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True)
    for earlier, later in edges:
        after.setdefault(earlier, []).append(later)
    ready = [task for task in range(problem.num_tasks) if not waiting[task]]
    orders: list[list[Action]] = [[] for _ in problem.resources]
    while ready:
        task = ready.pop(choice.randrange(len(ready)))
        orders[resource[task]].append(problem.actions[task])
        for later in after.get(task, ()):
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    schedule = left_shift(problem, Program.from_orders(orders))
    return Case(
        pipeline=pipeline,
        problem=problem,
        schedule=schedule,
        lowered=lower(problem, schedule),
    )


def edited(case: Case, rank: int, edit: dict[str, list[str]]) -> Program:
    """The lowered program with the named actions of one rank replaced by other actions."""
    orders = [[str(a) for a in order] for order in case.lowered.orders(case.pipeline.num_ranks)]
    assert set(edit) <= set(orders[rank]), f"{edit} not in {orders[rank]}"
    orders[rank] = [new for old in orders[rank] for new in edit.get(old, [old])]
    return Program.from_orders(orders)


def gradients_of(results: list[RankResult]) -> dict[tuple[int, str], torch.Tensor]:
    """The gradients of all ranks together."""
    return {key: value for result in results for key, value in result.gradients.items()}


def lazy(case: Case) -> Program:
    """The lowered program with every RECV moved to just before the action that uses it."""
    orders = []
    for order in case.lowered.orders(case.pipeline.num_ranks):
        result = []
        for action in order:
            text = str(action)
            if "RECV" in text:
                continue
            uses = {"F": "RECV_F", "B": "RECV_B", "I": "RECV_B"}
            if action.kind.name in uses:
                recv = f"{action.stage}{uses[action.kind.name]}{action.microbatch}"
                result += [recv] if recv in map(str, order) else []
            result.append(text)
        orders.append(result)
    return Program.from_orders(orders)


def shuffled(case: Case, choice: random.Random) -> Program:
    """The lowered or the lazy program with one to three messages or transfers moved a little."""
    whole = case.plan().program
    has_transfers = len(whole) > len(case.lowered)
    base = whole if has_transfers else choice.choice([case.lowered, lazy(case)])
    orders = base.orders(case.pipeline.num_ranks)
    words = ("SEND", "RECV", "EVICT", "LOAD")
    for _ in range(choice.randint(1, 3)):
        order = choice.choice(orders)
        movable = [i for i, a in enumerate(order) if any(w in a.kind.name for w in words)]
        place = choice.choice(movable)
        action = order.pop(place)
        order.insert(max(place + choice.choice((-2, -1, 1, 2)), 0), action)
    return Program.from_orders(orders)
