"""How quick the viewer of our pages is, and what its pages look like.

    python -m benchmarks.viewer_speed [--screenshots FOLDER]

A row for each size: the page's bytes; the seconds in which it is written; those from the call of
the page until it is drawn; and the script's milliseconds of a frame, the median and the greatest of
100 while it zooms in and out. The browser is Chromium without a GPU. Screenshots are taken of each
page in light and dark and as on a phone.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import typer

from benchmarks.browser import Browser
from benchmarks.markdown import markdown_table
from bubbleproof.report.headline import headline
from bubbleproof.report.page import ComparisonRow, ReportPage, ScheduleSection, write_page
from bubbleproof.theory.families import FamilyMember, member

SIZES: dict[str, tuple[str, dict[str, int]]] = {
    "p4": ("1f1b", {"p": 4, "m": 8}),
    "p16": ("zb-h1", {"p": 16, "m": 64}),
    "p64": ("interleaved", {"p": 64, "v": 2, "m": 128}),
    "large": ("1f1b", {"p": 64, "m": 4096}),
}
LOOKS = {  # width, ratio; those that end in "dark" are dark
    "light": (1280, 1.0),
    "dark": (1280, 1.0),
    "tablet": (768, 1.0),
    "tablet-dark": (768, 1.0),
    "phone": (390, 2.0),
    "phone-dark": (390, 2.0),
}
COLUMNS = ("page", "tasks", "kB", "written, s", "opened, s", "frame, ms", "longest, ms")
FRAMES = 100
ZOOM = f"""(function () {{
  const [viewer] = bubbleproof.viewers, found = [];
  for (let frame = 0; frame < {FRAMES}; frame++) {{
    const began = performance.now(), isIn = frame % 50 < 25;
    viewer.view.zoom(isIn ? 0.8 : 1 / 0.8, viewer.view.left + viewer.view.plot * 0.37);
    viewer.draw();
    found.push(performance.now() - began);
  }}
  viewer.view.whole();
  viewer.draw();
  return found;
}})()"""


class ViewerSpeed(NamedTuple):
    """What was measured of one page: bytes, seconds and milliseconds."""

    name: str
    tasks: int
    size: int
    written: float
    opened: float
    frames: list[float]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.name,
            f"{self.tasks:,}",
            f"{self.size / 1000:,.0f}",
            f"{self.written:.2f}",
            f"{self.opened:.2f}",
            f"{median(self.frames):.1f}",
            f"{max(self.frames):.1f}",
        )


def main(screenshots: Path | None = None) -> None:
    """Measure every size and print the table."""
    rows = []
    with TemporaryDirectory() as folder, Browser() as browser:
        for name, (family, at) in SIZES.items():
            drawn, page = member(family, **at), Path(folder) / f"{name}.html"
            rows.append(measured(f"{name}: {family}", drawn, page, browser).cells)
            if screenshots is not None:
                photograph(browser, page, screenshots)
    typer.echo(markdown_table(COLUMNS, rows))


def measured(name: str, drawn: FamilyMember, page: Path, browser: Browser) -> ViewerSpeed:
    """Write the page, open it, and zoom."""
    began = perf_counter()
    section = ScheduleSection(name=name, problem=drawn.problem, schedule=drawn.schedule)
    line = headline(drawn.problem, drawn.schedule, pipeline=drawn.pipeline)
    row = ComparisonRow.of(name, drawn.problem, drawn.schedule)
    report = ReportPage(title=name, headline=line, comparison=(row,), sections=(section,))
    write_page(page, report)
    written = perf_counter() - began
    browser.resize(1280, 900)
    browser.darken(False)
    began = perf_counter()
    browser.open(page)
    opened = perf_counter() - began
    frames = browser.run(ZOOM)
    assert isinstance(frames, list)
    tasks, size = drawn.problem.num_tasks, page.stat().st_size
    return ViewerSpeed(name, tasks, size, written, opened, [float(frame) for frame in frames])


def photograph(browser: Browser, page: Path, folder: Path) -> None:
    """The whole of the page in each of the ``LOOKS``."""
    folder.mkdir(parents=True, exist_ok=True)
    for look in LOOKS:
        looked_at(browser, page, look, 800)
        high = browser.run("document.documentElement.scrollHeight")
        assert isinstance(high, int)
        width, ratio = LOOKS[look]
        browser.resize(width, high, ratio=ratio, is_phone=look.startswith("phone"))
        browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        (folder / f"{page.stem}-{look}.png").write_bytes(browser.screenshot())


def looked_at(browser: Browser, page: Path | str, look: str, high: int) -> None:
    """Open a page with one of the ``LOOKS``, ``high`` pixels high."""
    width, ratio = LOOKS[look]
    browser.darken(look.endswith("dark"))
    browser.resize(width, high, ratio=ratio, is_phone=look.startswith("phone"))
    browser.open(page)


if __name__ == "__main__":
    typer.run(main)
