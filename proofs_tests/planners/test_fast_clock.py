"""Where work is limited no clock decides: the answers are the same on a clock that runs fast."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from proofs_tests.recorded import answered

FAST = 10_000  # times as fast as it should be: a tenth of a second is longer than any limit here
# Rank 0 has room for one microbatch: it recomputes, or evicts to rank 1, or waits. What an engine
# says of these choices is shown case by case, and no relaxation shows it.
CHOICES = """
name = "choices"
ranks = 2
microbatches = 2
durations = {forward = 2, backward = 4}
links = {latency = 2}
memory = {capacity = 3, activation = [3, 2]}

[choices.evict]
pairs = [[0, 1]]
duration = 2

[choices.recompute]
stages = [0]
kept = 1

[solve]
time_limit = 60
"""
# Two microbatches of 2 in a memory of 1: nothing fits, and one microbatch at a time would.
NO_ROOM = """
name = "no-room"
ranks = 2
microbatches = 4
durations = {forward = 2, backward = 4}
memory = {capacity = 1, activation = 2}
plan = {chunks = [1]}
"""


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The patch that ``undo`` ends, with the clock running fast."""
    real = time.perf_counter
    began = real()
    monkeypatch.setattr(time, "perf_counter", lambda: began + FAST * (real() - began))
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("choices", CHOICES, "solve FILE --work 1 --json --certificate c.json"),
        ("choices", f"{CHOICES}\n[plan]\nchunks = [1]\n", "plan FILE --work 1 --json"),
        ("no-room", NO_ROOM, "plan FILE --work 1 --json"),
    ],
    ids=["solve", "plan", "no plan"],
)
def test_a_fast_clock_changes_no_answer(
    tmp_path: Path, fast: pytest.MonkeyPatch, name: str, text: str, line: str
) -> None:
    (tmp_path / f"{name}.toml").write_text(text)
    line = line.replace("FILE", str(tmp_path / f"{name}.toml"))
    hurried = answered(line)
    assert "the clock" not in hurried
    fast.undo()
    assert hurried == answered(line)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("limits", ["--time-limit 5", "--time-limit 5 --work 1"])
def test_the_answer_says_where_a_fast_clock_decided(tmp_path: Path, limits: str) -> None:
    (tmp_path / "planned.toml").write_text(f"{CHOICES}\n[plan]\nchunks = [1]\n")
    found = answered(f"plan {tmp_path}/planned.toml {limits} --json")
    assert "the clock ended the search: 1 candidate is open" in found
