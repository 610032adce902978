"""Hypothesis settings of the whole suite: the same examples on every run, no deadline.

25 of each property by default, 60 with ``BUBBLEPROOF_SWEEP=full``; ``HYPOTHESIS_PROFILE=explore``
draws fresh and more examples instead. ``benchmarks`` is importable also where pytest was not
started as ``python -m pytest``.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bubbleproof.reference_exec.drivers.gloo_server import FIRST_OPTIMIZER, server_context
from proofs_tests.old_objects import hide_what_is_old
from proofs_tests.sized import sized

ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.append(ROOT)

settings.register_profile(
    "proof",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=sized(25, full=60),
    suppress_health_check=[HealthCheck.too_slow],  # the machine may be shared
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "proof"))


SERVED = (
    FIRST_OPTIMIZER,
    "benchmarks.replay_steps",
    "benchmarks.speed_torch",
    "bubbleproof.cli",
    "bubbleproof.commands.replaying.replay",
    "bubbleproof.commands.replaying.under_torchrun",
    "bubbleproof.reference_exec.pytorch.worker",
    "bubbleproof.testing.step_process",
    "proofs_tests.reference_exec.faulty",
)


def pytest_configure(config: pytest.Config) -> None:
    """Without torch, what needs it is skipped, in the package too. SIGINT is heard in any case.

    A shell has what it runs in the background ignore it, and so would all processes under test.
    Replays of all files have one server of processes. What it has not loaded as it starts, each
    process would load anew, for seconds.
    """
    server_context(*SERVED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if find_spec("torch") is None:
        from proofs_tests import without_torch

        config.pluginmanager.register(without_torch, "without torch")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: a third of a replay's test is waiting for others."""
    return min(8, 1 + len(os.sched_getaffinity(0)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected to no garbage collector: all of it stays until the end.

    To look through thousands of tests at every full collection would cost a tenth of the run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        hide_what_is_old()


@pytest.fixture(scope="session")
def coq_library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Where the proofs of ``proofs/`` are compiled, once for all processes that run the tests; what
    each file prints."""
    from proofs_tests.coq import library

    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent
    folder = of_all / "coq"
    return folder, library(folder)


@pytest.fixture(scope="module", autouse=True)
def _little_to_look_through() -> None:
    """Nor what earlier tests have loaded: each replay has the collector look through everything."""
    hide_what_is_old()
