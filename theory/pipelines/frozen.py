"""Frozen stages: stages whose weights are not trained, as where only the upper layers are tuned.

A frozen stage passes the gradient on and computes none of its own weights. So its backward is one
task B that takes the ticks of an I, ``input_backward``, and there is no W:

- precedences: those of any B (``pipeline``);
- memory: nothing is kept for a W, so B gives the whole activation back at its end, also where
  ``released_at_input`` says that an I leaves more or less behind; no GEMM of a W runs, so none
  holds its ``weight_workspace``. ``static`` is what the pipeline says it is.

A frozen stage is in a pipeline with split backwards what it is in one with full ones. Where every
stage is frozen nothing is trained and no gradient is wanted: no backward runs, as in evaluation and
batch inference, and a forward gives back at its end what it holds while it runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind, ChoiceSetting
from bubbleproof.theory.pipelines.extension import renumbered, subset, tasks_of_stage, with_changes
from bubbleproof.theory.pipelines.transfers import left_behind
from bubbleproof.theory.pipelines.value_types import Expectation


def with_frozen(problem: Problem, stages: tuple[int, ...], setting: ChoiceSetting) -> Problem:
    """The problem in which these stages have one backward B, of the ticks of an I, and no W.

    Where these are all stages they have no backward.

    Preconditions: store r is the memory of rank r, and nothing but the computation is in the
    problem.

    Parameters
    ----------
    stages
        Numbers of stages, each once.

    Raises
    ------
    ValueError
        For a stage that is not there, or is named twice.
    """
    if len(set(stages)) < len(stages):
        raise ValueError(f"each frozen stage is named once, got {stages}")
    forward, backward = (
        np.concatenate([tasks_of_stage(problem, g, *kinds) for g in stages])
        for kinds in ((Kind.F,), (Kind.B, Kind.I))
    )
    actions = problem.actions
    is_frozen = np.isin(actions.stage, stages)
    is_unwanted = is_frozen.all() & ~actions.is_kind(Kind.F, Kind.SEND_F)
    kept = ~(is_frozen & actions.is_kind(Kind.W) | is_unwanted)
    last = forward if is_frozen.all() else backward
    number = np.where(kept, np.cumsum(kept) - 1, NONE)
    kind, duration = actions.kind.copy(), problem.duration.copy()
    kind[backward] = Kind.B
    place = actions.stage[backward], actions.slice[backward]
    duration[backward] = setting.ticks.input_backward[place]
    rank = problem.rank_of_task[forward]
    is_other = ~is_frozen | actions.is_kind(Kind.F)
    bare = replace(problem, events=subset(problem.events, is_other[problem.events.task]))
    held = left_behind(bare, forward, rank)
    freed = with_changes(bare, [(last, True, rank, -held)])
    return renumbered(freed, kept, number, replace(actions, kind=kind), duration)


def untrained(num_stages: int) -> dict[str, tuple[int, ...]]:
    """What is chosen, by name, where none of so many stages is trained.

    Parameters
    ----------
    num_stages
        1 or more.
    """
    return {"frozen_stages": tuple(range(num_stages))}


FrozenChoice = Annotated[
    tuple[int, ...],
    Expectation("a tuple of stages"),
    ChoiceKind(
        turn=0,
        change=with_frozen,
        omits_work=True,
        is_of_stages=True,
        clashes=("state_offload", "sharding"),
    ),
]
