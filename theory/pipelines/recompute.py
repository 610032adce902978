"""Recomputation: activations that are dropped after the forward and made again for the backward.

For every forward F of a recomputed stage the problem gets a task R of the same stage, microbatch
and slice, on the same rank. With a the units that F acquires and k those that are kept:

- precedences: R after F, B (or I) after R. R needs nothing from another rank, so it may run while
  the gradient is still on its way (T-Pipe section 4.2, block-wise recomputation);
- memory: F acquires a at its start, as any forward does, and gives back a - k at its end; R
  acquires a - k at its start; the backward releases as without recomputation.

So one recomputed activation lies in memory in full while its F runs and from the start of R to the
end of the backward, and costs ``kept`` in between. ``kept`` is the input of the stage, which has to
stay because R starts from it; T-Pipe's Appendix C counts it as nothing, and so does the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import backwards_of, extended, tasks_of_stage
from bubbleproof.theory.pipelines.value_types import Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """What is dropped after its forward and made again; R takes ``duration`` ticks.

    ``stages`` are recomputed; ``kept`` units of an activation stay.

    ``samples`` are (stage, microbatch) pairs that are recomputed although their stage is not. All
    slices of a sample are. Without ``duration`` R takes as long as its forward. Raises
    ``ValueError`` for numbers below 0 and for a stage or a sample that is named twice.
    """

    stages: tuple[int, ...] = ()
    samples: tuple[tuple[int, int], ...] = ()
    kept: int = 0
    duration: int | None = None

    def __post_init__(self) -> None:
        if len(set(self.stages)) < len(self.stages):
            raise ValueError(f"each recomputed stage is named once, got {self.stages}")
        whole = [sample for sample in self.samples if sample[0] in self.stages]
        if whole or len(set(self.samples)) < len(self.samples):
            raise ValueError(f"each recomputed sample is named once, got {self.samples}")
        for name in ("kept", "duration"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} of a recomputation must be 0 or more, got {value}")


def with_recompute(problem: Problem, choice: Recompute) -> Problem:
    """The problem with an R for every forward of the chosen stages.

    Raises ``ValueError`` for a stage without forwards or backwards of its own, and where ``kept``
    exceeds what a forward acquires.
    """
    forward = _forwards(problem, choice)
    if not len(forward):
        return problem
    backward = backwards_of(problem, forward)
    rank = problem.rank_of_task[forward]
    dropped = _acquired(problem, forward) - choice.kept
    if (dropped < 0).any():
        worst = int(np.argmin(dropped))
        raise ValueError(
            f"kept ({choice.kept}) exceeds what {problem.label(int(forward[worst]))} acquires "
            f"({dropped[worst] + choice.kept})"
        )
    again = problem.num_tasks + np.arange(len(forward))
    ticks = problem.duration[forward]
    actions = problem.actions
    return extended(
        problem,
        actions=ActionTable.of(
            int(Kind.R), actions.stage[forward], actions.microbatch[forward], actions.slice[forward]
        ),
        duration=ticks if choice.duration is None else np.full_like(ticks, choice.duration),
        homes=[(again, rank)],
        waits=[(forward, again), (again, backward)],
        changes=[(forward, True, rank, -dropped), (again, False, rank, dropped)],
    )


def _forwards(problem: Problem, choice: Recompute) -> Ints:
    """The forwards that are recomputed, stage by stage and then sample by sample."""
    found = [tasks_of_stage(problem, g, Kind.F) for g in choice.stages]
    for stage, microbatch in choice.samples:
        tasks = tasks_of_stage(problem, stage, Kind.F)
        tasks = tasks[problem.actions.microbatch[tasks] == microbatch]
        if not len(tasks):
            raise ValueError(f"stage {stage} has no forward of microbatch {microbatch}")
        found.append(tasks)
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _acquired(problem: Problem, forward: Ints) -> Ints:
    """What each forward acquires in its rank's store at its start. Shape: (forwards,)."""
    events = problem.events
    own = ~events.at_end & (events.store == problem.rank_of_task[events.task])
    total = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(total, events.task[own], events.delta[own])
    return total[forward]


RecomputeChoice = Annotated[
    Recompute | None,
    Expectation("a Recompute or None"),
    ChoiceKind(
        turn=3,
        change=lambda problem, choice, _: with_recompute(problem, choice),
        adds_tasks=True,
    ),
]
