"""Schedules as traces for ui.perfetto.dev and chrome://tracing (the Trace Event Format).

- a slice (``X``) per action: process = rank, thread = resource; links, NICs and copy engines
  share one process after the ranks;
- a flow (``s`` to ``f``) per message of ``theory.pipelines.programs.messages``, from its producer
to its consumer;
- a counter (``C``) per memory store: the load after each change, base load included;
- names (``M``) for processes and threads.

Times of the format are microseconds. Where the problem's unit is ``us`` they are true; for any
other unit one tick is shown as one microsecond, and ``otherData.time`` says so.
"""

from __future__ import annotations

from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.model.actions import NONE, Action
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.messages import messages

TraceEvent = dict[str, object]


NANOSECONDS = 1000  # in one microsecond


def write_trace(path: FilePath, problem: Problem, schedule: Schedule) -> None:
    """Write the trace of a schedule; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` where the file cannot be written.
    """
    content = trace(problem, schedule)
    write_text(path, render_json(content, table_keys=frozenset({"traceEvents"})))


def write_trace_of(path: FilePath, file: ScheduleFile) -> None:
    """The same of a file's schedule. Raises ``ValueError`` where it has no times."""
    write_trace(path, file.problem, file.timed())


def trace(problem: Problem, schedule: Schedule) -> TraceEvent:
    """The trace as one JSON object. Rows that are no task of the problem appear with duration 0."""
    is_true = problem.unit == "us"
    time = "microseconds" if is_true else f"1 tick ({problem.unit}) is shown as 1 microsecond"
    return {
        "displayTimeUnit": "ms",
        "otherData": {"producer": "bubbleproof", "time": time},
        "traceEvents": [
            *_names(problem),
            *_slices(problem, schedule),
            *_flows(problem, schedule),
            *_counters(problem, schedule),
        ],
    }


def _process(problem: Problem, resource: int) -> int:
    return min(resource, problem.num_ranks)


def process(pid: int, name: str) -> list[TraceEvent]:
    """A process of that name, in the order of its number."""
    return [_meta("process_name", pid, name=name), _meta("process_sort_index", pid, sort_index=pid)]


def thread(pid: int, tid: int, name: str) -> TraceEvent:
    """A thread of that name."""
    return {**_meta("thread_name", pid, name=name), "tid": tid}


def _meta(event: str, pid: int, **args: str | int) -> TraceEvent:
    return {"ph": "M", "name": event, "pid": pid, "args": args}


def bar(action: Action, pid: int, tid: int, start: int, duration: int) -> TraceEvent:
    """An action of so many ticks on a thread."""
    where = {"pid": pid, "tid": tid, "ts": start, "dur": duration}
    return {"ph": "X", "name": str(action), "cat": action.kind.name, **where}


def count(name: str, pid: int, at: int, unit: str, value: int) -> TraceEvent:
    """A counter's value from a time on."""
    return {"ph": "C", "name": name, "pid": pid, "ts": at, "args": {unit: value}}


def _names(problem: Problem) -> list[TraceEvent]:
    processes = [resource.name for resource in problem.resources[: problem.num_ranks]]
    if max(len(problem.resources), len(problem.stores)) > problem.num_ranks:
        processes.append("links, copy engines and other memory")
    events = [event for pid, name in enumerate(processes) for event in process(pid, name)]
    for tid, resource in enumerate(problem.resources):
        name = resource.name if resource.rank is None else "compute"
        events.append(thread(_process(problem, tid), tid, name))
    return events


def _slices(problem: Problem, schedule: Schedule) -> list[TraceEvent]:
    located = problem.locate(schedule.program.actions).tolist()
    resource, start = schedule.program.resource.tolist(), schedule.start.tolist()
    rows = zip(located, resource, start, schedule.program.actions, strict=True)
    ticks = [*problem.duration.tolist(), 0]  # what is no task (NONE) takes none
    return [
        bar(action, _process(problem, tid), tid, begin, ticks[task]) | {"args": _place(action)}
        for task, tid, begin, action in rows
    ]


def _place(action: Action) -> dict[str, int]:
    place = {"stage": action.stage, "microbatch": action.microbatch, "slice": action.slice}
    return place if action.part == NONE else {**place, "part": action.part}


def _flows(problem: Problem, schedule: Schedule) -> list[TraceEvent]:
    """A flow binds to the slice that is open at its time:

    the producer's last tick, the first of its target.
    """
    task, resource, start = known_rows(problem, schedule)
    compute = resource < problem.num_ranks
    begin = dict(zip(task[compute].tolist(), start[compute].tolist(), strict=True))
    events: list[TraceEvent] = []
    for number, message in enumerate(messages(problem)):
        if message.producer not in begin or message.consumer not in begin:
            continue
        last = max(int(problem.duration[message.producer]) - 1, 0)
        common = {"cat": "message", "name": str(message.send), "id": number}
        source = {"pid": message.source, "tid": message.source}
        target = {"pid": message.target, "tid": message.target}
        events.append({"ph": "s", **common, **source, "ts": begin[message.producer] + last})
        events.append({"ph": "f", "bp": "e", **common, **target, "ts": begin[message.consumer]})
    return events


def _counters(problem: Problem, schedule: Schedule) -> list[TraceEvent]:
    task, _, start = known_rows(problem, schedule)
    profile = memory_profile(problem, task, start)
    first = int(schedule.start.min()) if len(schedule) else 0
    events: list[TraceEvent] = []
    for index, store in enumerate(problem.stores):
        times, loads = profile.curve(problem, index)
        points = list(zip(times.tolist(), loads.tolist(), strict=True))
        if not points or points[0][0] > first:
            points.insert(0, (first, store.base))
        pid = _process(problem, index)
        events += [count(store.name, pid, at, problem.memory_unit, load) for at, load in points]
    return events
