"""A search that has nothing to tell says that it goes on; one that tells is not interrupted."""

from __future__ import annotations

from threading import Event

import pytest

from bubbleproof.commands.planning.plan import heartbeat
from bubbleproof.planners.planned import PlanOptions
from proofs_tests.patience import PATIENCE


def test_silence_is_told_and_lines_pass_as_they_are() -> None:
    lines: list[str] = []
    silent = Event()

    def tell(line: str) -> None:
        lines.append(line)
        if f"searching on, limit {PATIENCE:g} s" in line:
            silent.set()

    with heartbeat(PlanOptions(time_limit=PATIENCE, tell=tell), silence=0.01) as options:
        assert options.tell is not None
        options.tell("a candidate")
        assert "a candidate" in lines
        assert silent.wait(PATIENCE)
    told = len(lines)
    options.tell("afterwards")
    assert lines[told:] == ["afterwards"]  # nobody watches any more


def test_lines_in_time_are_all_that_is_told() -> None:
    lines: list[str] = []
    with heartbeat(PlanOptions(tell=lines.append), silence=PATIENCE) as options:
        assert options.tell is not None
        options.tell("a candidate")
    assert lines == ["a candidate"]


def test_where_nothing_is_told_nobody_watches() -> None:
    given = PlanOptions()
    with heartbeat(given) as options:
        assert options is given


def test_a_search_that_ends_badly_ends_the_watch() -> None:
    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt), heartbeat(PlanOptions(tell=lines.append), silence=0.01):
        raise KeyboardInterrupt
    told = list(lines)
    assert all("searching on" in line for line in told)
