"""Pages on a phone: nothing is wider than 390 pixels, letters can be read, every key is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.browser import Browser, browser_path
from benchmarks.page_pictures import IDLE, PAGES, served_address
from bubbleproof.report.document import page_style
from bubbleproof.report.plot_svg import AxisRange, SvgPlot
from bubbleproof.report.served.served_page import framed_page, served_page
from proofs_tests.commands.conftest import Run

NARROW, LEAST, DRAWN = 390, 10, 9  # pixels: a phone's width, a letter, one of a picture
needs_browser = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to look with")
SEEN = [
    *("schedule", "plan", "cluster", "trace"),
    *(pytest.param(name, marks=pytest.mark.torch) for name in ("run", "replay")),
]
# what is read, its letters as large as they are on the screen; what lies beyond the edge, unless a
# box around it scrolls; words of a chart that meet others, or its edge
LOOK = f"""(function () {{
  const small = [], beyond = [], met = [];
  const scrolls = (one) => one.closest(".chips, pre") !== null;
  for (const one of document.querySelectorAll("body *")) {{
    const box = one.getBoundingClientRect();
    if (!box.width || one.closest("script, style, [hidden]")) {{ continue; }}
    if (box.right > {NARROW} + 0.5 && !scrolls(one)) {{ beyond.push(one.outerHTML.slice(0, 80)); }}
    const isRead = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const drawing = one.ownerSVGElement;
    const drawn = drawing ? drawing.getBoundingClientRect().width : 1;
    const scale = drawing ? drawn / drawing.viewBox.baseVal.width : 1;
    const size = parseFloat(getComputedStyle(one).fontSize) * scale;
    if (isRead && size < {LEAST}) {{ small.push(size + " " + one.textContent.slice(0, 40)); }}
  }}
  for (const chart of document.querySelectorAll("svg.plot")) {{
    const boxOf = (one) => [one, one.getBoundingClientRect()];
    const words = [...chart.querySelectorAll("text")].map(boxOf);
    const outer = chart.getBoundingClientRect();
    for (const [one, box] of words) {{
      const meets = ([other, at]) => other !== one && box.left < at.right && at.left < box.right &&
        box.top < at.bottom && at.top < box.bottom;
      const isIn = box.left >= outer.left && box.right <= outer.right && box.bottom <= outer.bottom;
      if (!isIn || words.some(meets)) {{ met.push(one.textContent); }}
    }}
  }}
  return {{ wide: document.documentElement.scrollWidth, small, beyond, met }};
}})()"""
RIGHT = {"wide": NARROW, "small": [], "beyond": [], "met": []}
Box = dict[str, float]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(width=NARROW, height=800) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages are that a test has made."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def made(command: Run, pages: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """``made("plan")`` is the page of a command, which runs once."""

    def page(name: str) -> Path:
        words, written = PAGES[name]
        if not (pages / written).exists():
            monkeypatch.chdir(pages)
            assert command(*words.split()).status in (0, 1)  # 1: the trace has a straggler
        return pages / written

    return page


def badly_drawn(browser: Browser) -> list[str]:
    """Words of the first viewer's picture that are too small, cut off, or meet others."""
    found = browser.run("bubbleproof.viewers[0].labelBoxes()")
    wide, high = (
        browser.run(f"bubbleproof.viewers[0].view.{side}") for side in ("width", "height")
    )
    assert isinstance(found, list)
    assert found
    assert isinstance(wide, int)
    assert isinstance(high, int)
    return [
        str(one["words"])
        for one in found
        if one["size"] < DRAWN
        or min(one["left"], one["top"], wide - one["right"], high - one["bottom"]) < 0
        or any(_meet(one, other) for other in found if other is not one)
    ]


def _meet(one: Box, other: Box) -> bool:
    return (
        one["left"] < other["right"]
        and other["left"] < one["right"]
        and one["top"] < other["bottom"]
        and other["top"] < one["bottom"]
    )


@needs_browser
@pytest.mark.parametrize("name", SEEN)
def test_nothing_is_beyond_the_edge_and_letters_can_be_read(
    name: str, made: Callable[[str], Path], browser: Browser
) -> None:
    browser.open(made(name))
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.run(LOOK) == RIGHT
    browser.run("bubbleproof.viewers[0].showKeys()")
    assert browser.run(LOOK) == RIGHT


@needs_browser
@pytest.mark.parametrize("name", SEEN)
def test_words_of_a_picture_are_whole_apart_and_can_be_read(
    name: str, made: Callable[[str], Path], browser: Browser
) -> None:
    """All of it, every schedule at once, and closer from there."""
    browser.open(made(name))
    assert badly_drawn(browser) == []
    every = "v.view.schedules.forEach((one) => v.choose(one, true));"
    browser.run(f"(v => {{ {every} }})(bubbleproof.viewers[0])")
    for _ in range(4):
        assert badly_drawn(browser) == []
        browser.run(
            "(v => v.view.zoom(0.4, v.view.left + v.view.plot * 0.37))(bubbleproof.viewers[0])"
        )


@needs_browser
def test_the_editor_is_as_narrow_and_says_once_that_all_rules_hold(browser: Browser) -> None:
    with served_address() as address:
        browser.open(address)
        browser.run(IDLE)
        assert browser.run(LOOK) == RIGHT
        said = "document.querySelector('.rules').innerText"
        assert browser.run(said) == "✓ all rules hold"
        browser.run("served.move(0, 15, 4)")  # B7 before F7
        browser.run(IDLE)
        assert "✗ dependencies violated" in str(browser.run(said))
        browser.open("about:blank")


@needs_browser
def test_a_wide_page_and_small_letters_are_noticed(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    text = '<meta name="viewport" content="width=device-width"><body style="margin:0">'
    page.write_text(f'{text}<p style="width:500px;font-size:8px">words</p>')
    browser.open(page)
    found = browser.run(LOOK)
    assert isinstance(found, dict)
    assert (found["wide"], len(found["small"]), len(found["beyond"])) == (500, 1, 1)


@needs_browser
def test_words_that_meet_are_noticed(
    made: Callable[[str], Path], browser: Browser, tmp_path: Path
) -> None:
    page, plot = tmp_path / "met.html", SvgPlot(AxisRange(0, 1, ""), AxisRange(0, 1, ""), height=90)
    near = plot.text.replace(
        "</svg>", '<text x="90" y="40">one</text><text x="95" y="44">two</text></svg>'
    )
    page.write_text(f"<style>{page_style()}</style><body>{near}")
    browser.open(page)
    found = browser.run(LOOK)
    assert isinstance(found, dict)
    assert found["met"] == ["one", "two"]
    browser.open(made("schedule"))
    browser.run("bubbleproof.viewers[0].view.schedules[0].lanes[1] = 'a name'.repeat(9)")
    assert badly_drawn(browser) == []  # it is cut short
    longer = "fitted(context, name, (view.left - 8) * ratio)"
    text = made("schedule").read_text()
    assert longer in text
    page.write_text(text.replace(longer, 'name + " is where it stands"'))
    browser.open(page)
    assert badly_drawn(browser)[-1].endswith("stands")


@needs_browser
def test_a_trace_shows_causes_and_its_straggler_and_no_memory(
    made: Callable[[str], Path], browser: Browser
) -> None:
    browser.open(made("trace"))
    assert "idle: input" in str(browser.run("document.querySelector('.viewer-legend').innerText"))
    marked = "bubbleproof.viewers[0].marked.map(({ data, row }) => data.stage[row])"
    found = browser.run(marked)
    assert isinstance(found, list)
    assert set(found) == {2}  # stage 2 slept
    assert "Memory" not in str(browser.run("document.body.innerText"))


@pytest.mark.parametrize("name", SEEN)
def test_each_cell_names_its_column_and_the_page_its_width(
    name: str, made: Callable[[str], Path]
) -> None:
    """What can be held without a browser."""
    text = made(name).read_text("utf-8")
    assert text.count('<meta name="viewport" content="width=device-width') == 1
    for shown in re.findall(r"<table>.*?</table>", text, re.DOTALL):
        columns = re.findall(r'<th scope="col">(.*?)</th>', shown)
        for row in re.findall(r"<tr><td.*?</tr>", shown, re.DOTALL):
            assert re.findall(r'<td[^>]* data-of="(.*?)"', row) == columns


def test_no_style_asks_for_more_width_or_smaller_letters() -> None:
    for text in (page_style(), framed_page(), served_page({})):
        screen = re.sub(r"@media print \{(?:[^{}]|\{[^{}]*\})*\}", "", text)
        for size in re.findall(r"font(?:-size)?:[^;{}]*?([\d.]+)px", screen):
            assert float(size) >= LEAST
        for selector, size in re.findall(r"([^{};]*)\{[^{}]*?[^-]width: (\d+)px", screen):
            assert int(size) <= NARROW, selector
