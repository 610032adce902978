"""Schedules in a notebook: the viewer of our pages, its traits shared with Python by anywidget.

The script and the style are those of a page (``viewer.viewer_parts``); nothing is loaded from
elsewhere. This module is loaded where a widget is asked for, since ``anywidget`` is an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import anywidget
import traitlets

from bubbleproof.report.timeline import Window
from bubbleproof.report.viewer.schedule_data import Json
from bubbleproof.report.viewer.viewer_parts import (
    PALETTES,
    ViewedSchedule,
    viewer_module,
    viewer_style,
)

GROUNDS = ("auto", "light", "dark")


class ScheduleWidget(anywidget.AnyWidget):
    """Schedules on one time axis, in Jupyter, marimo, VS Code or wherever anywidget draws.

    Traits, each of which may be set at any time; what is shown follows.

    schedules
        The content of each schedule, as ``ViewedSchedule.content`` gives it. Zoom, and what was
        chosen, stay where others come in their place.
    num_shown
        How many of them are drawn at first.
    window
        What is seen first: [first, last] tick; empty for all.
    palette
        ``standard``, ``Okabe-Ito`` or ``greys``; the reader may choose another.
    ground
        ``light``, ``dark``, or ``auto``: as the notebook around it.
    highlighted
        Texts of actions to frame, as the search takes them: ``"2F1"``, or ``"F7"`` for all of them.
    selected
        What the reader chose, None for nothing: ``schedule`` (its name) and ``at`` (the time of a
        click, or None); of an action or a gap also ``resource``, ``start``, ``end`` and ``action``
        or (why it is) ``idle``.
    """

    _esm = viewer_module()
    _css = viewer_style()
    schedules = traitlets.List(traitlets.Dict()).tag(sync=True)
    num_shown = traitlets.Int(1).tag(sync=True)
    window = traitlets.List(traitlets.Int()).tag(sync=True)
    palette = traitlets.Enum(PALETTES, default_value=PALETTES[0]).tag(sync=True)
    ground = traitlets.Enum(GROUNDS, default_value="auto").tag(sync=True)
    highlighted = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)

    @classmethod
    def of(cls, shown: Sequence[ViewedSchedule], window: Window | None = None) -> Self:
        """A widget of these schedules, all of them drawn."""
        content = [one.content for one in shown]
        return cls(schedules=content, num_shown=len(shown), window=list(window or ()))

    @property
    def view(self) -> dict[str, Json]:
        """What a notebook's output says of it (``picture.WIDGET``)."""
        return {"version_major": 2, "version_minor": 0, "model_id": str(self.model_id)}
