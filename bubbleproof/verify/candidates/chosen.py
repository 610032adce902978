"""Whether a pipeline is one of the choices that another leaves open.

It has the other's shape, numbers and fixed choices. Beyond them it has recomputations, evictions
and off-loads alone, each one that ``allowed`` names, with its ticks and memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.theory.pipelines.allowed import Allowed
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline

OPEN: dict[str, object] = {
    "recompute": None, "evictions": (), "offloads": (), "host_capacity": None,
}  # fmt: skip


def plain_of(pipeline: Pipeline) -> Pipeline:
    """The pipeline in which nothing is recomputed, evicted or off-loaded."""
    return pipeline.with_changes(**OPEN)


def foreign_choice(given: Pipeline, allowed: Allowed | None, pipeline: Pipeline) -> str | None:
    """What ``pipeline`` has that ``given`` and what it allows do not; None where nothing.

    Precondition: ``given`` has none of these choices made.
    """
    if plain_of(pipeline) != given:
        return "the pipeline has another shape, or other numbers"
    return next(_foreign(allowed or Allowed(), pipeline.choices), None)


def _foreign(allowed: Allowed, choices: Choices) -> Iterator[str]:
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


def _foreign_recompute(allowed: Allowed, choices: Choices) -> Iterator[str]:
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
