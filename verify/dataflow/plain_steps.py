"""Rule 7 in columns, decided from below: schedules of plain steps in which nothing can be wrong.

A plain step has F alone, or F, B, I and W, each of some ticks on its own rank. Where each is listed
once, there, and begins after what ``activations``, ``gradients`` and ``symbolic_messages`` ask of
it has ended, no instant of the symbolic run finds anything missing; so it need not be run. All else
is left to the run, which names what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passes:
    """Rank, start and end by (stage, microbatch, slice)."""

    rank: Ints
    start: Ints
    end: Ints


def is_plainly_right(problem: Problem, schedule: Schedule) -> bool:
    """Whether columns alone show that a symbolic run of the schedule makes no mistake."""
    task = problem.locate(schedule.program.actions)
    if not _is_plain(problem) or not _lists_each_once(problem, schedule, task):
        return False
    start = np.empty(problem.num_tasks, dtype=np.int64)
    start[task] = schedule.start
    actions = problem.actions
    shape = tuple(int(column.max()) + 1 for column in _place(problem))
    forwards, backwards = actions.is_kind(Kind.F), actions.is_kind(Kind.B, Kind.I)
    kinds = (forwards,) if forwards.all() else (forwards, backwards)
    every = np.arange(np.prod(shape))
    if not all(np.array_equal(np.sort(_cell(problem, kind, shape)), every) for kind in kinds):
        return False
    forward, *there = (_passes(problem, kind, start, shape) for kind in kinds)
    return _flows(forward) and all(
        _returns(forward, backward) and _sums(problem, start, backward, shape) for backward in there
    )


def _is_plain(problem: Problem) -> bool:
    actions = problem.actions
    return bool(
        actions.is_kind(Kind.F, Kind.B, Kind.I, Kind.W).all()
        and actions.is_kind(Kind.F).any()
        and (problem.duration > 0).all()
        and (problem.rank_of_task != NONE).all()
        and len(problem.occupancy.task) == problem.num_tasks
    )


def _lists_each_once(problem: Problem, schedule: Schedule, task: Ints) -> bool:
    """Each task once, and on its own rank."""
    if len(task) != problem.num_tasks or (task == NONE).any():
        return False
    is_once = (np.bincount(task, minlength=problem.num_tasks) == 1).all()
    return bool(is_once and (schedule.program.resource == problem.rank_of_task[task]).all())


def _place(problem: Problem) -> tuple[Ints, Ints, Ints]:
    return problem.actions.stage, problem.actions.microbatch, problem.actions.slice


def _cell(problem: Problem, kind: Bools, shape: tuple[int, ...]) -> Ints:
    """The number of (stage, microbatch, slice) of each task of a kind."""
    return np.ravel_multi_index([column[kind] for column in _place(problem)], shape)


def _passes(problem: Problem, kind: Bools, start: Ints, shape: tuple[int, ...]) -> _Passes:
    order = np.argsort(_cell(problem, kind, shape))
    columns = problem.rank_of_task, start, start + problem.duration
    rank, begin, end = (column[kind][order].reshape(shape) for column in columns)
    return _Passes(rank=rank, start=begin, end=end)


def _flows(forward: _Passes) -> bool:
    """Each forward after those of the stage and of the slice before it.

    Slices of a sample share their key/value states on one rank.
    """
    return bool(
        (forward.start[1:] >= forward.end[:-1]).all()
        and (forward.start[:, :, 1:] >= forward.end[:, :, :-1]).all()
        and (forward.rank == forward.rank[:, :, :1]).all()
    )


def _returns(forward: _Passes, backward: _Passes) -> bool:
    """Each backward after its F on one rank, and after those of the stage and slice behind it."""
    return bool(
        (backward.rank == forward.rank).all()
        and (backward.start >= forward.end).all()
        and (backward.start[:-1] >= backward.end[1:]).all()
        and (backward.start[:, :, :-1] >= backward.end[:, :, 1:]).all()
    )


def _sums(problem: Problem, start: Ints, backward: _Passes, shape: tuple[int, ...]) -> bool:
    """Each I, and no B, has its W, which comes later on its rank."""
    late, split = (problem.actions.is_kind(kind) for kind in (Kind.W, Kind.I))
    cell, left = _cell(problem, late, shape), _cell(problem, split, shape)
    return bool(
        np.array_equal(np.bincount(left), np.minimum(np.bincount(cell), 1))
        and (problem.rank_of_task[late] == backward.rank.ravel()[cell]).all()
        and (start[late] >= backward.end.ravel()[cell]).all()
    )
