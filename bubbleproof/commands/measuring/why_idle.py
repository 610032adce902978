"""``measure --why``: the causes of idle time, the critical path and the reason for the best bound.

With ``--json`` the key ``why`` holds ``ticks_by_cause`` (one table a rank, all causes), ``idle``
(every stretch: ``rank``, ``from_tick``, ``to_tick``, ``cause``, ``action``, ``of_action``,
``of_rank``, ``link``, ``sentence``), ``critical_path`` (``action``, ``resource``, ``start``,
``end``, ``after``, ``lag``, ``late``) and ``bound``, the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice

from bubbleproof.commands.output import print_list, print_table, print_text
from bubbleproof.solvers.bound_reason import bound_reason
from bubbleproof.theory.idle import IdleStretch, IdleStretches, idle_stretches
from bubbleproof.theory.idle.critical_path import PathStep
from bubbleproof.theory.idle.idle_causes import MEANINGS
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.units import plural

MOST_ROWS = 40  # of a table for people; --json has all


def why_to_json(problem: Problem, schedule: Schedule) -> dict[str, object]:
    """Everything that is told, for programs."""
    found = idle_stretches(problem, schedule)
    return {
        "ticks_by_cause": [_sums(found, rank) for rank in range(problem.num_ranks)],
        "idle": [stretch_to_json(stretch) for stretch in found],
        "critical_path": [asdict(step) for step in found.critical_path],
        "bound": bound_reason(problem) if problem.num_tasks else None,
    }


def stretch_to_json(stretch: IdleStretch) -> dict[str, object]:
    """One stretch by the names of its fields, its cause as a word."""
    return {
        **asdict(stretch),
        "cause": stretch.cause.value,
        "sentence": stretch.sentence,
    }


def print_why(problem: Problem, schedule: Schedule) -> None:
    """The same for people: the first stretches and steps, and how many more there are."""
    found = idle_stretches(problem, schedule)
    causes = [cause for cause, ticks in found.ticks_by_cause().items() if ticks]
    sums = [[str(_sums(found, rank)[cause.value]) for cause in causes] for rank in _ranks(problem)]
    idle = found.idle_ticks()
    print_table(
        f"idle {plural(problem.unit)} by cause",
        ("rank", *(cause.value for cause in causes), "idle_ticks"),
        [(str(r), *sums[r], str(idle[r])) for r in _ranks(problem)],
    )
    print_list("causes", [f"{cause.value}: {MEANINGS[cause]}" for cause in causes])
    _print_first("idle stretches", ("rank", "from", "to", "cause"), len(found), _rows(found))
    path = found.critical_path
    header = ("from", "to", "on", "action", "starts after")
    _print_first("critical path", header, len(path), map(_step, path))
    if problem.num_tasks:
        print_text(bound_reason(problem))


def _ranks(problem: Problem) -> range:
    return range(problem.num_ranks)


def _sums(found: IdleStretches, rank: int) -> dict[str, int]:
    return {cause.value: ticks for cause, ticks in found.ticks_by_cause(rank).items()}


def _rows(found: IdleStretches) -> Iterable[Sequence[str]]:
    for stretch in found:
        where = str(stretch.rank), str(stretch.from_tick), str(stretch.to_tick)
        yield *where, stretch.sentence


def _step(step: PathStep) -> Sequence[str]:
    words = {"input": "its input", "order": "the task before it", "memory": "room in memory"}
    after = words.get(step.after, "nothing")
    after += f", {step.lag} on the way" if step.lag else ""
    after += f", {step.late} late" if step.late else ""
    return str(step.start), str(step.end), step.resource, step.action, after


def _print_first(
    title: str, header: Sequence[str], number: int, rows: Iterable[Sequence[str]]
) -> None:
    if number:
        print_table(title, header, islice(rows, MOST_ROWS))
    if number > MOST_ROWS:
        print_text(f"{number - MOST_ROWS:,} more rows: --json has all of them.")
