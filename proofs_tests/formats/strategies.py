"""Random pipelines and schedules, kept small."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, PLACEMENTS

numbers = st.integers(min_value=0, max_value=1 << 40)
names = st.text(max_size=8)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """A pipeline with every field drawn."""
    p, v = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    m, s = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    stages = p * v
    is_unsplit = draw(st.booleans())
    cut = 1 if is_unsplit else s
    per_stage = st.one_of(numbers, st.tuples(*[numbers] * stages))
    ticks = st.one_of(per_stage, st.tuples(*[st.tuples(*[numbers] * cut)] * stages))
    parts = draw(st.lists(numbers, max_size=3).map(tuple))
    activation = draw(st.tuples(*[numbers] * stages))
    released = tuple(draw(st.integers(-5, held)) for held in activation)
    order = draw(st.permutations([g % p for g in range(stages)]))
    flags = st.tuples(*[st.tuples(*[st.booleans()] * m)] * stages)
    one_capacity = st.none() | numbers
    pairs = [(a, b) for a in range(p) for b in range(a + 1, p)]
    linked = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    placement = draw(st.sampled_from(PLACEMENTS) | st.just(tuple(order)))
    # The first and the last microbatch of stage 0 share a rank unless they run in two directions.
    may_overlap = is_unsplit and placement != BIDIRECTIONAL
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=cut,
        placement=placement,
        split_backward=False if is_unsplit else draw(st.booleans() | flags),
        forward=draw(ticks),
        backward=draw(ticks),
        input_backward=draw(ticks),
        weight_backward=sum(parts) if parts else draw(ticks),
        weight_parts=parts,
        latency=draw(numbers),
        links=tuple(Link(ranks=pair, latency=draw(numbers)) for pair in linked),
        activation=activation,
        released_at_input=released,
        weight_workspace=draw(st.tuples(*[numbers] * max(1, len(parts)))),
        static=draw(per_stage),
        capacity=draw(one_capacity | st.tuples(*[one_capacity] * p)),
        overlaps=(((0, 0), (0, m - 1)),) if may_overlap and draw(st.booleans()) else (),
        unit=draw(names),
        memory_unit=draw(names),
    )


@st.composite
def schedules(draw: st.DrawFn, problem: Problem) -> Schedule:
    """Rows in any order with any start; tasks may be missing, repeated or on the wrong rank."""
    rows = draw(st.lists(st.integers(0, problem.num_tasks - 1), max_size=12))
    resource = draw(
        st.lists(st.integers(0, len(problem.resources) - 1), min_size=len(rows), max_size=len(rows))
    )
    program = Program.grouped(
        actions=problem.actions.take(np.array(rows, dtype=np.int64)),
        resource=np.array(resource, dtype=np.int64),
    )
    start = draw(st.lists(numbers, min_size=len(rows), max_size=len(rows)))
    return Schedule(program=program, start=np.array(start, dtype=np.int64), claims=draw(claims))


claims: st.SearchStrategy[dict[str, ClaimedNumber]] = st.fixed_dictionaries(
    {},
    optional={
        "makespan": numbers,
        "idle_ratio": numbers | st.fractions(Fraction(0), Fraction(1), max_denominator=10**24),
        "peak_memory": st.lists(numbers, max_size=4).map(tuple),
    },
)

TABLE_KINDS = [Kind.F, Kind.B, Kind.I, Kind.W, Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B]
