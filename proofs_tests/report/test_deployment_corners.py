"""Deployments between time and memory: what no other beats in both, and all that is shown."""

from __future__ import annotations

from itertools import product

from bubbleproof.report.plan_page import Corner, deployment_corners, lower_left

POINTS = [
    Corner(name=f"{ticks} {memory}", ticks=ticks, memory=memory, is_found=ticks == 3)
    for ticks, memory in ((5, 2), (3, 9), (4, 9), (4, 3), (7, 2), (6, 1), (3, 10))
]


def test_the_line_joins_what_no_other_beats_in_both() -> None:
    def beats(one: Corner, other: Corner) -> bool:
        return one.ticks <= other.ticks and one.memory <= other.memory

    wanted = {
        point.name
        for point in POINTS
        if not any(beats(other, point) for other in POINTS if other is not point)
    }
    front = lower_left((point.ticks, point.memory) for point in POINTS)
    named = {f"{ticks:g} {memory:g}" for ticks, memory in front}
    assert named == wanted == {"3 9", "4 3", "5 2", "6 1"}
    assert all(a[0] < b[0] for a, b in product(front, repeat=2) if a[1] > b[1])


def test_every_deployment_has_a_mark() -> None:
    page = deployment_corners(POINTS, unit="us", capacity=10)
    for point in POINTS:
        assert point.name in page
