"""The viewer as a notebook's widget: the pixels of a page, and a model that is followed both ways.

The module is drawn in a browser as anywidget does it: imported from a blob, ``render`` called with
a model and an element. The model here is a small one of our own with anywidget's four methods.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bubbleproof as bp
from benchmarks.browser import Browser, browser_path
from bubbleproof.report.html import embedded_json
from bubbleproof.report.viewer.viewer_parts import (
    PALETTES,
    ViewedSchedule,
    viewer,
    viewer_module,
    viewer_script,
    viewer_style,
)
from bubbleproof.theory.families import FamilyMember, member
from proofs_tests.report.small import small

needs_browser = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to draw in")
SHAPES = [("1f1b", {"p": 4, "m": 8}), ("zb-h1", {"p": 16, "m": 24}), ("1f1b", {"p": 64, "m": 64})]
WIDTH = 900  # pixels of the page
MODEL = """
class Model {
  constructor(state) { Object.assign(this, { state, heard: {}, saved: 0 }); }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; }
  save_changes() { this.saved += 1; }
  on(name, action) { (this.heard[name] ||= new Set()).add(action); }
  off(name, action) { this.heard[name].delete(action); }
  async change(name, value) {  // from Python
    this.state[name] = value;
    for (const action of this.heard["change:" + name] || []) await action();
  }
  get listeners() { return Object.values(this.heard).reduce((sum, each) => sum + each.size, 0); }
}
async function began() {
  const source = document.getElementById("module").textContent;
  const address = URL.createObjectURL(new Blob([JSON.parse(source)], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  window.model = new Model(JSON.parse(document.getElementById("state").textContent));
  window.end = await widget.render({ model, el: document.getElementById("el") });
}
window.bubbleproof = { began: began() };
"""
COUNTED = """(async () => { await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const canvas = [...document.querySelectorAll('canvas')].find((each) => each.isConnected);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = new Map();  // by colour, 0xAABBGGRR
  for (const pixel of new Uint32Array(data.buffer)) found.set(pixel, (found.get(pixel) || 0) + 1);
  return Object.fromEntries(found); })()"""
SAID = "document.querySelector('.viewer-said').innerText"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def content(drawn: FamilyMember, name: str = "a") -> dict[str, object]:
    return {**ViewedSchedule(name=name, problem=drawn.problem, schedule=drawn.schedule).content}


def state(*drawn: FamilyMember, **more: object) -> dict[str, object]:
    """What a widget's model holds at first."""
    shown = [content(one) for one in drawn]
    first = {"schedules": shown, "num_shown": len(shown), "window": [], "palette": "standard"}
    return {**first, "ground": "light", "highlighted": [], "selected": None, **more}


def opened(browser: Browser, folder: Path, given: dict[str, object]) -> None:
    """A page that draws the widget in a room of ``WIDTH``, as a notebook would."""
    data = {"module": viewer_module(), "state": given}
    scripts = "".join(embedded_json(value, name=name) for name, value in data.items())
    written = folder / "widget.html"
    written.write_text(
        f"<!doctype html><style>{viewer_style()}</style>"
        f'<body><div id="el" style="width: {WIDTH}px"></div>{scripts}<script>{MODEL}</script>'
    )
    browser.open(written)


@needs_browser
@pytest.mark.parametrize(("name", "at"), SHAPES, ids=[f"{n} {at}" for n, at in SHAPES])
def test_a_widget_draws_the_pixels_of_a_page(
    name: str, at: dict[str, int], tmp_path: Path, browser: Browser
) -> None:
    drawn = member(name, **at)
    shown = ViewedSchedule(name="a", problem=drawn.problem, schedule=drawn.schedule)
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><body><div style="width: {WIDTH}px">{viewer([shown])}</div>'
        f"{viewer_script()}</body>"
    )
    browser.open(page)
    wanted = browser.run(COUNTED)
    opened(browser, tmp_path, state(drawn))
    assert browser.run(COUNTED) == wanted
    assert isinstance(wanted, dict)
    assert len(wanted) > 10
    browser.run("model.change('palette', 'greys')")  # another picture has other pixels
    assert browser.run(COUNTED) != wanted


@needs_browser
def test_what_is_chosen_goes_back(tmp_path: Path, browser: Browser) -> None:
    """``small``: 1F1 runs from 4 to 5; rank 0 is idle from 2 to 4, waiting for 1B0."""
    opened(browser, tmp_path, state(small()))
    search = "document.querySelector('input[type=search]')"
    browser.run(f"{search}.value = '1F1'; {search}.dispatchEvent(new Event('input'))")
    told = browser.run("model.get('selected')")
    place = {"resource": "rank 1", "start": 4, "end": 5}
    assert told == {"schedule": "a", "at": None, "action": "1F1", **place}
    assert browser.run("model.saved") == 1
    browser.run("model.change('schedules', model.get('schedules'))")
    assert browser.run("model.get('selected').action") == "1F1"
    press = "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', %s))"
    browser.run(press % "{ key: 'Escape' }")
    assert browser.run("model.get('selected')") is None


@needs_browser
def test_other_schedules_keep_zoom_and_what_is_chosen(tmp_path: Path, browser: Browser) -> None:
    """2F1 of 1F1B starts at 3 with tF = 1, and at 6 with tF = 2."""
    opened(browser, tmp_path, state(member("1f1b", p=4, m=8)))
    search = "document.querySelector('input[type=search]')"
    browser.run(f"{search}.value = '2F1'; {search}.dispatchEvent(new Event('input'))")
    assert "3 to 4, 1 tick" in str(browser.run(SAID))
    press = "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', %s))"
    browser.run(press % "{ key: '+' }")
    slower = [content(member("1f1b", p=4, m=8, tF=2, tB=4))]
    browser.run(f"model.change('schedules', {json.dumps(slower)})")
    assert "6 to 8, 2 ticks" in str(browser.run(SAID))
    assert browser.run(f"{search}.value") == "2F1"
    fewer = [content(member("1f1b", p=2, m=8))]
    browser.run(f"model.change('schedules', {json.dumps(fewer)})")
    assert browser.run(SAID) == ""  # there is no stage 2


@needs_browser
def test_highlights_palette_and_ground_are_followed(tmp_path: Path, browser: Browser) -> None:
    opened(browser, tmp_path, state(small()))
    marked = str(0xFF1B02D0)  # the colour of a frame, #d0021b
    plain = browser.run(COUNTED)
    assert isinstance(plain, dict)
    assert marked not in plain
    browser.run("model.change('highlighted', ['1F1', 'B0'])")
    framed = browser.run(COUNTED)
    assert isinstance(framed, dict)
    assert framed[marked] > 100
    browser.run("model.change('highlighted', [])")
    assert browser.run(COUNTED) == plain
    browser.run("model.change('ground', 'dark')")
    dark = browser.run(COUNTED)
    assert dark != plain
    ground = "getComputedStyle(document.getElementById('el')).backgroundColor"
    assert browser.run(ground) == "rgb(21, 25, 30)"
    browser.run("model.change('ground', 'auto'); document.body.dataset.jpThemeLight = 'true'")
    assert browser.run(COUNTED) == plain
    assert browser.run(ground) == "rgb(255, 255, 255)"
    options = "[...document.querySelectorAll('select option')].map((each) => each.textContent)"
    assert browser.run(options) == list(PALETTES)
    choose = "(s => { s.value = 'greys'; s.dispatchEvent(new Event('change')); })"
    browser.run(f"{choose}(document.querySelector('select'))")
    assert browser.run("model.get('palette')") == "greys"


@needs_browser
def test_a_view_that_ends_listens_no_more(tmp_path: Path, browser: Browser) -> None:
    opened(browser, tmp_path, state(small()))
    assert browser.run("model.listeners") == 4
    browser.run("end()")
    assert browser.run("model.listeners") == 0


def test_the_module_loads_nothing() -> None:
    module, style = viewer_module(), viewer_style()
    for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "import", "eval(", "url("):
        assert word not in module + style
    assert len((module + style).encode()) <= 300_000
    assert module.count("export default") == 1


def test_a_picture_is_a_widget_of_the_pages_data() -> None:
    pytest.importorskip("anywidget", reason="the extra notebook is not installed")
    picture = bp.show("1f1b p=2 m=2", title="small", window=(0, 4))
    widget = picture.widget
    assert picture.widget is widget  # the one that is displayed
    assert json.loads(json.dumps(widget.schedules)) == json.loads(
        json.dumps([content(small(), "small")])
    )
    told = widget.get_state()
    assert (told["window"], told["num_shown"], told["selected"]) == ([0, 4], 1, None)
    assert (told["_esm"], told["_css"]) == (viewer_module(), viewer_style())
    bundle = picture._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"] == widget.view
    assert widget.view["model_id"] == widget.model_id
    with pytest.raises(Exception, match="'Okabe-Ito'"):
        widget.palette = "okabe"


def test_without_anywidget_a_notebook_shows_what_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    picture = bp.show("1f1b p=2 m=2", title="<b>")
    assert "application/vnd.jupyter.widget-view+json" not in picture._repr_mimebundle_()
    with pytest.raises(ValueError, match=r'pip install "bubbleproof\[notebook\]"'):
        _ = picture.widget
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    shown = str(picture._repr_mimebundle_()["text/html"])
    assert "<b>" not in shown
    assert "rank 1  .  F0 B0--- F1 B1---" in shown
