"""Periodic schedules read off two schedules of a family, one period apart; nothing is trusted here.

``fitted`` takes the family's left-shifted schedules at m and m + step microbatches. Every class
must have the same starts in both up to the middle, and from there on starts that lie one period
later; the middle is the piece that grows. Pieces and surroundings are then made as long as they can
be, and n is counted from the least m for which no growing piece is negative. What does not repeat
in this way raises ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bubbleproof.theorems.periodic_keys import Keys
from bubbleproof.theorems.periodic_schedule import (
    Holder,
    Line,
    Neighbour,
    PeriodicSchedule,
    Piece,
    Surroundings,
    TaskClass,
)
from bubbleproof.theorems.periodic_stretches import Point, stretches
from bubbleproof.theory.actions import NONE, Kind
from bubbleproof.theory.families.family import FamilyMember
from bubbleproof.theory.placement import num_downward
from bubbleproof.theory.problem import Problem

Value = TypeVar("Value")
Key = tuple[int, int, int, int, int, int]  # kind, stage, slice, part, direction, remainder


def class_keys(found: FamilyMember, repeats: int) -> list[tuple[Key, int]]:
    """(class, place) of every task: microbatch repeats * place + remainder of its direction."""
    actions, m = found.problem.actions, found.pipeline.num_microbatches
    if (actions.partner_stage != NONE).any() or (actions.microbatch == NONE).any():
        raise ValueError("every task must be of one stage and one microbatch")
    half = num_downward(m) if found.pipeline.is_bidirectional else m
    columns = (actions.kind, actions.stage, actions.slice, actions.part, actions.microbatch)
    keys = []
    for kind, stage, slice_, part, microbatch in zip(*(c.tolist() for c in columns), strict=True):
        upward = int(microbatch >= half)
        place, remainder = divmod(microbatch - upward * half, repeats)
        keys.append(((kind, stage, slice_, part, upward, remainder), place))
    return keys


def starts_of(found: FamilyMember, repeats: int) -> dict[Key, list[int]]:
    """The starts of every class by place."""
    task = found.problem.locate(found.schedule.program.actions)
    start = dict(zip(task.tolist(), found.schedule.start.tolist(), strict=True))
    places: dict[Key, dict[int, int]] = {}
    for number, (key, place) in enumerate(class_keys(found, repeats)):
        places.setdefault(key, {})[place] = start[number]
    for key, row in places.items():
        if sorted(row) != list(range(len(row))):
            raise ValueError(f"class {name_of(key)} lacks some of its microbatches")
    return {key: [row[place] for place in range(len(row))] for key, row in places.items()}


def name_of(key: Key) -> str:
    """``F of stage 2``, with what else tells the class apart."""
    kind, stage, slice_, part, upward, remainder = key
    more = (
        ("slice", slice_, slice_ > 0),
        ("part", part, part != NONE),
        ("direction", upward, upward > 0),
        ("remainder", remainder, remainder > 0),
    )
    extra = "".join(f", {word} {value}" for word, value, told in more if told)
    return f"{Kind(kind).name} of stage {stage}{extra}"


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the problem says about each class: inputs with lags, ticks, rank, memory."""

    inputs: dict[Key, tuple[tuple[Key, int], ...]]
    ticks: dict[Key, int]
    rank: dict[Key, int]
    acquired: dict[Key, int]
    released: dict[Key, int]


def rules_of(found: FamilyMember, repeats: int) -> _Rules:
    """The rules by class. Raises ``ValueError`` where they differ between places."""
    problem, keys = found.problem, class_keys(found, repeats)
    inputs = _inputs(problem, keys)
    ranks = problem.rank_of_task.tolist()
    at_start, at_end = [0] * len(keys), [0] * len(keys)
    events = problem.events
    columns = (events.task, events.at_end, events.store, events.delta)
    for task, ends, store, delta in zip(*(c.tolist() for c in columns), strict=True):
        if store != ranks[task] or (delta > 0) is ends:
            raise ValueError("tasks must acquire at their start and release at their end")
        (at_end if ends else at_start)[task] += delta
    return _Rules(
        inputs=inputs,
        ticks=_by_class(keys, problem.duration.tolist()),
        rank=_by_class(keys, ranks),
        acquired=_by_class(keys, at_start),
        released=_by_class(keys, [-delta for delta in at_end]),
    )


def _inputs(
    problem: Problem, keys: list[tuple[Key, int]]
) -> dict[Key, tuple[tuple[Key, int], ...]]:
    found: dict[int, set[tuple[Key, int]]] = {task: set() for task in range(len(keys))}
    edges = problem.edges
    columns = (edges.before.tolist(), edges.after.tolist(), edges.lag.tolist())
    for before, after, lag in zip(*columns, strict=True):
        if keys[before][1] != keys[after][1]:
            raise ValueError("a task must wait for tasks of its own place alone")
        found[after].add((keys[before][0], lag))
    rows = [tuple(sorted(found[task])) for task in range(len(keys))]
    return _by_class(keys, rows)


def _by_class(keys: list[tuple[Key, int]], values: Sequence[Value]) -> dict[Key, Value]:
    """The value of each class. Raises ``ValueError`` where a class has several."""
    found: dict[Key, Value] = {}
    for (key, _), value in zip(keys, values, strict=True):
        if found.setdefault(key, value) != value:
            raise ValueError(f"the rules of {name_of(key)} differ between microbatches")
    return found


def fitted(
    member_of: Callable[[int], FamilyMember],
    *,
    shape: str,
    size: int,
    repeats: int,
    keys: Keys | None = None,
) -> PeriodicSchedule:
    """The periodic schedule of ``member_of(m)``, read off at m = ``size`` and one period later."""
    found = member_of(size)
    step = repeats * (2 if found.pipeline.is_bidirectional else 1)
    rows, longer = starts_of(found, repeats), starts_of(member_of(size + step), repeats)
    period = period_of(rows, longer)
    rules = rules_of(found, repeats)
    sample = _Sample.of(rows, period, rules)
    classes = sample.classes(keys)
    bounds = [
        (part.first, part.last)
        for task in classes
        for parts in (task.pieces, task.surroundings)
        for part in parts
    ]
    grown = [end.base - first.base for first, end in bounds if end.per_period > first.per_period]
    spare = min(grown) + 1
    spare = max(0, min(spare, (size - 1) // step))
    makespan = max(row[-1] + task.ticks for row, task in zip(sample.rows, classes, strict=True))
    return PeriodicSchedule(
        shape=shape,
        least=size - step * spare,
        step=step,
        classes=tuple(_recounted(task, spare) for task in classes),
        makespan=Line(makespan, 0, period).from_period(spare),
        peaks=sample.peaks(),
    )


def period_of(rows: dict[Key, list[int]], longer: dict[Key, list[int]]) -> int:
    """Ticks per period, the same for all classes. Raises ``ValueError`` where there are none."""
    periods = set()
    for key, row in rows.items():
        late, middle = longer[key], len(row) // 2
        if len(late) != len(row) + 1 or late[: middle + 1] != row[: middle + 1]:
            raise ValueError(f"{name_of(key)} starts otherwise at the front when m grows")
        periods |= {b - a for a, b in zip(row[middle:], late[middle + 1 :], strict=True)}
    if len(periods) != 1:
        raise ValueError(f"the back moves by {sorted(periods)[:5]} ticks, not by one period")
    return periods.pop()


def _recounted(task: TaskClass, spare: int) -> TaskClass:
    """The class with n counted from ``spare`` periods earlier on."""

    def earlier(line: Line) -> Line:
        return line.from_period(spare)

    return replace(
        task,
        count=earlier(task.count),
        pieces=tuple(
            Piece(earlier(a.first), earlier(a.last), earlier(a.start)) for a in task.pieces
        ),
        surroundings=tuple(
            replace(
                around,
                first=earlier(around.first),
                last=earlier(around.last),
                neighbours=tuple(
                    replace(near, before=earlier(near.before)) for near in around.neighbours
                ),
            )
            for around in task.surroundings
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """One schedule by classes, ordered by rank; n = 0 there.

    ``rows[k][j]`` is the start of class k at place j; ``before[k][j]`` says of each class of the
    rank how many of its tasks come before.
    """

    keys: list[Key]
    rows: list[list[int]]
    period: int
    rules: _Rules
    before: list[list[tuple[int, ...]]]
    on_rank: dict[int, list[int]]

    @classmethod
    def of(cls, rows: dict[Key, list[int]], period: int, rules: _Rules) -> _Sample:
        keys = sorted(rows, key=lambda key: (rules.rank[key], key))
        by_number = [rows[key] for key in keys]
        on_rank: dict[int, list[int]] = {}
        for number, key in enumerate(keys):
            on_rank.setdefault(rules.rank[key], []).append(number)
        return cls(
            keys=keys,
            rows=by_number,
            period=period,
            rules=rules,
            before=counts_before(on_rank, by_number),
            on_rank=on_rank,
        )

    def classes(self, keys: Keys | None) -> list[TaskClass]:
        number = {key: k for k, key in enumerate(self.keys)}
        pieces = [self._pieces(row) for row in self.rows]
        rules = self.rules
        inputs = [
            tuple((number[other], lag) for other, lag in rules.inputs[key]) for key in self.keys
        ]
        at = [_piece_numbers(parts) for parts in pieces]
        return [
            TaskClass(
                name=name_of(key),
                rank=rules.rank[key],
                ticks=rules.ticks[key],
                count=Line(len(self.rows[k]), 0, 1),
                pieces=pieces[k],
                inputs=inputs[k],
                acquired=rules.acquired[key],
                released=rules.released[key],
                surroundings=self._surroundings(k, inputs[k], at),
                key=keys(Kind(key[0]), key[1], key[5]) if keys else None,
            )
            for k, key in enumerate(self.keys)
        ]

    def _pieces(self, row: list[int]) -> tuple[Piece, ...]:
        points = [Point((), frozenset({None}), (start,)) for start in row]
        return tuple(
            Piece(part.first, part.last, part.lines[0])
            for part in stretches(points, (self.period,))
        )

    def _surroundings(
        self, number: int, inputs: tuple[tuple[int, int], ...], at: list[list[int]]
    ) -> tuple[Surroundings, ...]:
        near = self.on_rank[self.rules.rank[self.keys[number]]]
        points = []
        for j, before in enumerate(self.before[number]):
            tags = [at[number][j], *(at[k][j] for k, _ in inputs)]
            for k, count in zip(near, before, strict=True):
                following = count + (k == number)
                tags.append(at[k][count - 1] if count else NONE)
                tags.append(at[k][following] if following < len(at[k]) else NONE)
            points.append(Point(tuple(tags), self._holders(number, j, inputs, near), before))
        found = []
        for part in stretches(points, (1,) * len(near)):
            own, *others = part.tags
            around = others[len(inputs) :]
            found.append(
                Surroundings(
                    first=part.first,
                    last=part.last,
                    piece=own,
                    inputs=tuple(others[: len(inputs)]),
                    neighbours=tuple(
                        Neighbour(line, _number(around[2 * k]), _number(around[2 * k + 1]))
                        for k, line in enumerate(part.lines)
                    ),
                    held_by=part.option,
                )
            )
        return tuple(found)

    def _holders(
        self, number: int, place: int, inputs: tuple[tuple[int, int], ...], near: list[int]
    ) -> frozenset[Holder]:
        """What the task waits for to the tick: tick 0, an input, or a task before it."""
        start, ticks = self.rows[number][place], self.rules.ticks
        found: set[Holder] = set() if start else {None}
        for k, (other, lag) in enumerate(inputs):
            if self.rows[other][place] + ticks[self.keys[other]] + lag == start:
                found.add(("input", k))
        for k, (other, count) in enumerate(zip(near, self.before[number][place], strict=True)):
            if count and self.rows[other][count - 1] + ticks[self.keys[other]] == start:
                found.add(("rank", k))
        if not found:
            raise ValueError(f"{name_of(self.keys[number])} at place {place} starts late")
        return frozenset(found)

    def peaks(self) -> tuple[int, ...]:
        """The most units that each rank holds."""
        rules, top = self.rules, dict.fromkeys(self.rules.rank.values(), 0)
        for number, key in enumerate(self.keys):
            classes = [self.keys[k] for k in self.on_rank[rules.rank[key]]]
            for before in self.before[number]:
                load = sum(
                    count * (rules.acquired[other] - rules.released[other])
                    for other, count in zip(classes, before, strict=True)
                )
                rank = rules.rank[key]
                top[rank] = max(top[rank], load + rules.acquired[key])
        return tuple(top[rank] for rank in sorted(top))


def counts_before(
    on_rank: dict[int, list[int]], rows: list[list[int]]
) -> list[list[tuple[int, ...]]]:
    """For every class and place, how many tasks of each class of its rank start before."""
    found: list[list[tuple[int, ...]]] = [[] for _ in rows]
    for near in on_rank.values():
        done = dict.fromkeys(near, 0)
        for _, number in sorted((start, k) for k in near for start in rows[k]):
            found[number].append(tuple(done.values()))
            done[number] += 1
    return found


def _number(tag: int) -> int | None:
    return None if tag == NONE else tag


def _piece_numbers(pieces: tuple[Piece, ...]) -> list[int]:
    """The number of the piece of each place, at n = 0."""
    return [
        number
        for number, piece in enumerate(pieces)
        for _ in range(piece.first.base, piece.last.base + 1)
    ]
