"""The legend: the kinds and chunks a picture shows, in the field's words."""

from __future__ import annotations

import numpy as np

from bubbleproof.report.palette import CLASH, IDLE, WORDS, fill, shade
from bubbleproof.report.timeline import Timeline
from bubbleproof.theory.model.actions import Kind

_SHADES = 4  # with more chunks the legend names the first and the last only


def legend_entries(view: Timeline) -> list[tuple[str, str]]:
    """(colour, words) of each kind in the picture, of idle time, clashes and chunks."""
    kinds = [Kind(k) for k in np.unique(view.bars.actions.kind).tolist()]
    entries = [(fill(kind), WORDS[kind]) for kind in kinds]
    if len(view.gaps):
        entries.append((IDLE, "idle"))
    if len(view.clashes):
        entries.append((CLASH, "two actions at once"))
    if len(view.waiting):
        entries.append((CLASH, "never starts"))
    chunks = range(view.num_chunks) if view.num_chunks > 1 else range(0)
    named = chunks if len(chunks) <= _SHADES else (0, len(chunks) - 1)
    return entries + [(shade(c, view.num_chunks), f"chunk {c} (shade)") for c in named]


def legend_lines(entries: list[tuple[str, str]], inches: float) -> list[list[tuple[str, str]]]:
    """The entries in lines that fit the width, by an estimate of 8 point text."""
    lines: list[list[tuple[str, str]]] = []
    room = 0.0
    for entry in entries:
        width = 0.35 + 0.068 * len(entry[1])
        if not lines or width > room:
            lines.append([])
            room = inches
        lines[-1].append(entry)
        room -= width
    return lines
