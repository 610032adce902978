"""What a page's script draws: all bars, idle stretches, inputs and loads of a schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.report.timeline import timeline
from bubbleproof.report.viewer.schedule_data import (
    ColumnBlob,
    ColumnPlace,
    Json,
)
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.idle import idle_stretches
from bubbleproof.theory.model.actions import Ints
from proofs_tests.report.small import LOADS, small, unpacked, unpacked_lines

Content = dict[str, Json]
SHAPES: list[tuple[str, dict[str, int]]] = [
    ("1f1b", {"p": 3, "m": 4}),
    ("interleaved", {"p": 4, "v": 2, "m": 8}),
    ("zb-h1", {"p": 4, "m": 8}),
    ("dualpipe", {"p": 4, "m": 10, "tF": 1, "tB": 2}),
]


def content(drawn: FamilyMember) -> Content:
    shown = ViewedSchedule(name="a", problem=drawn.problem, schedule=drawn.schedule)
    return shown.data(shown.view)


def read(data: Content, name: str) -> Ints:
    places, blob = data["places"], data["blob"]
    assert isinstance(places, dict)
    assert isinstance(blob, str)
    place = places[name]
    assert isinstance(place, list)
    return unpacked(blob, ColumnPlace(*place))  # type: ignore[arg-type]  # JSON's list of its fields


def told_in(data: Content) -> list[str]:
    """The sentences about idle time."""
    packed = data["sentences"]
    assert isinstance(packed, str)
    return unpacked_lines(packed)


def rows(data: Content) -> list[tuple[int, str, int, int, int, int]]:
    """(lane, kind, stage, microbatch, start, end) of every row."""
    sorts, first = data["sorts"], read(data, "first")
    assert isinstance(sorts, list)
    columns = [read(data, name).tolist() for name in ("stage", "microbatch", "start", "length")]
    found = []
    for at, (low, high) in enumerate(zip(first[:-1].tolist(), first[1:].tolist(), strict=True)):
        lane, sort = divmod(at, len(sorts))
        kind = sorts[sort]["kind"]  # type: ignore[index, call-overload]  # JSON's object
        for row in range(low, high):
            stage, microbatch, start, length = (column[row] for column in columns)
            found.append((lane, str(kind), stage, microbatch, start, start + length))
    return found


@pytest.mark.parametrize(("name", "at"), SHAPES, ids=[name for name, _ in SHAPES])
def test_every_bar_is_there_once(name: str, at: dict[str, int]) -> None:
    drawn = member(name, **at)
    bars = timeline(drawn.problem, drawn.schedule).bars
    wanted = sorted(
        (int(bars.row[i]), a.kind.name, a.stage, a.microbatch, int(bars.start[i]), int(bars.end[i]))
        for i, a in enumerate(bars.actions)
    )
    assert sorted(row for row in rows(content(drawn)) if row[1] != "idle") == wanted


@pytest.mark.parametrize(("name", "at"), SHAPES, ids=[name for name, _ in SHAPES])
def test_idle_time_has_its_causes(name: str, at: dict[str, int]) -> None:
    drawn = member(name, **at)
    data, idle = content(drawn), idle_stretches(drawn.problem, drawn.schedule)
    shown = [row for row in rows(data) if row[1] == "idle"]
    sentences = told_in(data)
    told = sorted((lane, a, b, sentences[stage]) for lane, _, stage, _, a, b in shown)
    assert told == sorted((s.rank, s.from_tick, s.to_tick, s.sentence) for s in idle)


def test_inputs_are_those_of_the_problem() -> None:
    """Of each precedence both ends, found by where they run and when."""
    drawn = member("zb-h1", p=3, m=4)
    problem, data = drawn.problem, content(drawn)
    first, inputs, every = read(data, "firstInput"), read(data, "inputs"), rows(data)
    label = [f"{row[2]}{row[1]}{row[3]}" for row in every]
    found = {
        (label[row + int(step)], label[row])
        for row in range(len(every))
        for step in inputs[first[row] : first[row + 1]]
    }
    edges = zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True)
    assert found == {(problem.label(a), problem.label(b)) for a, b in edges}


def test_the_critical_path_is_that_of_idle_time() -> None:
    """By where its rows run and when: the steps of ``critical_path``, which fill the makespan."""
    drawn = member("1f1b", p=4, m=8)
    data = content(drawn)
    every, path = rows(data), read(data, "path").tolist()
    found = [(f"{every[row][2]}{every[row][1]}{every[row][3]}", *every[row][4:]) for row in path]
    steps = idle_stretches(drawn.problem, drawn.schedule).critical_path
    assert found == [(step.action, step.start, step.end) for step in steps]
    assert sum(end - start for _, start, end in found) == 33


def test_loads_are_those_of_memory() -> None:
    shown = ViewedSchedule(name="a", problem=small().problem, schedule=small().schedule)
    data = shown.data(shown.view)
    first, when, delta = (read(data, name) for name in ("firstEvent", "when", "delta"))
    for store, loads in enumerate(LOADS):
        own = slice(int(first[store]), int(first[store + 1]))
        for time in range(9):
            assert delta[own][when[own] <= time].sum() == loads[time]


def test_a_rank_that_does_two_things_at_once_is_drawn_without_causes() -> None:
    drawn = member("1f1b", p=2, m=2)
    moved = drawn.schedule.start.copy()
    moved[:] = 0
    schedule = replace(drawn.schedule, start=moved)
    shown = ViewedSchedule(name="a", problem=drawn.problem, schedule=schedule)
    data = shown.data(shown.view)
    assert told_in(data) == []
    assert len(read(data, "clash.row"))


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([], "u1"),
        ([0, 255], "u1"),
        ([-1, 3], "i2"),
        ([40_000, -5], "i4"),
        ([1 << 40, -(1 << 52)], "f8"),
    ],
)
def test_columns_come_back_as_they_were(numbers: list[int], kind: str, steps: bool) -> None:
    blob = ColumnBlob()
    blob.add("before", np.arange(3))  # so that the second begins at a multiple of eight
    blob.add("own", np.array(numbers, dtype=np.int64), steps=steps)
    place = blob.places["own"]
    assert unpacked(blob.text, place).tolist() == numbers
    assert place.first % 8 == 0
    assert steps or place.type == kind
