"""What ran, as a trace for ui.perfetto.dev: ``perfetto``'s, with the bytes that were measured.

Times are true microseconds. The counter ``live bytes`` of a rank steps where an action ends; SEND
and RECV, which only post, are not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.formats.perfetto import Json, trace
from bubbleproof.reference_exec.trace import RankTrace
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Schedule

NANOSECONDS = 1000  # in one microsecond


def write_measured_trace(
    path: FilePath, problem: Problem, schedule: Schedule, traces: Sequence[RankTrace]
) -> None:
    """Write the trace of a measured schedule (``reference_exec.measured``).

    Raises ``UnusableInput`` where the file cannot be written.
    """
    content = trace(problem, schedule)
    events = content["traceEvents"]
    assert isinstance(events, list)
    events += [event for rank, own in enumerate(traces) for event in _counters(rank, own)]
    write_text(path, render_json(content, table_keys=frozenset({"traceEvents"})))


def _counters(rank: int, trace: RankTrace) -> list[Json]:
    return [
        {
            "ph": "C",
            "name": "live bytes",
            "pid": rank,
            "ts": -(-end // NANOSECONDS),
            "args": {"byte": counts[-1]},
        }
        for end, counts in zip(trace.end, trace.live_bytes, strict=True)
        if counts
    ]
