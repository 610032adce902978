"""Off-load of activations: what a forward leaves behind waits on the host for its backward.

An off-load of (stage, microbatch) adds two tasks to a problem, OFFLOAD on the rank's download
engine and RELOAD on its upload engine, so both run beside computation and beside each other
(PipeOffload section 2). With F and B the forward and backward (B or I) of that stage and
microbatch, and a the units that F leaves in the store of its rank:

- precedences: OFFLOAD after F, RELOAD after OFFLOAD, B after RELOAD;
- memory: OFFLOAD adds a to the host at its start and takes a from the rank at its end; RELOAD adds
  a to the rank at its start and takes a from the host at its end (as an EVICT and a LOAD do).

Every rank has a host memory of its own, without limit unless ``host_capacity`` gives one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Kind
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import (
    backwards_of,
    extended,
    host_memory,
    numbered,
)
from bubbleproof.theory.pipelines.transfers import left_behind
from bubbleproof.theory.pipelines.value_types import Expectation

ENGINES = ("download engine", "upload engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationOffload:
    """An activation that waits on the host; ticks of each way.

    Raises ``ValueError`` for a negative duration.
    """

    stage: int
    microbatch: int
    offload: int
    reload: int
    slice: int = 0

    def __post_init__(self) -> None:
        if min(self.offload, self.reload) < 0:
            raise ValueError(
                "an off-load and a reload take 0 ticks or more, "
                f"got {self.offload} and {self.reload}"
            )


def with_activation_offloads(
    problem: Problem, offloads: Sequence[ActivationOffload], host_capacity: int | None = None
) -> Problem:
    """The problem with an OFFLOAD and a RELOAD per off-load, two engines and a host per used rank.

    Precondition: store r is the memory of rank r.

    Parameters
    ----------
    offloads
        What goes to the host; each takes ``offload`` and ``reload`` ticks of an engine.
    host_capacity
        Units of memory of each host; None for no limit.

    Raises
    ------
    ValueError
        Where an off-load names no forward with a backward of its own, or one is named twice.
    """
    if not offloads:
        return problem
    columns = np.array([(o.stage, o.microbatch, o.slice) for o in offloads], dtype=np.int64).T
    forward = problem.locate(ActionTable.of(int(Kind.F), *columns))
    if (forward == NONE).any():
        lost = offloads[int(np.argmax(forward == NONE))]
        raise ValueError(f"stage {lost.stage} has no forward of microbatch {lost.microbatch}")
    backward = backwards_of(problem, forward)
    rank = problem.rank_of_task[forward]
    used, row = np.unique(rank, return_inverse=True)
    down = problem.num_tasks + np.arange(len(offloads))
    up = down + len(offloads)
    engines, new_engines = numbered(
        problem.resources, [f"{name} of rank {r}" for r in used for name in ENGINES]
    )
    hosts, new_hosts = numbered(problem.stores, [*map(host_memory, used.tolist())])
    host = hosts[row]
    units = left_behind(problem, forward, rank)
    return extended(
        problem,
        actions=ActionTable.concatenate(
            ActionTable.of(int(kind), *columns) for kind in (Kind.OFFLOAD, Kind.RELOAD)
        ),
        duration=np.array([o.offload for o in offloads] + [o.reload for o in offloads]),
        homes=[(down, engines[2 * row]), (up, engines[2 * row + 1])],
        waits=[(forward, down), (down, up), (up, backward)],
        changes=[
            (down, False, host, units),
            (down, True, rank, -units),
            (up, False, rank, units),
            (up, True, host, -units),
        ],
        resources=[Resource(name=name) for name in new_engines],
        stores=[Store(name=name, capacity=host_capacity) for name in new_hosts],
    )


OffloadChoice = Annotated[
    tuple[ActivationOffload, ...],
    Expectation("a tuple of ActivationOffload"),
    ChoiceKind(
        turn=2,
        change=lambda problem, offloads, setting: with_activation_offloads(
            problem, offloads, setting.host_capacity
        ),
        adds_tasks=True,
    ),
]
HostCapacityChoice = Annotated[int | None, Expectation("a whole number or None")]
