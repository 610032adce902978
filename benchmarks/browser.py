"""A browser to look at our own pages: Chromium without a window, told what to do through two pipes.

The pipes are those of ``--remote-debugging-pipe`` (the DevTools protocol, messages of JSON that end
in a zero byte), so nothing listens on a port and no library is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import IO, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LOOKS = {  # width, ratio; those that end in "dark" are dark
    "light": (1280, 1.0),
    "dark": (1280, 1.0),
    "tablet": (768, 1.0),
    "tablet-dark": (768, 1.0),
    "phone": (390, 2.0),
    "phone-dark": (390, 2.0),
}
_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage"),
    "--remote-debugging-pipe",
)


def browser_path() -> str | None:
    """Chromium or a browser like it; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one page; a ``with`` ends it.

    Raises ``ValueError`` where there is no browser, ``RuntimeError`` for what it refuses.
    """

    def __init__(self, *, width: int = 1280, height: int = 900) -> None:
        path = browser_path()
        if path is None:
            raise ValueError(f"looking at a page needs one of {', '.join(NAMES)} on the path")
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process, self._told, self._heard = _started(path, self._home.name)
        self._number, self._left = 0, b""
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        joined = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session = joined["sessionId"]
        self.resize(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._told.close()
        self._process.terminate()
        self._process.wait(20)
        self._heard.close()
        self._home.cleanup()

    def ask(self, method: str, given: dict[str, object]) -> dict[str, object]:
        """One command of the protocol, and its answer."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": given}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        self._told.write(json.dumps(message).encode() + b"\0")
        self._told.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                found = answer["result"]
                assert isinstance(found, dict)
                return found

    def _next(self) -> dict[str, object]:
        while b"\0" not in self._left:
            more = self._heard.read1(1 << 20) if hasattr(self._heard, "read1") else b""
            if not more:
                raise RuntimeError("the browser has ended")
            self._left += more
        text, _, self._left = self._left.partition(b"\0")
        answer = json.loads(text)
        assert isinstance(answer, dict)
        return answer

    def resize(self, width: int, height: int, *, ratio: float = 1, is_phone: bool = False) -> None:
        """The window's size in pixels of the page, each of ``ratio`` pixels of the screen."""
        size = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": is_phone}
        self.ask("Emulation.setDeviceMetricsOverride", {**size})

    def darken(self, is_dark: bool) -> None:
        """Whether the reader likes pages dark."""
        value = "dark" if is_dark else "light"
        liked = [{"name": "prefers-color-scheme", "value": value}]
        self.ask("Emulation.setEmulatedMedia", {"features": liked})

    def open(self, page: Path | str) -> None:
        """Open a page, a file's or an address's, and wait until its viewers have begun."""
        address = page if isinstance(page, str) else page.resolve().as_uri()
        self.ask("Page.navigate", {"url": address})
        ready = "new Promise(done => { if (document.readyState === 'complete') done();"
        self.run(f"{ready} else addEventListener('load', done); }})")
        self.run("window.bubbleproof ? window.bubbleproof.began : null")

    def run(self, script: str) -> object:
        """The value of an expression of the page's script; a promise is waited for."""
        given = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self.ask("Runtime.evaluate", {**given})
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"])[:600])
        result = found["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def screenshot(self, *, is_whole: bool = True) -> bytes:
        """What is seen, or all of the page, as a PNG."""
        given = {"format": "png", "captureBeyondViewport": is_whole}
        found = self.ask("Page.captureScreenshot", {**given})["data"]
        assert isinstance(found, str)
        return b64decode(found)


def _started(path: str, home: str) -> tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]:
    """The process, what is written to it and what it says: its descriptors 3 and 4."""
    told_end, told = os.pipe()
    heard, heard_end = os.pipe()
    command = [path, *_ARGUMENTS, f"--user-data-dir={home}"]
    # the shell gives the pipes the numbers that the browser reads and writes
    shell = f'exec 3<&{told_end} 4>&{heard_end}; exec "$0" "$@"'
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, *command],
        pass_fds=(told_end, heard_end),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(told_end)
    os.close(heard_end)
    return process, os.fdopen(told, "wb"), os.fdopen(heard, "rb")


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
