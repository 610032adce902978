"""The viewer in a browser: pixels are counted at every zoom, and what it says is compared.

The expected shares of colours are sums of durations over ranks times time (``shares``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.browser import Browser, browser_path
from bubbleproof.report.page import ReportPage, ScheduleSection, write_page
from bubbleproof.report.palette import IDLE, darker, fill
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule, viewer, viewer_script
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Kind
from proofs_tests.report.shares import shares
from proofs_tests.sized import sized

pytestmark = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to open the page")
TOLERANCE = Fraction(1, 200)  # of the chart's area
SHAPES = [
    ("1f1b", {"p": 4, "m": 8}),
    ("zb-h1", {"p": 16, "m": 64}),
    ("dualpipe", {"p": 8, "m": 80, "tF": 1, "tB": 2}),  # overlapped pairs: half a lane each
    ("interleaved", {"p": 64, "v": 2, "m": 128}),
    ("1f1b", {"p": 64, "m": 4096}),  # 524,288 tasks
][: sized(-1, full=5)]
COUNT = """(function () {
  const { view, canvas } = bubbleproof.viewers[0], found = {}, context = canvas.getContext("2d");
  const high = view.row * view.stride, gap = high >= 6 ? high * 0.08 : 0;
  for (const place of view.places) {
    for (const y of [place.y + gap + 1, place.y + high - gap - 2]) { // above and below numbers
      const line = context.getImageData(view.left, Math.round(y), Math.round(view.plot), 1).data;
      for (let i = 0; i < line.length; i += 4) {
        const hex = [0, 1, 2].map((c) => line[i + c].toString(16).padStart(2, "0"));
        const colour = "#" + hex.join("");
        found[colour] = (found[colour] || 0) + 1;
      }
    }
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def page(folder: Path, *drawn: FamilyMember, num_shown: int = 1) -> Path:
    """A page with a viewer and nothing else."""
    shown = [
        ViewedSchedule(name=f"number {number}", problem=one.problem, schedule=one.schedule)
        for number, one in enumerate(drawn)
    ]
    written = folder / "page.html"
    written.write_text(f"<body>{viewer(shown, num_shown=num_shown)}{viewer_script()}</body>")
    return written


def counted(browser: Browser) -> dict[str, Fraction]:
    """The share of each colour among the pixels of all lanes."""
    found = browser.run(COUNT)
    assert isinstance(found, dict)
    total = sum(found.values())
    return {colour: Fraction(count, total) for colour, count in found.items()}


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "at"), SHAPES, ids=[f"{n} {at}" for n, at in SHAPES])
def test_colours_have_the_area_of_their_time_at_every_zoom(
    name: str, at: dict[str, int], tmp_path: Path, browser: Browser
) -> None:
    drawn = member(name, **at)
    browser.open(page(tmp_path, drawn))
    makespan = int(drawn.schedule.start.max()) + 3
    for part in (None, 4, 9, 60):
        window = None
        if part is not None:  # from the middle on, ever less
            window = (makespan // 2, makespan // 2 + max(makespan // part, 4))
            show = f"v.view.show({window[0]}, {window[1]}); v.draw();"
            browser.run(f"(v => {{ {show} }})(bubbleproof.viewers[0])")
        shown, wanted = counted(browser), shares(drawn, window)
        for colour, share in wanted.items():
            own = shown.get(colour, Fraction(0))
            if colour != IDLE:
                own += shown.get(darker(colour), Fraction(0))
            assert abs(own - share) <= TOLERANCE, (window, colour, float(own), float(share))


def test_a_wrong_share_is_noticed(tmp_path: Path, browser: Browser) -> None:
    """Where each pixel shows what ran longest in it, forwards are hardly seen."""
    drawn = member("1f1b", p=16, m=2048)
    written = page(tmp_path, drawn)
    text, debts = written.read_text(), "this.debt[sort] -= total"
    assert debts in text
    written.write_text(text.replace(debts, "this.debt.fill(0); total"))
    browser.open(written)
    shown, wanted = counted(browser), shares(drawn)
    apart = max(abs(shown.get(colour, Fraction(0)) - share) for colour, share in wanted.items())
    assert apart > 20 * TOLERANCE


def test_a_search_finds_counts_and_tells(tmp_path: Path, browser: Browser) -> None:
    """2F1 of 1F1B on 4 ranks starts at 3 with tF = 1: 0F1 at 1, then a tick a stage."""
    browser.open(page(tmp_path, member("1f1b", p=4, m=8)))
    browser.run("bubbleproof.viewers[0].find('2F1')")
    said = browser.run("document.querySelector('.viewer-said').innerText")
    assert isinstance(said, str)
    assert said.splitlines()[0] == "2F1 on rank 2"
    assert "3 to 4, 1 tick" in said
    assert "after 1F1 on rank 1, ended 3" in said
    count = "document.querySelector('.viewer-count').textContent"
    assert browser.run(count) == "1 of 1"
    browser.run("bubbleproof.viewers[0].find('f')")
    assert browser.run(count) == "1 of 32"  # 4 ranks, 8 microbatches
    browser.run("bubbleproof.viewers[0].find('9X')")
    assert browser.run(count) == "not found"


def test_times_are_in_the_unit_of_the_axis(tmp_path: Path, browser: Browser) -> None:
    """Ticks of a microsecond on an axis of milliseconds: the schedule takes 33,000 us."""
    drawn = member("1f1b", p=4, m=8, tF=1000, tB=2000)
    drawn = replace(drawn, problem=replace(drawn.problem, unit="us"))
    browser.open(page(tmp_path, drawn))
    browser.run("bubbleproof.viewers[0].find('2F1')")
    said = str(browser.run("document.querySelector('.viewer-said').innerText"))
    assert "3 to 4, 1 ms" in said
    assert "after 1F1 on rank 1, ended 3" in said


def test_hovering_idle_time_tells_why(tmp_path: Path, browser: Browser) -> None:
    browser.open(page(tmp_path, member("1f1b", p=2, m=3)))
    at = "(v => v.rowAt(v.view.x(3.5), v.view.places[0].y + 9))(bubbleproof.viewers[0])"
    browser.run(f"(f => bubbleproof.viewers[0].pick(f.data, f.row))({at})")
    said = browser.run("document.querySelector('.viewer-said').innerText")
    # as the door's example says of rank 0 at tick 3
    assert "0B0 waits for 1B0 of rank 1 over link 1>0" in str(said)


def test_a_click_tells_what_the_rank_holds(tmp_path: Path, browser: Browser) -> None:
    """Rank 1 of 1F1B on 4 ranks fills up with p - 1 = 3 microbatches, 0 to 2, before 1B0."""
    drawn = member("1f1b", p=4, m=8)
    browser.open(page(tmp_path, drawn))
    click = """(v => { const box = v.canvas.getBoundingClientRect();
      for (const type of ["pointerdown", "pointerup"]) {
        v.canvas.setPointerCapture = () => null;
        v.canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, bubbles: true,
          clientX: box.left + v.view.x(7.5), clientY: box.top + v.view.places[1].y + 9 }));
      } })(bubbleproof.viewers[0])"""
    browser.run(click)
    said = str(browser.run("document.querySelector('.viewer-said').innerText"))
    assert "memory of rank 1 at 7: 3 activations" in said
    for microbatch in range(3):
        assert f"stage 1, microbatch {microbatch}: 1 activation" in said


def test_several_schedules_share_one_time_axis(tmp_path: Path, browser: Browser) -> None:
    one, other = member("1f1b", p=4, m=8), member("gpipe", p=4, m=8)
    browser.open(page(tmp_path, one, other, num_shown=2))
    found = browser.run("(v => [v.places.length, v.from, v.to])(bubbleproof.viewers[0].view)")
    assert found == [8, 0, 33]  # both take (8 + 4 - 1) x 3 ticks
    browser.run("bubbleproof.viewers[0].choose(bubbleproof.viewers[0].view.schedules[0], false)")
    assert browser.run("bubbleproof.viewers[0].view.shown[0].name") == "number 1"


def test_keys_move_zoom_and_choose(tmp_path: Path, browser: Browser) -> None:
    browser.open(page(tmp_path, member("1f1b", p=4, m=8)))
    press = "bubbleproof.viewers[0].canvas.dispatchEvent(new KeyboardEvent('keydown', { key: %r }))"
    span = "(v => v.to - v.from)(bubbleproof.viewers[0].view)"
    browser.run(press % "+")
    assert browser.run(span) == pytest.approx(22)  # of 33, a third less
    browser.run(press % "0")
    assert browser.run(span) == 33
    browser.run(press % ".")
    assert "0F0 on rank 0" in str(browser.run("document.querySelector('.viewer-said').innerText"))


def test_messages_are_drawn_up_to_a_number(tmp_path: Path, browser: Browser) -> None:
    browser.open(page(tmp_path, member("1f1b", p=8, m=256)))
    browser.run("bubbleproof.viewers[0].toggle('messages'); bubbleproof.viewers[0].draw()")
    assert "zoom in to see them" in str(
        browser.run("document.querySelector('.viewer-count').textContent")
    )


def test_a_phone_and_a_sheet_of_paper_hold_the_page(tmp_path: Path, browser: Browser) -> None:
    drawn = member("1f1b", p=4, m=8)
    part = ScheduleSection(name="a", problem=drawn.problem, schedule=drawn.schedule)
    write_page(tmp_path / "page.html", ReportPage(title="T", sections=(part,)))
    try:
        browser.resize(390, 800, ratio=2, is_phone=True)
        browser.open(tmp_path / "page.html")
        assert browser.run("document.documentElement.scrollWidth") == 390
        assert browser.run("bubbleproof.viewers[0].canvas.width") == 2 * (
            390 - 20
        )  # page's margins
    finally:
        browser.resize(1280, 900)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("bubbleproof.viewers[0].canvas.style.width") == "700px"
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("bubbleproof.viewers[0].canvas.style.width") != "700px"


def test_the_ground_follows_the_reader(tmp_path: Path, browser: Browser) -> None:
    browser.open(page(tmp_path, member("1f1b", p=4, m=8)))
    assert IDLE in counted(browser)
    try:
        browser.darken(True)
        browser.run("new Promise((done) => setTimeout(done, 60))")
        found = counted(browser)
        assert IDLE not in found
        assert fill(Kind.F) in found  # what runs keeps its colour
    finally:
        browser.darken(False)


def test_the_script_is_small_and_asks_for_nothing() -> None:
    script = viewer_script()
    assert len(script.encode()) <= 300_000
    for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "import(", "eval("):
        assert word not in script
