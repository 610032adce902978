"""Ctrl-C: each command prints what it has found and ends with 130. Each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TypeVar

import pytest

from bubbleproof.cli import main
from bubbleproof.commands.interrupts import begun, interruptions, loaded_since
from bubbleproof.parallel import postponed, run_all
from proofs_tests.own_process import run_alone
from proofs_tests.sized import sized

Value = TypeVar("Value")
PROBLEM = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = [1, 3]\nbackward = [2, 4]\n"


def answer(*words: str) -> tuple[int, str]:
    """The status and the output of a command in this process."""
    sys.argv = ["bubbleproof", *words]
    out = StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), out.getvalue()


def interrupting(call: Callable[..., Value], turn: int) -> Callable[..., Value]:
    """The call, with a Ctrl-C when it is made for the ``turn``-th time."""
    turns = []

    def made(*given: object, **named: object) -> Value:
        turns.append(turn)
        if len(turns) == turn:
            os.kill(os.getpid(), signal.SIGINT)
        return call(*given, **named)

    return made


def interrupted_pareto() -> None:
    from bubbleproof.solvers import pareto_front

    vars(pareto_front)["run_all"] = interrupting(run_all, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.toml"
        path.write_text(PROBLEM)
        status, out = answer("pareto", str(path))
    assert status == 130
    # Rank 1 has 3 * (3 + 4) = 21 ticks of work, after the first forward (1) and before the last
    # backward (2) of rank 0.
    assert "24 tick" in out


def interrupted_pareto_after_the_last_point() -> None:
    """While the workers end: by then the front is whole."""
    from bubbleproof import parallel

    pool = vars(parallel)["_Pool"]
    pool.shutdown = interrupting(pool.shutdown, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.toml"
        path.write_text(PROBLEM)
        status, out = answer("pareto", str(path), "--workers", "2")
    assert status == 130
    assert "24 tick" in out


def interrupted_pareto_beside_the_published() -> None:
    from bubbleproof.formats import comparison_pipeline
    from bubbleproof.planners import published_points

    vars(published_points)["comparison_pipeline"] = interrupting(comparison_pipeline, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.toml"
        path.write_text(PROBLEM)
        status, out = answer("pareto", str(path), "--workers", "1")
    assert status == 130
    assert "24 tick" in out


def interrupted_bench() -> None:
    from bubbleproof.solvers.search import Search

    wrapped = interrupting(Search._certify_claim, 2)
    setattr(Search, "_certify_claim", wrapped)  # noqa: B010 - mypy takes no assignment to a method
    status, out = answer("bench")
    assert status == 130
    assert out.count("1f1b-p4-m8") == 2, out  # the first run, and what the second had
    assert "latency" not in out


@pytest.mark.sweep
@pytest.mark.parametrize(
    "work",
    sized(
        [interrupted_pareto],
        full=[
            interrupted_pareto,
            interrupted_pareto_after_the_last_point,
            interrupted_pareto_beside_the_published,
            interrupted_bench,
        ],
    ),
)
def test_what_was_found_is_printed(work: Callable[[], None]) -> None:
    run_alone(work)


def postponed_ctrl_c() -> None:
    heard = []

    def block() -> None:
        with postponed(lambda: heard.append(1)):
            os.kill(os.getpid(), signal.SIGINT)
            heard.append(2)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert heard == [1, 2]
    with postponed():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_postponed_ctrl_c_comes_at_the_end_of_its_block() -> None:
    run_alone(postponed_ctrl_c)


_CALLER = """
import time
from bubbleproof.parallel import open_executor, run_all
if __name__ == "__main__":
    with open_executor(2) as pool:
        run_all(pool, time.sleep, [0.01, 0.01], on_done=lambda *_: print("begun", flush=True))
        run_all(pool, time.sleep, [3600, 3600])
"""


def test_workers_end_in_the_middle_of_a_call(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(_CALLER)
    caller = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() + caller.stdout.readline() == "begun\nbegun\n"
    os.killpg(caller.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    _, said = caller.communicate(timeout=300)
    assert caller.returncode == -signal.SIGINT
    assert said.count("KeyboardInterrupt") == 1, said  # of the caller, none of a worker


_HANDING_IN = """
import os, signal, time
from bubbleproof.parallel import open_executor, run_all
def hours():
    yield 3600
    time.sleep(0.5)  # one worker has begun, and the other call is not handed in
    os.kill(os.getpid(), signal.SIGINT)
    yield 3600
if __name__ == "__main__":
    with open_executor(2) as pool:
        run_all(pool, time.sleep, [0.01, 0.01])
        run_all(pool, time.sleep, hours())
"""


def test_workers_end_while_calls_are_handed_in(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(_HANDING_IN)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -signal.SIGINT
    assert done.stderr.count("KeyboardInterrupt") == 1, done.stderr


_LOADING = """
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["bubbleproof", "measure", "1f1b", "p=2", "m=2"]
{entry}
"""


@pytest.mark.parametrize(
    "entry",
    [
        "runpy.run_module('bubbleproof', run_name='__main__')",
        "from bubbleproof.__main__ import main; main()",
        "runpy.run_module('bubbleproof.reference_exec', run_name='__main__')",
    ],
)
def test_ctrl_c_while_the_command_is_loaded_is_one_line(entry: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADING.format(entry=entry)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "bubbleproof: interrupted\n"


def test_the_console_script_is_that_entry() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    assert tomllib.loads(text)["project"]["scripts"] == {"bubbleproof": "bubbleproof.__main__:main"}


def test_a_command_began_when_it_was_called_where_nobody_listens_for_ctrl_c() -> None:
    """As behind a shell's ``&``: its limit is of all the time that it is waited for."""
    listens = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        loaded_since(12.5)
        with interruptions():
            assert begun() == 12.5
        assert begun() != 12.5
    finally:
        signal.signal(signal.SIGINT, listens)
