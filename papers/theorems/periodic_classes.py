"""The classes of a family's schedule: what differs by microbatch alone, and the rules of each.

A class is a kind, stage, slice (and part, direction, partner stage) and a remainder of the
microbatch. Where not every microbatch has such a task (DualPipe runs some forwards alone and the
others together with a backward), each unbroken run of microbatches is a class of its own. Tasks of
a class are numbered by place, 0, 1, ... in the order of their microbatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.pipelines.placement import num_downward

Value = TypeVar("Value")
BareKey = tuple[int, int, int, int, int, int, int]
"""kind, stage, slice, part, direction, remainder, stage of the partner."""
ClassKey = tuple[int, int, int, int, int, int, int, int]
"""The same, and the run."""


def class_keys(found: FamilyMember, repeats: int) -> list[tuple[ClassKey, int]]:
    """(class, place) of every task; one that belongs to a stage alone is a class by itself."""
    actions, m = found.problem.actions, found.pipeline.num_microbatches
    half = num_downward(m) if found.pipeline.is_bidirectional else m
    columns = (
        actions.kind,
        actions.stage,
        actions.slice,
        actions.part,
        actions.partner_stage,
        actions.microbatch,
    )
    numbered = []
    for kind, stage, slice_, part, partner, microbatch in zip(
        *(c.tolist() for c in columns), strict=True
    ):
        upward = int(microbatch >= half)
        number, remainder = divmod(microbatch - upward * half, repeats)
        numbered.append(((kind, stage, slice_, part, upward, remainder, partner), number))
    placed = _places(numbered)
    return [((*key, placed[key, number][0]), placed[key, number][1]) for key, number in numbered]


def _places(numbered: list[tuple[BareKey, int]]) -> dict[tuple[BareKey, int], tuple[int, int]]:
    """(run, place in it) of every number of a class."""
    found: dict[tuple[BareKey, int], tuple[int, int]] = {}
    for key, group in groupby(sorted(numbered), itemgetter(0)):
        counted = enumerate(number for _, number in group)
        runs = groupby(counted, lambda pair: pair[1] - pair[0])  # which grows where one is missing
        for run, (_, pairs) in enumerate(runs):
            for place, (_, number) in enumerate(pairs):
                found[key, number] = run, place
    return found


def starts_of(found: FamilyMember, repeats: int) -> dict[ClassKey, list[int]]:
    """The starts of every class by place."""
    task = found.problem.locate(found.schedule.program.actions)
    start = dict(zip(task.tolist(), found.schedule.start.tolist(), strict=True))
    places: dict[ClassKey, dict[int, int]] = {}
    for number, (key, place) in enumerate(class_keys(found, repeats)):
        places.setdefault(key, {})[place] = start[number]
    return {key: [row[place] for place in range(len(row))] for key, row in places.items()}


def name_of(key: ClassKey) -> str:
    """``F of stage 2``, with what else tells the class apart."""
    kind, stage, slice_, part, upward, remainder, partner, run = key
    more = (
        ("with B of stage", partner, partner != NONE),
        ("slice", slice_, slice_ > 0),
        ("part", part, part != NONE),
        ("direction", upward, upward > 0),
        ("remainder", remainder, remainder > 0),
        ("run", run, run > 0),
    )
    extra = "".join(f", {word} {value}" for word, value, told in more if told)
    return f"{Kind(kind).name} of stage {stage}{extra}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the problem says: (class, place, lag) that each task waits for (of several places of a
    class the last, which ends last), and of each class its ticks, rank and memory."""

    inputs: dict[tuple[ClassKey, int], tuple[tuple[ClassKey, int, int], ...]]
    ticks: dict[ClassKey, int]
    rank: dict[ClassKey, int]
    acquired: dict[ClassKey, int]
    released: dict[ClassKey, int]


def rules_of(found: FamilyMember, repeats: int) -> Rules:
    """The rules by class.

    Raises ``ValueError`` where they differ between places, and for a task on several resources.
    """
    problem, keys = found.problem, class_keys(found, repeats)
    if len(problem.occupancy.task) != problem.num_tasks:
        raise ValueError("every task must run on one resource")
    ranks: list[int] = problem.occupancy.resource.tolist()
    at_start, at_end = [0] * len(keys), [0] * len(keys)
    events, edges = problem.events, problem.edges
    columns = (events.task, events.at_end, events.store, events.delta)
    for task, ends, store, delta in zip(*(c.tolist() for c in columns), strict=True):
        if store != ranks[task] or (delta > 0) is ends:
            raise ValueError("tasks must acquire at their start and release at their end")
        (at_end if ends else at_start)[task] += delta
    inputs: dict[tuple[ClassKey, int], dict[tuple[ClassKey, int], int]] = {key: {} for key in keys}
    for before, after, lag in zip(
        *(c.tolist() for c in (edges.before, edges.after, edges.lag)), strict=True
    ):
        key, place = keys[before]
        waits = inputs[keys[after]]
        waits[key, lag] = max(place, waits.get((key, lag), 0))
    return Rules(
        inputs={
            task: tuple(sorted((key, place, lag) for (key, lag), place in waits.items()))
            for task, waits in inputs.items()
        },
        ticks=_by_class(keys, problem.duration.tolist()),
        rank=_by_class(keys, ranks),
        acquired=_by_class(keys, at_start),
        released=_by_class(keys, [-delta for delta in at_end]),
    )


def _by_class(keys: list[tuple[ClassKey, int]], values: Sequence[Value]) -> dict[ClassKey, Value]:
    """The value of each class. Raises ``ValueError`` where a class has several."""
    found: dict[ClassKey, Value] = {}
    for (key, _), value in zip(keys, values, strict=True):
        if found.setdefault(key, value) != value:
            raise ValueError(f"the rules of {name_of(key)} differ between microbatches")
    return found
