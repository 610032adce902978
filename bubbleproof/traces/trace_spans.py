"""One rank's trace: its pipeline actions, and when what it received was there.

PyTorch's runtime (``_PipelineScheduleRuntime``, which runs the interleaved, zero-bubble and CSV
schedules) annotates each action as ``PP:<action>``, for instance ``PP:3F7`` and ``PP:3RECV_F7``;
other frameworks' spans are named by a file (``span_names``). Of a trace are kept

*spans*
    an action with its begin and end. Where a device ran it (``gpu_user_annotation``) these are the
    device's times, otherwise the host's.
*receipts*
    for a RECV on gloo, when its data had been taken in: the end of ``gloo:recv``, which begins
    inside the RECV and ends where the action that needs it has waited for it.

All times are nanoseconds since the epoch on the clock of the rank's host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bubbleproof.formats.errors import UnusableInput, about, one_line, quoted
from bubbleproof.theory.model.actions import Action
from bubbleproof.traces.span_names import PYTORCH, SpanNames
from bubbleproof.traces.trace_events import EventFile, read_events

MOST_RANKS = 1 << 20
_LATEST = 1 << 62  # microseconds; infinite times and those that are no number lie beyond
_HOST, _DEVICE, _RECEIVING = "user_annotation", "gpu_user_annotation", "gloo:recv"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """An action from ``begin`` to ``end`` (ns); ``received``: when its data were there, if told."""

    action: Action
    begin: int
    end: int
    received: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRank:
    """The spans of one rank in order of their begin, of one host's clock."""

    path: str
    rank: int
    world_size: int
    host: str
    spans: Sequence[TraceSpan] = field(repr=False)
    is_truncated: bool = False


def read_trace(path: str, names: SpanNames = PYTORCH) -> TracedRank:
    """Read one file. Raises ``UnusableInput`` for what is no trace of a rank's pipeline actions."""
    file = EventFile(path=path)
    with about(path):
        spans, received = _collected(file, names)
        group, host = file.about.get("distributedInfo"), file.about.get("host_name")
        if not isinstance(group, dict) or "rank" not in group:
            expected = "distributedInfo with the rank (torch.profiler writes it in a process group)"
            raise UnusableInput("", expected, quoted(group))
        if not spans:
            raise UnusableInput("", names.expected, f"none among {file.num_events} events")
        return TracedRank(
            path=path,
            rank=_whole(group, "rank", MOST_RANKS),
            world_size=_whole(group, "world_size", MOST_RANKS),
            host=one_line(host, 200)
            if isinstance(host := file.about.get("host_name"), str)
            else "",
            spans=list(_paired(spans, received)),
            is_truncated=file.is_truncated,
        )


def _collected(file: EventFile, names: SpanNames) -> tuple[list[TraceSpan], list[tuple[int, int]]]:
    """The spans by begin, and begin and end of what gloo received."""
    by_place: dict[str, list[TraceSpan]] = {_HOST: [], _DEVICE: []}
    received = []
    base: int | None = None
    named = names.reader()
    for event in read_events(file):
        category, name = event.get("cat"), event.get("name")
        if event.get("ph") != "X" or not isinstance(name, str):
            continue
        if category not in (_HOST, _DEVICE):
            continue
        if base is None:
            base = _whole(file.about, "baseTimeNanoseconds", _LATEST * 1000)
        if name == _RECEIVING:
            received.append(_times(event, base))
        elif (action := named(name, file.about)) is not None:
            begin, end = _times(event, base)
            by_place[category].append(TraceSpan(action=action, begin=begin, end=end))
    on_device = {span.action for span in by_place[_DEVICE]}
    spans = [span for span in by_place[_HOST] if span.action not in on_device]
    return sorted([*spans, *by_place[_DEVICE]], key=lambda span: span.begin), sorted(received)


def _whole(keys: Mapping[str, Any], name: str, most: int) -> int:
    """A whole number of the keys of a trace, 0 where it has none."""
    value = keys.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise UnusableInput(name, f"a whole number of 0 to {most}", quoted(value))
    return value


def _times(event: dict[str, Any], base: int) -> tuple[int, int]:
    """Begin and end in nanoseconds. Raises ``UnusableInput`` for a clock that runs backwards."""
    begin, lasted = event.get("ts"), event.get("dur", 0)
    if (
        not isinstance(begin, int | float)
        or not isinstance(lasted, int | float)
        or not (abs(begin) < _LATEST and 0 <= lasted < _LATEST)
    ):
        found = f"ts {quoted(begin)}, dur {quoted(lasted)}"
        raise UnusableInput(quoted(event.get("name")), "ts and a dur of 0 or more (us)", found)
    first = base + round(begin * 1000)
    return first, first + round(lasted * 1000)


def _paired(spans: list[TraceSpan], received: list[tuple[int, int]]) -> Iterator[TraceSpan]:
    """The spans, each with the end of what began inside it to be received."""
    at = 0
    for span in spans:
        until: int | None = None
        while at < len(received) and received[at][0] <= span.end:
            if received[at][0] >= span.begin and "RECV" in span.action.kind.name:
                until = received[at][1]
            at += 1
        yield TraceSpan(action=span.action, begin=span.begin, end=span.end, received=until)
