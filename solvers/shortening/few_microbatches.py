"""Shorter orders where a paper leaves the order open, found by slides and list scheduling.

A published order repeats a pattern; while it fills and drains, and where a last group is not full,
other orders can be shorter. So a few are tried: the published order slid to either side
(``slides``), and list schedules (``list_schedule``) that run forwards in time and then, for as long
as it helps, backwards and forwards again with the starts found as the ranking, each slid as well.
The shortest order is taken that holds no more than the published one and idles no more inside a
rank's span (``span_idle``): the published one itself unless another is shorter, or as long with
less idle time. As for every family the order depends on the shape alone: it is chosen at ticks of 1
(tF = tI = tW; tF = tB and tF = 1, tB = 2 where backwards are full, and at neither of the two may it
be longer than the published order).

Rankings, W always last (it fills waits):

- ``forwards``: forwards before backwards, later stages first; then backwards, earlier stages first;
- ``backwards``: the same with backwards before forwards;
- ``published``: the published order, in which a ready task overtakes one that waits.

A rank holds a unit from F to the end of B or W, and no more units than the fullest rank of the
published order. With many microbatches the order is found for fewer and periods are inserted where
it repeats (``lengthening``).

The rankings are ours, found by comparing with exact optima (docs/measured/optimality.md). Where
F and I keep a published sequence (V-Half, V-Min, ZB-H2) no list schedule beat the slides at
p <= 6, m <= 3p.

Orders for many microbatches come from one for fewer by periods inserted where the starts repeat. A
class is a kind of action on a stage in one direction, and j the number of a microbatch within its
direction; ``orders.periods`` says which starts repeat and what may be inserted. Only the order is
used; it is sorted by the new starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from operator import itemgetter, le
from typing import NamedTuple

import numpy as np

from bubbleproof.solvers.shortening.list_schedule import list_starts, mirrored
from bubbleproof.solvers.shortening.slides import slid_starts
from bubbleproof.theory.model.actions import BACKWARD_KINDS, ActionTable, Ints, Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.orders.periods import Band, bands, longest, with_periods
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts
from bubbleproof.theory.pipelines.timing import left_shift

PLAIN: dict[str, object] = {
    **dict.fromkeys(("forward", "input_backward", "weight_backward", "activation"), 1),
    **dict.fromkeys(("latency", "message", "released_at_input", "static"), 0),
    **dict.fromkeys(("weight_parts", "weight_workspace", "links"), ()),
    **dict.fromkeys(("bandwidth", "capacity")),
}
# How often backwards and forwards. Ticks in sum over hanayo, chimera, dualpipe, dualpipev, zb-v and
# bpipe-interleaved at p = 2, 4, 6 and m from 3 to 12, with 0, 1, 2, 3 and 5 turns: 4016, and then
# 4014 each time, in 2.4, 4.0, 4.8, 4.8 and 5.2 s. One would do there; the loop ends by itself.
TURNS = 3
# Times as many microbatches as ranks, by which slid, and listed, orders repeat. Ticks in sum over
# chimera, dualpipev, hanayo, zb-v, v-half and v-min at p = 2, 3, 4 and m = 41, 60, with (2, 4),
# (3, 6), (5, 10) and (8, 16): 10006, 9864, 9622, 9622. Earlier than that many do not repeat yet.
REPEATS = (5, 10)

PublishedOrder = Callable[[Pipeline], Program]
Candidates = Iterator[tuple[int, Ints]]  # (number of the problem, starts by task) of what is tried
Found = list[tuple[tuple[int, ...], Program]]  # (costs, order), the best first


class Effort(Enum):
    """What is tried: slides alone, one list schedule per ranking as well, or all."""

    SLIDES = "slides"
    ONCE = "once"
    ALL = "all"


# What is tried up to so many tasks, about half a second each.
SLID = ((20_000, Effort.SLIDES),)
LISTED = ((250, Effort.ALL), (1_500, Effort.ONCE), (4_000, Effort.SLIDES))


def slid_order(pipeline: Pipeline, published: Program) -> Program:
    """The shorter of the published order and what slides make of it; it holds and idles no more."""
    return _found(pipeline, published, Effort.SLIDES)[0][1]


def shortest_order(pipeline: Pipeline, published: Program) -> Program:
    """The shortest of the published order, the list schedules, and slides of each.

    None holds or idles more than the published order. Precondition: each rank's tasks are F, B, I
    and W, and a rank holds each stage once.
    """
    return _found(pipeline, published, Effort.ALL)[0][1]


def improved_order(
    pipeline: Pipeline, published: PublishedOrder, period: int, *, is_listed: bool = True
) -> Program:
    """``shortest_order`` or, not ``is_listed``, ``slid_order``, for any number of microbatches.

    With many microbatches the best order is taken that repeats every ``period`` microbatches, and
    periods are inserted. The larger the shape, the less is tried, and beyond some size nothing is:
    the published order stays.

    Parameters
    ----------
    period
        Microbatches after which an order repeats.
    is_listed
        Whether list schedules are tried as well as slides.
    """
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    least = REPEATS[is_listed] * p
    shape = _Shape(
        num_ranks=p,
        num_microbatches=min(m, least + (m - least) % period),
        num_chunks=pipeline.num_chunks,
        placement=pipeline.placement,
        is_split=pipeline.split_backward is True,
    )
    short = shape.pipeline()
    effort = _effort(short, is_listed=is_listed)
    if effort is None:
        return published(pipeline)
    orders = _searched(published, shape, effort)
    if m == short.num_microbatches:
        return orders[0][1]
    for _, order in orders[:-1]:
        found = lengthened(short, left_shift(short.problem(), order), m, period)
        if found is not None:
            return found
    return published(pipeline)


def _effort(pipeline: Pipeline, *, is_listed: bool) -> Effort | None:
    """What a pipeline of this size is worth."""
    tasks = pipeline.num_stages * pipeline.num_microbatches * (3 if pipeline.split_backward else 2)
    most = LISTED if is_listed else SLID
    return next((effort for limit, effort in most if tasks <= limit), None)


def _found(pipeline: Pipeline, published: Program, effort: Effort) -> Found:
    """What is shorter than the published order, or as short with less idle time, and that order.

    Right whatever the candidates are: each is timed anew, and taken only where none of its costs
    (makespans, idle time, the fullest rank) is above the published order's and one is below.
    """
    problems = [
        pipeline.with_changes(**PLAIN, backward=ticks).problem()
        for ticks in ((2,) if pipeline.split_backward else (2, 1))
    ]
    floor = tuple(one_rank_bound(problem) for problem in problems)
    base = _costs(problems, published)
    found: Found = [(base, published)]
    tried = set[tuple[int, bytes]]()  # half of the candidates come a second time
    for number, starts in _candidates(pipeline, problems, published, effort):
        problem, least = problems[number], found[0][0]
        if all(map(le, least, floor)):
            break  # no order is shorter at any of the ticks
        if _was_in(tried, number, starts):
            continue
        if effort is Effort.ALL and int((starts + problem.duration).max()) > least[number]:
            continue  # left-shifted it could still be shorter, but hardly
        program = _in_order(problem, starts)
        costs = _costs(problems, program)
        if all(map(le, costs, base)) and costs < base:
            found.append((costs, program))
            found.sort(key=itemgetter(0))
    return found


class _Shape(NamedTuple):
    """All that an order depends on."""

    num_ranks: int
    num_microbatches: int
    num_chunks: int
    placement: str | tuple[int, ...]
    is_split: bool

    def pipeline(self) -> Pipeline:
        return Pipeline(
            num_ranks=self.num_ranks,
            num_microbatches=self.num_microbatches,
            num_chunks=self.num_chunks,
            placement=self.placement,
            split_backward=self.is_split,
        )


@lru_cache(maxsize=256)  # one shape is often wanted with several durations and sizes
def _searched(published: PublishedOrder, shape: _Shape, effort: Effort) -> Found:
    pipeline = shape.pipeline()
    return _found(pipeline, published(pipeline), effort)


def _candidates(
    pipeline: Pipeline, problems: Sequence[Problem], published: Program, effort: Effort
) -> Candidates:
    limit = _most_units(problems[0], published)
    for number, problem in enumerate(problems):
        starts = np.empty(problem.num_tasks, dtype=np.int64)
        starts[problem.locate(published.actions)] = left_shift(problem, published).start
        yield number, slid_starts(problem, starts, limit)
        if effort is Effort.SLIDES:
            continue
        turns = TURNS if effort is Effort.ALL else 0
        slid = set[tuple[int, bytes]]()
        for found in _listed(pipeline, problem, starts, limit, turns):
            if not _was_in(slid, number, found):
                yield number, found
                yield number, slid_starts(problem, found, limit)


def _was_in(tried: set[tuple[int, bytes]], number: int, starts: Ints) -> bool:
    """Whether starts for the problem of that number were among them; now they are."""
    size = len(tried)
    tried.add((number, starts.tobytes()))
    return len(tried) == size


def _listed(
    pipeline: Pipeline, problem: Problem, starts: Ints, limit: int, turns: int
) -> Iterator[Ints]:
    """Starts of list schedules, backwards and forwards in turn until they get no shorter."""
    forth, back = (
        mirrored(problem, is_backwards=flag, is_bidirectional=pipeline.is_bidirectional)
        for flag in (False, True)
    )
    for ranking in _rankings(pipeline, problem, starts):
        found = list_starts(forth, ranking, limit)
        yield found
        least = int((found + problem.duration).max())
        # What ends last in one direction starts first in the other: so each run corrects the
        # choices of the one before it that turned out to be in the way (Li and Willis 1992).
        for _ in range(turns):
            late = list_starts(back, _ranked(-found, -found - problem.duration), limit)
            ends = late + problem.duration
            found = list_starts(forth, _ranked(int(ends.max()) - ends), limit)
            yield from (int(ends.max()) - ends, found)
            span = int((found + problem.duration).max())
            if min(span, int(ends.max())) >= least:
                break
            least = min(span, int(ends.max()))


def _in_order(problem: Problem, starts: Ints) -> Program:
    """The order in which tasks start on each rank, microbatches renumbered to run in turn.

    They are alike, so the i-th start of a kind and stage on a rank may be that of the i-th
    microbatch there: what held between all pairs holds between the sorted ones.
    """
    rank, actions = problem.rank_of_task, problem.actions
    by_start = np.lexsort((starts, actions.stage, actions.kind, rank))
    by_number = np.lexsort((actions.microbatch, actions.stage, actions.kind, rank))
    in_turn = np.empty_like(starts)
    in_turn[by_number] = starts[by_start]
    order = np.lexsort((in_turn + problem.duration, in_turn, rank))
    return Program(actions=problem.actions.take(order), resource=rank[order])


def one_rank_bound(problem: Problem) -> int:
    """No schedule is shorter: work of a rank behind its least head and before its least tail."""
    edges, rank = problem.edges, problem.rank_of_task
    found = []
    for before, after in ((edges.before, edges.after), (edges.after, edges.before)):
        starts = acyclic_starts(problem.duration, before, after, edges.lag)
        least = np.full(problem.num_ranks, np.iinfo(np.int64).max)
        np.minimum.at(least, rank, starts)
        found.append(least)
    work = np.zeros(problem.num_ranks, dtype=np.int64)
    np.add.at(work, rank, problem.duration)
    return int((found[0] + work + found[1]).max())


def _costs(problems: Sequence[Problem], program: Program) -> tuple[int, ...]:
    """Makespan at each of the ticks, then span_idle at each, then the fullest rank's peak."""
    found = [measure(problem, left_shift(problem, program)) for problem in problems]
    peak = max(found[0].peak_activations)
    return (*(m.makespan for m in found), *(m.span_idle for m in found), peak)


def _most_units(problem: Problem, program: Program) -> int:
    """The most units that any rank holds."""
    return max(measure(problem, left_shift(problem, program)).peak_activations)


def _rankings(pipeline: Pipeline, problem: Problem, published: Ints) -> Iterator[Ints]:
    """The place of every task, the first to take least, once per ranking of the module's text."""
    actions = problem.actions
    chunk, later = actions.stage // pipeline.num_ranks, pipeline.num_stages - actions.stage
    is_forward, is_backward = actions.kind == Kind.F, actions.is_kind(*BACKWARD_KINDS)
    by_chunk = np.where(is_forward, pipeline.num_chunks - 1 - chunk, chunk)
    is_weight = np.where(actions.kind == Kind.W, 1, 0)
    within = (later, actions.microbatch, by_chunk)
    yield _ranked(*within, np.select([is_forward, is_backward], [0, 1], 2))
    yield _ranked(*within, np.select([is_forward, is_backward], [1, 0], 2))
    yield _ranked(published, is_weight)


def _ranked(*keys: Ints) -> Ints:
    """The place of each task by the last key, then the one before it, and so on."""
    place = np.empty(len(keys[0]), dtype=np.int64)
    place[np.lexsort(keys)] = np.arange(len(place))
    return place


def lengthened(
    short: Pipeline, schedule: Schedule, num_microbatches: int, period: int
) -> Program | None:
    """The order for more microbatches, ``period`` at a time in all directions together, or None.

    ``schedule`` is one of ``short``, a pipeline of one slice and whole W. Precondition: the number
    of microbatches exceeds that of ``short`` by a multiple of ``period``.

    Parameters
    ----------
    num_microbatches
        How many the result has, in all directions together.
    period
        Microbatches after which the order repeats, in all directions together.
    """
    program, problem = schedule.program, short.problem()
    directions = _rows(short, program)
    ends = schedule.start + problem.duration[problem.locate(program.actions)]
    band = _band(directions, schedule.start, ends, period // len(directions))
    if band is None:
        return None
    more = (num_microbatches - short.num_microbatches) // period
    first = (0, num_downward(num_microbatches))  # microbatch of each direction
    parts = []
    for rows, offset in zip(directions, first, strict=False):
        start = with_periods(schedule.start[rows], band, more)
        microbatch = np.broadcast_to(offset + np.arange(start.shape[1]), start.shape)
        source = np.broadcast_to(rows[:, :1], start.shape)  # a row of the same class
        parts.append((source.ravel(), microbatch.ravel(), start.ravel()))
    source, microbatch, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    rank = program.resource[source]
    order = np.lexsort((start, rank))
    kind, stage = program.actions.kind[source], program.actions.stage[source]
    return Program(
        actions=ActionTable.of(kind[order], stage[order], microbatch[order]), resource=rank[order]
    )


def _rows(short: Pipeline, program: Program) -> list[Ints]:
    """For each direction the row ``[c, j]`` of its j-th microbatch in class c."""
    actions = program.actions
    half = num_downward(short.num_microbatches) if short.is_bidirectional else None
    counts = [short.num_microbatches] if half is None else [half, short.num_microbatches - half]
    order = np.lexsort((actions.microbatch, actions.stage, actions.kind))
    is_upward = actions.microbatch[order] >= counts[0]
    parts = (order[~is_upward], order[is_upward])
    return [part.reshape(-1, count) for part, count in zip(parts, counts, strict=False)]


def _band(directions: Sequence[Ints], starts: Ints, ends: Ints, step: int) -> Band | None:
    """Where the starts of all directions repeat for long enough, at the pace of their middle."""
    length = directions[-1].shape[1]  # the upward direction may have one less
    table = np.concatenate([starts[rows[:, :length]] for rows in directions])
    if length <= step:
        return None
    gains = table[0, step:] - table[0, :-step]
    ticks = int(gains[len(gains) // 2])
    band = longest(band for band in bands(table, step) if band.ticks == ticks)
    if band is None:
        return None
    early = max(int(ends[rows[:, : band.first + step]].max()) for rows in directions)
    late = min(int(starts[rows[:, band.last - step :]].min()) for rows in directions)
    return band if early <= late else None
