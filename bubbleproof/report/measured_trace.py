"""What ran, as a trace like those of ``formats.perfetto``.

It has true microseconds, and a counter ``live bytes`` of a rank that steps where an action ends;
SEND and RECV, which only post, are not drawn. Of several replicas the first is drawn like one that
is alone; the others' ranks follow as processes of their own, with one row of actions each.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.formats.perfetto import NANOSECONDS, TraceEvent, bar, count, process, thread, trace
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule


def write_measured_trace(
    path: FilePath, problem: Problem, schedule: Schedule, traces: Sequence[RankTrace]
) -> None:
    """Write the trace of a measured schedule (``reference_exec.measured``).

    Raises ``UnusableInput`` where the file cannot be written.
    """
    content = trace(problem, schedule)
    events = content["traceEvents"]
    assert isinstance(events, list)
    for number, own in enumerate(traces):
        is_first = number < problem.num_ranks
        pid = number if is_first else number + 1  # the process between has links and engines
        tid = len(problem.resources) + number
        events += [*([] if is_first else _drawn(pid, tid, own)), *_live_bytes(pid, own)]
    write_text(path, render_json(content, table_keys=frozenset({"traceEvents"})))


def _drawn(pid: int, tid: int, trace: RankTrace) -> list[TraceEvent]:
    """A process with the actions of a trace, each from where it had what it waited for."""
    events = [*process(pid, trace.name), thread(pid, tid, "compute")]
    rows = zip(trace.actions, trace.begin, trace.waited, trace.end, strict=True)
    for action, begin, waited, end in rows:
        if action.kind not in COMMUNICATION_KINDS:
            start = (begin + waited) // NANOSECONDS
            events.append(bar(action, pid, tid, start, end // NANOSECONDS - start))
    return events


def _live_bytes(pid: int, trace: RankTrace) -> list[TraceEvent]:
    return [
        count("live bytes", pid, -(-end // NANOSECONDS), "byte", counts[-1])
        for end, counts in zip(trace.end, trace.live_bytes, strict=True)
        if counts
    ]
