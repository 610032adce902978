"""The page of ``serve`` in a browser: sliders, boxes, dragging, keys, undo, what it says."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from benchmarks.browser import Browser, browser_path
from bubbleproof.commands.serving.serve import made_server

pytestmark = pytest.mark.skipif(browser_path() is None, reason="no Chromium here to open the page")
IDLE = """new Promise(done => (function wait() {
  served.isIdle() ? done() : setTimeout(wait, 10); })())"""
FIRST_ROW = "[...document.querySelectorAll('.chips')[0].children].map(c => c.textContent).join(' ')"
AS_GIVEN = "0F0 0F1 0B0 0F2 0B1 0B2"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The page of 1F1B on two ranks, judged once."""
    with made_server(["1f1b", "p=2", "m=3"], 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        browser.open(server.answers.guard.address)
        browser.run(IDLE)
        yield browser
        server.shutdown()
        thread.join()


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


def test_the_frame_is_the_judged_view_without_an_origin(page: Browser) -> None:
    frame = "document.getElementById('view')"
    assert page.run(f"{frame}.getAttribute('sandbox')") == "allow-scripts"
    assert (
        page.run(
            f"(() => {{ try {{ return {frame}.contentWindow.document.title; }} "
            "catch (error) { return error.name; } })()"
        )
        == "SecurityError"
    )
