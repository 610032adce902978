"""Hypothesis strategies: actions, shapes, durations, memory, pipelines, problems, schedules.

What is drawn is small and odd on purpose: stages of no duration, residuals above the activation,
splits of some microbatches only, links slower than others. Narrow it with the arguments of
``shapes`` and ``pipelines`` to what a generator accepts.

- ``pipelines()``: a training step; ``problems()``: its ``Problem``, perhaps with memory caps under
  which it is known to be feasible;
- ``programs(problem)``: an order per resource that can be executed; ``schedules(problem)``: one
  with starts, valid but for memory caps;
- ``ordered_pipelines()``, ``shuffled_programs()``: a pipeline with an order, executable or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import strategies as st

from bubbleproof.theory.model.actions import (
    MAX_MICROBATCH,
    MAX_PART,
    MAX_SLICE,
    MAX_STAGE,
    NONE,
    STAGE_KINDS,
    Action,
    Kind,
)
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import PLACEMENTS
from bubbleproof.theory.pipelines.timing import left_shift

stages = st.integers(0, MAX_STAGE)
microbatches = st.integers(0, MAX_MICROBATCH)
slices = st.integers(0, MAX_SLICE)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    """Any action that can be written."""
    kind = draw(st.sampled_from(Kind))
    if kind in STAGE_KINDS:
        return Action(stage=draw(stages), kind=kind, slice=0)
    cut = draw(slices)
    partner = None
    if kind is Kind.OVERLAP_F_B:
        partner = Action(stage=draw(stages), kind=Kind.B, microbatch=draw(microbatches), slice=cut)
    return Action(
        stage=draw(stages),
        kind=kind,
        microbatch=draw(microbatches),
        slice=cut,
        part=draw(st.integers(NONE, MAX_PART)) if kind is Kind.W else NONE,
        partner=partner,
    )


@st.composite
def shapes(
    draw: st.DrawFn,
    *,
    most_ranks: int = 4,
    most_microbatches: int = 4,
    most_chunks: int = 2,
    most_slices: int = 2,
) -> dict[str, int]:
    """Ranks, microbatches, chunks per rank and slices under the names of ``Pipeline``'s fields."""
    return {
        "num_ranks": draw(st.integers(1, most_ranks)),
        "num_microbatches": draw(st.integers(1, most_microbatches)),
        "num_chunks": draw(st.integers(1, most_chunks)),
        "num_slices": draw(st.integers(1, most_slices)),
    }


def per_stage(num_stages: int, low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One number from ``low`` to ``high`` for each stage."""
    return st.tuples(*[st.integers(low, high)] * num_stages)


@st.composite
def durations(
    draw: st.DrawFn, num_stages: int, num_slices: int = 1
) -> dict[str, tuple[object, ...]]:
    """Ticks of F, B, I and W per stage and slice, and perhaps the parts of W; zero is allowed."""
    ticks = st.tuples(*[per_stage(num_slices, 0, 5)] * num_stages)
    drawn: dict[str, tuple[object, ...]] = {
        name: draw(ticks) for name in ("forward", "backward", "input_backward")
    }
    if draw(st.booleans()):
        return drawn | {"weight_backward": draw(ticks)}
    row = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)
    parts = draw(st.tuples(*[row] * num_stages))
    return drawn | {"weight_parts": parts, "weight_backward": tuple(map(sum, parts))}


@st.composite
def memories(draw: st.DrawFn, num_stages: int) -> dict[str, tuple[int, ...]]:
    """Activations, parts released after I (negative: residuals) and static loads per stage."""
    activation = draw(per_stage(num_stages, 0, 4))
    released = tuple(draw(st.integers(-2, held)) for held in activation)
    static = draw(per_stage(num_stages, 0, 3))
    return {"activation": activation, "released_at_input": released, "static": static}


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    split: bool | None = None,
    shape: st.SearchStrategy[dict[str, int]] | None = None,
    placements: Sequence[str] = PLACEMENTS,
) -> Pipeline:
    """Any small pipeline without memory caps.

    ``split`` fixes whether backwards are split (else it is drawn, for all or per microbatch);
    ``shape`` draws the sizes (else ``shapes()``), ``placements`` are those to draw from.
    """
    size = draw(shapes() if shape is None else shape)
    p, stages_ = size["num_ranks"], size["num_ranks"] * size["num_chunks"]
    flags = st.tuples(*[st.booleans()] * size["num_microbatches"])
    per_microbatch = st.tuples(*[flags] * stages_)
    links: tuple[Link, ...] = ()
    if p > 1 and draw(st.booleans()):
        links = (Link(ranks=(0, p - 1), latency=draw(st.integers(0, 4))),)
    return Pipeline(
        **size,  # type: ignore[arg-type]  # fields by name
        **draw(durations(stages_, size["num_slices"])),  # type: ignore[arg-type]  # fields by name
        **draw(memories(stages_)),  # type: ignore[arg-type]  # fields by name
        placement=draw(st.sampled_from(placements)),
        split_backward=draw(st.one_of(st.booleans(), per_microbatch)) if split is None else split,
        latency=draw(st.integers(0, 3)),
        links=links,
    )


def random_program(problem: Problem, random: Random) -> Program:
    """An executable program: tasks taken in a random order along the precedences."""
    waiting = [0] * problem.num_tasks
    after: list[list[int]] = [[] for _ in waiting]
    for a, b in zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True):
        after[a].append(b)
        waiting[b] += 1
    ready = [t for t, count in enumerate(waiting) if not count]
    orders: list[list[Action]] = [[] for _ in problem.resources]
    while ready:
        task = ready.pop(random.randrange(len(ready)))
        for row in (problem.occupancy.task == task).nonzero()[0].tolist():
            orders[int(problem.occupancy.resource[row])].append(problem.actions[task])
        for later in after[task]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return Program.from_orders(orders)


@st.composite
def programs(draw: st.DrawFn, problem: Problem) -> Program:
    """An order per resource that can be executed; memory caps are not looked at."""
    return random_program(problem, Random(draw(st.integers(0, 2**16))))


@st.composite
def schedules(draw: st.DrawFn, problem: Problem, *, most_wait: int = 3) -> Schedule:
    """A schedule, valid but for memory caps, whose tasks wait up to ``most_wait`` ticks each.

    Precondition: no lag is negative.
    """
    program = draw(programs(problem))
    waits = draw(
        st.lists(st.integers(0, most_wait), min_size=problem.num_tasks, max_size=problem.num_tasks)
    )
    padded = replace(problem, duration=problem.duration + np.array(waits, dtype=np.int64))
    late = left_shift(padded, program)
    wait = np.array(waits, dtype=np.int64)[problem.locate(program.actions)]
    return Schedule(program=program, start=late.start + wait)


@st.composite
def problems(draw: st.DrawFn, *, split: bool | None = None, capped: bool | None = None) -> Problem:
    """The problem of a small pipeline.

    With ``capped`` every store has a capacity, the peak of some executable order or up to 3 units
    more, so that the problem is feasible; None draws whether it has.
    """
    problem = draw(pipelines(split=split)).problem()
    if not (draw(st.booleans()) if capped is None else capped):
        return problem
    schedule = left_shift(problem, draw(programs(problem)))
    task = problem.locate(schedule.program.actions)
    peaks = memory_profile(problem, task, schedule.start).peaks(problem).tolist()
    stores = tuple(
        replace(store, capacity=peak + draw(st.integers(0, 3)))
        for store, peak in zip(problem.stores, peaks, strict=True)
    )
    return replace(problem, stores=stores)
