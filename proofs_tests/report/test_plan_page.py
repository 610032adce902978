"""The chart of makespan against memory: its axis, its limit, and what is not beaten in both."""

from __future__ import annotations

import json
import re
from typing import Any

from bubbleproof.report.plan_page import PlanPoint, trades

POINTS = [  # ranks 0 and 1 hold 10 and 40 at most
    PlanPoint(name="quick", value=20, peaks=(9, 10)),
    PlanPoint(name="slow", value=30, peaks=(5, 36)),
    PlanPoint(name="poor", value=31, peaks=(9, 37)),
]


def drawn(capacities: list[int | None]) -> dict[str, Any]:
    page = trades(POINTS, unit="tick", memory_unit="activation", capacities=capacities)
    found = re.search(r'id="trades">(.*?)</script>', page)
    assert found is not None
    figure: dict[str, Any] = json.loads(found[1])
    return figure


def test_equal_capacities_are_one_line_in_memory() -> None:
    figure = drawn([40, 40])
    line, marks = figure["data"]
    assert marks["x"] == [10, 36, 37]  # the fullest rank of each
    assert (line["x"], line["y"]) == ([10], [20])  # the first is below the others in both
    assert figure["layout"]["shapes"][0]["x0"] == 40
    assert "fullest rank (activations)" in figure["layout"]["xaxis"]["title"]["text"]


def test_where_capacities_differ_each_rank_is_held_against_its_own() -> None:
    figure = drawn([10, 40])
    line, marks = figure["data"]
    # quick: 9/10 and 10/40; slow: 5/10 and 36/40; poor: 9/10 and 37/40
    assert marks["x"] == [90, 90, 92.5]
    assert (line["x"], line["y"]) == ([90], [20])
    assert figure["layout"]["shapes"][0]["x0"] == 100
    assert "nearest to its capacity" in figure["layout"]["xaxis"]["title"]["text"]


def test_a_rank_without_a_capacity_has_no_share() -> None:
    assert drawn([None, 40])["data"][1]["x"] == [25, 90, 92.5]


def test_no_capacity_is_no_line() -> None:
    assert drawn([None, None])["layout"]["shapes"] == []
