"""Whether a pipeline is one of the choices that another leaves open.

It has the other's shape, numbers and fixed choices. Beyond them it has recomputations, evictions
and off-loads alone, each one that ``allowed`` names, with its ticks and memory.

A pipeline *beside* a space's shapes has numbers of its own (what recomputing adds, what is moved or
sharded), but it trains the same step: as many microbatches, on ranks of the same memory and links,
in no less computation than the file's layers, or than each rank of the file, take.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.rank_claims import copied_problem

SAME = ("num_ranks", "num_microbatches", "capacity", "latency", "bandwidth", "links")


def plain_of(pipeline: Pipeline) -> Pipeline:
    """The pipeline in which nothing is recomputed, evicted or off-loaded."""
    return pipeline.with_changes(recompute=None, evictions=(), offloads=(), host_capacity=None)


def foreign_choice(
    given: Pipeline, allowed: AllowedChoices | None, pipeline: Pipeline
) -> str | None:
    """What ``pipeline`` has that ``given`` and what it allows do not; None where nothing.

    Precondition: ``given`` has none of these choices made.
    """
    if plain_of(pipeline) != given:
        return "the pipeline has another shape, or other numbers"
    return next(_foreign(allowed or AllowedChoices(), pipeline.choices), None)


def _foreign(allowed: AllowedChoices, choices: Choices) -> Iterator[str]:
    yield from _foreign_recompute(allowed, choices)
    evict, offload = allowed.evict, allowed.offload
    pairs = {} if evict is None else dict(evict.pairs)
    for move in choices.evictions:
        if evict is None or move.duration != evict.duration:
            yield "an eviction of other ticks than allowed"
        elif pairs.get(move.source) != move.target:
            yield f"rank {move.source} evicts to rank {move.target}"
    for leave in choices.offloads:
        if offload is None or (leave.offload, leave.reload) != (offload.offload, offload.reload):
            yield "an off-load of other ticks than allowed"
        elif leave.stage not in offload.stages:
            yield f"stage {leave.stage} off-loads"
    host = None if offload is None else offload.host_capacity
    if choices.host_capacity != host and (choices.offloads or choices.host_capacity is not None):
        yield "another memory of the hosts"


def _foreign_recompute(allowed: AllowedChoices, choices: Choices) -> Iterator[str]:
    made, again = choices.recompute, allowed.recompute
    if made is None:
        return
    if again is None or (made.kept, made.duration) != (again.kept, again.duration):
        yield "a recomputation of other ticks or memory than allowed"
        return
    if made.samples and not again.per_microbatch:
        yield "a recomputation of some microbatches only"
    named = {*made.stages, *(stage for stage, _ in made.samples)}
    yield from (f"stage {stage} recomputes" for stage in sorted(named - {*again.stages}))


def foreign_step(space: PlanSpace, beside: Pipeline) -> str | None:
    """Why a pipeline does not train the space's step; None where it may.

    What it holds and moves is taken as it says.
    """
    given = space.pipeline
    for name in SAME:
        if getattr(beside, name) != getattr(given, name):
            return f"its {name} is not the problem's"
    for name in sorted(beside.choices.omitting - given.choices.omitting):
        return f"its {name} leaves out work of the problem's step"
    flags = beside.split_backward
    ways = (flags,) if isinstance(flags, bool) else (False, True)
    found, m = _work_of(beside), given.num_microbatches
    each = [_work_of(given, split_backward=is_split) for is_split in ways]
    if space.layers is not None:  # which may stand on any rank
        found = found.sum(axis=1, keepdims=True)
        each = [m * _work_of_layers(space.layers, is_split) for is_split in ways]
    for (way, rank), needed in np.ndenumerate(np.minimum.reduce(each)):
        if (taken := found[way, rank]) < needed:
            where = f"rank {rank}" if space.layers is None else "all ranks"
            what = ("forwards", "backwards")[way]
            return f"{what} of a microbatch take {taken // m} ticks on {where}, not {needed // m}"
    return None


def _work_of(pipeline: Pipeline, **changes: object) -> Ints:
    """Ticks of all forwards and of all backwards, by the rank of their stage, shape (2, ranks)."""
    problem, copies = copied_problem(pipeline.with_changes(overlaps=(), waits=(), **changes))
    homes, found = np.array(pipeline.stage_ranks), np.zeros((2, pipeline.num_ranks), dtype=np.int64)
    for ticks, kinds in zip(found, ((Kind.F,), (Kind.B, Kind.I, Kind.W)), strict=True):
        tasks = problem.actions.is_kind(*kinds)
        np.add.at(ticks, homes[problem.actions.stage[tasks]], copies * problem.duration[tasks])
    return found


def _work_of_layers(layers: Layers, is_split: bool) -> Ints:
    """The same of one microbatch through a whole model, run so."""
    (model,) = layers.stages((layers.number,))
    halves = model.input_backward + model.weight_backward
    return np.array([[model.forward], [halves if is_split else model.backward]])
