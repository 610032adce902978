"""The replay benchmark at a reduced size."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")

from benchmarks import replay_many, replay_speed
from benchmarks.replay_steps import BYTES, EXECUTORS, OURS, TORCH, UNCOUNTED


def test_it_tells_all_times_of_each_round(capsys: pytest.CaptureFixture[str]) -> None:
    replay_speed.main(
        ranks=2,
        microbatches=2,
        hidden=8,
        layers=1,
        heads=2,
        sequence=4,
        repeats=2,
        steps=3,
        family="zb-h1",
        json=True,
    )
    told = json.loads(capsys.readouterr().out)
    assert set(told["ratios"]) == {OURS, BYTES, UNCOUNTED}
    assert set(told["ratios"][OURS]) == set(replay_speed.TIMES)
    assert set(told["seconds"]) == set(EXECUTORS)
    for times in told["seconds"].values():
        for step, whole in zip(times["step"], times["whole"], strict=True):
            assert 0 < step < whole
        assert len(times["step"]) == 2
    assert set(told["warm_ratios"][UNCOUNTED]) == set(replay_speed.WARM_TIMES)
    for times in told["warm_seconds"].values():
        assert len(times["wall"]) == len(times["processor"]) == 3  # the cold step is left out
        assert min(*times["wall"], *times["processor"]) > 0
    assert told["machine"]["cores"] >= 1


def test_a_ratio_is_the_median_over_rounds() -> None:
    seconds = {
        OURS: {"step": [1.0, 6.0, 2.0]},
        UNCOUNTED: {"step": [1.0, 1.0, 1.0]},
        TORCH: {"step": [2.0, 2.0, 1.0]},
    }
    found = replay_speed.ratios(seconds)
    assert found == {OURS: {"step": 2.0}, UNCOUNTED: {"step": 0.5}}


def test_each_goes_first_in_its_turn() -> None:
    assert [replay_speed.turned("abc", index)[0] for index in range(4)] == ["a", "b", "c", "a"]
    assert sorted(replay_speed.turned("abc", 2)) == ["a", "b", "c"]


def test_many_schedules_are_replayed_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    replay_many.main(sizes=1, ways="virtual,gloo-pool")
    counted = f": {len(replay_many.FAMILIES)} schedules replayed in "
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(counted)[0] for line in lines[:2]] == ["virtual", "gloo-pool"]
    assert lines[2].startswith("on ")
