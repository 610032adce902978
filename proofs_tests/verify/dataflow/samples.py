"""Steps with every kind of action, and small edits of their schedules and problems."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from bubbleproof.theory.families import family, member
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.actions import Action, ActionTable, Bools, Kind
from bubbleproof.theory.model.problem import Edges, MemoryEvents, Occupancy, Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower, with_rows
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import RuleDecision
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow
from proofs_tests.cases import Case


def sentences(finding: RuleDecision) -> list[str]:
    return [violation.message for violation in finding.violations]


def first_of(case: Case, schedule: Schedule) -> str:
    """The first sentence of rule 7 about a schedule of the case's problem."""
    finding = check_dataflow(case.problem, schedule)
    assert finding.count
    return sentences(finding)[0]


def of_family(name: str, **params: int) -> Case:
    made = member(name, **params)
    return Case(name=name, problem=made.problem, schedule=made.schedule)


def sharded(zero: int) -> Case:
    """PipeMesh on two ranks with ZeRO-1, 2 or 3, two operations of four microbatches each."""
    mesh = family("pipemesh")
    assert isinstance(mesh, PipeMesh)
    pipeline = mesh.sharded(
        mesh.pipeline(make_parameters({"p": 2, "m": 8, "v": 2})),
        Sharding(zero=zero, gather=2, reduce=2, parameter=1, gradient=1),
    )
    problem = pipeline.problem()
    return Case(name=f"zero {zero}", problem=problem, schedule=mesh.schedule(pipeline, problem))


def hosted() -> Case:
    """TPipe ALL: the shallow chunk is recomputed, the deep chunk updated by the host."""
    offload, recomp = family("toffload"), family("trecomp")
    assert isinstance(offload, TOffload)
    assert isinstance(recomp, TRecomp)
    pipeline = offload.prepared(recomp.pipeline(make_parameters({"p": 3, "m": 4})))
    problem = pipeline.problem()
    return Case(name="hosted", problem=problem, schedule=offload.schedule(pipeline, problem))


def chosen() -> Case:
    """1F1B on three ranks with an eviction, an activation on the host, and a recomputed stage."""
    plain = member("1f1b", p=3, m=4)
    fields = {name: getattr(plain.pipeline, name) for name in Pipeline.__dataclass_fields__}
    pipeline = Pipeline(
        **fields,
        recompute=Recompute(stages=(1,)),
        evictions=(Eviction(stage=0, microbatch=1, source=0, target=2, duration=1),),
        offloads=(ActivationOffload(stage=0, microbatch=2, offload=1, reload=1),),
    )
    problem = pipeline.problem()
    orders = [
        [a for b in order for a in ([*_recomputed(b), b] if b.kind is Kind.B else [b])]
        for order in plain.schedule.program.orders(3)
    ]
    engines: dict[str, list[str]] = {"0EVICT1": ["link"], "0LOAD1": ["link"]}
    engines |= {"0OFFLOAD2": ["download"], "0RELOAD2": ["upload"]}
    rows: list[list[Action]] = [*orders, *([] for _ in problem.resources[3:])]
    for text, (word,) in engines.items():
        place = next(r for r, known in enumerate(problem.resources) if word in known.name)
        rows[place].append(Action.parse(text))
    return Case(
        name="chosen",
        problem=problem,
        schedule=left_shift(problem, Program.from_orders(rows)),
    )


def _recomputed(backward: Action) -> list[Action]:
    return [replace(backward, kind=Kind.R)] if backward.stage == 1 else []


def stepped() -> Case:
    """1F1B on two ranks, each with a STEP of its stage at the end of its own order."""
    made = member("1f1b", p=2, m=3)
    problem, steps = made.problem, [f"{g}STEP" for g in range(2)]
    actions = [*problem.actions, *(Action.parse(text) for text in steps)]
    more = np.arange(problem.num_tasks, problem.num_tasks + 2)
    stated = replace(
        problem,
        actions=ActionTable.from_actions(actions),
        duration=np.append(problem.duration, [1, 1]),
        occupancy=Occupancy(
            task=np.append(problem.occupancy.task, more),
            resource=np.append(problem.occupancy.resource, [0, 1]),
        ),
    )
    orders = [
        [*order, Action.parse(text)]
        for order, text in zip(made.schedule.program.orders(2), steps, strict=True)
    ]
    schedule = left_shift(stated, Program.from_orders(orders))
    return Case(name="stepped", problem=stated, schedule=schedule)


@cache
def all_samples() -> list[Case]:
    """One of each: slices, cut weights, evictions, recomputation, host, collectives, steps."""
    return [
        of_family("svpp", p=2, m=2, s=3),
        of_family("svpp-w", p=2, m=2, s=2),
        of_family("bpipe", p=4, m=6),
        of_family("chimera", p=4, m=4),
        hosted(),
        chosen(),
        stepped(),
        *(sharded(zero) for zero in (1, 2, 3)),
    ]


def _keep(actions: ActionTable, texts: tuple[str, ...]) -> Bools:
    kept = np.array([str(action) not in texts for action in actions], dtype=bool)
    assert (~kept).sum() >= len(texts), f"{texts} are not all there"
    return kept


def without(schedule: Schedule, *texts: str) -> Schedule:
    """The schedule less some actions; all others keep their times."""
    kept = _keep(schedule.program.actions, texts)
    program = schedule.program
    return Schedule(
        program=Program(actions=program.actions.take(kept), resource=program.resource[kept]),
        start=schedule.start[kept],
    )


def at(schedule: Schedule, text: str, start: int) -> Schedule:
    """The schedule with one action at another time."""
    moved = np.array([str(action) == text for action in schedule.program.actions])
    assert moved.any()
    return replace(schedule, start=np.where(moved, start, schedule.start))


def problem_without(problem: Problem, *texts: str) -> Problem:
    """The problem as if some of its tasks had never been asked for."""
    kept = _keep(problem.actions, texts)
    number = np.cumsum(kept) - 1
    edges, events, homes = problem.edges, problem.events, problem.occupancy
    e, v, h = kept[edges.before] & kept[edges.after], kept[events.task], kept[homes.task]
    return replace(
        problem,
        actions=problem.actions.take(kept),
        duration=problem.duration[kept],
        occupancy=Occupancy(task=number[homes.task[h]], resource=homes.resource[h]),
        edges=Edges(before=number[edges.before[e]], after=number[edges.after[e]], lag=edges.lag[e]),
        events=MemoryEvents(
            task=number[events.task[v]],
            at_end=events.at_end[v],
            store=events.store[v],
            delta=events.delta[v],
        ),
    )


def without_edge(problem: Problem, before: str, after: str) -> Problem:
    """The problem less the precedence between two tasks."""
    edges = problem.edges
    dropped = (edges.before == problem.task(before)) & (edges.after == problem.task(after))
    assert dropped.any()
    kept = ~dropped
    return replace(
        problem,
        edges=Edges(before=edges.before[kept], after=edges.after[kept], lag=edges.lag[kept]),
    )


def retimed(problem: Problem, orders: list[list[str]]) -> Schedule:
    return left_shift(problem, Program.from_orders(orders))


def texts(schedule: Schedule, problem: Problem) -> list[list[str]]:
    orders = schedule.program.orders(len(problem.resources))
    return [[str(action) for action in order] for order in orders]


def swapped(orders: list[list[str]], one: str, other: str) -> list[list[str]]:
    """The orders with two actions of one resource in each other's place."""
    trade = {one: other, other: one}
    assert any({one, other} <= set(order) for order in orders)
    return [[trade.get(text, text) for text in order] for order in orders]


def lowered(case: Case) -> Program:
    """The case with SEND and RECV, links and engines included."""
    program = lower(case.problem, case.schedule)
    own = case.schedule.program
    return with_rows(program, own.take(own.resource >= case.problem.num_ranks))
