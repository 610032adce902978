"""A schedule as a page's script draws it: lanes, sorts of bars, rows, inputs and memory.

- A *lane* is a rank, link, engine or NIC. A *sort* is what has one colour: a kind of action on a
  chunk (in one half of a lane, where F and B are overlapped), or a cause of idle time.
- *Rows* are bars and idle stretches, ordered by lane, sort and start; ``first`` says where each
  lane's sorts begin: those of sort s on lane l are ``first[l * sorts + s]`` to the next.
- Columns of rows: ``start`` and ``length`` (ticks), ``stage``, ``microbatch``, ``slice``, ``part``
  (-1: none); of an idle stretch ``stage`` numbers its sentence.
- Inputs of row r: ``inputs[firstInput[r]:firstInput[r + 1]]``, each as a distance in rows, with
  ``lag`` (ticks) beside it.
- Memory events of store s: ``when``, ``delta`` and ``who`` (a row, -1: none) from ``firstEvent[s]``
  on, by time, releases first.
- ``path`` are the rows of a critical path, in order of time.

Times are the problem's ticks, loads its memory units. All text is on one line, and harmless.

Columns of numbers as text that a page's script reads back as typed arrays.

All columns of a picture stand one after another, each from a multiple of eight bytes, compressed
(zlib) and in base64. ``places`` says of each its type, where it begins (bytes) and its length
(numbers); where ``steps`` is true the differences of neighbours are kept in place of the numbers,
which regular schedules make small. Types are ``u1``, ``i2``, ``i4`` and ``f8``, little-endian: the
narrowest that holds a column. Whole numbers from 2**53 on have no exact place in a page's script;
they are rounded to the nearest that has.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bubbleproof.formats.printable import on_one_line
from bubbleproof.report.amounts import Scale, TimeScale
from bubbleproof.report.bars import Bars
from bubbleproof.report.palette import CAUSES, WORDS, darker, fill, text_on
from bubbleproof.report.timeline import Timeline
from bubbleproof.theory.idle import IdleStretches, critical_tasks, idle_stretches
from bubbleproof.theory.idle.idle_causes import CAUSES as KNOWN_CAUSES
from bubbleproof.theory.idle.idle_causes import MEANINGS
from bubbleproof.theory.idle.timed_rows import timed_rows
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.units import plural

_TYPES = (("u1", 0, 1 << 8), ("i2", -(1 << 15), 1 << 15), ("i4", -(1 << 31), 1 << 31))
_ALIGNED = 8  # bytes
_LEVEL = 6  # of zlib: 9 takes three times as long for a hundredth less


class ColumnPlace(NamedTuple):
    """Where a column lies: its type, its first byte, how many numbers, and whether steps."""

    type: str
    first: int
    length: int
    steps: bool


class ColumnBlob:
    """Columns by name; ``text`` is all of them packed, ``places`` where each is."""

    def __init__(self) -> None:
        self.places: dict[str, ColumnPlace] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, column: Ints, *, steps: bool = False) -> None:
        """Pack one more column; ``steps`` keeps the differences of neighbours."""
        kept = np.diff(column, prepend=0) if steps else column
        kind = _narrowest(kept)
        content = kept.astype(f"<{kind}").tobytes()
        self.places[name] = ColumnPlace(kind, self._size, len(kept), steps)
        self._parts.append(content + bytes(-len(content) % _ALIGNED))
        self._size += len(self._parts[-1])

    @property
    def text(self) -> str:
        """All columns."""
        return _packed(b"".join(self._parts))


def packed_lines(lines: Sequence[str]) -> str:
    """Lines of text, none with a break in it, packed like columns."""
    return _packed("\n".join(lines).encode())


def _packed(content: bytes) -> str:
    return b64encode(zlib.compress(content, _LEVEL)).decode()


def _narrowest(column: Ints) -> str:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return next((kind for kind, least, most in _TYPES if least <= low and high < most), "f8")


Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
MOST_TASKS_WITH_CAUSES = 150_000  # more would take longer than to write the page
_FIELDS = ("stage", "microbatch", "slice", "part")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Bars and idle stretches in the order of the page, with the task of each (``NONE``: idle)."""

    order: Ints
    first: Ints
    task: Ints

    @classmethod
    def of(cls, lane: Ints, sort: Ints, start: Ints, task: Ints, shape: tuple[int, int]) -> _Rows:
        order = np.lexsort((start, sort, lane))
        bucket = (lane * shape[1] + sort)[order]
        first = np.searchsorted(bucket, np.arange(shape[0] * shape[1] + 1))
        return cls(order=order, first=first, task=task[order])

    def row_of(self, num_tasks: int) -> Ints:
        """The first row of each task, ``NONE`` where it has none."""
        found = np.full(num_tasks, NONE)
        back = np.flatnonzero(self.task != NONE)[::-1]  # of repeated indices the last is kept
        found[self.task[back]] = back
        return found


def schedule_data(
    name: str, problem: Problem, schedule: Schedule, view: Timeline, *, causes: bool = True
) -> dict[str, Json]:
    """The picture of a schedule in plain data; ``view`` is all of it, of bars alone.

    Without ``causes``, and of more than ``MOST_TASKS_WITH_CAUSES`` tasks, idle time has no causes.
    """
    idle = _causes(problem, schedule, view) if causes else None
    sorts, bar_sort = _sorts(view.bars, view.num_chunks)
    blob, stretches = ColumnBlob(), 0 if idle is None else len(idle)
    shape = len(view.rows), len(sorts) + (len(KNOWN_CAUSES) if stretches else 0)
    columns = _columns(view.bars, bar_sort, idle, len(sorts))
    rows = _Rows.of(columns["lane"], columns["sort"], columns["start"], columns["task"], shape)
    blob.add("first", rows.first, steps=True)
    blob.add("start", columns["start"][rows.order], steps=True)
    for field in ("length", *_FIELDS):
        blob.add(field, columns[field][rows.order], steps=field == "microbatch")
    _add_inputs(blob, problem, rows)
    _add_events(blob, problem, schedule, rows)
    blob.add("path", _path(problem, rows, idle))
    for title, spans in (("clash", view.clashes), ("wait", view.waiting)):
        for part in ("row", "start", "end"):
            blob.add(f"{title}.{part}", getattr(spans, part))
    return {
        **_facts(name, problem, view),
        "sorts": [*sorts, *(_cause_sorts() if stretches else ())],
        "sentences": packed_lines([] if idle is None else [on_one_line(s.sentence) for s in idle]),
        "places": {key: [*place] for key, place in blob.places.items()},
        "blob": blob.text,
    }


def _facts(name: str, problem: Problem, view: Timeline) -> dict[str, Json]:
    peak = max((*view.measures.peak_memory, *_capacities(problem)), default=0)
    scale = Scale.of(view.memory_unit, peak)
    time = TimeScale.of(view.unit, view.window[1] - view.window[0])
    return {
        "name": on_one_line(name),
        "facts": view.facts,
        "unit": view.unit,
        "units": plural(view.unit),
        "axis": {"name": time.name, "perTick": time.scaled(1)},
        "window": [*view.window],
        "typical": view.typical_ticks,
        "standstill": view.standstill,
        "lanes": [*view.rows],
        "ranks": problem.num_ranks,
        "chunks": view.num_chunks,
        "sliced": bool(view.bars.actions.is_sliced),
        "memory": {"name": scale.name, "divisor": scale.divisor},
        "stores": [[on_one_line(s.name), s.base, s.capacity] for s in problem.stores],
    }


def _capacities(problem: Problem) -> list[int]:
    return [store.capacity for store in problem.stores if store.capacity is not None]


def _sorts(bars: Bars, num_chunks: int) -> tuple[list[Json], Ints]:
    """The sorts of bars, and which of them each bar is."""
    keys = np.stack([bars.actions.kind, bars.chunk, bars.lane], axis=1)
    found, which = np.unique(keys, axis=0, return_inverse=True)
    sorts = [_bar_sort(k, chunk, lane, num_chunks) for k, chunk, lane in found.tolist()]
    return sorts, which.reshape(-1)


def _bar_sort(number: int, chunk: int, lane: int, num_chunks: int) -> Json:
    """What has one colour: a kind on a chunk, in the whole height of a lane or in a half."""
    kind = Kind(number)
    colour = fill(kind, chunk=chunk, num_chunks=num_chunks)
    return {
        "kind": kind.name,
        "words": WORDS[kind],
        "chunk": chunk,
        "half": lane,
        "fill": colour,
        "seam": darker(colour),
        "ink": text_on(colour),
    }


def _cause_sorts() -> list[Json]:
    return [
        {
            "kind": "idle",
            "words": cause.value,
            "meaning": MEANINGS[cause],
            "half": 0,
            "fill": CAUSES[cause.value],
        }
        for cause in KNOWN_CAUSES
    ]


def _causes(problem: Problem, schedule: Schedule, view: Timeline) -> IdleStretches | None:
    """Why ranks are idle; None of too many tasks, at a standstill, or where actions clash."""
    if problem.num_tasks > MOST_TASKS_WITH_CAUSES or view.standstill is not None:
        return None
    try:
        return idle_stretches(problem, schedule)
    except ValueError:  # a rank does two things at once
        return None


def _columns(bars: Bars, sort: Ints, idle: IdleStretches | None, sorts: int) -> dict[str, Ints]:
    columns = {
        "lane": bars.row,
        "sort": sort,
        "start": bars.start,
        "length": bars.end - bars.start,
        "task": bars.task,
        **{field: getattr(bars.actions, field) for field in _FIELDS},
    }
    if idle is None or not len(idle):
        return columns
    none = np.full(len(idle), NONE)
    more = {
        "lane": idle.rank,
        "sort": sorts + idle.cause,
        "start": idle.from_tick,
        "length": idle.to_tick - idle.from_tick,
        "stage": np.arange(len(idle)),
    }
    return {key: np.concatenate([own, more.get(key, none)]) for key, own in columns.items()}


def _path(problem: Problem, rows: _Rows, idle: IdleStretches | None) -> Ints:
    """The rows of a critical path by time; none where idle time has no causes."""
    steps = [] if idle is None else critical_tasks(timed_rows(problem, idle.schedule))
    tasks = np.array([step.task for step in steps], dtype=np.int64)
    path: Ints = rows.row_of(problem.num_tasks)[tasks]
    return path


def _add_inputs(blob: ColumnBlob, problem: Problem, rows: _Rows) -> None:
    """What each row waits for: its task's inputs, where both are drawn."""
    row_of, edges = rows.row_of(problem.num_tasks), problem.edges
    after, before = row_of[edges.after], row_of[edges.before]
    drawn = np.flatnonzero((after != NONE) & (before != NONE))
    drawn = drawn[np.argsort(after[drawn], kind="stable")]
    after = after[drawn]
    blob.add("firstInput", np.searchsorted(after, np.arange(len(rows.task) + 1)), steps=True)
    blob.add("inputs", before[drawn] - after)
    blob.add("lag", edges.lag[drawn])


def _add_events(blob: ColumnBlob, problem: Problem, schedule: Schedule, rows: _Rows) -> None:
    """What each store gains and loses, when, and by which row."""
    task, _, start = known_rows(problem, schedule)
    profile = memory_profile(problem, task, start)
    who = rows.row_of(problem.num_tasks)[problem.events.task[profile.event]]
    firsts = np.searchsorted(profile.store, np.arange(len(problem.stores) + 1))
    blob.add("firstEvent", firsts)
    blob.add("when", profile.time, steps=True)
    blob.add("delta", problem.events.delta[profile.event])
    blob.add("who", who, steps=True)
