"""Sweeps on a ``dask.distributed`` cluster: two workers of this machine, joined by address."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator

import pytest

from bubbleproof.parallel import open_executor, run_all
from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.pareto_front import pareto
from bubbleproof.theory.pipelines.pipeline import Pipeline

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The scheduler's address of a cluster of two processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def where(number: int) -> tuple[int, int]:
    return number, os.getpid()


def test_calls_run_elsewhere_and_come_back_in_order(address: str) -> None:
    with open_executor(address=address) as executor:
        results = run_all(executor, where, range(20))
    assert [number for number, _ in results] == list(range(20))
    assert os.getpid() not in {process for _, process in results}


def test_a_front_is_the_same_on_a_cluster(address: str) -> None:
    problem = Pipeline(num_ranks=3, num_microbatches=6).problem()
    alone = pareto(problem, SolveOptions(threads=1))
    with open_executor(address=address) as executor:
        spread = pareto(problem, SolveOptions(threads=1), executor=executor, workers=2)
    assert [(p.peak, p.makespan) for p in spread.points] == [
        (p.peak, p.makespan) for p in alone.points
    ]
    assert spread.is_exact


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("", "a scheduler's address must be such as tcp://HOST:8786, got ''"),
        ("localhost", "a scheduler's address must be such as"),
        ("localhost:99999", "a scheduler's address must be such as"),
        ("localhost:\u0663", "a scheduler's address must be such as"),
        ("tcp://no-such-host.invalid:8786", "no scheduler answers at tcp://no-such-host.invalid"),
        ("bogus://x", "bogus"),
    ],
)
def test_an_address_without_a_scheduler_is_refused_at_once(wrong: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)), open_executor(address=wrong):
        pass


def test_a_port_that_nobody_listens_at_is_refused_at_once() -> None:
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        wrong = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match="no scheduler answers"), open_executor(address=wrong):
            pass


def test_a_number_of_workers_and_an_address_contradict_each_other(address: str) -> None:
    with (
        pytest.raises(ValueError, match="workers or a cluster's address, not both"),
        open_executor(2, address=address),
    ):
        pass
