"""What is chosen of a pipeline, in sentences and as values: no verdict rests on how it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute

ReadKey = TypeVar("ReadKey")
ReadSample = TypeVar("ReadSample")


def read_aloud(pipeline: Pipeline) -> tuple[str, ...]:
    """What is recomputed, evicted, off-loaded or frozen in sentences, one per stage and kind."""
    return tuple(_lines(pipeline))


def _lines(pipeline: Pipeline) -> Iterator[str]:
    chosen, is_sliced = pipeline.choices, pipeline.num_slices > 1
    again = chosen.recompute or Recompute()
    for stage in again.stages:
        yield f"stage {stage} recomputes"
    for stage, row in _by_key(again.samples).items():
        yield f"stage {stage} recomputes microbatches {' '.join(map(str, sorted(row)))}"
    moves = (((e.stage, e.source, e.target), (e.microbatch, e.slice)) for e in chosen.evictions)
    for (stage, source, target), samples in _by_key(moves).items():
        of_stage = f" of stage {stage}" if pipeline.num_chunks > 1 else ""
        names = _names(samples, is_sliced=is_sliced)
        yield f"rank {source} evicts microbatches {names}{of_stage} to rank {target}"
    left = ((o.stage, (o.microbatch, o.slice)) for o in chosen.offloads)
    for stage, samples in _by_key(left).items():
        yield f"stage {stage} off-loads microbatches {_names(samples, is_sliced=is_sliced)}"
    if len(chosen.frozen_stages) == pipeline.num_stages:
        yield "nothing is trained: no backward runs"
        return
    for stage in sorted(chosen.frozen_stages):
        yield f"stage {stage} is frozen"


def _by_key(pairs: Iterable[tuple[ReadKey, ReadSample]]) -> dict[ReadKey, list[ReadSample]]:
    rows: dict[ReadKey, list[ReadSample]] = {}
    for key, sample in pairs:
        rows.setdefault(key, []).append(sample)
    return rows


def _names(samples: Collection[tuple[int, int]], *, is_sliced: bool) -> str:
    """(microbatch, slice) pairs as people write them: ``0 1 2``, or ``0.0 0.1``."""
    return " ".join(f"{j}.{k}" if is_sliced else str(j) for j, k in sorted(samples))


def listed_choices(choices: Choices) -> dict[str, object]:
    """What is chosen, as values by name; the first three also where nothing is chosen of them."""
    again = choices.recompute or Recompute()
    found: dict[str, object] = {
        "recompute": [*again.stages, *map(list, again.samples)],
        "evict": [[e.stage, e.microbatch, e.slice, e.source, e.target] for e in choices.evictions],
        "offload": [[o.stage, o.microbatch, o.slice] for o in choices.offloads],
    }
    if choices.state_offload:
        found["state_offload"] = list(choices.state_offload.stages)
    if choices.sharding:
        found["zero"] = choices.sharding.zero
    if choices.frozen_stages:
        found["frozen"] = sorted(choices.frozen_stages)
    return found
