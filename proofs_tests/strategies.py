"""The suite's public hypothesis strategies: actions, durations, memory, pipelines and programs.

``pipelines()`` draws any pipeline whose numbers are small; ``ordered_pipelines()`` adds a random
order per rank that can be executed (an order drawn along the precedences never deadlocks).
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from bubbleproof.theory.actions import (
    MAX_MICROBATCH,
    MAX_PART,
    MAX_SLICE,
    MAX_STAGE,
    NONE,
    STAGE_KINDS,
    Action,
    Kind,
)
from bubbleproof.theory.pipeline import Link, Pipeline
from bubbleproof.theory.placement import PLACEMENTS
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program

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
def shapes(draw: st.DrawFn, *, most_chunks: int = 2, most_slices: int = 2) -> dict[str, int]:
    """Ranks 1..4, microbatches 1..4, chunks and slices."""
    return {
        "num_ranks": draw(st.integers(1, 4)),
        "num_microbatches": draw(st.integers(1, 4)),
        "num_chunks": draw(st.integers(1, most_chunks)),
        "num_slices": draw(st.integers(1, most_slices)),
    }


def per_stage(num_stages: int, low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One number for each stage."""
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
def pipelines(draw: st.DrawFn, *, split: bool | None = None) -> Pipeline:
    """Any small pipeline; ``split`` fixes whether backwards are split (else per microbatch)."""
    shape = draw(shapes())
    p, stages_ = shape["num_ranks"], shape["num_ranks"] * shape["num_chunks"]
    flags = st.lists(st.booleans(), min_size=shape["num_microbatches"],
                     max_size=shape["num_microbatches"]).map(tuple)  # fmt: skip
    per_microbatch = st.tuples(*[flags] * stages_)
    links: tuple[Link, ...] = ()
    if p > 1 and draw(st.booleans()):
        links = (Link(ranks=(0, p - 1), latency=draw(st.integers(0, 4))),)
    return Pipeline(
        **shape,  # type: ignore[arg-type]  # fields by name
        **draw(durations(stages_, shape["num_slices"])),  # type: ignore[arg-type]  # fields by name
        **draw(memories(stages_)),  # type: ignore[arg-type]  # fields by name
        placement=draw(st.sampled_from(PLACEMENTS)),
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
def ordered_pipelines(
    draw: st.DrawFn, *, split: bool | None = None
) -> tuple[Pipeline, Problem, Program]:
    """A pipeline, its problem, and an executable program of it."""
    pipeline = draw(pipelines(split=split))
    problem = pipeline.problem()
    return pipeline, problem, random_program(problem, Random(draw(st.integers(0, 2**16))))


@st.composite
def shuffled_programs(draw: st.DrawFn) -> tuple[Problem, Program]:
    """A problem and a program in any order at all: it may deadlock."""
    problem = draw(pipelines()).problem()
    orders = random_program(problem, Random(0)).orders(len(problem.resources))
    random = Random(draw(st.integers(0, 2**16)))
    for order in orders:
        random.shuffle(order)
    return problem, Program.from_orders(orders)
