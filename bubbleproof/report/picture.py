"""A picture of a schedule as a Python object: a notebook displays it, ``save`` writes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from bubbleproof.formats import write_trace
from bubbleproof.formats.files import write_text
from bubbleproof.report.extras import has_notebook, require_notebook
from bubbleproof.report.gantt import draw, picture
from bubbleproof.report.headline import headline
from bubbleproof.report.html import paragraph, preformatted
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection, write_page
from bubbleproof.report.text import grid
from bubbleproof.report.timeline import timeline
from bubbleproof.report.viewer.schedule_data import Json
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

if TYPE_CHECKING:  # an extra, which a notebook asks for
    from bubbleproof.report.schedule_widget import ScheduleWidget

WIDGET = "application/vnd.jupyter.widget-view+json"
ENDINGS = ".svg .pdf .png .html .perfetto.json .txt"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A schedule to look at; ``window`` is (first, last) tick, None for all of it.

    ``str`` is the grid of ranks and times. A notebook shows the viewer of our pages, which needs
    the ``notebook`` extra, and where no viewer runs an SVG, which needs the ``report`` extra; with
    neither the grid. ``others`` stand below it on the same time axis, in a viewer and on a page.
    """

    problem: Problem
    schedule: Schedule
    title: str = ""
    window: tuple[int, int] | None = None
    others: tuple[Picture, ...] = ()
    _widgets: list[ScheduleWidget] = field(default_factory=list, init=False, repr=False)

    def __str__(self) -> str:
        return grid(self.problem, self.schedule, window=self.window)

    def __repr__(self) -> str:
        return f"<Picture of {self.title or repr(self.schedule)}: str() is a grid, save() a file>"

    def beside(self, *others: Picture) -> Picture:
        """These as well, on one time axis. Raises ``TypeError`` for what is no picture."""
        for other in others:
            if not isinstance(other, Picture):
                raise TypeError(f"beside: expected what show gives, got {type(other).__name__}")
        return replace(self, others=(*self.others, *others))

    @property
    def widget(self) -> ScheduleWidget:
        """What a notebook displays: one widget, whose ``selected`` is what the reader chose.

        Raises ``ValueError`` with the repair where anywidget is not installed.
        """
        if not self._widgets:
            require_notebook()
            from bubbleproof.report.schedule_widget import ScheduleWidget

            self._widgets.append(ScheduleWidget.of(self._sections, window=self.window))
        return self._widgets[0]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Json]:
        """What a notebook displays: the widget; where none runs the SVG, the grid, or its text."""
        del include, exclude
        shown: dict[str, Json] = {"text/plain": str(self)}
        if has_notebook():
            shown[WIDGET] = self.widget.view
        try:
            view = timeline(self.problem, self.schedule, window=self.window)
            shown["image/svg+xml"] = picture(view, title=self.title).decode()
        except ValueError:  # the drawing library is not installed
            shown["text/html"] = self._html()
        return shown

    @property
    def _sections(self) -> tuple[ScheduleSection, ...]:
        """This and the others."""
        return tuple(
            ScheduleSection(
                name=one.title or f"schedule {number}",
                problem=one.problem,
                schedule=one.schedule,
                window=one.window,
            )
            for number, one in enumerate((self, *self.others))
        )

    def _html(self) -> str:
        line = headline(self.problem, self.schedule)
        return f"{paragraph(self.title)}{paragraph(line)}{preformatted(str(self))}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture; the ending chooses how. Raises ``ValueError`` for another one."""
        target = fspath(path)
        if target.endswith(".perfetto.json"):
            write_trace(target, self.problem, self.schedule)
        elif target.endswith(".html"):
            write_page(target, self._page())
        elif target.endswith((".svg", ".pdf", ".png")):
            draw(self.problem, self.schedule, target, title=self.title, window=self.window)
        elif target.endswith(".txt"):
            write_text(target, f"{self}\n")
        else:
            raise ValueError(f"a picture ends in {ENDINGS}, got {target!r}")

    def _page(self) -> ReportPage:
        """The page of this and the others; all of them are shown."""
        shown = self._sections
        return ReportPage(
            title=self.title,
            headline=headline(self.problem, self.schedule),
            comparison=tuple(ComparisonRow.of(s.name, s.problem, s.schedule) for s in shown),
            sections=shown,
            num_shown=len(shown),
        )
