"""Pages on a phone: nothing is wider than 390 pixels, letters can be read, every key is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.browser import Browser, browser_path
from benchmarks.page_pictures import IDLE, PAGES, served_address
from bubbleproof.report.document import page_style
from bubbleproof.report.served.served_page import framed_page, served_page
from proofs_tests.commands.conftest import Run

NARROW, LEAST = 390, 10  # pixels of a phone's width, and of a letter
needs_browser = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to look with")
SEEN = ("schedule", "plan", "trace", pytest.param("replay", marks=pytest.mark.torch))
# what is read, its letters as large as they are on the screen; what lies beyond the edge, unless a
# box around it scrolls
LOOK = f"""(function () {{
  const small = [], beyond = [];
  const scrolls = (one) => one.closest(".plotted, .chips, pre") !== null;
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
  return {{ wide: document.documentElement.scrollWidth, small, beyond }};
}})()"""
RIGHT = {"wide": NARROW, "small": [], "beyond": []}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(width=NARROW, height=800) as found:
        yield found


def made(name: str, command: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of a command."""
    monkeypatch.chdir(folder)
    words, written = PAGES[name]
    assert command(*words.split()).status in (0, 1)  # 1: the trace has a straggler
    return folder / written


@needs_browser
@pytest.mark.parametrize("name", SEEN)
def test_nothing_is_beyond_the_edge_and_letters_can_be_read(
    name: str,
    command: Run,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser.open(made(name, command, tmp_path, monkeypatch))
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.run(LOOK) == RIGHT
    browser.run("bubbleproof.viewers[0].showKeys()")
    assert browser.run(LOOK) == RIGHT


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
def test_a_trace_shows_causes_and_its_straggler_and_no_memory(
    command: Run, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.open(made("trace", command, tmp_path, monkeypatch))
    assert "idle: input" in str(browser.run("document.querySelector('.viewer-legend').innerText"))
    marked = "bubbleproof.viewers[0].marked.map(({ data, row }) => data.stage[row])"
    found = browser.run(marked)
    assert isinstance(found, list)
    assert set(found) == {2}  # stage 2 slept
    assert "Memory" not in str(browser.run("document.body.innerText"))


@pytest.mark.parametrize("name", SEEN)
def test_each_cell_names_its_column_and_the_page_its_width(
    name: str, command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be held without a browser."""
    text = made(name, command, tmp_path, monkeypatch).read_text("utf-8")
    assert text.count('<meta name="viewport" content="width=device-width') == 1
    for shown in re.findall(r"<table>.*?</table>", text, re.DOTALL):
        columns = re.findall(r'<th scope="col">(.*?)</th>', shown)
        for row in re.findall(r"<tr><td.*?</tr>", shown, re.DOTALL):
            assert re.findall(r'<td[^>]* data-of="(.*?)"', row) == columns
    assert len(re.findall(r'<svg class="plot"', text)) == text.count('<div class="plotted"><svg')


def test_no_style_asks_for_more_width_or_smaller_letters() -> None:
    for text in (page_style(), framed_page(), served_page({})):
        screen = re.sub(r"@media print \{(?:[^{}]|\{[^{}]*\})*\}", "", text)
        for size in re.findall(r"font(?:-size)?:[^;{}]*?([\d.]+)px", screen):
            assert float(size) >= LEAST
        for selector, size in re.findall(r"([^{};]*)\{[^{}]*?[^-]width: (\d+)px", screen):
            assert int(size) <= NARROW or ".plotted" in selector
