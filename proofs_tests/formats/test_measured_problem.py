"""Measured times as ticks, and the problem file they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats.measured_problem import (
    MeasuredProblem,
    MeasuredStage,
    Tick,
    fitting_tick,
    problem_text,
)
from bubbleproof.formats.problem_toml import read_problem

FIRST = MeasuredStage(
    forward=0.000_104,
    input_backward=0.000_096,
    weight_backward=0.000_052,
    backward=0.000_151,
    activation_bytes=1000,
    released_at_input_bytes=-24,
    static_bytes=500,
)
SECOND = MeasuredStage(
    forward=0.000_2,
    input_backward=0.000_3,
    weight_backward=0.000_001,
    backward=0.000_4,
    activation_bytes=2000,
    released_at_input_bytes=600,
    static_bytes=700,
)


def posed(*, is_split: bool) -> MeasuredProblem:
    return MeasuredProblem(
        name='two "stages"',
        ranks=2,
        microbatches=3,
        chunks=1,
        placement="loop",
        is_split=is_split,
        tick=Tick.parsed("10us"),
        latency=4,
        capacity="1 MiB",
        stages=(FIRST, SECOND),
        remarks=("measured by hand\non paper",),
    )


def test_a_split_problem_has_the_ticks_of_i_and_w(tmp_path: Path) -> None:
    target = tmp_path / "measured.toml"
    target.write_text(problem_text(posed(is_split=True)), encoding="utf-8")
    file = read_problem(target)
    pipeline, ticks = file.pipeline, file.pipeline.ticks
    assert (file.name, pipeline.unit) == ('two "stages"', "ticks of 10 us")
    # in ticks of 10 us: 10.4, 9.6, 5.2 and 20, 30, 0.1, which is one tick at least
    assert ticks.forward.ravel().tolist() == [10, 20]
    assert ticks.input_backward.ravel().tolist() == [10, 30]
    assert ticks.weight_backward.ravel().tolist() == [5, 1]
    assert ticks.backward.ravel().tolist() == [15, 31]  # the sums: what a problem file says of B
    assert pipeline.activation == (1000, 2000)
    assert pipeline.released_at_input == (-24, 600)
    assert pipeline.static == (500, 700)
    assert (pipeline.capacity, pipeline.latency) == (1 << 20, 4)
    assert (pipeline.num_microbatches, pipeline.split_backward) == (3, True)


def test_a_whole_problem_has_the_measured_ticks_of_b(tmp_path: Path) -> None:
    target = tmp_path / "measured.toml"
    target.write_text(problem_text(posed(is_split=False)), encoding="utf-8")
    file = read_problem(target)
    assert file.pipeline.ticks.backward.ravel().tolist() == [15, 40]  # 15.1 and 40
    assert not file.has_split_ticks


@pytest.mark.parametrize(
    ("text", "nanoseconds", "written", "unit"),
    [
        ("1ns", 1, "1 ns", "ns"),
        ("10us", 10_000, "10 us", "ticks of 10 us"),
        ("1000 us", 1_000_000, "1 ms", "ms"),
        ("2 s", 2_000_000_000, "2 s", "ticks of 2 s"),
    ],
)
def test_ticks_are_read_and_written(text: str, nanoseconds: int, written: str, unit: str) -> None:
    tick = Tick.parsed(text)
    assert (tick.nanoseconds, str(tick), tick.unit) == (nanoseconds, written, unit)


@pytest.mark.parametrize("text", ["", "10", "0us", "1.5us", "us", "-1us", "1 h", "1us "])
def test_other_ticks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a tick must be a whole number of ns, us, ms or s"):
        Tick.parsed(text)


@pytest.mark.parametrize(
    ("shortest", "nanoseconds"),
    [
        (100e-6, 5_000),  # 100 us / 20 = 5 us
        (99e-6, 2_000),  # 4.95 us: the next shorter is 2 us
        (0.5, 20_000_000),  # 25 ms: 20 ms
        (1e-9, 1),  # less than 20 ns: a tick of a nanosecond
    ],
)
def test_a_fitting_tick_is_a_twentieth_of_the_shortest_time(
    shortest: float, nanoseconds: int
) -> None:
    assert fitting_tick([shortest * 3, shortest, 1.0]).nanoseconds == nanoseconds
