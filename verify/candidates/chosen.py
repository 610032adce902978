"""Whether a pipeline is one of the choices that another leaves open.

It has the other's shape, numbers and fixed choices. Beyond them it has recomputations, evictions
and off-loads alone, each one that ``allowed`` names, with its ticks and memory.

A pipeline *beside* a space's shapes has numbers of its own (what recomputing adds, what is moved or
sharded), but it trains the same step: as many microbatches, on ranks of the same memory and links,
in no less computation than the file's layers, or than each rank of the file, take.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.choices import Choices, Flags
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

SAME = ("num_ranks", "num_microbatches", "capacity", "latency", "bandwidth", "links")
OPEN: dict[str, object] = {
    "recompute": None,
    "evictions": (),
    "offloads": (),
    "host_capacity": None,
}


def plain_of(pipeline: Pipeline) -> Pipeline:
    """The pipeline in which nothing is recomputed, evicted or off-loaded."""
    return pipeline.with_changes(**OPEN)


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
    found, least = _of_ranks(beside, flags), _of_ranks(given, flags)
    if space.layers is not None:  # which may stand on any rank
        found, least = [_sum(found)], [_of_layers(space.layers, flags)]
    for rank, (did, has_to) in enumerate(zip(found, least, strict=True)):
        for what, taken, needed in zip(("forwards", "backwards"), did, has_to, strict=True):
            if taken < needed:
                where = "all ranks" if space.layers is not None else f"rank {rank}"
                return f"{what} of a microbatch take {taken} ticks on {where}, not {needed}"
    return None


def _of_ranks(pipeline: Pipeline, flags: Flags) -> list[tuple[int, int]]:
    """Ticks of a microbatch's forwards and, run so, of its backwards at least, by rank."""
    ticks = pipeline.ticks
    forward, whole = ticks.forward.sum(axis=1).tolist(), ticks.backward.sum(axis=1).tolist()
    halves = (ticks.input_backward + ticks.weight_backward).sum(axis=1).tolist()
    found = [(0, 0)] * pipeline.num_ranks
    for stage, rank in enumerate(pipeline.stage_ranks):
        own = forward[stage], _back(whole[stage], halves[stage], flags)
        found[rank] = _sum([found[rank], own])
    return found


def _of_layers(layers: Layers, flags: Flags) -> tuple[int, int]:
    """The same of a whole model."""
    model = layers.stage((layers.number,), 0)
    halves = model.input_backward + model.weight_backward
    return model.forward, _back(model.backward, halves, flags)


def _back(whole: int, halves: int, flags: Flags) -> int:
    """A backward that runs whole, in halves, or (by a flag for each) at least."""
    if isinstance(flags, bool):
        return halves if flags else whole
    return min(whole, halves)


def _sum(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(forward for forward, _ in pairs), sum(backward for _, backward in pairs)
