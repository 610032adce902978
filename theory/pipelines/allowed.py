"""What a pipeline leaves to a solver to choose.

- recomputation (``theory.pipelines.recompute``), per stage or per (stage, microbatch);
- evictions to a paired rank (``theory.pipelines.transfers``), per (stage, microbatch, slice);
- off-load of activations to the host (``theory.pipelines.activation_offload``), likewise.

One sample of a stage is recomputed, evicted or off-loaded, but not two of these at once. What is
chosen in the end is a ``Pipeline`` with these ``Choices``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedRecompute:
    """Stages that may be recomputed, all microbatches alike unless ``per_microbatch``.

    ``kept`` units of each activation stay; R takes ``duration`` ticks, or those of its forward.
    """

    stages: tuple[int, ...]
    kept: int = 0
    duration: int | None = None
    per_microbatch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedEvictions:
    """``pairs`` of ranks (source, target); each transfer takes ``duration`` ticks of their link.

    Raises ``ValueError`` where a source stands twice.
    """

    pairs: tuple[tuple[int, int], ...]
    duration: int

    def __post_init__(self) -> None:
        sources = [source for source, _ in self.pairs]
        if len(set(sources)) < len(sources):
            raise ValueError(f"a rank evicts to one other rank, got the sources {sources}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedOffloads:
    """``stages`` whose activations may go to the host, ``offload`` and ``reload`` ticks a way."""

    stages: tuple[int, ...]
    offload: int
    reload: int
    host_capacity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedChoices:
    """What a solver may choose for a pipeline; None or nothing given allows nothing of a kind."""

    recompute: AllowedRecompute | None = None
    evict: AllowedEvictions | None = None
    offload: AllowedOffloads | None = None
