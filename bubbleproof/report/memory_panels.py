"""The lower panels: a staircase per store, the capacity as a line, the peak marked and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bubbleproof.report.amounts import Scale
from bubbleproof.report.chart import time_axis
from bubbleproof.report.palette import CAPACITY
from bubbleproof.report.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bubbleproof.report.memory_curves import MemoryCurve

_LINE, _AREA = "#33475b", "#c9d3de"


def memory_panel(axes: Axes, view: Timeline, index: int, *, scale: Scale, is_stacked: bool) -> None:
    """Fill axes with one store's curve. All panels share the scale of the fullest."""
    curve = view.memory[index]
    top = max(max(c.top for c in view.memory), 1) / scale.divisor
    load = curve.load / scale.divisor
    axes.fill_between(curve.time, load, step="post", color=_AREA, linewidth=0)
    axes.step(curve.time, load, where="post", color=_LINE, linewidth=0.9, gid=f"memory-{index}")
    if curve.capacity is not None:
        cap = curve.capacity / scale.divisor
        axes.axhline(
            cap, color=CAPACITY, linewidth=0.9, linestyle=(0, (5, 2)), gid=f"capacity-{index}"
        )
    if view.window[0] <= curve.peak_time < view.window[1]:
        colour = CAPACITY if curve.is_over else _LINE
        peak = curve.peak / scale.divisor
        axes.plot(
            [curve.peak_time],
            [peak],
            "o",
            color=colour,
            markersize=3.2,
            clip_on=False,
            gid=f"peak-{index}",
        )
    time_axis(axes, view, marks=9 if is_stacked else 3)
    axes.set_ylim(0, top * 1.12)
    axes.set_yticks(*_levels(top))
    axes.tick_params(labelsize=7.5, length=2.5)
    _words(axes, curve, scale, is_stacked=is_stacked)


def _levels(top: float) -> tuple[list[float], list[str]]:
    """Two marks on the load axis: zero and a round number near the top."""
    power = 10.0 ** np.floor(np.log10(top))
    round_top = next(step * power for step in (5, 2, 1) if step * power <= top)
    return [0.0, float(round_top)], ["0", f"{round_top:,g}"]


def _words(axes: Axes, curve: MemoryCurve, scale: Scale, *, is_stacked: bool) -> None:
    """The store's name, its peak with the unit, and its capacity."""
    peak = f"peak {scale.amount(curve.peak)}"
    cap = "" if curve.capacity is None else f"cap {scale.number(curve.capacity)}"
    colour = CAPACITY if curve.is_over else "#222222"
    name = curve.name.removeprefix("memory of ")
    if not is_stacked:
        words = ", ".join(filter(None, [f"{name}: {peak}", cap]))
        axes.set_title(words, fontsize=7.5, color=colour, loc="left", pad=3, parse_math=False)
        return
    axes.set_ylabel(
        name[:14], rotation=0, ha="right", va="center", labelpad=9, fontsize=8, parse_math=False
    )
    for line, (text, shade) in enumerate(((peak, colour), (cap, CAPACITY))):
        axes.annotate(
            text,
            (1, 1),
            xycoords="axes fraction",
            xytext=(6, -7 - 10.5 * line),
            textcoords="offset points",
            fontsize=min(7.5, 1.2 * 72 / (0.6 * max(len(text), 1))),
            color=shade,
            va="center",
            annotation_clip=False,
        )
