"""Engines in processes of their own: what becomes of one that gives no answer, and of its caller.

The processes are real, and so are the signals and the allocations.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bubbleproof.engine_process import hosted
from bubbleproof.engine_process.hosted import CallLimits, call
from bubbleproof.engine_process.loss import EngineLostError, LossKind, loss_of, size_text
from bubbleproof.faults import FaultError
from bubbleproof.platforms import has_memory_limits
from proofs_tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
NO_LIMIT = CallLimits(left=lambda: PATIENCE)
limited = pytest.mark.skipif(not has_memory_limits(), reason="memory cannot be limited here")


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    hosted.end_idle()


def called(name: str, *arguments: object, limits: CallLimits = NO_LIMIT) -> object:
    place = f"proofs_tests.solvers.lost_engines:{name}"
    return call(place, arguments, limits, who="glue")


def lost(name: str, *arguments: object, limits: CallLimits = NO_LIMIT) -> tuple[LossKind, str]:
    with pytest.raises(EngineLostError) as caught:
        called(name, *arguments, limits=limits)
    return caught.value.loss.kind, str(caught.value.loss)


def is_there(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_serves_again() -> None:
    first = called("its_number")
    assert first != os.getpid()
    assert called("its_number") == first


def test_one_that_is_killed_is_said_to_be_and_what_it_told_is_heard() -> None:
    heard: list[object] = []
    place = "proofs_tests.solvers.lost_engines:tell_and_kill"
    with pytest.raises(EngineLostError) as caught:
        call(place, (), NO_LIMIT, who="glue", on_told=heard.append)
    assert heard == [7]
    assert caught.value.loss.kind is LossKind.KILLED
    assert str(caught.value.loss) == (
        "glue was killed from outside, as systems do when memory runs out (SIGKILL): "
        "what was known before is kept"
    )


def test_a_crash_names_the_signal_and_the_last_line() -> None:
    kind, said = lost("abort")
    assert kind is LossKind.CRASHED
    assert "SIGABRT; check failed: x == 3" in said


def test_an_end_without_an_answer_is_a_crash() -> None:
    kind, said = lost("leave")
    assert kind is LossKind.CRASHED
    assert "exit status 3" in said


def test_a_library_without_memory_is_known_by_what_it_writes() -> None:
    assert lost("abort_without_memory")[0] is LossKind.MEMORY


@limited
def test_an_allocation_beyond_the_limit_fails_and_one_within_does_not() -> None:
    limits = CallLimits(left=lambda: PATIENCE, memory=256 << 20)
    assert called("allocate", 64 << 20, limits=limits) == 64 << 20
    kind, said = lost("allocate", 512 << 20, limits=limits)
    assert kind is LossKind.MEMORY
    assert "its limit was 256 MiB" in said
    # The limit goes with the call: without one as much can be had.
    assert called("allocate", 512 << 20) == 512 << 20


def test_one_that_ignores_its_limit_is_ended() -> None:
    numbers: list[object] = []
    # Nothing is left from when it runs: no clock decides.
    limits = CallLimits(left=lambda: 0.0 if numbers else PATIENCE)
    place = "proofs_tests.solvers.lost_engines:ignore_everything"
    with pytest.raises(EngineLostError) as caught:
        call(place, (), limits, who="glue", on_told=numbers.append)
    assert caught.value.loss.kind is LossKind.OVERRAN
    assert not is_there(int(str(numbers[0])))


def test_one_that_hears_the_request_answers() -> None:
    heard: list[object] = []
    limits = CallLimits(left=lambda: 0.0 if heard else PATIENCE)
    place = "proofs_tests.solvers.lost_engines:obey"
    assert call(place, (), limits, who="glue", on_told=heard.append) == "stopped"


def test_an_error_travels_with_where_it_was_raised() -> None:
    with pytest.raises(FaultError, match="the checker refuses it") as caught:
        called("fail")
    assert "lost_engines.py" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="LocalError"):
        called("fail_strangely")


def test_what_an_engine_prints_is_no_answer() -> None:
    assert called("print_much") == "answer"


def test_an_interruption_ends_the_process() -> None:
    numbers: list[int] = []

    def interrupt(number: object) -> None:
        numbers.append(int(str(number)))
        raise KeyboardInterrupt

    place = "proofs_tests.solvers.lost_engines:ignore_everything"
    with pytest.raises(KeyboardInterrupt):
        call(place, (), NO_LIMIT, who="glue", on_told=interrupt)
    assert not is_there(numbers[0])


def test_no_orphan_outlives_its_caller() -> None:
    """The caller is killed in the middle of a call, so that nothing of it can tidy up."""
    code = """
from bubbleproof.engine_process.hosted import CallLimits, call
call(
    "proofs_tests.solvers.lost_engines:ignore_everything", (), CallLimits(left=lambda: 600.0),
    who="glue", on_told=lambda number: print(number, flush=True),
)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert caller.stdout is not None
    number = int(caller.stdout.readline())
    assert is_there(number)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    end = time.monotonic() + PATIENCE
    while is_there(number) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_there(number)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_takes_none_of_its_parents() -> None:
    code = """
import os
from bubbleproof.engine_process.hosted import CallLimits, call
def number():
    place = "proofs_tests.solvers.lost_engines:its_number"
    return call(place, (), CallLimits(left=lambda: 600.0), who="glue")
first = number()
if os.fork() == 0:
    os._exit(0 if number() != first else 1)
assert os.wait()[1] == 0
assert number() == first
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=PATIENCE)
    assert done.returncode == 0


def test_a_script_without_a_main_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "from bubbleproof.engine_process.hosted import CallLimits, call\n"
        "print('once', flush=True)\n"
        "call('builtins:repr', (), CallLimits(left=lambda: 600.0), who='glue')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout == "once\n"


def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hosted.end_idle()
    monkeypatch.setattr(sys, "executable", "")
    assert lost("its_number")[0] is LossKind.NOT_STARTED


@pytest.mark.parametrize(
    ("status", "errors", "kind"),
    [
        (-9, "", LossKind.KILLED),
        (-11, "", LossKind.CRASHED),
        (-6, "what():  std::bad_alloc", LossKind.MEMORY),
        (1, "MemoryError", LossKind.MEMORY),
        (0xC0000005, "", LossKind.CRASHED),  # as Windows tells an access that is not allowed
        (-77, "", LossKind.CRASHED),
    ],
)
def test_what_a_status_means(status: int, errors: str, kind: LossKind) -> None:
    assert loss_of("glue", status, errors, None).kind is kind


def test_sizes_are_said_as_files_say_them() -> None:
    assert [size_text(size) for size in (1536 << 20, 1 << 40, 999)] == ["1.5 GiB", "1 TiB", "999 B"]


def test_what_a_sitecustomize_prints_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.end_idle()
    (tmp_path / "sitecustomize.py").write_text("import os\nos.write(1, b'a greeting, unasked')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert called("its_number", limits=NO_LIMIT) != os.getpid()
    hosted.end_idle()


def test_an_answer_that_cannot_be_read_is_a_loss_at_once() -> None:
    kind, said = lost("damaged_answer")
    assert kind is LossKind.CRASHED
    assert "ZeroDivisionError" in said
