"""Replays in JSON: what a run of a schedule showed, for ``bubbleproof replay ... -o FILE.json``.

The file is one object, its layout fixed by ``docs/reference/schemas/replay-1.json``::

    {
      "format": "bubbleproof/replay",
      "version": 1,
      "name": "1f1b p=2 m=2",
      "ok": true,
      "failures": [],
      "run": {"backend": "virtual", "semantics": "pair-stream", "seed": 0, ...},
      "model": {"kind": "mlp", "hidden": 8, ...},
      "gradients": {"equal": true, "max_relative_error": 1e-16, "tolerance": 1e-12},
      "losses": {"equal": true, "each": [0.25, 0.26]},
      "weights": {"optimizer": "", "steps": 0, ...},
      "peaks": {"measured": [7296, 3784], "predicted": [7296, 3784], ...},
      "births": {"measured": [3840, 3840], "predicted": [3840, 3840], ...},
      "model_state": {"measured": [{"weights": 640, "gradients": 640, "optimizer": 0}, ...], ...},
      "trace": {"rank 0": [["0F0", 0, 0, 81000, [3648], [3648]], ...], ...},
      "predicted": {"unit": "tick", "orders": {"rank 0": [["0F0", 0, 1], ...], ...}},
      "machine": {"processor": "x86_64", "cores": 2, "memory_bytes": ..., "versions": {...}},
      "not_checked": ["..."],
      "work": {"measured": [49152, 49152], "predicted": [49152, 49152], "not_counted": ["..."]}
    }

- ``trace`` by process (``rank 1``, of several replicas ``rank 1 of replica 0``), a row per action:
  the action; its begin (ns of the machine's monotonic clock, since the first action's), how long it
  waited for a message, its end; the live activation bytes at each sample taken meanwhile
  (``reference_exec.trace``), and the same by the memory model, null where it says nothing. In a
  training these are the last pass's; all were compared, and what differs is in ``failures``.
- ``peaks``: bytes by rank; ``host_*`` by rank's host, ``state_*`` of the model state that is there
  all the time (where parameters are sharded), ``allocator`` what torch's allocator had
  given out, where the device keeps count.
- ``births``: what each rank and, under ``host_*``, each rank's host held as it was made: weights,
  constants, the data of the batch. A file from before they were counted has none.
- ``model_state``: the bytes of weights, gradients and optimizer state that each rank and, under
  ``host_*``, each rank's host holds as the run ends; in ``trace`` STEP and REDUCE_GRAD of a
  training stand where they ran.
- ``work``: the floating-point operations of each process in all passes; null where none are
  counted.
- an error that is not finite is null.

What ran, as a trace like those of ``formats.perfetto``.

It has true microseconds, and a counter ``live bytes`` of a rank that steps where an action ends;
SEND and RECV, which only post, are not drawn. Of several replicas the first is drawn like one that
is alone; the others' ranks follow as processes of their own, with one row of actions each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass

from bubbleproof.facts import fields_of, tree, valued
from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.json_text import render_json
from bubbleproof.formats.perfetto import NANOSECONDS, TraceEvent, bar, count, process, thread, trace
from bubbleproof.reference_exec.evidence.machine_versions import ReplayMachine
from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

FORMAT = "bubbleproof/replay"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayAccount:
    """A replay of ``schedule`` with all that is written of it, in a file and on a page."""

    name: str
    report: ReplayReport
    spec: ModelSpec
    problem: Problem
    schedule: Schedule
    machine: ReplayMachine


_RUN = (
    *("backend", "device", "semantics", "semantics_why", "seed", "ranks", "stages"),
    *("microbatches", "data_parallel", "zero", "seconds", "unsafe", "stopped"),
)
_MODEL = (
    *("kind", "hidden", "layers", "heads", "kv_heads", "sequence", "batch", "dtype", "seed"),
    *("factory", "vocabulary", "tied", "num_stages"),
)
# What a report says of some replays alone.
_ABSENT = (
    *valued("gradients", smallest_share=None),
    *valued("weights", clip=None, loss_scale="", skipped_steps=()),
)


def replay_content(told: ReplayAccount) -> dict[str, object]:
    """What the file says: what the report states, how it ran, and what ran when."""
    report = told.report
    found = {key: _plain(value) for key, value in tree([*_ABSENT, *report.facts()]).items()}
    work = found.pop("work")
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": told.name,
        "ok": report.ok,
        "failures": report.failures,
        "run": {name: getattr(report, name) for name in _RUN},
        "model": {name: getattr(told.spec, name) for name in _MODEL},
        **found,
        "trace": {trace.name: _trace(trace) for trace in report.traces},
        "predicted": {
            "unit": told.problem.unit,
            "orders": _predicted(told.problem, told.schedule),
        },
        "machine": fields_of(told.machine),
        "not_checked": not_checked(report),
        "not_counted": report.not_counted,
        "work": work,
    }


def _plain(value: object) -> object:
    """A value with the fields of dataclasses by name."""
    if is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def write_replay(path: FilePath, told: ReplayAccount) -> None:
    """Write a replay; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` where the file cannot be written.
    """
    resources = {told.problem.resource_name(each) for each in told.schedule.program.resource}
    tables = frozenset({trace.name for trace in told.report.traces} | resources)
    write_text(path, render_json(replay_content(told), table_keys=tables))


def _trace(trace: RankTrace) -> list[tuple[object, ...]]:
    predicted: Sequence[Sequence[int] | None] = trace.predicted or [None] * len(trace.actions)
    actions = map(str, trace.actions)
    columns = (actions, trace.begin, trace.waited, trace.end, trace.live_bytes, predicted)
    return [*zip(*columns, strict=True)]


def _predicted(problem: Problem, schedule: Schedule) -> dict[str, list[list[object]]]:
    program = schedule.program
    orders: dict[str, list[list[object]]] = {}
    rows = zip(
        program.resource.tolist(),
        action_texts(program.actions),
        schedule.start.tolist(),
        problem.ticks(problem.locate(program.actions)).tolist(),
        strict=True,
    )
    for resource, text, start, ticks in rows:
        name = problem.resource_name(resource)
        orders.setdefault(name, []).append([text, start, start + ticks])
    return orders


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
