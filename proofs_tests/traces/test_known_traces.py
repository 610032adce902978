"""Waits, clocks and stragglers of traces whose truth is known, drawn anew for each seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import TimeSpent, traced_times
from proofs_tests.sized import sized
from proofs_tests.traces.known_traces import known_trace
from proofs_tests.traces.made_traces import MadeRun


@pytest.mark.sweep
def test_no_innocent_stage_is_named_and_waits_are_told_where_they_lie(tmp_path: Path) -> None:
    answers: Counter[tuple[str, str]] = Counter()
    for seed in range(sized(40, full=1_000)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = known_trace(seed, folder)
        answers[found.runtime, found.answer] += 1
        assert found.answer != "wrong", found.name
        assert found.in_recv == found.runtime.startswith("blocking"), found.name
        if found.runtime not in ("posted", "sends wait"):  # told by the rank's own clock
            assert found.answer == "right", found.name
            assert abs(found.told - found.waited) <= 0.02 * found.waited, found.name
    for runtime in ("posted", "sends wait"):  # by clocks that are known to some 30 us at best
        assert answers[runtime, "right"] >= answers[runtime, "open"], answers


def test_a_wait_in_a_recv_is_no_launch(tmp_path: Path) -> None:
    """Two ranks by hand: the second blocks in its RECV for the 1 ms of the first one's forward."""
    run = MadeRun(
        name="gpipe",
        params={"p": 2, "m": 1},
        lasting=lambda _action, _step: 1_000_000,
        steps=1,
        host=0,
        post=0,
        flight=0,
        blocking=True,
    ).run()
    times = traced_times(traced_job([read_trace(path) for path in run.write(tmp_path)]))
    first, second = (times.steps[0].spent(rank) for rank in (0, 1))
    # rank 0: F 1 ms, then 2 ms until rank 1 has done F and B, then B; rank 1 waits 1 ms at first
    assert first[TimeSpent.MESSAGE] == 2_000_000
    assert second[TimeSpent.MESSAGE] == 1_000_000
    assert first[TimeSpent.LAUNCH] == second[TimeSpent.LAUNCH] == 0
    assert times.model.in_recv
