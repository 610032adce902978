"""What a pipeline leaves to a solver to choose.

- recomputation (``theory.pipelines.recompute``), per stage or per (stage, microbatch);
- evictions to a paired rank (``theory.pipelines.transfers``), per (stage, microbatch, slice);
- off-load of activations to the host (``theory.pipelines.activation_offload``), likewise.

One sample of a stage is recomputed, evicted or off-loaded, but not two of these at once. What is
chosen in the end is a ``Pipeline`` with these ``Choices``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.transfers import Eviction

RECOMPUTE, EVICT, OFFLOAD = "recompute", "evict", "off-load"
Sample = tuple[int, int, int]  # stage g, its microbatch j or ``NONE`` for all, and slice k


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

    def taking(
        self, taken: Mapping[str, Sequence[Sample]], stage_ranks: Sequence[int]
    ) -> dict[str, Any]:
        """The choices, by name, of a pipeline in which exactly these samples are chosen so.

        Precondition: none of these choices is made in it.

        Parameters
        ----------
        taken
            By what is chosen (``recompute``, ``evict``, ``off-load``), the samples (stage,
            microbatch, slice).
        stage_ranks
            The rank of each stage.

        Returns
        -------
        dict[str, Any]
            The arguments of ``Pipeline.with_changes``.
        """
        again, evict, offload = self.recompute, self.evict, self.offload
        found: dict[str, Any] = {"host_capacity": offload and offload.host_capacity}
        if again is not None and (rows := taken.get(RECOMPUTE)):
            found["recompute"] = Recompute(
                stages=tuple(stage for stage, row, _ in rows if row == NONE),
                samples=tuple((stage, row) for stage, row, _ in rows if row != NONE),
                kept=again.kept,
                duration=again.duration,
            )
        if evict is not None:
            targets, ticks = dict(evict.pairs), evict.duration
            found["evictions"] = tuple(
                Eviction(
                    stage=g, microbatch=j, slice=k, source=r, target=targets[r], duration=ticks
                )
                for g, j, k in taken.get(EVICT, ())
                for r in (stage_ranks[g],)
            )
        if offload is not None:
            down, up = offload.offload, offload.reload
            found["offloads"] = tuple(
                ActivationOffload(stage=g, microbatch=j, slice=k, offload=down, reload=up)
                for g, j, k in taken.get(OFFLOAD, ())
            )
        return found
