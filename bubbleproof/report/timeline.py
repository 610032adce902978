"""The picture of a schedule as data: bars, gaps, clashes, memory curves, and what is left out.

Free of any drawing library; ``gantt`` and ``viewer`` draw it. Times are ticks of the problem,
loads are its memory units. A picture holds ``MAX_ROWS`` resources, ``MAX_BARS`` bars and
``MAX_CURVES`` memory curves at most; whatever does not fit is summarised, and ``notes`` says so in
sentences that every drawing prints. What is drawn keeps one rule at every size: the area of a
colour equals its share of time.

Cells in place of bars that are too many or too narrow to be drawn one by one.

Time is cut into cells of equal length, and a cell of a row has one colour. Which one is chosen so
that the rule of every picture holds: *the area of a colour equals its share of time*. From left to
right each sort (a kind of action on a chunk, or idle) is owed what it ran; a cell shows the sort
that is owed most and takes its length off that debt. So a colour's area on a row differs from its
time by a few cells at most, however many cells there are, and a sort that never runs longest in any
cell is seen all the same (Bresenham's line, for many colours). A bar of half height counts half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bubbleproof.formats.printable import on_one_line
from bubbleproof.report.amounts import ratio, ticks, time
from bubbleproof.report.bars import BarLane, Bars, bars_of, split_overlaps
from bubbleproof.report.memory_curves import MemoryCurve, memory_curve, thin_curve
from bubbleproof.theory.model.actions import NONE, ActionTable, Ints
from bubbleproof.theory.model.measures import Measures, known_rows, measure_rows
from bubbleproof.theory.model.memory import MemoryProfile, memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.theory.pipelines.units import plural

_WHOLE, _HALF = 2, 1  # the height of a bar, in halves


def cells_of(bars: Bars, *, window: tuple[int, int], num_rows: int, cell_ticks: int) -> Bars:
    """Cells of ``cell_ticks`` ticks in place of ``bars``, from the first tick of ``window``.

    Neighbouring cells of one kind and chunk form one bar; idle cells are none.
    """
    first, last = window
    columns = -(-(last - first) // cell_ticks)
    num_chunks = int(bars.chunk.max(initial=0)) + 1
    sorts, sort = np.unique(bars.actions.kind * num_chunks + bars.chunk, return_inverse=True)
    ran = _ran(bars, sort, window, (num_rows, columns, len(sorts) + 1), cell_ticks)
    width = _WHOLE * np.minimum(cell_ticks, last - first - np.arange(columns) * cell_ticks)
    ran[:, :, -1] = np.maximum(width - ran.sum(axis=2), 0)  # the last sort is idle
    row, start, end, shown = _runs(_owed_most(ran, width), first, last, cell_ticks, len(sorts))
    kind, chunk = np.divmod(sorts[shown], num_chunks)
    return Bars(
        row=row,
        start=start,
        end=end,
        chunk=chunk,
        lane=np.full(len(row), int(BarLane.WHOLE)),
        task=np.full(len(row), NONE),
        actions=ActionTable.of(kind, NONE, np.full(len(row), NONE)),
    )


def _ran(
    bars: Bars,
    sort: Ints,
    window: tuple[int, int],
    shape: tuple[int, int, int],
    cell_ticks: int,
) -> Ints:
    """How long each sort ran in each cell of each row, in ticks of half a row's height."""
    first, last = window
    _, columns, sorts = shape
    begin = np.clip(bars.start, first, last) - first
    end = np.clip(bars.end, first, last) - first
    low, high = begin // cell_ticks, -(-end // cell_ticks)
    count = np.maximum(high - low, 0)
    bar = np.repeat(np.arange(len(bars)), count)
    cell = np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count) + low[bar]
    edge = cell * cell_ticks
    share = np.minimum(end[bar], edge + cell_ticks) - np.maximum(begin[bar], edge)
    height = np.where(bars.lane == BarLane.WHOLE, _WHOLE, _HALF)[bar]
    ran = np.zeros(np.prod(shape), dtype=np.int64)
    np.add.at(ran, (bars.row[bar] * columns + cell) * sorts + sort[bar], share * height)
    return ran.reshape(shape)


def _owed_most(ran: Ints, width: Ints) -> Ints:
    """The sort of each cell, shape (rows, columns): the one that is owed most there."""
    rows, columns, sorts = ran.shape
    debt = np.zeros((rows, sorts), dtype=np.int64)
    shown = np.zeros((rows, columns), dtype=np.int64)
    every = np.arange(rows)
    for column in range(columns):
        debt += ran[:, column]
        shown[:, column] = debt.argmax(axis=1)
        debt[every, shown[:, column]] -= width[column]
    return shown


def _runs(
    shown: Ints, first: int, last: int, cell_ticks: int, idle: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Row, start, end and sort of each run of one sort but ``idle``, of cells (rows, columns)."""
    changes = np.ones(shown.shape, dtype=bool)
    changes[:, 1:] = shown[:, 1:] != shown[:, :-1]
    row, column = np.nonzero(changes)
    columns = shown.shape[1]
    following = np.append(row[1:] * columns + column[1:], shown.size) - row * columns
    busy = shown[row, column] < idle
    row, column, following = row[busy], column[busy], following[busy]
    start = first + column * cell_ticks
    end = np.minimum(first + following * cell_ticks, last)
    return row, start, end, shown[row, column]


MAX_ROWS = 64
MAX_BARS = 20_000
MAX_CURVES = 16
MAX_WAITS = 9  # sentences about a standstill
MARK = 16  # what of the time before it the mark of a standstill takes

Window = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Stretches of time on rows of the picture, from ``start`` to ``end`` (ticks)."""

    row: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """What a picture of a schedule shows.

    ``rows`` names the rows from top to bottom, ranks first. ``gaps``
    are a row's idle stretches between ``window``'s ticks, ``clashes`` those in which two actions
    claim one row (no correct schedule has any). ``waiting`` marks the rows whose next action never
    starts, after ``standstill``. ``measures`` are those of the whole schedule. Where ``bars`` are
    cells, ``cell_ticks`` is their length and ``num_actions`` how many actions they stand for.
    """

    rows: tuple[str, ...]
    bars: Bars
    gaps: Spans
    clashes: Spans
    waiting: Spans
    memory: tuple[MemoryCurve, ...]
    window: Window
    num_chunks: int
    unit: str
    memory_unit: str
    measures: Measures
    remarks: tuple[str, ...]
    num_actions: int
    cell_ticks: int | None = None
    standstill: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the picture leaves out, and what its cells mean: sentences for below it."""
        if self.cell_ticks is None:
            return self.remarks
        return (
            *self.remarks,
            f"{self.num_actions:,} actions are too many to draw one by one: time is cut into cells "
            f"of {ticks(self.cell_ticks, self.unit)}, coloured so that the area of a colour is its "
            "share of time.",
        )

    @property
    def facts(self) -> str:
        """Makespan and idle ratio, or when everything stands still."""
        if self.standstill is not None:
            return f"stops after {time(self.standstill, self.unit)}"
        return (
            f"makespan {time(self.measures.makespan, self.unit)}, "
            f"idle_ratio {ratio(self.measures.idle_ratio)}"
        )

    @property
    def typical_ticks(self) -> float:
        """The median length of the bars that have one."""
        length = self.bars.end - self.bars.start
        return float(np.median(length[length > 0])) if (length > 0).any() else 1.0

    def of_cells(self, cell_ticks: int) -> Timeline:
        """The same picture of cells of so many ticks."""
        window, rows = self.window, len(self.rows)
        cells = cells_of(self.bars, window=window, num_rows=rows, cell_ticks=cell_ticks)
        gaps, _ = _gaps_and_clashes(cells, rows, window)
        return replace(self, bars=cells, gaps=gaps, cell_ticks=cell_ticks)

    def resolved(self, columns: int) -> Timeline:
        """The same picture for a drawing in which ``columns`` cells side by side can be seen.

        Bars of which twice as many would stand side by side become cells.
        """
        first, last = self.window
        if self.typical_ticks * 2 * columns >= last - first:
            return self
        return self.of_cells(-(-(last - first) // columns))


def timeline(
    problem: Problem,
    schedule: Schedule,
    *,
    window: Window | None = None,
    max_bars: int = MAX_BARS,
    max_rows: int = MAX_ROWS,
    max_curves: int = MAX_CURVES,
    stopped: Standstill | None = None,
) -> Timeline:
    """The picture of a schedule, or of its part between the two ticks of ``window``.

    ``stopped`` is where the schedule comes from that runs until a standstill. ``max_curves`` is 0
    or 2 at least. Raises ``ValueError`` for a window that does not end after it starts.
    """
    task, resource, start = known_rows(problem, schedule)
    every = bars_of(problem, task, resource, start)
    whole = (int(every.start.min(initial=0)), int(every.end.max(initial=0)))
    if len(every):
        whole = (int(every.start.min()), int(every.end.max()))
    mark = 0 if stopped is None else max(1, (whole[1] - whole[0]) // MARK)
    chosen = _checked(window) or (whole[0], max(whole[1] + mark, whole[0] + 1))
    notes = [*_foreign(schedule, len(every)), *_cut(problem, every, window, whole)]
    shown, row_notes = _rows(problem, resource, max_rows)
    number = np.full(len(problem.resources), NONE)
    number[shown] = np.arange(len(shown))
    visible = every.take((number[resource] != NONE) & every.in_window(chosen))
    bars = split_overlaps(replace(visible, row=number[visible.row]))
    gaps, clashes = _gaps_and_clashes(bars, len(shown), chosen)
    profile = memory_profile(problem, task, start)
    memory, memory_notes = _memory(problem, profile, chosen, whole[0], max_curves)
    view = Timeline(
        rows=tuple(on_one_line(problem.resources[r].name) for r in shown),
        bars=bars,
        gaps=gaps,
        clashes=clashes,
        waiting=_waiting(stopped, number, mark),
        memory=memory,
        window=chosen,
        num_chunks=int(every.chunk.max(initial=0)) + 1,
        unit=on_one_line(problem.unit),
        memory_unit=on_one_line(problem.memory_unit),
        measures=measure_rows(problem, task, resource, start),
        remarks=tuple(map(on_one_line, (*_stop(stopped), *notes, *row_notes, *memory_notes))),
        num_actions=len(bars),
        standstill=None if stopped is None else stopped.at,
    )
    if len(bars) <= max_bars:
        return view
    columns = max(max_bars // len(shown), 1)
    return view.of_cells(-(-(chosen[1] - chosen[0]) // columns))


def _stop(stopped: Standstill | None) -> tuple[str, ...]:
    """What stands still, a sentence for each of the first resources."""
    return () if stopped is None else stopped.sentences()[:MAX_WAITS]


def _waiting(stopped: Standstill | None, number: Ints, mark: int) -> Spans:
    """A mark of so many ticks after the standstill on each row that waits."""
    waits = () if stopped is None else stopped.waits
    rows = [int(number[wait.resource]) for wait in waits if number[wait.resource] != NONE]
    start = np.full(len(rows), 0 if stopped is None else stopped.at, dtype=np.int64)
    return Spans(row=np.array(rows, dtype=np.int64), start=start, end=start + mark)


def _checked(window: Window | None) -> Window | None:
    if window is not None and window[0] >= window[1]:
        raise ValueError(f"a window must end after it starts, got {window[0]} to {window[1]}")
    return window


def _foreign(schedule: Schedule, known: int) -> list[str]:
    extra = len(schedule) - known
    rows = (
        "1 row repeats an action or names"
        if extra == 1
        else f"{extra:,} rows repeat an action or name"
    )
    return [f"{rows} none of the problem: not drawn."][: extra > 0]


def _cut(problem: Problem, every: Bars, window: Window | None, whole: Window) -> list[str]:
    if window is None or (window[0] <= whole[0] and whole[1] <= window[1]):
        return []
    inside = int(every.in_window(window).sum())
    return [
        f"Window {window[0]:,} to {window[1]:,} of {whole[0]:,} to {whole[1]:,} "
        f"{plural(problem.unit)}: {inside:,} of {len(every):,} bars lie in it."
    ]


def _rows(problem: Problem, resource: Ints, max_rows: int) -> tuple[list[int], list[str]]:
    """The resources to show, ranks first: every rank, and whatever else does something."""
    ranks = list(range(problem.num_ranks))
    others = np.unique(resource[resource >= problem.num_ranks]).tolist()
    wanted = ranks + others
    if len(wanted) <= max_rows:
        return wanted, []
    notes = []
    if others:
        notes.append(f"{len(others):,} links, engines or NICs are not drawn.")
    step = -(-len(ranks) // max_rows)
    shown = ranks[::step]
    if step > 1:
        notes.append(f"{len(shown):,} of {len(ranks):,} ranks are drawn, every {_nth(step)}.")
    return shown, notes


def _gaps_and_clashes(bars: Bars, num_rows: int, window: Window) -> tuple[Spans, Spans]:
    """Where a row does nothing, and where it does two things, between the window's ticks."""
    walls = np.arange(num_rows)  # a bar of no length at either end of the window closes the row
    one = bars.lane != 2  # an overlapped pair counts once
    row = np.concatenate([bars.row[one], walls, walls])
    start = np.concatenate(
        [np.maximum(bars.start[one], window[0]), *np.repeat([window], num_rows, axis=0).T]
    )
    end = np.concatenate([np.minimum(bars.end[one], window[1]), start[-2 * num_rows :]])
    order = np.lexsort((end, start, row))
    row, start, end = row[order], start[order], end[order]
    if not len(row):
        return Spans(row=row, start=start, end=end), Spans(row=row, start=start, end=end)
    span = window[1] - window[0] + 1  # rows laid end to end, so that one running maximum serves all
    reach = np.maximum.accumulate(end - window[0] + row * span) - row * span + window[0]
    follows = row[1:] == row[:-1]
    idle = follows & (start[1:] > reach[:-1])
    clash = follows & (start[1:] < reach[:-1]) & (end[1:] > start[1:])
    return (
        Spans(row=row[1:][idle], start=reach[:-1][idle], end=start[1:][idle]),
        Spans(
            row=row[1:][clash],
            start=start[1:][clash],
            end=np.minimum(reach[:-1], end[1:])[clash],
        ),
    )


def _memory(
    problem: Problem, profile: MemoryProfile, window: Window, origin: int, max_curves: int
) -> tuple[tuple[MemoryCurve, ...], list[str]]:
    if not max_curves:
        return (), []
    stores, notes = list(range(len(problem.stores))), []
    if len(stores) > max_curves:
        step = -(-len(stores) // (max_curves - 1))
        fullest = int(np.argmax(profile.peaks(problem)))
        stores = sorted({*stores[::step], fullest})
        notes.append(
            f"Memory of {len(stores)} of {len(problem.stores):,} stores, "
            f"every {_nth(step)} and the fullest."
        )
    curves = tuple(
        thin_curve(memory_curve(problem, profile, s, window=window, origin=origin)) for s in stores
    )
    longest = max((curve.step_size for curve in curves), default=1)
    if longest > 1:
        notes.append(f"Memory shows the highest and lowest of every {longest:,} steps.")
    return curves, notes


def _nth(step: int) -> str:
    """The ordinal of a number.

    >>> _nth(2), _nth(3), _nth(11), _nth(21)
    ('2nd', '3rd', '11th', '21st')
    """
    endings = {} if step % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}
    return f"{step}{endings.get(step % 10, 'th')}"
