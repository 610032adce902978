"""Retiming: the measures of one order under many durations, without building it anew.

A family's order depends on its shape alone (``families.family``), so that a sweep over durations
asks for the same order again and again. A ``Template`` holds the problem and the order of one shape
and how often each tick (tF, tI, tW) enters the duration of each task; ``retimed`` gives what
``measure`` gives on the family's schedule at those ticks.

Two observations make it fast. Whatever the durations, the sequence of starts at *some* positive
durations puts every task behind all it waits for. And of what a task waits for, only the task
before it on its resource and the tasks on other resources count: one on the same resource stands
earlier in that resource's order (or the order would be a deadlock).

The counts are read off the durations at tF = 1, tI = 1000, tW = 1000000, digit by digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from bubbleproof.theory.families import family
from bubbleproof.theory.families.parameters import TICKS, make_parameters
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures, known_rows, measure_rows
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import waiting_edges

_BASE = 1000
_CODED = {"tF": 1, "tI": _BASE, "tW": _BASE**2}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Template:
    """The order of one shape; ``shares[t]`` says how often (tF, tI, tW) enter task t's duration.

    ``sequence`` lists the tasks so that each stands behind all it waits for; ``awaited[k][i]`` is
    the k-th task that ``sequence[i]`` waits for, or ``num_tasks`` for none. ``task`` and
    ``resource`` are the program's rows.
    """

    problem: Problem
    shares: Ints
    sequence: Sequence[int]
    awaited: tuple[Sequence[int], ...]
    task: Ints
    resource: Ints

    def duration(self, ticks: Mapping[str, int]) -> Ints:
        """The duration of each task. Raises ``ValueError`` for ticks that contradict each other."""
        given = make_parameters({"p": 1, "m": 1, **ticks})
        is_whole = bool((self.shares[:, 1] == self.shares[:, 2]).all())
        backward = (given.full_ticks, 0) if is_whole else given.split_ticks
        result: Ints = self.shares @ np.array([given.tF, *backward], dtype=np.int64)
        return result


def template(name: str, shape: Mapping[str, int | tuple[int, ...]]) -> Template:
    """The family's order at a shape (p, m and what else it takes).

    Raises ``ValueError`` for a shape that the family does not take.
    """
    chosen = family(name)
    coded = {tick: code for tick, code in _CODED.items() if tick in chosen.ticks}
    member = chosen.member(make_parameters({**shape, **coded}))
    problem, schedule = member.problem, member.schedule
    task, resource, start = known_rows(problem, schedule)
    order, awaited = _awaited(problem, schedule, task, resource, start)
    digits = [problem.duration // _BASE**k % _BASE for k in range(3)]
    return Template(
        problem=problem,
        shares=np.stack(digits, axis=1),
        sequence=order.tolist(),
        awaited=tuple(column.tolist() for column in awaited),
        task=task,
        resource=resource,
    )


def _awaited(
    problem: Problem, schedule: Schedule, task: Ints, resource: Ints, start: Ints
) -> tuple[Ints, list[Ints]]:
    """The tasks by their starts, and what each waits for in columns of that order."""
    before, after, lag = waiting_edges(problem, schedule.program, task)
    if lag.any():
        raise ValueError("a schedule is timed anew by its durations alone, but a link takes time")
    begin = np.zeros(problem.num_tasks, dtype=np.int64)
    begin[task] = start
    order = np.argsort(begin, kind="stable")
    # The order's own edges come last; of the others only those between resources are kept.
    is_order = np.arange(len(before)) >= len(problem.edges)
    home = np.zeros(problem.num_tasks, dtype=np.int64)
    home[task] = resource
    is_single = np.bincount(task, minlength=problem.num_tasks) == 1
    is_implied = (home[before] == home[after]) & is_single[before] & is_single[after]
    kept = is_order | ~is_implied
    before, after = before[kept], after[kept]
    by_task = np.argsort(after, kind="stable")
    before, after = before[by_task], after[by_task]
    first = np.searchsorted(after, np.arange(problem.num_tasks))
    nth = np.arange(len(after)) - first[after]
    columns = []
    for k in range(int(nth.max(initial=0)) + 1):
        column = np.full(problem.num_tasks, problem.num_tasks, dtype=np.int64)
        column[after[nth == k]] = before[nth == k]
        columns.append(column[order])
    return order, columns


def retimed(chosen: Template, ticks: Mapping[str, int]) -> Measures:
    """The measures at the given ticks (tF, tB, tI, tW; defaults where left out)."""
    duration = chosen.duration({name: ticks[name] for name in TICKS if name in ticks})
    end = np.array(_ends(chosen, duration), dtype=np.int64)
    problem = replace(chosen.problem, duration=duration)
    start = end[:-1] - duration
    return measure_rows(problem, chosen.task, chosen.resource, start[chosen.task])


def _ends(chosen: Template, duration: Ints) -> list[int]:
    """The earliest end of each task, and 0 for the task that is none."""
    end = [0] * (len(duration) + 1)
    none = [len(duration)] * len(duration)
    first, second, *others = (*chosen.awaited, none, none)[: max(2, len(chosen.awaited))]
    ticks = duration[chosen.sequence].tolist()
    rest = zip(*others, strict=True) if others else repeat(())
    for task, a, b, took, more in zip(chosen.sequence, first, second, ticks, rest, strict=False):
        begin = end[a] if end[a] > end[b] else end[b]
        for other in more:
            begin = max(begin, end[other])
        end[task] = begin + took
    return end
