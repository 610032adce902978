"""A page's viewer: the element that it is drawn in, the data of its schedules, and its script.

The script is the files of ``script/`` in the order of ``FILES``, then how it begins: on a page
(``start``, in one closed scope), or in a notebook (``widget``, as a module). It names nothing
outside a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from bubbleproof.report.html import embedded_json, escape, paragraph
from bubbleproof.report.timeline import Timeline, Window, timeline
from bubbleproof.report.viewer.schedule_data import Json, schedule_data
from bubbleproof.theory.model.problem import MemoryEvents, Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill

FILES = (
    *("columns", "memory", "cells", "palettes", "shown_view", "words", "search"),
    *("draw_lanes", "draw_memory", "draw_marks", "controls", "pointer", "keyboard"),
    *("exchange", "viewer"),
)
PALETTES = ("standard", "Okabe-Ito", "greys")  # as in script/palettes.js
_ROOM = files("bubbleproof.report").joinpath("viewer")
_ALL = 10**12  # bars, rows: a viewer leaves nothing out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewedSchedule:
    """A schedule of a viewer; ``stopped`` is where it comes from that runs until a standstill."""

    name: str
    problem: Problem
    schedule: Schedule
    stopped: Standstill | None = None
    has_memory: bool = True  # False: what ranks hold is not known

    @property
    def view(self) -> Timeline:
        """All of its bars, without memory curves."""
        return timeline(
            self.problem,
            self.schedule,
            max_bars=_ALL,
            max_rows=_ALL,
            max_curves=0,
            stopped=self.stopped,
        )

    @property
    def content(self) -> dict[str, Json]:
        """All that a viewer draws of it."""
        return self.data(self.view)

    def data(self, view: Timeline) -> dict[str, Json]:
        """What the script draws of it."""
        problem = self.problem
        if not self.has_memory:
            problem = replace(problem, stores=(), events=MemoryEvents())
        return schedule_data(self.name, problem, self.schedule, view)


def viewer(
    schedules: Sequence[ViewedSchedule],
    *,
    name: str = "schedule",
    num_shown: int = 1,
    window: Window | None = None,
    causes: bool = False,
    marked: Sequence[str] = (),
) -> str:
    """The element and its data: the first ``num_shown`` are drawn, the others can be chosen.

    ``window`` (ticks) is the part that is seen first; all the rest is a key away. ``causes``: idle
    time is coloured by its cause from the first. What is ``marked`` (as a search has it: ``2F``)
    is framed.
    """
    views = [one.view for one in schedules]
    names = [f"{name}-{number}" for number in range(len(schedules))]
    words = f"Ranks by time, memory below: {', '.join(one.name for one in schedules[:num_shown])}."
    first = "" if window is None else f' data-window="{window[0]}:{window[1]}"'
    first += " data-causes" if causes else ""
    first += f' data-marked="{escape(" ".join(marked))}"' if marked else ""
    box = (
        f'<div class="viewer" data-schedules="{" ".join(names)}" data-shown="{num_shown}"'
        f' data-words="{escape(words)}"{first}><noscript>{escape(words)} A browser with scripts '
        "draws it.</noscript></div>"
    )
    data = (
        embedded_json(one.data(view), name=own)
        for one, view, own in zip(schedules, views, names, strict=True)
    )
    notes = dict.fromkeys(note for view in views for note in view.notes)
    return "".join([box, *data, *(paragraph(note, css="note") for note in notes)])


def viewer_script(*others: str) -> str:
    """The script of a page with viewers; ``others`` are scripts that stand in its scope."""
    text = "".join([_script(*FILES, "start"), *others])
    return f'<script>(function () {{\n"use strict";\n{text}}})();</script>'


def viewer_module() -> str:
    """The viewer as a module of JavaScript that draws the model of a notebook's widget."""
    return _script(*FILES, "widget")


def viewer_style() -> str:
    """The colours of a page or a widget, and the style of its viewer."""
    return _ROOM.joinpath("viewer.css").read_text("utf-8")


def _script(*names: str) -> str:
    return "".join(_ROOM.joinpath("script", f"{name}.js").read_text("utf-8") for name in names)
