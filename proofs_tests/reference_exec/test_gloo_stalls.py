"""A message that never comes, ranks that wait for each other, one that is struck: one clear end."""

from __future__ import annotations

import multiprocessing

import pytest

from bubbleproof.reference_exec.drivers.gloo import RankFailed, run_gloo
from bubbleproof.theory.model.schedule import Program
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec.cases import family_case
from proofs_tests.reference_exec.meshes import mesh, plan_of
from proofs_tests.reference_exec.swapped import work_in_another_order


@pytest.fixture(autouse=True)
def _no_orphans() -> None:
    assert not multiprocessing.active_children()


def ranks_alive() -> list[str]:
    return [process.name for process in multiprocessing.active_children()]


def test_a_load_that_never_comes_ends_the_run() -> None:
    case = family_case("bpipe", p=4, m=5)
    orders = case.orders()
    orders[3] = [action for action in orders[3] if "LOAD" not in action]
    with pytest.raises(RankFailed) as caught:
        run_gloo(case.plan(program=Program.from_orders(orders)), timeout=1.5)
    assert "0EVICT1 never loaded" in str(caught.value) or "waits for 0LOAD1" in str(caught.value)
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


def test_replicas_that_differ_in_order_end_the_run() -> None:
    plan = plan_of(mesh(1), replicas=2, levels="1")
    with pytest.raises(RankFailed) as caught:
        run_gloo(plan, timeout=PATIENCE, worker=work_in_another_order)
    assert "must issue their collectives in one order" in str(caught.value)
    assert " of replica " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ranks_alive() == []
