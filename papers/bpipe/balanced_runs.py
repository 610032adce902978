"""The schedules that BPipe's planner compares: 1F1B, recomputed or not, and 1F1B with transfers.

Recomputed: an R stands before each backward in the order of its rank, and starts as soon as the
rank is free. With transfers: those of the family ``bpipe`` for the stages named, each at its own
ticks; the family's waits for room make the times, and are no part of the pipeline that is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bubbleproof.papers.planning.paper_choice import AcceptedSchedule, verified_run
from bubbleproof.theory.families.evicting.bpipe import BPipe
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.allowed import AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.verify import check

BPIPE = BPipe()


def plain_run(
    pipeline: Pipeline, again: AllowedRecompute | None, candidate: Candidate | None
) -> AcceptedSchedule | str:
    """1F1B, every stage recomputed as ``again`` says."""
    program = BPIPE.base.program(pipeline)
    if again is None:
        return verified_run(pipeline, program, candidate)
    stages = tuple(range(pipeline.num_stages))
    choice = Recompute(stages=stages, kept=again.kept, duration=again.duration)
    orders = [
        [
            action
            for done in order
            for action in ([replace(done, kind=Kind.R)] if done.kind is Kind.B else []) + [done]
        ]
        for order in program.orders(pipeline.num_ranks)
    ]
    recomputed = pipeline.with_changes(recompute=choice)
    return verified_run(recomputed, Program.from_orders(orders), candidate)


def balanced_run(
    pipeline: Pipeline, transfers: Mapping[int, int], candidate: Candidate | None
) -> AcceptedSchedule | str:
    """1F1B whose stages in ``transfers`` move activations, in so many ticks each way."""
    whole = BPIPE.balanced(pipeline)
    choices = whole.choices
    some = whole.with_changes(
        evictions=tuple(
            replace(moved, duration=transfers[moved.stage])
            for moved in choices.evictions
            if moved.stage in transfers
        ),
        waits=tuple(wait for wait in choices.waits if all(a.stage in transfers for a in wait)),
    )
    names = [resource.name for resource in whole.problem().resources]
    numbers = {resource.name: i for i, resource in enumerate(some.problem().resources)}
    orders: list[list[Action]] = [[] for _ in numbers]
    for name, order in zip(names, BPIPE.program(whole).orders(len(names)), strict=True):
        if name in numbers:
            orders[numbers[name]] = order
    timed = verified_run(some, Program.from_orders(orders), candidate)
    if isinstance(timed, str):
        return timed
    plain = some.with_changes(waits=())
    if not check(plain.problem(), timed.schedule).ok:
        return "its schedule needs the waits that make its times"
    return replace(timed, pipeline=plain)
