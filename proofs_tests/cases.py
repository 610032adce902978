"""Small problems with schedules: every registered family on a few shapes, and two built by hand.

Families are found through ``families()`` and given shapes from one grid; a family that refuses a
shape or a variation is skipped there, and one that refuses all of them is an error. The variations
put every number of a ``Pipeline`` to use: durations per stage, latencies, links, bytes, partial
release, tight capacities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from bubbleproof.theory.families import Family, families
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.model.actions import Action, ActionTable, Ints
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

LEAST = (2,), (4,)  # ranks and microbatches that every family accepts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A problem and a valid, left-shifted schedule of it."""

    name: str
    problem: Problem
    schedule: Schedule


def without(program: Program, *rows: int) -> Program:
    """The program less the given rows."""
    return program.take(np.delete(np.arange(len(program)), rows))


def shapes(
    family: Family, ranks: tuple[int, ...], microbatches: tuple[int, ...], most: int = 3
) -> Iterator[Pipeline]:
    """The pipelines a family accepts: given p and m, with 1..``most`` chunks and 1..2 slices."""
    chunks = range(1, most + 1) if "v" in family.options else (None,)
    slices = (1, 2) if "s" in family.options else (None,)
    for p, m, v, s in product(ranks, microbatches, chunks, slices):
        given = {"p": p, "m": m} | {n: x for n, x in (("v", v), ("s", s)) if x is not None}
        try:
            pipeline = family.pipeline(make_parameters(dict(given)))
        except ValueError:
            continue
        if family.refusal(pipeline) is None:
            yield pipeline


def _uneven(pipeline: Pipeline) -> Pipeline:
    stages = range(pipeline.num_stages)
    return pipeline.with_changes(
        forward=tuple(1 + g % 3 for g in stages),
        backward=tuple(2 + (g * g) % 3 for g in stages),
        input_backward=tuple(1 + (g * g) % 2 for g in stages),
        weight_backward=tuple(g % 3 for g in stages),
    )


def _late(pipeline: Pipeline) -> Pipeline:
    return pipeline.with_changes(latency=2, links=(Link(ranks=(0, 1), latency=3),))


def _heavy(pipeline: Pipeline) -> Pipeline:
    """The released part is -1 on odd stages: the residuals weigh more than the activation."""
    stages = range(pipeline.num_stages)
    return _uneven(pipeline).with_changes(
        latency=1,
        activation=tuple(2 + g % 3 for g in stages),
        released_at_input=tuple(1 if g % 2 == 0 else -1 for g in stages),
        static=tuple(g % 4 for g in stages),
    )


VARIATIONS: tuple[tuple[str, Callable[[Pipeline], Pipeline]], ...] = (
    ("plain", lambda pipeline: pipeline),
    ("uneven", _uneven),
    ("late", _late),
    ("heavy", _heavy),
)


def variations(pipeline: Pipeline) -> list[tuple[str, Pipeline]]:
    """The pipeline as it is, with uneven stages, with latencies, with memory released in parts."""
    return [(name, change(pipeline)) for name, change in VARIATIONS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A pipeline that a family accepts; one that is tight has no more memory than is used."""

    family: Family
    name: str
    pipeline: Pipeline
    is_tight: bool

    def case(self) -> Case:
        problem = self.pipeline.problem()
        schedule = self.family.schedule(self.pipeline, problem)
        if self.is_tight:
            problem = tight(problem, schedule)
        return Case(name=self.name, problem=problem, schedule=schedule)


def _members(
    family: Family, ranks: tuple[int, ...], microbatches: tuple[int, ...], most: int = 3
) -> Iterator[_Member]:
    """Each accepted shape once, in one of the variations by turns; two of three are tight."""
    for turn, pipeline in enumerate(shapes(family, ranks, microbatches, most)):
        name, change = VARIATIONS[turn % len(VARIATIONS)]
        varied = change(pipeline)
        if family.refusal(varied) is None:
            v, s = pipeline.num_chunks, pipeline.num_slices
            shape = f"p={pipeline.num_ranks} m={pipeline.num_microbatches} v={v} s={s}"
            named = f"{family.name} {shape} {name}"
            yield _Member(family=family, name=named, pipeline=varied, is_tight=(turn + 1) % 3 != 0)


def family_cases(
    family: Family, ranks: tuple[int, ...], microbatches: tuple[int, ...], most: int = 3
) -> Iterator[Case]:
    """Cases of every shape that the family accepts."""
    return (member.case() for member in _members(family, ranks, microbatches, most))


def tight(problem: Problem, schedule: Schedule) -> Problem:
    """The problem with the schedule's own peaks as capacities of the ranks' stores."""
    peaks = measure(problem, schedule).peak_memory
    ranks = tuple(
        replace(store, capacity=peak) for store, peak in zip(problem.stores, peaks, strict=False)
    )
    return replace(problem, stores=ranks + problem.stores[len(peaks) :])


@cache
def all_family_cases(
    ranks: tuple[int, ...], microbatches: tuple[int, ...], per_family: int
) -> dict[str, list[Case]]:
    """``per_family`` cases of each registered family, spread evenly over its shapes.

    A family that accepts none of the shapes (odd ranks, few microbatches) is taken at ``LEAST``.
    """
    found: dict[str, list[Case]] = {}
    for name, family in families().items():
        members = [*_members(family, ranks, microbatches)] or [*_members(family, *LEAST)]
        assert members, f"family {name} accepts none of the small shapes"
        picks = np.linspace(0, len(members) - 1, min(per_family, len(members))).round().astype(int)
        found[name] = [members[i].case() for i in dict.fromkeys(picks.tolist())]
    return found


def hand_built() -> Case:
    """Two ranks, a link and a host copy engine; ``0EVICT`` occupies rank 0 *and* the link.

    Per microbatch j: 0F (2 ticks) on rank 0, 0EVICT (1) on rank 0 and the link, 1F (2) and 1B (3)
    on rank 1 (messages take 1 tick), 0LOAD (2) on the link, 0B (3) on rank 0, and 1OFFLOAD (1) of
    rank 1's activation on the copy engine after 1F. Evicted activations lie on rank 1.
    """
    m = 3
    texts = [t.format(j) for t in _HAND_TASKS for j in range(m)]
    number = {text: i for i, text in enumerate(texts)}
    pairs = [
        (number[t.format(j)], r)
        for t, (_, where) in _HAND_TASKS.items()
        for j in range(m)
        for r in where
    ]
    edges = [
        (number[a.format(j)], number[b.format(j)], lag)
        for a, b, lag in _HAND_EDGES
        for j in range(m)
    ]
    events = [
        (number[t.format(j)], end, store, delta)
        for t, end, store, delta in _HAND_EVENTS
        for j in range(m)
    ]
    problem = Problem(
        resources=(
            Resource(name="rank 0", rank=0),
            Resource(name="rank 1", rank=1),
            Resource(name="link 0-1"),
            Resource(name="copy engine"),
        ),
        actions=ActionTable.from_actions(Action.parse(t) for t in texts),
        duration=np.repeat([ticks for ticks, _ in _HAND_TASKS.values()], m),
        occupancy=Occupancy(task=_column(pairs, 0), resource=_column(pairs, 1)),
        edges=Edges(before=_column(edges, 0), after=_column(edges, 1), lag=_column(edges, 2)),
        stores=(
            Store(name="memory of rank 0", base=2),
            Store(name="memory of rank 1"),
            Store(name="host", base=1),
        ),
        events=MemoryEvents(
            task=_column(events, 0),
            at_end=_column(events, 1).astype(np.bool_),
            store=_column(events, 2),
            delta=_column(events, 3),
        ),
    )
    return Case(name="hand-built", problem=problem, schedule=left_shift(problem, _hand_program()))


_HAND_TASKS: dict[str, tuple[int, tuple[int, ...]]] = {
    "0F{}": (2, (0,)),
    "0EVICT{}": (1, (0, 2)),
    "1F{}": (2, (1,)),
    "1B{}": (3, (1,)),
    "0LOAD{}": (2, (2,)),
    "0B{}": (3, (0,)),
    "1OFFLOAD{}": (1, (3,)),
}
_HAND_EDGES = [
    ("0F{}", "0EVICT{}", 0), ("0F{}", "1F{}", 1), ("1F{}", "1B{}", 0), ("1F{}", "1OFFLOAD{}", 0),
    ("0EVICT{}", "0LOAD{}", 0), ("0LOAD{}", "0B{}", 0), ("1B{}", "0B{}", 1),
]  # fmt: skip
_HAND_EVENTS = [
    ("0F{}", 0, 0, 2), ("0EVICT{}", 1, 0, -2), ("0EVICT{}", 0, 1, 2), ("0LOAD{}", 0, 0, 2),
    ("0LOAD{}", 1, 1, -2), ("0B{}", 1, 0, -2), ("1F{}", 0, 1, 1), ("1OFFLOAD{}", 0, 2, 1),
    ("1B{}", 1, 1, -1), ("1B{}", 1, 2, -1),
]  # fmt: skip


def _hand_program() -> Program:
    return Program.from_orders(
        [
            ["0F0", "0EVICT0", "0F1", "0EVICT1", "0B0", "0F2", "0EVICT2", "0B1", "0B2"],
            ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2"],
            ["0EVICT0", "0EVICT1", "0LOAD0", "0EVICT2", "0LOAD1", "0LOAD2"],
            ["1OFFLOAD0", "1OFFLOAD1", "1OFFLOAD2"],
        ]
    )


def _column(rows: Sequence[tuple[int, ...]], at: int) -> Ints:
    return np.array([row[at] for row in rows], dtype=np.int64)


def overlapped() -> Case:
    """Two ranks, three microbatches, 1F1B where rank 1 and rank 0 overlap an F with a B.

    Rank 1 runs 1F1 with 1B0 and 1F2 with 1B1; rank 0 runs 0F2 with 0B0.
    """
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        overlaps=(((1, 1), (1, 0)), ((1, 2), (1, 1)), ((0, 2), (0, 0))),
    )
    orders = [
        ["0F0", "0F1", "(0F2;0B0)OVERLAP_F_B", "0B1", "0B2"],
        ["1F0", "(1F1;1B0)OVERLAP_F_B", "(1F2;1B1)OVERLAP_F_B", "1B2"],
    ]
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(orders))
    return Case(name="overlapped", problem=problem, schedule=schedule)


def wave_overlapped() -> Case:
    """Two ranks in a V of four stages; an F and a B cross from rank 0 to rank 1 as one pair."""
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        num_chunks=2,
        placement="wave",
        overlaps=(((0, 1), (3, 0)), ((1, 1), (2, 0))),
    )
    orders = [
        ["0F0", "3F0", "(0F1;3B0)OVERLAP_F_B", "0B0", "3F1", "3B1", "0B1"],
        ["1F0", "2F0", "(1F1;2B0)OVERLAP_F_B", "1B0", "2F1", "2B1", "1B1"],
    ]
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(orders))
    return Case(name="wave overlapped", problem=problem, schedule=schedule)
