"""Off-load of model state: gradients go to the host, the host updates, new weights come back.

One training step of an off-loaded stage g on rank r, as T-Pipe section 5 draws it:

    RELOAD g   the weights that the host made in the step before come up; on r's upload engine
    F, B ...   the step itself; every F of g waits for RELOAD, and OFFLOAD for every B (I and W)
    OFFLOAD g  the summed gradient goes down; on r's download engine
    STEP g     the host's optimizer step, after OFFLOAD; on r's host

The three engines of a rank are resources of their own, so these tasks overlap with computation; a
schedule that keeps them in bubbles shows it by taking no longer than without them. Memory: RELOAD
acquires ``weight`` + ``gradient`` units on the rank at its start and gives the uploaded copy back
on the host at its end; OFFLOAD gives ``weight`` back at its start (no one needs it any more) and
``gradient`` at its end, which lies on the host from the start of OFFLOAD to the end of STEP; STEP
acquires the next copy of the weights on the host. ``state`` (optimizer moments, master weights) is
the base load of the host. After the step all stores hold what they held before.

RELOAD carries microbatch 0, whose forward it must precede, and OFFLOAD microbatch m-1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import (
    extended,
    host_memory,
    numbered,
    tasks_of_stage,
)
from bubbleproof.theory.pipelines.value_types import Expectation

ENGINES = ("download engine", "host", "upload engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOffload:
    """Stages that their host updates; ticks of the three tasks, memory units of one stage.

    ``weight``, ``gradient`` and ``state`` default to 0: T-Pipe's activation figures leave model
    state out. Raises ``ValueError`` for a number below 0 and for a stage that is named twice.
    """

    stages: tuple[int, ...]
    offload: int = 1
    step: int = 1
    reload: int = 1
    weight: int = 0
    gradient: int = 0
    state: int = 0

    def __post_init__(self) -> None:
        if len(set(self.stages)) < len(self.stages):
            raise ValueError(f"each off-loaded stage is named once, got {self.stages}")
        for name in ("offload", "step", "reload", "weight", "gradient", "state"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"{name} of an off-load must be 0 or more, got {value}")


def with_state_offload(problem: Problem, choice: StateOffload, _: object = None) -> Problem:
    """The problem with RELOAD, OFFLOAD and STEP for each chosen stage, on three engines per rank.

    Engines and host stores are there for every rank; those that off-loads of activations use are
    the same. Raises ``ValueError`` for a stage that does not run on one rank.
    """
    if not choice.stages:
        return problem
    p, count = problem.num_ranks, len(choice.stages)
    stage = np.array(choice.stages)
    homes = problem.stage_to_rank
    if lost := [g for g in choice.stages if g not in homes]:
        raise ValueError(f"stage {lost[0]} runs on no rank or on several; off-load takes one")
    rank = np.array([homes[g] for g in choice.stages])
    last = int(problem.actions.microbatch.max())
    down, step, up = (problem.num_tasks + k * count + np.arange(count) for k in range(3))
    engines, new_engines = numbered(
        problem.resources, [f"{name} of rank {r}" for r in range(p) for name in ENGINES]
    )
    hosts, new_hosts = numbered(problem.stores, [*map(host_memory, range(p))])
    host = hosts[rank]
    state = np.bincount(rank, minlength=p) * (choice.state + choice.weight)
    updated = extended(
        problem,
        actions=ActionTable.concatenate(
            [
                ActionTable.of(int(Kind.OFFLOAD), stage, last),
                ActionTable.of(int(Kind.STEP), stage, NONE),
                ActionTable.of(int(Kind.RELOAD), stage, 0),
            ]
        ),
        duration=np.repeat([choice.offload, choice.step, choice.reload], count),
        homes=[
            (tasks, engines[len(ENGINES) * rank + k]) for k, tasks in enumerate((down, step, up))
        ],
        waits=[(down, step), *_waits(problem, choice, down, up)],
        changes=[
            (up, False, rank, choice.weight + choice.gradient),
            (up, True, host, -choice.weight),
            (down, False, rank, -choice.weight),
            (down, True, rank, -choice.gradient),
            (down, False, host, choice.gradient),
            (step, True, host, -choice.gradient),
            (step, False, host, choice.weight),
        ],
        resources=[Resource(name=name) for name in new_engines],
        stores=[Store(name=name) for name in new_hosts],
    )
    stores = list(updated.stores)
    for store, load in zip(hosts.tolist(), state.tolist(), strict=True):
        stores[store] = replace(stores[store], base=stores[store].base + load)
    return replace(updated, stores=tuple(stores))


def _waits(problem: Problem, choice: StateOffload, down: Ints, up: Ints) -> list[tuple[Ints, Ints]]:
    """Every forward after its stage's RELOAD; OFFLOAD after every backward."""
    found = []
    for row, g in enumerate(choice.stages):
        forward = tasks_of_stage(problem, g, Kind.F)
        backward = tasks_of_stage(problem, g, Kind.B, Kind.I, Kind.W)
        found.append((np.full_like(forward, up[row]), forward))
        found.append((backward, np.full_like(backward, down[row])))
    return found


StateOffloadChoice = Annotated[
    StateOffload | None,
    Expectation("a StateOffload or None"),
    ChoiceKind(turn=4, change=with_state_offload, adds_tasks=True),
]
