"""Ctrl-C at the door: every function raises ``KeyboardInterrupt``, with what was found by then.

Each test has a process of its own and sends it real signals, from within the work or while a
search that does not end by itself is known to run.
"""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType

import pytest

import bubbleproof as bp
from bubbleproof.arguments import door_function
from proofs_tests.own_process import ROOT, run_alone
from proofs_tests.patience import PATIENCE

SMALL = bp.Pipeline(num_ranks=2, num_microbatches=3, capacity=2)
HARD = bp.Pipeline(
    num_ranks=4,
    num_microbatches=9,
    num_chunks=2,
    split_backward=True,
    forward=(10, 12, 11, 12, 18, 9, 7, 13),
    input_backward=(11, 12, 13, 12, 18, 9, 7, 13),
    weight_backward=(7, 8, 8, 8, 9, 5, 7, 8),
    capacity=(9, 8, 7, 7),
    latency=3,
)


def press() -> None:
    """Ctrl-C, now."""
    os.kill(os.getpid(), signal.SIGINT)


def found_by(work: Callable[[], object]) -> object:
    """The result on the interruption that a call ends with. The handler is the one from before."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as ended:
        work()
    assert signal.getsignal(signal.SIGINT) is before
    found: object = getattr(ended.value, "result")  # noqa: B009 - it must be there
    return found


def test_every_function_of_the_door_that_works_is_a_door_function() -> None:
    """By the list of its names: one that is added later is seen."""
    plain = {"families", "family", "register"}  # of ``theory``, which look a name up
    for name in set(bp.__all__) - plain:
        found = getattr(bp, name)
        if inspect.isfunction(found):
            assert found.__code__.co_filename.endswith("arguments.py"), name


def the_caught_are_raised() -> None:
    """A search that catches Ctrl-C and answers; one that an engine turns into its own error."""

    @door_function
    def caught() -> str:
        try:
            press()
            signal.pause()
        except KeyboardInterrupt:
            pass
        return "found"

    @door_function
    def translated() -> str:
        try:
            press()
            signal.pause()
        except KeyboardInterrupt:
            raise RuntimeError("compiled code") from None
        return "never"

    @door_function
    def passed_on() -> None:
        press()
        signal.pause()

    assert found_by(caught) == "found"
    assert found_by(translated) is None
    assert found_by(passed_on) is None
    assert caught.__name__ == "caught"


def others_stay_in_charge() -> None:
    """A handler of the user's own that does not raise; and a thread, where none can be set."""
    heard = []

    def note(number: int, _: FrameType | None) -> None:
        heard.append(number)

    signal.signal(signal.SIGINT, note)

    @door_function
    def pressed() -> str:
        press()
        return "done"

    assert pressed() == "done"
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is note
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert pressed() == "done"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = []
    thread = threading.Thread(target=lambda: found.append(bp.solve(SMALL)))
    thread.start()
    thread.join()
    assert found[0].makespan == 12  # as in test_door: 1 + 9 + 2


def after(times: int) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Makes a call press Ctrl-C when it returns for this time."""

    def wrapped(call: Callable[..., object]) -> Callable[..., object]:
        turns = []

        def made(*given: object, **named: object) -> object:
            found = call(*given, **named)
            turns.append(1)
            if len(turns) == times:
                press()
            return found

        return made

    return wrapped


def a_front_is_on_the_exception() -> None:
    from bubbleproof.solvers import pareto_front

    vars(pareto_front)["run_all"] = after(1)(vars(pareto_front)["run_all"])
    found = found_by(lambda: bp.pareto(SMALL))
    assert isinstance(found, pareto_front.Front)
    assert not found.is_exact
    assert [point.makespan for point in found.points] == [12]


def a_plan_is_on_the_exception() -> None:
    from bubbleproof.planners import Plan
    from bubbleproof.planners.pipeline_search import PipelineSearch

    wrapped = after(1)(vars(PipelineSearch)["_look_first"])
    setattr(PipelineSearch, "_look_first", wrapped)  # noqa: B010 - mypy takes no assignment to a method
    found = found_by(lambda: bp.plan(SMALL, chunks=(1,), backward=("whole", "split")))
    assert isinstance(found, Plan)


def a_replay_is_interrupted() -> None:
    from bubbleproof.reference_exec import replaying

    name = "build_plan" if hasattr(replaying, "build_plan") else "replay"
    vars(replaying)[name] = after(1)(vars(replaying)[name])
    found_by(lambda: bp.replay(bp.family("1f1b")(p=2, m=2)))


@pytest.mark.parametrize(
    "work",
    [
        the_caught_are_raised,
        others_stay_in_charge,
        a_front_is_on_the_exception,
        a_plan_is_on_the_exception,
        pytest.param(a_replay_is_interrupted, marks=pytest.mark.torch),
    ],
)
def test_ctrl_c_ends_the_call(work: Callable[[], None]) -> None:
    run_alone(work)


LOOP = """
import sys
import bubbleproof as bp
from bubbleproof.solvers import search
from proofs_tests.test_door_interrupted import HARD

real = search.run_interruptibly

def begun(*given):
    print("running", flush=True)
    return real(*given)

search.run_interruptibly = begun
for turn in range(3):
    try:
        bp.solve(HARD, time_limit=1000, engine=sys.argv[1])
    except KeyboardInterrupt as error:
        print("found", error.result.status.name, flush=True)
        raise
print("the end of the loop")
"""


@pytest.mark.parametrize("engine", ["cpsat", "z3"])
@pytest.mark.parametrize("presses", [1, 2])
def test_a_loop_over_searches_ends(engine: str, presses: int) -> None:
    """Once and twice: signals come while the engine is at work, and no later search begins."""
    with subprocess.Popen(
        [sys.executable, "-c", LOOP, engine], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        while (line := process.stdout.readline()) and line != "running\n":
            pass
        assert line
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    assert "the end of the loop" not in out
    assert "found " in out, errors  # what that was by then is the machine's to say
    assert "the exception's result: <Result: " in errors
    assert process.returncode == -signal.SIGINT
