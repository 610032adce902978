"""The chart of makespan against memory: its axis, its limit, and what is not beaten in both."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bubbleproof.report.plan_page import PlanPoint, bands, trades

POINTS = [  # ranks 0 and 1 hold 10 and 40 at most
    PlanPoint(name="quick", value=20, peaks=(9, 10)),
    PlanPoint(name="slow", value=30, peaks=(5, 36)),
    PlanPoint(name="poor", value=31, peaks=(9, 37)),
    PlanPoint(name="lean", value=40, peaks=(2, 9)),
]


def drawn(capacities: list[int | None]) -> str:
    return trades(POINTS, unit="tick", memory_unit="activation", capacities=capacities)


def told(page: str) -> list[str]:
    """What the marks stand for."""
    return re.findall(r"<title>(.*?)</title>", page)


def colours(page: str) -> list[str]:
    return re.findall(r'<circle [^>]*fill="(#\w+)"', page)


def test_equal_capacities_are_one_line_in_memory() -> None:
    page = drawn([40, 40])
    # the fullest rank of each
    assert told(page) == [
        "quick: 20 ticks at 10",
        "slow: 30 ticks at 36",
        "poor: 31 ticks at 37",
        "lean: 40 ticks at 9",
    ]
    quick, slow, poor, lean = colours(page)  # the first is below those between in both
    assert quick == lean != slow == poor
    assert page.count("stroke-dasharray") == 1
    assert "fullest rank (activations)" in page


def test_where_capacities_differ_each_rank_is_held_against_its_own() -> None:
    page = drawn([10, 40])
    # quick: 9/10 and 10/40; slow: 5/10 and 36/40; poor: 9/10 and 37/40
    assert told(page)[:3] == [
        "quick: 20 ticks at 90",
        "slow: 30 ticks at 90",
        "poor: 31 ticks at 92.5",
    ]
    assert told(page)[3:] == ["lean: 40 ticks at 22.5"]  # 2/10 and 9/40
    assert page.count("stroke-dasharray") == 1
    assert "nearest to its capacity" in page


def test_a_rank_without_a_capacity_has_no_share() -> None:
    assert [words.rpartition(" ")[2] for words in told(drawn([None, 40]))] == [
        *("25", "90", "92.5", "22.5")
    ]


def test_no_capacity_is_no_line() -> None:
    assert "stroke-dasharray" not in drawn([None, None])


def test_where_nothing_trades_nothing_is_drawn() -> None:
    """Of the first three one is the least in both."""
    few = trades(POINTS[:3], unit="tick", memory_unit="activation", capacities=[40, 40])
    assert few == ""


def test_marks_lie_where_their_values_are() -> None:
    """Along x 10, 36 and 37 of memory: the second lies 26/27 of the way to the third."""
    first, second, third, _ = (float(x) for x in re.findall(r'cx="([\d.]+)"', drawn([40, 40])))
    assert (second - first) / (third - first) == pytest.approx(26 / 27, abs=1e-3)


def test_a_band_is_drawn_of_each_timed_candidate() -> None:
    timed = PlanPoint(name="spread", value=20, peaks=(1,), expected=21.5, p5=20, p95=24)
    page = bands([timed, POINTS[0]], unit="tick", explained="why")
    assert told(page) == ["spread: nominal 20 ticks", "spread: expected 22 ticks"]
    assert page.count("<rect") == 1
    both = bands([timed, replace(timed, name="other")], unit="tick", explained="why")
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', both)]
    assert heights[0] + 20 < heights[1]  # a row each, the first on top
    assert bands(POINTS, unit="tick", explained="why") == ""


def test_tooltips_have_the_times_of_the_axis() -> None:
    """Ticks of a microsecond on an axis of milliseconds, to four digits."""
    timed = PlanPoint(name="spread", value=806_123, peaks=(1,), expected=815_400.5, p5=1, p95=2)
    page = bands([timed], unit="us", explained="why")
    assert told(page) == ["spread: nominal 806.1 ms", "spread: expected 815.4 ms"]
    shorter = replace(timed, value=700_000, peaks=(2,))
    page = trades([timed, shorter], unit="us", memory_unit="activation", capacities=[40])
    assert told(page) == ["spread: 806.1 ms at 1", "spread: 700 ms at 2"]
