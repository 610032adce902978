"""PyTorch's side of ``verify_speed``: its own chain in a process that loads nothing of ours.

    python -m benchmarks.speed_torch RANKS MICROBATCHES CHUNKS

``ScheduleInterleaved1F1B`` makes the order, ``_validate_schedule`` counts its actions,
``_add_send_recv`` adds messages and ``_simulate_comms_compute`` runs what comes of it. The seconds
of each step, and how many actions there are, go to standard output in one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class StandInStage:
    """What a schedule object asks of a stage when it lays out its order."""

    stage_index: int
    num_stages: int
    group_size: int
    group_rank: int = 0
    submod: None = None
    has_backward: bool = True
    stage_index_to_group_rank: dict[int, int] = field(default_factory=dict)  # PyTorch sets it

    @property
    def is_first(self) -> bool:
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        return self.stage_index == self.num_stages - 1


def stand_ins(ranks: int, chunks: int) -> list[StandInStage]:
    """The stages of rank 0, in a loop."""
    stages = ranks * chunks
    return [
        StandInStage(stage_index=chunk * ranks, num_stages=stages, group_size=ranks)
        for chunk in range(chunks)
    ]


def chain(ranks: int, microbatches: int, chunks: int) -> dict[str, float]:
    """Seconds by step, and the number of ``tasks``."""
    moments = [time.perf_counter()]

    def done() -> float:
        moments.append(time.perf_counter())
        return moments[-1] - moments[-2]

    import torch.distributed.pipelining.schedules as torch_schedules

    seconds, stages = {"import": done()}, ranks * chunks
    given = stand_ins(ranks, chunks)
    made = torch_schedules.ScheduleInterleaved1F1B(given, microbatches)  # type: ignore[arg-type]  # stand-ins
    order: Any = {
        rank: [action for action in actions if action is not None]
        for rank, actions in made.pipeline_order.items()
    }
    seconds["order"], tasks = done(), sum(map(len, order.values()))
    torch_schedules._validate_schedule(order, ranks, stages, microbatches)
    seconds["_validate_schedule"] = done()
    lowered = torch_schedules._add_send_recv(order, lambda stage: stage % ranks, stages)
    seconds["_add_send_recv"] = done()
    torch_schedules._simulate_comms_compute(lowered, lambda stage: stage % ranks, stages)
    seconds["_simulate_comms_compute"] = done()
    return {**seconds, "tasks": tasks}  # the messages were put in the place of the order


if __name__ == "__main__":
    sys.stdout.write(json.dumps(chain(*map(int, sys.argv[1:]))))
