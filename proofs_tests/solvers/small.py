"""Tiny problems: pipelines of at most about a dozen tasks, and hand-built ones with transfers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from bubbleproof.testing.strategies import per_stage
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline

# (ranks, microbatches, chunks, slices, split): at most 12 tasks.
SHAPES = (
    (1, 2, 1, 1, True), (1, 3, 1, 1, False), (1, 3, 1, 1, True), (1, 2, 2, 1, False),
    (1, 2, 1, 2, False), (1, 2, 1, 2, True), (2, 2, 1, 1, False), (2, 3, 1, 1, False),
    (2, 2, 1, 1, True), (3, 2, 1, 1, False), (2, 1, 2, 1, True), (1, 2, 2, 1, True),
)  # fmt: skip
UNIT, UNEVEN = (1, 1, 1), (10, 11, 8)  # tF, tI and tW
WIDE = Pipeline(num_ranks=2, num_microbatches=4).problem()
# Two chunks share a store, microbatches differ; below, a store is released in parts.
TWO_CHUNKS = Pipeline(num_ranks=2, num_microbatches=4, num_chunks=2, capacity=3).problem()
MIXED = Pipeline(
    num_ranks=1,
    num_microbatches=4,
    split_backward=((True, False, True, False),),
    capacity=1,
    input_backward=1,
    weight_backward=1,
).problem()

Times = tuple[int, int, int]  # tF, tI and tW in ticks


def split(p: int, m: int, room: int, ticks: Times, *, part: bool = False, v: int = 1) -> Pipeline:
    """Split backward, latency 1 where uneven; ``part``: half of 2 units go with I, half with W."""
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        split_backward=True,
        capacity=room,
        forward=ticks[0],
        input_backward=ticks[1],
        weight_backward=ticks[2],
        latency=int(ticks == UNEVEN),
        activation=1 + part,
        released_at_input=int(part),
    )


IN_PARTS = split(2, 4, 3, (1, 2, 3), part=True).problem()
V_SHAPE = split(4, 8, 8, UNEVEN, v=2).with_changes(placement="wave")


@st.composite
def tiny_pipelines(draw: st.DrawFn, *, least: int = 0) -> Pipeline:
    """Any tiny pipeline of identical microbatches: uneven, split, released in parts, capped.

    ``least`` is the shortest duration in ticks.
    """
    p, m, v, s, split = draw(st.sampled_from(SHAPES))
    names = ("forward", "backward", "input_backward", "weight_backward")
    ticks = {name: draw(per_stage(p * v, least, 3)) for name in names}
    activation = draw(per_stage(p * v, 0, 3))
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        placement=draw(st.sampled_from(("loop", "wave"))),
        split_backward=split,
        latency=draw(st.integers(0, 2)),
        activation=activation,
        released_at_input=tuple(draw(st.integers(-2, held)) for held in activation),
        static=draw(per_stage(p * v, 0, 1)),
        capacity=tuple(draw(st.one_of(st.none(), st.integers(0, 8))) for _ in range(p)),
        **ticks,  # type: ignore[arg-type]  # fields by name
    )


Task = tuple[str, int, tuple[int, ...]]


def by_hand(
    tasks: Sequence[Task],
    edges: Sequence[tuple[str, str, int]] = (),
    *,
    resources: Sequence[Resource] = (Resource(name="rank 0", rank=0),),
    stores: Sequence[Store] = (),
    events: Sequence[tuple[str, bool, int, int]] = (),
) -> Problem:
    """A problem from (text, ticks, resources) rows, (before, after, lag) and memory events."""
    number = {text: i for i, (text, _, _) in enumerate(tasks)}
    pairs = [(i, r) for i, (_, _, where) in enumerate(tasks) for r in where]
    arcs = np.array([(number[a], number[b], lag) for a, b, lag in edges], dtype=np.int64).reshape(
        -1, 3
    )
    changes = np.array(
        [(number[t], end, store, delta) for t, end, store, delta in events], dtype=np.int64
    ).reshape(-1, 4)
    return Problem(
        resources=tuple(resources),
        actions=ActionTable.from_actions(Action.parse(text) for text, _, _ in tasks),
        duration=np.array([ticks for _, ticks, _ in tasks], dtype=np.int64),
        occupancy=Occupancy(
            task=np.array([task for task, _ in pairs], dtype=np.int64),
            resource=np.array([resource for _, resource in pairs], dtype=np.int64),
        ),
        edges=Edges(before=arcs[:, 0], after=arcs[:, 1], lag=arcs[:, 2]),
        stores=tuple(stores),
        events=MemoryEvents(
            task=changes[:, 0],
            at_end=changes[:, 1].astype(np.bool_),
            store=changes[:, 2],
            delta=changes[:, 3],
        ),
    )


RANK_AND_LINK = (Resource(name="rank 0", rank=0), Resource(name="link"))


def prefetch() -> Problem:
    """Rank 0 runs 0F0 (1 tick) at any time and 0B0 (1) after 0LOAD0, 5 ticks on a link.

    0B0 starts at 5 at the earliest. Only computation makes the makespan: 0F0 at 4, 0B0 at 5: 2.
    """
    return by_hand(
        [("0F0", 1, (0,)), ("0LOAD0", 5, (1,)), ("0B0", 1, (0,))],
        [("0LOAD0", "0B0", 0)],
        resources=RANK_AND_LINK,
    )


def offloading(num_microbatches: int = 2) -> Problem:
    """Rank 0 runs F (1) and B (2) per microbatch; between them a link is busy for 3 ticks.

    0OFFLOAD_j (3 ticks on the link) after 0F_j; 0B_j after it. The link is the bottleneck: the
    first off-load starts at 1, the last ends at 1 + 3 m, its B 2 later: 3 m + 3.
    """
    rows = range(num_microbatches)
    return by_hand(
        [(f"0F{j}", 1, (0,)) for j in rows]
        + [(f"0OFFLOAD{j}", 3, (1,)) for j in rows]
        + [(f"0B{j}", 2, (0,)) for j in rows],
        [(f"0F{j}", f"0OFFLOAD{j}", 0) for j in rows]
        + [(f"0OFFLOAD{j}", f"0B{j}", 0) for j in rows],
        resources=RANK_AND_LINK,
    )
