"""Every kind of page as a reader sees it: pictures at three widths, in light and in dark.

    python -m benchmarks.page_pictures FOLDER

The pages are made by the commands (``show``, ``run``, ``plan``, ``trace``, ``replay``, ``serve``)
from small problems and examples, and opened in Chromium; a picture is of the whole page. Of
``serve`` there are three: as it begins, with an action dragged, and where that comes to a
standstill.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import typer

from benchmarks.browser import LOOKS, Browser, looked_at, photograph
from bubbleproof.commands.serving.serve import made_server

ROOT = Path(__file__).parents[1]
PAGES = {  # the page's name: the command that writes it, and the page it writes
    "schedule": ("show zb-h1 p=4 m=8 -o schedule.html", "schedule.html"),
    "run": (
        f"run {ROOT}/examples/researcher/split-backward.toml --backend virtual -o run",
        "run/report.html",
    ),
    "plan": (f"plan {ROOT}/examples/researcher/plan.toml -o plan", "plan/plan.html"),
    "cluster": (
        f"plan {ROOT}/examples/cluster/llama-13b-64xA100.toml -o cluster",
        "cluster/plan.html",
    ),
    "trace": (f"trace {ROOT}/examples/ci/trace -o traced", "traced/trace.html"),
    "replay": ("replay 1f1b p=2 m=4 -o replay.html", "replay.html"),
}
SERVED = ("1f1b", "p=4", "m=8")
MOVES = {  # on rank 0 of what is served: from place, to place
    "serve": (0, 0),
    "serve-moved": (5, 4),  # F4 before B0: as long, but rank 0 holds one more
    "serve-standstill": (15, 4),  # B7 before F7 has run
}


def main(folder: Path) -> None:
    """Write the pictures to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made, Browser() as browser:
        for name, (words, written) in PAGES.items():
            command = [sys.executable, "-m", "bubbleproof", *words.split()]
            status = subprocess.run(command, cwd=made, stdout=subprocess.DEVNULL, check=False)
            if status.returncode > 1:  # 1 is a verdict: the trace has a straggler
                raise ChildProcessError(f"bubbleproof {words} ended with {status.returncode}")
            page = Path(made) / f"{name}.html"
            (Path(made) / written).rename(page)
            photograph(browser, page, folder)
        for name, move in MOVES.items():
            for look in LOOKS:
                (folder / f"{name}-{look}.png").write_bytes(_served(browser, look, *move))


def _served(browser: Browser, look: str, place: int, to: int) -> bytes:
    """What ``serve`` shows after one action was moved by keys."""
    with served_address() as address:
        looked_at(browser, address, look, 1500)
        browser.run(IDLE)
        if place != to:
            browser.run(f"served.move(0, {place}, {to})")
            browser.run(IDLE)
        browser.run("new Promise(done => setTimeout(done, 600))")  # the frame draws by itself
        return browser.screenshot()


IDLE = """new Promise(done => (function wait() {
  served.isIdle() ? done() : setTimeout(wait, 10); })())"""


@contextmanager
def served_address() -> Iterator[str]:
    """The address of a server while the block runs."""
    with made_server(SERVED, 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.answers.guard.address
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    typer.run(main)
