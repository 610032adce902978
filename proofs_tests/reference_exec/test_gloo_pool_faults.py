"""A pool after a fault and at its end: no process is left, and the next plan gets new ones."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers import gloo
from bubbleproof.reference_exec.drivers.gloo import GlooPool, RankFailed
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.schedule import Program
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec import hanging_script
from proofs_tests.reference_exec.cases import (
    edited,
    family_case,
    gradients_of,
)
from proofs_tests.reference_exec.processes import HAS_PROC, descendants, outlive

CASE = family_case("1f1b", p=2, m=4)
PLAN = CASE.plan()
MUTE = CASE.plan(program=edited(CASE, 1, {"1SEND_B3": []}))
STUCK = CASE.plan(
    program=Program.from_orders(
        [["0F0", "0RECV_B0", "0B0", "0SEND_F0"], ["1RECV_F0", "1F0", "1B0", "1SEND_B0"]]
    )
)


@pytest.fixture
def pool() -> Iterator[GlooPool]:
    with GlooPool(3) as opened:  # one of them idle
        yield opened
    assert pids() == set()


def pids() -> set[int]:
    return {process.pid for process in multiprocessing.active_children() if process.pid}


def struck(signal_: signal.Signals) -> Callable[[str], None]:
    """Progress that strikes rank 1 when it stands ready."""

    def strike(line: str) -> None:
        if line == "rank 1: ready":
            os.kill(pid_of("rank 1"), signal_)

    return strike


def pid_of(name: str) -> int:
    found = next(p for p in multiprocessing.active_children() if p.name == name)
    assert found.pid is not None
    return found.pid


def assert_works(pool: GlooPool) -> None:
    """The pool runs a plan as ever."""
    with single_threaded():
        expected, _ = order_matched(PLAN)
    assert are_equal(gradients_of(pool.run(PLAN)), expected)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fault:
    """A run that ends with a message: a plan, its options, and what strikes rank 1."""

    message: str
    plan: ReplayPlan = PLAN
    timeout: float = 0.5
    signal: signal.Signals | None = None

    def run(self, pool: GlooPool) -> None:
        progress = None if self.signal is None else struck(self.signal)
        pool.run(self.plan, timeout=self.timeout, progress=progress)


FAULTS = {
    "dies": Fault(
        message="rank 1 died with exit code -9 ", timeout=PATIENCE, signal=signal.SIGKILL
    ),
    "hangs": Fault(message="rank 1 is silent ", signal=signal.SIGSTOP),
    # gloo looks at no tags, so the gradient of the last microbatch is what never comes: rank 1 ends
    # with what it did not send, which is the cause, and rank 0's waiting the effect; it has 4 times
    # RECV_F, F, B and SEND_B, less one
    "sends too little": Fault(
        message="failed: BrokenProgram: rank 1, action 14: left over: 0RECV_B3 never sent",
        plan=MUTE,
        timeout=PATIENCE,
    ),
    "waits for each other": Fault(
        message="rank 0 stalled: 0B0 waits for 0RECV_B0 with rank 1 (",
        plan=STUCK,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_all_processes_are_new(name: str, pool: GlooPool) -> None:
    fault = FAULTS[name]
    assert_works(pool)
    before = pids()
    assert len(before) == 3
    with pytest.raises(RankFailed) as caught:
        fault.run(pool)
    assert fault.message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert pids() == set()
    assert_works(pool)
    assert len(pids()) == 2
    assert not pids() & before


def test_an_interrupt_ends_the_processes_too(pool: GlooPool) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.run(PLAN, progress=interrupt)
    assert pids() == set()
    assert_works(pool)


@pytest.mark.parametrize("name", ["rank 1", "rank 2"])
def test_a_process_that_died_between_two_plans_is_replaced(name: str, pool: GlooPool) -> None:
    assert_works(pool)
    victim, before = pid_of(name), pids()
    os.kill(victim, signal.SIGKILL)
    ended = multiprocessing.connection.wait(
        [p.sentinel for p in multiprocessing.active_children() if p.pid == victim],
        timeout=PATIENCE,
    )
    assert ended
    assert_works(pool)
    assert not pids() & before


def test_a_process_that_hangs_before_a_plan_is_named(
    pool: GlooPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_works(pool)
    monkeypatch.setattr(gloo, "STARTUP_SECONDS", 1.0)
    os.kill(pid_of("rank 1"), signal.SIGSTOP)
    plan = family_case("1f1b", p=2, m=1000).plan()  # half a megabyte, more than a pipe takes in
    with pytest.raises(RankFailed, match="rank 1 hangs before its first action"):
        pool.run(plan)
    monkeypatch.undo()
    assert_works(pool)


def test_a_pool_takes_no_plan_during_a_run_or_after_its_end(pool: GlooPool) -> None:
    refusals = []

    def again(_: str) -> None:
        with pytest.raises(ValueError, match="it runs one at a time") as caught:
            pool.run(PLAN)
        refusals.append(caught.value)

    pool.run(PLAN, progress=again)
    assert len(refusals) == 4  # two ranks, ready and done
    pool.close()
    pool.close()
    assert pids() == set()
    for use in (lambda: pool.run(PLAN), pool.renew, pool.__enter__):
        with pytest.raises(ValueError, match="the pool of processes has ended"):
            use()


def test_a_pool_serves_the_process_that_made_it(
    pool: GlooPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_works(pool)
    before = pids()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ValueError, match="belongs to the process that made it"):
            pool.run(PLAN)
        pool.close()
    assert_works(pool)
    assert pids() == before


def test_a_pool_has_a_number_of_processes() -> None:
    with pytest.raises(ValueError, match="a pool has 0 processes or more, got -1"):
        GlooPool(-1)


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to know which processes there are")
def test_no_process_outlives_a_parent_that_was_killed() -> None:
    script = [sys.executable, "-m", hanging_script.__name__]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as parent:
        alarm = threading.Timer(PATIENCE, parent.kill)
        alarm.start()
        try:
            assert parent.stdout is not None
            lines = {parent.stdout.readline() for _ in range(2)}
            time.sleep(0.5)  # enough for rank 1 to hang
            family = descendants(parent.pid)
        finally:
            alarm.cancel()
            parent.kill()
    assert lines == {"rank 0: ready\n", "rank 1: ready\n"}
    assert (
        len(family) >= 5
    )  # the parent, the server, a rank that hangs, one that waits, an idle one
    assert outlive(family, PATIENCE) == set()
