"""Grids: the part of a schedule or program around an offence, as text.

``time_grid`` draws resource x time to scale; ``step_grid`` draws resource x step for programs that
have no times. Offending cells stand in brackets and are underlined.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.units import plural

WIDTH = 100
MAX_ROWS = 16
STEPS_AROUND = 4


def time_grid(problem: Problem, schedule: Schedule, task: Ints, marked: Ints) -> str:
    """The rank x time picture around the rows ``marked``; ``task`` locates every row.

    Marked rows stand as ``[0F3]``, others as ``|0F3``; dots are idle time.

    Parameters
    ----------
    task
        Of each row of the schedule the number of its task.
    marked
        Rows of the schedule, at least one.
    """
    duration = problem.ticks(task)
    start, end = schedule.start, schedule.start + duration
    left, right = int(start[marked].min()), int(end[marked].max())
    typical = max(1, int(np.median(duration)) if len(duration) else 1)
    lead = max(4 * typical, (10 * typical - (right - left)) // 2)
    left, right = max(int(start.min()), left - lead), right + lead
    # One tick per column at most; a window too wide for the page is cut around the first mark.
    ticks_per_column = max(1, -(-typical // 8))
    right = min(right, left + WIDTH * ticks_per_column)
    visible = np.flatnonzero(
        (end > left) & (start < right) | np.isin(np.arange(len(start)), marked)
    )
    columns_per_tick = max(1, min(8, 6 // min(typical, 6))) if ticks_per_column == 1 else 1
    wanted = _resources_to_show(schedule.program.resource, marked, visible)
    actions, marks = schedule.program.actions, {*marked.tolist()}
    is_sliced = actions.is_sliced
    lines = [f"{'time':>8}  {left} .. {right} {plural(problem.unit)}"]
    for resource in wanted:
        cells = [" "] * (WIDTH * 2)
        rows = visible[schedule.program.resource[visible] == resource]
        for row in rows.tolist():
            a = (int(start[row]) - left) * columns_per_tick // ticks_per_column
            b = (int(end[row]) - left) * columns_per_tick // ticks_per_column
            _put(cells, a, b, actions[row].label(sliced=is_sliced), row in marks)
        text = "".join(cells).rstrip()[: WIDTH + 20]
        lines.append(f"{problem.resource_name(resource):>8}  {text}")
        if not marks.isdisjoint(rows.tolist()):
            lines.append(" " * 10 + "".join("^" if c in "[]" else " " for c in text).rstrip())
    return "\n".join(lines)


def _put(cells: list[str], begin: int, end: int, label: str, is_marked: bool) -> None:
    """Write one action; of one that lasts a billion columns no more than the page has is made."""
    text = f"[{label}]" if is_marked else f"|{label}"
    begin = max(begin, 0)
    width = max(min(end, len(cells)) - begin, 1)
    if not is_marked:
        text = text[:width]
    text = text.ljust(width, " " if is_marked else "-")
    for offset, letter in enumerate(text):
        at = begin + offset
        if 0 <= at < len(cells) and (is_marked or cells[at] in " -"):
            cells[at] = letter


def _resources_to_show(resource: Ints, marked: Ints, visible: Ints) -> list[int]:
    must = sorted(set(resource[marked].tolist()))
    others = [r for r in sorted(set(resource[visible].tolist())) if r not in must]
    others.sort(key=lambda r: min(abs(r - m) for m in must))
    return sorted(must + others[: max(0, MAX_ROWS - len(must))])


def step_grid(problem: Problem, program: Program, marked: Ints) -> str:
    """The resource x step picture around the rows ``marked``: who is where when nothing moves.

    Parameters
    ----------
    marked
        Rows of the program, at least one.
    """
    lines, actions = [], program.actions
    is_sliced = actions.is_sliced
    for resource in _resources_to_show(program.resource, marked, marked):
        rows = np.flatnonzero(program.resource == resource)
        hits = np.flatnonzero(np.isin(rows, marked))
        low = max(0, int(hits.min()) - STEPS_AROUND)
        high = min(len(rows), int(hits.max()) + STEPS_AROUND + 1)
        labels = [actions[row].label(sliced=is_sliced) for row in rows[low:high].tolist()]
        cells = [
            f"[{label}]" if is_hit else label
            for label, is_hit in zip(labels, np.isin(rows[low:high], marked), strict=True)
        ]
        lead = "... " if low else ""
        tail = " ..." if high < len(rows) else ""
        text = _shortened(lead + "  ".join(cells) + tail)
        lines.append(f"{problem.resource_name(resource):>8}  {text}")
    return "\n".join(lines)


def _shortened(text: str) -> str:
    limit = 2 * WIDTH
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
