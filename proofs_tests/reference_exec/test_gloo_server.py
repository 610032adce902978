"""The server of processes: started without waiting, it has loaded what it was told to."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bubbleproof.reference_exec.drivers import gloo_server
from proofs_tests.own_process import run_alone

RARE = "colorsys"  # a module that nothing here imports


def tell_what_is_loaded() -> None:
    sys.exit(7 if RARE in sys.modules else 8)


def exit_code(context: gloo_server.Context) -> int | None:
    process = context.Process(target=tell_what_is_loaded)
    process.start()
    process.join()
    return process.exitcode


def a_process_has_what_its_server_was_told_to_load() -> None:
    gloo_server._PRELOAD = ()  # torch is not needed here and takes long
    with tempfile.TemporaryDirectory() as folder:
        go = Path(folder) / "go"
        (Path(folder) / "slow_to_load.py").write_text(
            f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.01)\n"
        )
        sys.path.append(folder)
        gloo_server.start_server("slow_to_load", RARE)  # returns while that one waits
        go.touch()
        assert RARE not in sys.modules
        assert exit_code(gloo_server.server_context()) == 7


def a_server_that_runs_already_loads_nothing_more() -> None:
    gloo_server._PRELOAD = ()
    gloo_server.start_server()
    gloo_server.start_server(RARE)
    assert exit_code(gloo_server.server_context(RARE)) == 8


@pytest.mark.parametrize(
    "work",
    [a_process_has_what_its_server_was_told_to_load, a_server_that_runs_already_loads_nothing_more],
)
def test_in_a_process_that_has_no_server_yet(work: Callable[[], None]) -> None:
    run_alone(work)
