"""The picture of ``benchmarks.cost_model``: estimated against measured times of left-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.held_out_rows import HeldOutEstimate

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")
INCHES, DOTS = (9.0, 4.2), 110


def draw(judged: Sequence[HeldOutEstimate], target: Path) -> None:
    """Two panels: times on logarithmic axes, and errors by the measured time."""
    figure = Figure(figsize=INCHES, layout="constrained")
    times, errors = figure.subplots(1, 2)
    names = sorted({each.row.model.name for each in judged})
    for name, colour in zip(names, COLOURS, strict=False):
        own = [each for each in judged if each.row.model.name == name]
        measured = [each.row.measured_ms for each in own]
        times.plot(measured, [each.estimated for each in own], ".", color=colour, label=name)
        errors.plot(measured, [100 * each.error for each in own], ".", color=colour)
    most = max(each.row.measured_ms for each in judged)
    least = min(each.row.measured_ms for each in judged)
    times.plot([least, most], [least, most], color="black", linewidth=0.7)
    times.set(xscale="log", yscale="log", xlabel="measured ms", ylabel="estimated ms")
    times.legend(frameon=False)
    errors.axhline(0, color="black", linewidth=0.7)
    errors.set(xscale="log", xlabel="measured ms", ylabel="error, %")
    figure.suptitle("Iterations estimated by constants that were fitted without them")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=DOTS, metadata={"Software": None})
