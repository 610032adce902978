"""The page of ``serve`` in a browser: sliders, boxes, dragging, keys, undo, what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from benchmarks.browser import Browser, browser_path
from bubbleproof.commands.serving.serve import made_server
from bubbleproof.report.served.served_page import framed_page
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule
from bubbleproof.theory.families import member

pytestmark = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to open the page")
IDLE = """new Promise(done => (function wait() {
  served.isIdle() ? done() : setTimeout(wait, 10); })())"""
FIRST_ROW = "[...document.querySelectorAll('.chips')[0].children].map(c => c.textContent).join(' ')"
AS_GIVEN = "0F0 0F1 0B0 0F2 0B1 0B2"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@contextmanager
def serving(words: list[str]) -> Iterator[str]:
    """The address of a server of what the words offer."""
    with made_server(words, 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.answers.guard.address
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The page of 1F1B on two ranks, judged once."""
    with serving(["1f1b", "p=2", "m=3"]) as address:
        browser.open(address)
        browser.run(IDLE)
        yield browser


def done(page: Browser, script: str) -> str:
    """Do something, wait until it is judged, and give the headline."""
    page.run(script)
    page.run(IDLE)
    return str(page.run("document.getElementById('headline').textContent"))


def set_box(label: str, value: object) -> str:
    """Type a number into the box of a field."""
    return f"""(() => {{ const field = [...document.querySelectorAll('#controls label')].find(
      each => each.textContent.trim() === '{label}').querySelector('input[type=number]');
      field.value = '{value}'; field.oninput(); }})()"""


def pressed(page: Browser, key: str, modifiers: int = 0) -> None:
    page.ask("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "modifiers": modifiers})
    page.ask("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "modifiers": modifiers})


def test_a_field_changes_the_shape(page: Browser) -> None:
    assert done(page, "0").startswith("12 ticks")  # (3 + 2 - 1) * 3
    assert done(page, set_box("m", 5)).startswith("18 ticks")  # (5 + 2 - 1) * 3
    assert done(page, set_box("tB", 4)).startswith("30 ticks")  # 6 * (1 + 4)
    assert done(page, "document.getElementById('undo').click()").startswith("18 ticks")


def test_what_a_family_refuses_is_told_and_taken_back(page: Browser) -> None:
    assert "p" in done(page, set_box("p", 0))
    assert page.run("document.body.classList.contains('refused')")
    assert done(page, set_box("p", 2)).startswith("12 ticks")
    assert not page.run("document.body.classList.contains('refused')")


def test_a_capacity_below_the_peak_breaks_the_memory_rule(page: Browser) -> None:
    done(page, set_box("capacity", 1))
    assert "✗ memory" in str(page.run("document.getElementById('verdict').textContent"))
    done(page, "document.getElementById('unlimited').click()")
    assert "✗" not in str(page.run("document.getElementById('verdict').textContent"))


def test_of_capacities_that_differ_the_slider_shows_the_greatest(page: Browser) -> None:
    done(
        page,
        """(() => { const list = document.getElementById('capacities');
      list.value = '3,2'; list.onchange({target: list}); })()""",
    )
    shown = "['capacity', 'capacity-slider'].map(id => document.getElementById(id).value).join()"
    assert page.run(shown) == "3,3"
    assert page.run("document.getElementById('capacities').value") == "3,2"


def test_an_action_is_dragged_along_its_row(page: Browser) -> None:
    """0B2, the last, to the second place: B2 before F2 comes to a standstill."""
    assert page.run(FIRST_ROW) == AS_GIVEN
    places = page.run("""(() => { const row = document.querySelectorAll('.chips')[0].children;
      return [row[5], row[1]].flatMap(each => { const box = each.getBoundingClientRect();
      return [box.left + 4, box.top + box.height / 2]; }); })()""")
    assert isinstance(places, list)
    x, y, to, _ = places
    for kind, at in (("mousePressed", x), ("mouseMoved", x - 9), ("mouseMoved", to)):
        page.ask("Input.dispatchMouseEvent", _mouse(kind, at, y))
    assert page.run(FIRST_ROW) == "0F0 0B2 0F1 0B0 0F2 0B1"  # while it is held
    page.ask("Input.dispatchMouseEvent", _mouse("mouseReleased", to, y))
    assert "0B2" in done(page, "0")
    assert "✗" in str(page.run("document.getElementById('verdict').textContent"))
    assert done(page, "document.getElementById('reset').click()").startswith("12 ticks")
    assert page.run(FIRST_ROW) == AS_GIVEN


def _mouse(kind: str, x: float, y: float) -> dict[str, object]:
    return {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}


def test_an_action_is_moved_by_keys_and_keeps_the_focus(page: Browser) -> None:
    page.run("document.querySelector('.chips button').focus()")
    pressed(page, "ArrowRight")  # to 0F1, and on to 0B0
    pressed(page, "ArrowRight")
    pressed(page, "ArrowRight", modifiers=8)  # with Shift: behind 0F2
    done(page, "0")
    assert page.run(FIRST_ROW) == "0F0 0F1 0F2 0B0 0B1 0B2"
    assert page.run("document.activeElement.textContent") == "0B0"
    done(page, "document.getElementById('undo').click()")
    assert page.run(FIRST_ROW) == AS_GIVEN


def test_another_family_takes_along_what_it_shares(page: Browser) -> None:
    choose = """(() => { const box = document.getElementById('origin'); box.value = 'zb-h1';
      box.onchange({target: box}); })()"""
    done(page, set_box("m", 6))
    done(page, choose)
    rows = "[...document.querySelectorAll('.chips')].map(each => each.children.length)"
    assert page.run(rows) == [18, 18]  # F, I and W of 6 microbatches


def test_numbers_of_a_problem_are_sliders(browser: Browser, tmp_path: Path) -> None:
    """(4 + 2 - 1) * 3 ticks; 3 ranks and F of 2: (4 + 3 - 1) * 4."""
    (tmp_path / "a.toml").write_text(
        "ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n"
    )
    with serving([str(tmp_path / "a.toml")]) as address:
        browser.open(address)
        browser.run(IDLE)
        assert done(browser, "0").startswith("15 ticks")
        done(browser, set_box("ranks", 3))
        assert done(browser, set_box("forward", 2)).startswith("24 ticks")
        assert done(browser, "document.getElementById('undo').click()").startswith("18 ticks")


def test_a_file_is_opened_and_what_was_solved_can_be_taken_back(page: Browser) -> None:
    """Rank 1 runs all forwards first: F F F B B B; rank 0 waits until 3 + 2 and ends at 11 + 1."""
    done(page, "served.open('my.csv', '0F0,0F1,0F2,0B0,0B1,0B2\\n1F0,1F1,1F2,1B0,1B1,1B2')")
    option = "document.querySelector('#origin').selectedOptions[0].text"
    assert page.run(option) == "my"
    assert page.run(FIRST_ROW) == "0F0 0F1 0F2 0B0 0B1 0B2"
    done(page, set_box("capacity", 2))
    assert "✗ memory" in str(page.run("document.getElementById('verdict').textContent"))
    done(page, "document.getElementById('solve').click()")
    assert "✗" not in str(page.run("document.getElementById('verdict').textContent"))
    assert "optimal" in str(page.run("document.getElementById('solver').textContent"))
    done(page, "document.getElementById('undo').click()")
    assert page.run(FIRST_ROW) == "0F0 0F1 0F2 0B0 0B1 0B2"


def test_the_frame_stays_and_draws_what_was_judged_without_an_origin(page: Browser) -> None:
    frame = "document.getElementById('view')"
    page.run(f"window.loads = 0; {frame}.addEventListener('load', () => {{ window.loads += 1; }})")
    drawn = """new Promise(done => (function wait() {
      served.drawn.number === %d ? done() : setTimeout(wait, 10); })())"""
    page.run(drawn % 1)
    done(page, set_box("m", 5))
    page.run(drawn % 2)
    assert page.run("window.loads") == 0
    assert page.run(f"{frame}.getAttribute('sandbox')") == "allow-scripts"
    title = f"(() => {{ try {{ return {frame}.contentWindow.document.title; }} "
    assert page.run(title + "catch (error) { return error.name; } })()") == "SecurityError"


def test_what_is_sent_to_the_frame_keeps_zoom_and_choice(browser: Browser, tmp_path: Path) -> None:
    """1F1 begins at 4 (after 1B0 of 2 ticks, which began at 2); with F of 2, at 6."""
    (tmp_path / "frame.html").write_text(framed_page())
    browser.open(tmp_path / "frame.html")
    for number, ticks in ((1, 1), (2, 2)):
        content = ViewedSchedule(name="a", **_small(ticks)).content
        sent = json.dumps({"number": number, "schedules": [content]})
        browser.run(f"""new Promise(done => {{
          addEventListener('message', event => event.data.drawn === {number} && done());
          postMessage({sent}, '*'); }})""")
        view = "bubbleproof.viewers[0]"
        said = "document.querySelector('.viewer-said').innerText"
        if number == 1:
            browser.run(f"{view}.find('1F1'); {view}.view.show(2, 6); {view}.draw()")
            assert "4 to 5, 1 tick" in str(browser.run(said))
    assert "6 to 8, 2 ticks" in str(browser.run(said))
    assert browser.run(f"[{view}.view.from, {view}.view.to]") == [2, 6]


def _small(ticks: int) -> dict[str, Any]:
    drawn = member("1f1b", p=2, m=2, tF=ticks)
    return {"problem": drawn.problem, "schedule": drawn.schedule}
