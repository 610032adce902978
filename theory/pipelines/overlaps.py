"""Overlapped pairs: a forward and a backward of one rank that run as one task.

DualPipe runs a forward and a backward at the same time, so that the one computes while the other
communicates. The pair is one task ``OVERLAP_F_B``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import NONE, ActionTable, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
from bubbleproof.theory.pipelines.extension import renumbered
from bubbleproof.theory.pipelines.value_types import Expectation

Overlap = tuple[tuple[int, int], tuple[int, int]]


def fuse(problem: Problem, overlaps: Sequence[Overlap]) -> Problem:
    """The problem with each (F, B) pair joined to one ``OVERLAP_F_B`` task of the summed duration.

    Each element names ((stage, microbatch) of the F, (stage, microbatch) of the B), both on one
    resource and unsliced. The joint task inherits every edge and memory event of both, so all
    inputs must be there when it starts. Raises ``ValueError`` for a pair that is not there or on
    two resources.
    """
    pairs = np.array(overlaps, dtype=np.int64).reshape(len(overlaps), 4)
    first = problem.locate(ActionTable.of(int(Kind.F), pairs[:, 0], pairs[:, 1]))
    second = problem.locate(ActionTable.of(int(Kind.B), pairs[:, 2], pairs[:, 3]))
    unfit = (first == NONE) | (second == NONE)
    unfit |= problem.rank_of_task[first] != problem.rank_of_task[second]
    if unfit.any():
        (f, i), (b, j) = overlaps[int(np.argmax(unfit))]
        raise ValueError(f"overlap needs {f}F{i} and {b}B{j} as tasks of one rank")
    if len(np.unique(first)) + len(np.unique(second)) < 2 * len(pairs):
        raise ValueError("an action may be part of one overlap only")
    kept = np.ones(problem.num_tasks, dtype=bool)
    kept[second] = False
    number = np.cumsum(kept) - 1
    number[second] = number[first]
    actions, duration = problem.actions, problem.duration.copy()
    kind, partner_stage = actions.kind.copy(), actions.partner_stage.copy()
    partner_microbatch = actions.partner_microbatch.copy()
    kind[first], partner_stage[first] = Kind.OVERLAP_F_B, pairs[:, 2]
    partner_microbatch[first] = pairs[:, 3]
    duration[first] += duration[second]
    fused = replace(
        actions, kind=kind, partner_stage=partner_stage, partner_microbatch=partner_microbatch
    )
    return renumbered(problem, kept, number, fused, duration)


OverlapChoice = Annotated[
    tuple[Overlap, ...],
    Expectation("a tuple of ((stage, microbatch), (stage, microbatch))"),
    ChoiceKind(turn=7, change=lambda problem, pairs, _: fuse(problem, pairs)),
]
