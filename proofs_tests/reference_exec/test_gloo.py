"""Real processes: the same gradients and peaks, and one clear end when a rank goes wrong."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from dataclasses import replace

import pytest

from bubbleproof.reference_exec.gloo import RankFailed, run_gloo
from bubbleproof.reference_exec.judged import summed_replicas
from bubbleproof.reference_exec.oracle import are_equal, order_matched, single_threaded
from bubbleproof.reference_exec.replay import replay
from bubbleproof.reference_exec.zero_levels import ZeroLevels
from bubbleproof.theory.schedule import Program
from bubbleproof.verify import Semantics, check_communication
from proofs_tests.reference_exec.cases import TINY, edited, family_case, shuffled
from proofs_tests.reference_exec.meshes import mesh, plan_of
from proofs_tests.reference_exec.swapped import work_in_another_order

FULL = os.environ.get("BUBBLEPROOF_SWEEP") == "full"
SPEC = replace(TINY, kind="transformer")


@pytest.fixture(autouse=True)
def _no_orphans() -> None:
    assert not multiprocessing.active_children()


def ranks_alive() -> list[str]:
    return [process.name for process in multiprocessing.active_children()]


@pytest.mark.parametrize(
    ("name", "v", "dtype"),
    [("1f1b", None, "float64"), ("interleaved", 2, "float32"), ("zb-h1", None, "float64")],
)
def test_published_schedules_replay_on_gloo(name: str, v: int | None, dtype: str) -> None:
    case = family_case(name, p=4, m=4, v=v)
    spec = replace(SPEC, dtype=dtype)
    report = replay(case.problem, case.schedule, spec, backend="gloo")
    virtual = replay(case.problem, case.schedule, spec)
    assert report.ok, str(report)
    assert (report.backend, report.semantics) == ("gloo", "buffered")
    assert report.live_bytes == virtual.live_bytes
    assert report.loss == virtual.loss
    assert ranks_alive() == []


@pytest.mark.parametrize(
    ("name", "params", "dtype"),
    [
        ("trecomp", {"p": 2, "m": 3}, "float64"),
        ("bpipe", {"p": 4, "m": 5}, "float32"),
        ("chimera", {"p": 2, "m": 4}, "float64"),
        ("svpp", {"p": 2, "m": 2, "s": 2, "v": 2}, "float64"),
        ("svpp-w", {"p": 2, "m": 2, "s": 3}, "float32"),
        ("toffload", {"p": 2, "m": 3}, "float64"),
        ("zb-v", {"p": 2, "m": 4}, "float64"),
        ("dualpipev", {"p": 2, "m": 4}, "float32"),
    ],
)
def test_choices_and_slices_replay_on_gloo(name: str, params: dict[str, int], dtype: str) -> None:
    case = family_case(name, **params)
    spec = replace(SPEC, dtype=dtype)
    report = replay(case.problem, case.schedule, spec, backend="gloo")
    assert report.ok, str(report)
    assert report.live_bytes == replay(case.problem, case.schedule, spec).live_bytes
    assert ranks_alive() == []


@pytest.mark.sweep
def test_programs_that_are_safe_under_pair_stream_never_stall_on_processes() -> None:
    """200 random programs with ``BUBBLEPROOF_SWEEP=full``, 6 otherwise."""
    cases = [
        family_case("1f1b", p=3, m=3),
        family_case("zb-v", p=2, m=4),
        family_case("interleaved", p=2, m=4, v=2),
        family_case("bpipe", p=4, m=5),
        family_case("chimera", p=2, m=4),
    ]
    choice, wanted = random.Random(5), 200 if FULL else 6
    safe = stopped = 0
    while safe < wanted:
        case = cases[safe % len(cases)]
        program = shuffled(case, choice)
        if not check_communication(case.problem, program, (Semantics.PAIR_STREAM,)).ok:
            stopped += 1
            continue
        plan = case.plan(program=program)
        found = summed_replicas(run_gloo(plan, timeout=30))
        with single_threaded():
            assert are_equal(found, order_matched(plan)[0])
        safe += 1
    assert stopped >= wanted // 4  # or the moves were too timid to show anything


def test_a_load_that_never_comes_ends_the_run() -> None:
    case = family_case("bpipe", p=4, m=5)
    orders = case.orders()
    orders[3] = [action for action in orders[3] if "LOAD" not in action]
    with pytest.raises(RankFailed) as caught:
        run_gloo(case.plan(program=Program.from_orders(orders)), timeout=1.5)
    assert "0EVICT1 never loaded" in str(caught.value) or "waits for 0LOAD1" in str(caught.value)
    assert ranks_alive() == []


def test_a_message_that_never_comes_ends_the_run() -> None:
    # gloo looks at no tags: the gradient of the last microbatch is what never comes
    case = family_case("1f1b", p=2, m=2)
    program = edited(case, 1, {"1SEND_B1": []})
    with pytest.raises(RankFailed) as caught:
        run_gloo(case.plan(program=program), timeout=1.0)
    # rank 1 ends with what it did not send; that is the cause, rank 0's waiting the effect
    assert "rank 1 failed: BrokenProgram: rank 1, action" in str(caught.value)
    assert "0RECV_B1 never sent or used" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ranks_alive() == []


def test_ranks_that_wait_for_each_other_end_with_what_they_wait_for() -> None:
    # both wait for a message that the other sends later
    orders = [
        ["0F0", "0RECV_B0", "0B0", "0SEND_F0"],
        ["1RECV_F0", "1F0", "1B0", "1SEND_B0"],
    ]
    plan = family_case("1f1b", p=2, m=1).plan(program=Program.from_orders(orders))
    with pytest.raises(RankFailed) as caught:
        run_gloo(plan, timeout=1.0)
    assert "rank 0 stalled: 0B0 waits for 0RECV_B0 with rank 1" in str(caught.value)
    assert "rank 1 stalled: 1F0 waits for 1RECV_F0 with rank 0" in str(caught.value)
    assert ranks_alive() == []


@pytest.mark.parametrize(
    ("kill", "message"),
    [
        (signal.SIGKILL, "rank 1 died with exit code -9"),
        (signal.SIGSTOP, "rank 1 is silent "),
    ],
)
def test_a_rank_that_dies_or_hangs_ends_the_run(kill: signal.Signals, message: str) -> None:
    case = family_case("1f1b", p=2, m=200)

    def strike(line: str) -> None:
        if line == "rank 1: ready":
            victim = next(p for p in multiprocessing.active_children() if p.name == "rank 1")
            assert victim.pid is not None
            os.kill(victim.pid, kill)

    with pytest.raises(RankFailed, match=message):
        run_gloo(case.plan(), timeout=1.5, progress=strike)
    assert ranks_alive() == []


def test_replicas_replay_on_gloo() -> None:
    # 2 x 2 processes: PipeMesh on two ranks and two replicas, parameters at all three levels
    made = mesh(3)
    options = {"data_parallel": 2, "zero": ZeroLevels.parse("3,norm=1,down=2")}
    spec = replace(SPEC, dtype="float32")
    report = replay(*made, spec, backend="gloo", **options)  # type: ignore[arg-type]  # as meant
    virtual = replay(*made, spec, **options)  # type: ignore[arg-type]  # as meant
    assert report.ok, str(report)
    assert len(report.live_bytes) == 4
    assert report.live_bytes == virtual.live_bytes
    assert report.measured_state_bytes == virtual.measured_state_bytes
    assert report.loss == virtual.loss
    assert ranks_alive() == []


def test_replicas_that_differ_in_order_end_the_run() -> None:
    plan = plan_of(mesh(1), replicas=2, levels="1")
    with pytest.raises(RankFailed) as caught:
        run_gloo(plan, timeout=5.0, worker=work_in_another_order)
    assert "must issue their collectives in one order" in str(caught.value)
    assert " of replica " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ranks_alive() == []
