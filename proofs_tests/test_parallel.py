"""Calls on many workers: results in order, errors and interruptions that cancel the rest."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from bubbleproof.parallel import open_executor, run_all
from bubbleproof.platforms import num_cores
from proofs_tests.patience import PATIENCE

ITEMS = (3, 1, 2, 0)


def square(item: int) -> int:
    return item * item


def inverse(item: int) -> int:
    return 6 // item


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("opened", [open_executor(1), open_executor(2), threads()])
def test_results_stand_in_the_order_of_the_items(opened: object) -> None:
    seen: dict[int, int] = {}
    with opened as executor:  # type: ignore[attr-defined]  # three kinds of context managers
        results = run_all(executor, square, ITEMS, on_done=seen.__setitem__)
    assert results == [9, 1, 4, 0]
    assert seen == dict(enumerate(results))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_raised(workers: int) -> None:
    with open_executor(workers) as executor, pytest.raises(ZeroDivisionError):
        run_all(executor, inverse, ITEMS)


def test_what_has_not_begun_is_cancelled_on_an_interruption() -> None:
    """One thread: item 0 is done, item 1 waits to be let go, so 2 and 3 cannot have begun."""
    begun: list[int] = []
    let_go = Event()

    def work(item: int) -> int:
        begun.append(item)
        if item == 1:
            let_go.wait(10)
        return item

    def interrupted(index: int, result: int) -> None:
        del index, result
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            run_all(pool, work, [0, 1, 2, 3], on_done=interrupted)
        let_go.set()
    assert begun in ([0], [0, 1])


class OneAtATime(Executor):
    """A stranger's executor: it runs each call when it is handed in."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]  # the base is generic
        future: Future[object] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_serves() -> None:
    assert run_all(OneAtATime(), square, ITEMS) == [9, 1, 4, 0]
    assert run_all(OneAtATime(), square, []) == []


def test_unusable_workers() -> None:
    with pytest.raises(ValueError, match="workers must be 1 or more, got 0"), open_executor(0):
        pass
    with (
        pytest.raises(ValueError, match="a number of workers or a cluster's address, not both"),
        open_executor(2, address="tcp://nowhere:1"),
    ):
        pass
    assert num_cores() >= 1


_CALLER = """
import sys, time
from bubbleproof.parallel import open_executor, run_all
if __name__ == "__main__":
    with open_executor(2) as pool:
        run_all(pool, time.sleep, [0.01, 0.01])
        print(*pool._processes, flush=True)
        run_all(pool, time.sleep, [60, 60])
"""


def test_workers_end_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(_CALLER)
    caller = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    workers = [int(word) for word in caller.stdout.readline().split()]
    assert len(workers) == 2
    caller.kill()
    caller.communicate()
    until = time.monotonic() + PATIENCE
    while any(map(is_running, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def is_running(process: int) -> bool:
    """Whether a process runs; one that ended and that nobody waited for does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip() not in ("", "Z")
