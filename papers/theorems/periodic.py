"""What makes a periodic schedule a theorem: obligations for all n >= 0 periods, all places j.

For a ``PeriodicSchedule`` (its numbers are not trusted) and each rank:

- *cover*: pieces, and surroundings, follow one another from place 0 to the last one, the first and
  the last are never empty; each stretch of surroundings lies within its piece;
- *waits*: every task starts after its inputs end;
- *one at a time*: of each class on the rank, the ``before``-th task and those before it have ended
  when a task starts, and the next one starts after it ends. With the class itself among them (j and
  j + 1), starts grow along every class, so this orders all tasks of the rank (induction);
- *tight*: every start is 0, the end of an input or the end of a task before it on the rank. So the
  starts are the longest paths along waits and order, by induction: the left-shifted schedule;
- *order*: where the family's order is published as keys, the tasks before have lower keys and the
  next ones higher: it is that order;
- *memory*: the load when a task starts, counted by the tasks before it, is at most the peak, and
  reaches it once;
- *makespan*: the last task of every class ends by then, one ends then, and one task starts at 0.

All of it is linear in j and n, for each stretch of places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from bubbleproof.papers.theorems.periodic_schedule import (
    LinearForm,
    Neighbour,
    PeriodicSchedule,
    Piece,
    Surroundings,
    TaskClass,
)
from bubbleproof.papers.theorems.polynomials import Polynomial, Symbol
from bubbleproof.papers.theorems.terms import (
    TRUE,
    Comparison,
    LogicFormula,
    all_of,
    any_of,
    implies,
)
from bubbleproof.papers.theorems.theorem import Obligation

PLACE, PERIODS = Symbol("j", False), Symbol("n", False)
HERE = LinearForm(0, 1)
FALSE = any_of()


def at_least(left: LinearForm, right: LinearForm | int) -> LogicFormula:
    """left >= right."""
    return _comparison(left.plus(right, -1), ">=")


def equal(left: LinearForm, right: LinearForm | int) -> LogicFormula:
    """left = right."""
    return _comparison(left.plus(right, -1), "==")


@lru_cache(maxsize=1 << 16)  # neighbours on a rank, ranks and shapes have most of them in common
def _comparison(line: LinearForm, relation: str) -> LogicFormula:
    """The line compared with 0; a number is compared at once."""
    factors = (((), line.base), ((PLACE,), line.per_place), ((PERIODS,), line.per_period))
    formula = Comparison(Polynomial(tuple((m, c) for m, c in factors if c)), relation)
    if line.per_place or line.per_period:
        return formula
    return TRUE if formula.holds({}) else FALSE


NOT_SHORTER = (Comparison(Polynomial.of({(PERIODS,): 1}), ">="),)


def within(place: LinearForm, piece: Piece | Surroundings) -> tuple[LogicFormula, LogicFormula]:
    """The place lies on the piece."""
    return at_least(place, piece.first), at_least(piece.last, place)


@dataclass(frozen=True, slots=True)
class ClassStretch:
    """A class on a stretch of its places: what the rules are about."""

    schedule: PeriodicSchedule
    task: TaskClass
    around: Surroundings

    @property
    def start(self) -> LinearForm:
        return self.task.pieces[self.around.piece].start

    @property
    def neighbours(self) -> Iterator[tuple[TaskClass, Neighbour]]:
        """The classes of the rank, and where they stand."""
        numbers = self.schedule.by_rank[self.task.rank]
        for number, near in zip(numbers, self.around.neighbours, strict=True):
            yield self.schedule.classes[number], near

    @property
    def load(self) -> LinearForm:
        """Units held on the rank once the task has started."""
        load = LinearForm(self.task.acquired)
        for other, near in self.neighbours:
            load = load.plus(near.before, other.acquired - other.released)
        return load


def obligations(schedule: PeriodicSchedule) -> Iterator[Obligation]:
    """All that makes the numbers the left-shifted schedule with its peaks and makespan."""
    shape = schedule.shape
    for rank, numbers in sorted(schedule.by_rank.items()):
        classes = [schedule.classes[k] for k in numbers]
        stretches = [ClassStretch(schedule, task, a) for task in classes for a in task.surroundings]
        yield _obligation(f"{shape}, rank {rank}: cover", _covers(classes))
        for name, rule in _RULES.items():
            goals = tuple(_everywhere(stretches, rule))
            if goals or name not in ("order", "memory"):
                yield _obligation(f"{shape}, rank {rank}: {name}", goals)
        if rank < len(schedule.peaks):
            full = _reached(stretches, schedule.peaks[rank])
            yield _obligation(f"{shape}, rank {rank}: the peak is reached", (full,))
    ends = [
        task.pieces[-1].start.along(task.count.plus(-1)).plus(task.ticks)
        for task in schedule.classes
    ]
    late = (at_least(schedule.makespan, end) for end in ends)
    yield _obligation(f"{shape}: no task ends after the makespan", late)
    latest = max(ends, key=lambda end: (end.per_period, end.base))
    first = min((task.pieces[0].start for task in schedule.classes), key=lambda line: line.base)
    reached = (equal(latest, schedule.makespan), equal(first.along(LinearForm(0)), 0))
    yield _obligation(f"{shape}: the makespan is reached", reached)


def _obligation(name: str, goals: Iterable[LogicFormula]) -> Obligation:
    told = [goal for goal in goals if goal is not TRUE]
    return Obligation(name=name, premises=NOT_SHORTER, goal=all_of(*told))


def _everywhere(
    stretches: list[ClassStretch], rule: Callable[[ClassStretch], Iterator[LogicFormula]]
) -> Iterator[LogicFormula]:
    """The rule for every class and place of the rank."""
    for at in stretches:
        if goals := dict.fromkeys(goal for goal in rule(at) if goal is not TRUE):
            yield implies(all_of(*within(HERE, at.around)), all_of(*goals))


def _covers(classes: list[TaskClass]) -> Iterator[LogicFormula]:
    for task in classes:
        yield from _follow(task.pieces, task.count)
        yield from _follow(task.surroundings, task.count)
        for around in task.surroundings:
            own = task.pieces[around.piece]
            yield implies(all_of(*within(HERE, around)), all_of(*within(HERE, own)))


def _follow(
    pieces: Sequence[Piece] | Sequence[Surroundings], count: LinearForm
) -> Iterator[LogicFormula]:
    """Each piece begins where the one before ends; none is negative, the outer ones not empty."""
    yield equal(pieces[0].first, 0)
    yield equal(pieces[-1].last, count.plus(-1))
    yield at_least(pieces[0].last, pieces[0].first)
    yield at_least(pieces[-1].last, pieces[-1].first)
    bounds = [(piece.first, piece.last) for piece in pieces]
    for (_, last), (first, end) in pairwise(bounds):
        yield equal(first, last.plus(1))
        yield at_least(end, first.plus(-1))


def _waits(at: ClassStretch) -> Iterator[LogicFormula]:
    yield at_least(at.start, 0)
    for given in at.around.inputs:
        other = at.schedule.classes[given.number]
        piece = other.pieces[given.piece]
        yield from within(given.place, piece)
        yield at_least(at.start, piece.start.along(given.place).plus(other.ticks + given.lag))


def _one_at_a_time(at: ClassStretch) -> Iterator[LogicFormula]:
    for other, near in at.neighbours:
        is_own = other is at.task
        if is_own:
            yield equal(near.before, HERE)
        if near.last_piece is None:
            yield equal(near.before, 0)
        else:
            last, piece = near.before.plus(-1), other.pieces[near.last_piece]
            yield from within(last, piece)
            yield at_least(at.start, piece.start.along(last).plus(other.ticks))
        following = near.before.plus(int(is_own))
        if near.next_piece is None:
            yield equal(following, other.count)
        else:
            piece = other.pieces[near.next_piece]
            yield from within(following, piece)
            yield at_least(piece.start.along(following), at.start.plus(at.task.ticks))


def _tight(at: ClassStretch) -> Iterator[LogicFormula]:
    if at.around.held_by is None:
        yield equal(at.start, 0)
        return
    kind, k = at.around.held_by
    if kind == "input":
        given = at.around.inputs[k]
        other, place, lag = at.schedule.classes[given.number], given.place, given.lag
        piece = other.pieces[given.piece]
    else:
        other, near = list(at.neighbours)[k]
        place, lag = near.before.plus(-1), 0
        yield at_least(place, 0)
        piece = other.pieces[near.last_piece or 0]
    yield from within(place, piece)
    yield equal(at.start, piece.start.along(place).plus(other.ticks + lag))


def _order(at: ClassStretch) -> Iterator[LogicFormula]:
    """Of each class, the task before has a lower key and the next one a higher key."""
    if at.task.key is None:
        return
    for other, near in at.neighbours:
        if other.key is None:
            raise ValueError("a published order has a key for every task or for none")
        if near.last_piece is not None:
            last = other.key.along(near.before.plus(-1))
            yield at_least(at.task.key, last.plus(1))
        if near.next_piece is not None:
            following = other.key.along(near.before.plus(int(other is at.task)))
            yield at_least(following, at.task.key.plus(1))


def _memory(at: ClassStretch) -> Iterator[LogicFormula]:
    if at.task.acquired:
        yield at_least(LinearForm(at.schedule.peaks[at.task.rank]), at.load)


_RULES = {
    "waits": _waits,
    "one at a time": _one_at_a_time,
    "tight": _tight,
    "order": _order,
    "memory": _memory,
}


def _reached(stretches: list[ClassStretch], peak: int) -> LogicFormula:
    """Some stretch that is there for every n has the peak's load at its first place."""
    taking = [at for at in stretches if at.task.acquired]
    loads = [(at.around, at.load.along(at.around.first)) for at in taking]
    around, load = max(loads, key=lambda pair: (pair[1].base, -pair[1].per_period))
    return all_of(at_least(around.last, around.first), equal(load, peak))
