"""The causes of idle time in a replay: they add up, and a message's time is told from work's."""

from __future__ import annotations

import pytest

import bubbleproof as bp
from bubbleproof.reference_exec.evidence.measured import measured_idle, measured_schedule
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.measures import measure

US = 1000  # nanoseconds


def trace(name: str, *rows: tuple[str, int, int, int]) -> RankTrace:
    """A rank's trace of (action, begin, waited, end), in microseconds."""
    return RankTrace(
        name=name,
        actions=tuple(Action.parse(text) for text, *_ in rows),
        begin=tuple(begin * US for _, begin, _, _ in rows),
        waited=tuple(waited * US for _, _, waited, _ in rows),
        end=tuple(end * US for _, _, _, end in rows),
        live_bytes=tuple(() for _ in rows),
    )


def test_a_replay_by_hand() -> None:
    # 0F0 ends at 10; rank 1 stands still from 2 on and goes on at 14: 4 us of that are the
    # message's. Rank 0 takes 5 us before it waits for 1B0, which ends at 50 and is there at 53.
    traces = (
        trace("rank 0", ("0F0", 0, 0, 10), ("0B0", 15, 38, 73)),
        trace("rank 1", ("1F0", 2, 12, 24), ("1B0", 30, 0, 50)),
    )
    member = bp.family("1f1b")(p=2, m=1)
    found = measured_idle(member.problem, member.schedule, traces)
    assert [(s.rank, s.from_tick, s.to_tick, s.sentence) for s in found] == [
        (0, 10, 50, "0B0 waits for 1B0 of rank 1 over link 1>0"),
        (0, 50, 53, "0B0 waits for 1B0 of rank 1, on its way over link 1>0"),
        (1, 0, 14, "warm-up: no schedule starts sooner here"),
        (1, 24, 30, "the order's own choice: 1B0 could have started"),
        (1, 50, 73, "drain: no schedule runs longer here"),
    ]


@pytest.mark.torch
def test_the_causes_of_a_replay_add_up() -> None:
    member = bp.family("zb-h1")(p=2, m=3)
    report = bp.replay(member)
    problem, ran = measured_schedule(member.problem, member.schedule, report.traces)
    found = bp.idle(member, report)
    assert found.idle_ticks() == measure(problem, ran).idle_ticks
    assert min(found.idle_ticks()) > 0
    assert (
        found.critical_path[-1].end - found.critical_path[0].start == measure(problem, ran).makespan
    )
