"""Forwards alone: evaluation and batch inference through a pipeline.

Nothing is trained, so no backward runs (``theory.pipelines.frozen`` of all stages). Each rank runs
its chunks on groups of p microbatches, chunk by chunk within a group; with one chunk, which is
PyTorch's schedule, that is microbatch by microbatch. Nothing is held from one forward to the next.

Where a stage takes tF ticks and v = 1 or p divides m, the step takes (m v + p - 1) tF, and no order
takes less: the last rank begins after p - 1 other forwards and then has m v of its own.

Sources: ``_ScheduleForwardOnly`` of torch.distributed.pipelining; with chunks the forwards of
Megatron-LM's interleaved schedule, which are those of ``forward_only``. Legal range: any p, m, v.
Peak on every rank: 1 activation, while a forward runs.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_ranks
from bubbleproof.theory.families.parameters import TICKS, FamilyParameters
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.frozen import untrained
from bubbleproof.theory.pipelines.pipeline import Pipeline


class ForwardOnly(Family):
    """All forwards, in groups of p microbatches chunk by chunk, and no backward."""

    name = "forward"
    title = "Forward only"
    source = "_ScheduleForwardOnly of torch.distributed.pipelining; Megatron-LM's forward_only"
    options = frozenset({"v"})
    ticks = ("tF",)
    adds = frozenset(untrained(1))

    def refusal(self, pipeline: Pipeline) -> str | None:
        if not forwards_alone(pipeline):
            chosen = ", ".join(sorted(self.adds))
            return f"{self.name} trains nothing ({chosen} = all {pipeline.num_stages} stages)"
        return super().refusal(pipeline)

    def fitted(self, pipeline: Pipeline) -> Pipeline:
        """As of any family, but it still trains what it trained: no backward is dropped here."""
        made = super().fitted(pipeline)
        is_alone = forwards_alone(pipeline)
        return made.with_changes(**untrained(made.num_stages)) if is_alone else made

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        for name in TICKS:
            if name not in self.ticks and (value := getattr(params, name)) is not None:
                raise ValueError(f"{self.name} takes no parameter {name}, got {name}={value}")
        made = super().pipeline(params)
        return made.with_changes(**untrained(made.num_stages))

    def program(self, pipeline: Pipeline) -> Program:
        p, v, m = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_microbatches
        chunk, microbatch = (column.ravel() for column in np.indices((v, m)))
        order = np.lexsort((microbatch, chunk, microbatch // p))
        kind = np.full(v * m, Kind.F)
        return program_of_ranks(
            [(kind, (chunk * p + rank)[order], microbatch[order]) for rank in range(p)]
        )

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        told = super().full_params(params, pipeline)
        return {name: value for name, value in told.items() if name != "tB"}


def forwards_alone(pipeline: Pipeline) -> bool:
    """Whether no stage is trained, so that no backward runs."""
    is_part = bool(pipeline.choices.omitting)
    return is_part and bool(pipeline.problem().actions.is_kind(Kind.F, Kind.SEND_F).all())
