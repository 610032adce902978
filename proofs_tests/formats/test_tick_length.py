"""The length of a tick."""

from __future__ import annotations

import pytest

from bubbleproof.formats.tick_length import Tick, fitting_tick


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
