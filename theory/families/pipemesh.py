"""PipeMesh: microbatches are enqueued e_1, e_2, ... and dequeued d_1, d_2, ... at a time.

The family is the order of computations (``pipemesh_order``). The command has no parameter for ZeRO,
so its problem has none of the collectives; ``PipeMesh.sharded`` adds them as tasks on NICs
(``theory.pipelines.sharding``), which the same checker judges. Their order on each NIC follows
from the computations' left-shifted starts at tF = 1, tB = 2: a parameter gather is asked for when
the visit before starts, a reduction when the visit ends (sections III-C and V).

``e`` and ``d`` default to one another, both to two halves (Table IV, section VI-C) where each half
has p microbatches and else to one operation; a given ``e`` without ``d`` (or ``d`` without ``e``)
is met by as many operations, as equal as can be (section IV-B, R = S).
Source: PipeMesh (TPDS 2025) sections III-B, III-C, V. Legal range: any p, m, v, and any e and d of
sum m. With every element at least p: makespan (M m + p - 1)(tF + tB), and rank r holds at most
min((M-1) q + 2(p-r-1) + 1, M m) activations (swept), where q = e_1 unless dequeues run ahead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.pipemesh_order import Sequences, elastic_program, is_as_printed
from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import (
    ADDERS,
    BACKWARDS,
    FORWARDS,
    READERS,
    Collective,
    Sharding,
    Visit,
    collectives,
    visits,
)
from bubbleproof.theory.pipelines.timing import left_shift


class PipeMesh(Family):
    """Forwards by enqueue operation, backwards by dequeue operation, one and one in turn."""

    name = "pipemesh"
    title = "PipeMesh"
    source = "PipeMesh (TPDS 2025) sections III-B and V, Algorithm 1"
    options = frozenset({"v", "e", "d"})
    default_chunks = 2
    adds = frozenset({"sharding"})

    def __init__(
        self, enqueue: tuple[int, ...] | None = None, dequeue: tuple[int, ...] | None = None
    ) -> None:
        self.enqueue, self.dequeue = enqueue, dequeue

    def variant(self, params: FamilyParameters) -> PipeMesh:
        return PipeMesh(params.e, params.d)

    def sequences(self, pipeline: Pipeline) -> Sequences:
        """(e, d) on a pipeline, with what was not given filled in as the module's text says."""
        m = pipeline.num_microbatches
        given = self.enqueue or self.dequeue
        count = len(given) if given else 1 + (m >= 2 * pipeline.num_ranks)
        count = min(count, m)
        equal = tuple(m // count + (k < m % count) for k in range(count))
        return self.enqueue or equal, self.dequeue or equal

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        sequences, m = self.sequences(pipeline), pipeline.num_microbatches
        for name, given in zip("ed", sequences, strict=True):
            if min(given) < 1 or sum(given) != m:
                return (
                    f"{name} must be numbers of 1 or more that add up to the {m} microbatches, "
                    f"got {','.join(map(str, given))}"
                )
        if pipeline.choices.sharding is not None:
            theirs = pipeline.choices.sharding.sequences(m)
            if theirs != sequences:
                return f"the collectives follow e, d = {theirs}, the order follows {sequences}"
        return None

    def sharded(self, pipeline: Pipeline, sharding: Sharding) -> Pipeline:
        """The pipeline with the collectives of ``sharding`` for this family's sequences.

        Raises ``ValueError`` where the family refuses the pipeline.
        """
        if (why := self.refusal(pipeline.with_changes(sharding=None))) is not None:
            raise ValueError(why)
        enqueue, dequeue = self.sequences(pipeline)
        return pipeline.with_changes(sharding=replace(sharding, enqueue=enqueue, dequeue=dequeue))

    def program(self, pipeline: Pipeline) -> Program:
        sequences = self.sequences(pipeline)
        compute = elastic_program(pipeline, sequences)
        if pipeline.choices.sharding is None:
            return compute
        listed = visits(pipeline.stage_ranks, *sequences)
        return _with_nics(pipeline, compute, collectives(listed, pipeline.choices.sharding))

    def ours(self, pipeline: Pipeline) -> str | None:
        if is_as_printed(pipeline, self.sequences(pipeline)):
            return None
        return "Algorithm 1 does not run this shape as printed; bubbleproof mends its warm-up."

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        enqueue, dequeue = self.sequences(pipeline)
        return {**super().full_params(params, pipeline), "e": enqueue, "d": dequeue}


def _with_nics(pipeline: Pipeline, compute: Program, needed: list[Collective]) -> Program:
    """The program with each rank's NIC and buffer manager, in the order collectives fall due."""
    p = pipeline.num_ranks
    clock = pipeline.with_changes(
        sharding=None, forward=1, backward=2, latency=0, bandwidth=None, links=()
    ).problem()
    schedule = left_shift(clock, compute)
    start = np.zeros(clock.num_tasks, dtype=np.int64)
    start[clock.locate(compute.actions)] = schedule.start
    computations = Computations(clock)
    spans = {
        (visit.rank, visit.is_forward, visit.number): _span(visit, start[computations.of(visit)])
        for visit in dict.fromkeys(c.visit for c in needed)
    }
    # At one instant what frees a buffer comes before what fills it.
    due = sorted(range(len(needed)), key=lambda row: _due(needed[row], spans))
    actions = [
        Action(stage=needed[row].visit.stage, kind=needed[row].kind, slice=needed[row].slice)
        for row in due
    ]
    homes = [p + 2 * needed[row].visit.rank + (needed[row].kind is Kind.RESHARD) for row in due]
    return Program.grouped(
        actions=ActionTable.concatenate([compute.actions, ActionTable.from_actions(actions)]),
        resource=np.concatenate([compute.resource, np.array(homes, dtype=np.int64)]),
    )


def _span(visit: Visit, own: Ints) -> tuple[int, int]:
    """Start of the first and end of the last computation of a visit, by their starts."""
    return int(own.min()), int(own.max()) + (1 if visit.is_forward else 2)


def _due(
    collective: Collective, spans: dict[tuple[int, bool, int], tuple[int, int]]
) -> tuple[int, bool, int]:
    visit = collective.visit
    key = (visit.rank, visit.is_forward, visit.number)
    if collective.kind is not Kind.UNSHARD:
        return spans[key][1], False, visit.number
    before = spans.get((visit.rank, visit.is_forward, visit.number - 1))
    return (NONE if before is None else before[0]), True, visit.number


class Computations:
    """The computations of a problem by what they do with a stage's parameters and gradient."""

    def __init__(self, problem: Problem) -> None:
        actions = problem.actions
        self._count = 1 + int(actions.microbatch.max())
        self._by: dict[tuple[Kind, ...], tuple[Ints, Ints]] = {}
        for kinds in (FORWARDS, BACKWARDS, READERS, ADDERS):
            task = np.flatnonzero(actions.is_kind(*kinds))
            slices = actions.slice[task] if kinds == FORWARDS else -actions.slice[task]
            key = actions.stage[task] * self._count + actions.microbatch[task]
            order = np.lexsort((task, slices, key))
            self._by[kinds] = key[order], task[order]

    def of(self, visit: Visit, backward: tuple[Kind, ...] = BACKWARDS) -> Ints:
        """The Fs of a forward visit, or what ``backward`` names of a backward one.

        By microbatch; forwards by slice, backwards from the last slice on.
        """
        keys, tasks = self._by[FORWARDS if visit.is_forward else backward]
        ends = visit.stage * self._count + np.array([visit.first, visit.end])
        first, end = np.searchsorted(keys, ends)
        return tasks[first:end]
