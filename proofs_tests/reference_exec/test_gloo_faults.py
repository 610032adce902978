"""A rank that dies, hangs or sends what it should not ends a replay in time, with one message."""

from __future__ import annotations

import pytest

from bubbleproof.reference_exec.drivers.gloo import RankFailed, Worker, run_gloo
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.oracle import (
    max_relative_error,
    order_matched,
    single_threaded,
)
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.model.schedule import Program
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec import faulty
from proofs_tests.reference_exec.cases import RECEIVER, SWAPPED_SENDS, TINY, family_case
from proofs_tests.reference_exec.processes import HAS_PROC, descendants

CASE = family_case("1f1b", p=2, m=4)


@pytest.fixture(autouse=True, scope="module")
def _forking_server() -> None:
    """The server that forks processes is there before anything is counted, and stays."""
    assert replay(CASE.pipeline, CASE.schedule, TINY, ReplayOptions(backend="gloo")).ok


def ended_with(worker: Worker, *, timeout: float = PATIENCE) -> str:
    """The message of a run that the worker spoils; the run leaves no process."""
    before = descendants() if HAS_PROC else set()
    with pytest.raises(RankFailed) as caught:
        run_gloo(CASE.plan(), timeout=timeout, worker=worker)
    assert "\n" not in str(caught.value)
    if before:
        assert descendants() <= before
    return str(caught.value)


@pytest.mark.parametrize(
    ("worker", "exitcode"), [(faulty.exits, 3), (faulty.is_killed, -9)], ids=["exits", "killed"]
)
def test_a_rank_that_dies_is_named_with_who_waited_for_it(worker: Worker, exitcode: int) -> None:
    assert ended_with(worker) == (
        f"gloo replay ended: rank 1 died with exit code {exitcode} at 1B0; "
        "rank 0 was left waiting: 0B0 waits for 0RECV_B0 with rank 1"
    )
    assert replay(
        CASE.pipeline, CASE.schedule, TINY, ReplayOptions(backend="gloo")
    ).ok  # processes of its own


def test_a_rank_that_hangs_is_named_with_who_waited_for_it() -> None:
    assert ended_with(faulty.sleeps, timeout=3.0) == (
        "gloo replay ended: rank 0 stalled: 0B0 waits for 0RECV_B0 with rank 1 (timed out); "
        "rank 1 is silent at 1B0"
    )


def test_a_longer_message_than_expected_ends_the_run() -> None:
    # gloo ends the process that receives it; which one that is, the message tells
    message = ended_with(faulty.sends_more)
    assert message.startswith("gloo replay ended: rank 0 died with exit code -6 at ")


def test_crossed_messages_that_gloo_takes_for_each_other_give_other_gradients() -> None:
    case = family_case("gpipe", p=2, m=2)
    plan = case.plan(program=Program.from_orders([SWAPPED_SENDS, RECEIVER]))
    taken = summed_replicas(run_gloo(plan, timeout=PATIENCE))
    with single_threaded():
        assert max_relative_error(taken, order_matched(plan)[0]) > 1e-2
