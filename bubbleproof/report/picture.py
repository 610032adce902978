"""A picture of a schedule as a Python object: a notebook displays it, ``save`` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath

from bubbleproof.formats import write_trace
from bubbleproof.formats.files import write_text
from bubbleproof.report.gantt import draw, picture
from bubbleproof.report.headline import headline
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection, write_page
from bubbleproof.report.text import grid
from bubbleproof.report.timeline import timeline
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

ENDINGS = ".svg .pdf .png .html .perfetto.json .txt"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A schedule to look at; ``window`` is (first, last) tick, None for all of it.

    ``str`` is the grid of ranks and times. A notebook shows an SVG, which needs the ``report``
    extra; without it the grid.
    """

    problem: Problem
    schedule: Schedule
    title: str = ""
    window: tuple[int, int] | None = None

    def __str__(self) -> str:
        return grid(self.problem, self.schedule, window=self.window)

    def __repr__(self) -> str:
        return f"<Picture of {self.title or repr(self.schedule)}: str() is a grid, save() a file>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook displays: the grid as text and, where it can be drawn, the SVG."""
        del include, exclude
        shown = {"text/plain": str(self)}
        try:
            view = timeline(self.problem, self.schedule, window=self.window)
            shown["image/svg+xml"] = picture(view, title=self.title).decode()
        except ValueError:  # the drawing library is not installed
            return shown
        return shown

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture; the ending chooses how. Raises ``ValueError`` for another one."""
        target = fspath(path)
        if target.endswith(".perfetto.json"):
            write_trace(target, self.problem, self.schedule)
        elif target.endswith(".html"):
            section = ScheduleSection(
                name=self.title, problem=self.problem, schedule=self.schedule, window=self.window
            )
            row = ComparisonRow.of(self.title, self.problem, self.schedule)
            line = headline(self.problem, self.schedule)
            report = ReportPage(
                title=self.title, headline=line, comparison=(row,), sections=(section,)
            )
            write_page(target, report)
        elif target.endswith((".svg", ".pdf", ".png")):
            draw(self.problem, self.schedule, target, title=self.title, window=self.window)
        elif target.endswith(".txt"):
            write_text(target, f"{self}\n")
        else:
            raise ValueError(f"a picture ends in {ENDINGS}, got {target!r}")
