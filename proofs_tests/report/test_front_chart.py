"""The picture of a front: all points are on it, and it depends on nothing but them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bubbleproof.report.front_chart import FrontPoint, draw_front

FRONT = [
    FrontPoint(name="", peak=1, makespan=80, is_optimal=True),
    FrontPoint(name="", peak=4, makespan=33),
]
PUBLISHED = [
    FrontPoint(name="1f1b", peak=4, makespan=33),
    FrontPoint(name="svpp", peak=4, makespan=33),
    FrontPoint(name="gpipe", peak=8, makespan=33),
]


def words(path: Path) -> str:
    return " ".join(ElementTree.fromstring(path.read_text()).itertext())


def test_published_points_are_named_once_per_place(tmp_path: Path) -> None:
    path = draw_front(
        tmp_path / "a.svg",
        FRONT,
        PUBLISHED,
        title="here & there",
        unit="tick",
        memory_unit="activation",
        capacity=6,
    )
    text = words(path)
    assert "1  1f1b, svpp" in text
    assert "2  gpipe" in text
    assert "here & there" in text
    assert "least makespan at this peak, proved" in text
    assert "best found at this peak, not proved" in text


def test_one_picture_has_one_sequence_of_bytes(tmp_path: Path) -> None:
    first, second = (
        draw_front(tmp_path / name, FRONT, [], title="t", unit="us", memory_unit="bytes")
        for name in ("a.svg", "b.svg")
    )
    assert first.read_bytes() == second.read_bytes()


def test_wrong_endings_and_empty_fronts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png, got 'x\.pdf'"):
        draw_front("x.pdf", FRONT, [], title="t", unit="us", memory_unit="bytes")
    with pytest.raises(ValueError, match="needs at least one schedule, got none"):
        draw_front(tmp_path / "x.svg", [], [], title="t", unit="us", memory_unit="bytes")
