"""Every choice that a pipeline leaves open, one concrete pipeline each.

A list of its own: it shares nothing with ``solvers.choices.pipeline_variants``, which a planner
rests on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.transfers import Eviction

Sample = tuple[int, int]
STAY, AGAIN, PEER, HOST = "stay", "recompute", "evict", "offload"


def every_choice(pipeline: Pipeline, allowed: AllowedChoices | None) -> Iterator[Pipeline]:
    """The pipelines that make one of the choices each; nothing chosen comes first.

    Precondition: one slice.
    """
    allowed = allowed or AllowedChoices()
    samples = [*product(range(pipeline.num_stages), range(pipeline.num_microbatches))]
    for stages in _stage_sets(allowed):
        ways = [_ways(pipeline, allowed, stages, *sample) for sample in samples]
        for doing in product(*ways):
            yield _chosen(pipeline, allowed, stages, dict(zip(samples, doing, strict=True)))


def _stage_sets(allowed: AllowedChoices) -> Iterator[tuple[int, ...]]:
    """Which stages recompute all of their microbatches."""
    again = allowed.recompute
    stages = () if again is None or again.per_microbatch else again.stages
    for flags in product((False, True), repeat=len(stages)):
        yield tuple(stage for stage, flag in zip(stages, flags, strict=True) if flag)


def _ways(
    pipeline: Pipeline, allowed: AllowedChoices, whole: tuple[int, ...], stage: int, _: int
) -> list[str]:
    """What may become of one sample of a stage; ``whole`` stages recompute and do nothing else."""
    if stage in whole:
        return [STAY]
    again, evict, offload = allowed.recompute, allowed.evict, allowed.offload
    ways = [STAY]
    if again is not None and again.per_microbatch and stage in again.stages:
        ways.append(AGAIN)
    if evict is not None and pipeline.stage_ranks[stage] in dict(evict.pairs):
        ways.append(PEER)
    if offload is not None and stage in offload.stages:
        ways.append(HOST)
    return ways


def _chosen(
    pipeline: Pipeline, allowed: AllowedChoices, whole: tuple[int, ...], doing: dict[Sample, str]
) -> Pipeline:
    again, evict, offload = allowed.recompute, allowed.evict, allowed.offload
    recompute: Recompute | None = None
    evictions: tuple[Eviction, ...] = ()
    offloads: tuple[ActivationOffload, ...] = ()
    samples = tuple(sample for sample, what in doing.items() if what == AGAIN)
    if again is not None and (whole or samples):
        recompute = Recompute(
            stages=whole, samples=samples, kept=again.kept, duration=again.duration
        )
    if evict is not None:
        ranks, pairs = pipeline.stage_ranks, dict(evict.pairs)
        evictions = tuple(
            Eviction(
                stage=g,
                microbatch=j,
                source=ranks[g],
                target=pairs[ranks[g]],
                duration=evict.duration,
            )
            for (g, j), what in doing.items()
            if what == PEER
        )
    if offload is not None:
        offloads = tuple(
            ActivationOffload(stage=g, microbatch=j, offload=offload.offload, reload=offload.reload)
            for (g, j), what in doing.items()
            if what == HOST
        )
    return pipeline.with_changes(
        recompute=recompute,
        evictions=evictions,
        offloads=offloads,
        host_capacity=None if offload is None else offload.host_capacity,
    )
