"""A plan ends within its limit and a tenth on a slow machine, whatever is asked beside it.

The clock is no clock: it goes on with every call of a function, as on a machine on which each takes
so many seconds (``CALL``), and this thread has a part of it (``LOAD``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from bubbleproof.commands.planning.cluster_answer import ClusterQuestion
from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.asked_jobs import JobAsked
from bubbleproof.planners.planned import SearchResults

CALL, LOAD = 2e-5, 10
LIMIT = 30.0  # seconds: a million and a half calls
JOB = """
[model]
name = "llama-2-13b"
[cluster]
card = "h100"
cards = 64
[batch]
samples = 512
[plan]
framework = "{framework}"
"""
NO_ROOM = "tensor=1 pipeline=8 chunks=5"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], float]]:
    """Such a machine, and what its clock says: no load of this one changes it."""
    calls = 0

    def count(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def now() -> float:
        return CALL * calls

    monkeypatch.setattr(time, "perf_counter", now)
    monkeypatch.setattr(time, "thread_time", lambda: CALL * calls / LOAD)
    sys.setprofile(count)
    yield now
    sys.setprofile(None)


@pytest.mark.parametrize(
    ("framework", "yours"), [("megatron-core", (NO_ROOM,)), ("any", ())], ids=["yours", "any"]
)
def test_a_plan_ends_within_its_limit(
    counted: Callable[[], float], tmp_path: Path, framework: str, yours: tuple[str]
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(framework=framework))
    began = counted()
    asked = JobAsked(yours=yours)
    question = ClusterQuestion.of(str(path), asked=asked, is_proved=False, began=began)
    answer = question.answer(PlanOptions(time_limit=LIMIT))
    waited = counted() - began
    assert 0.5 * LIMIT < waited <= 1.1 * LIMIT
    assert waited - answer.found.seconds < 0.1 * LIMIT


@pytest.mark.parametrize("asked", [JobAsked(yours=(NO_ROOM,)), JobAsked(what_if=("cards=-32",))])
def test_so_it_does_in_python(
    counted: Callable[[], float], tmp_path: Path, asked: JobAsked
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(framework="megatron-core"))
    file = read_cluster_file(str(path))
    began = counted()
    found = asked.answer(file, PlanOptions(time_limit=LIMIT))
    waited = counted() - began
    assert isinstance(found, SearchResults)
    assert waited <= 1.1 * LIMIT
