"""What differs between two schedules: the actions of only one, on other resources, in other places.

Actions are the same if their text is. On each resource that both use the actions of both are
compared in order: the longest part that stands in the same order in both is kept, and what is left
has *moved* (of several longest parts one is taken). An action whose place is kept may still start
sooner or later.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule

Given = tuple[Problem, Schedule]
Spot = tuple[int, int]  # place in the order of its resource, start
Spots = dict[str, dict[str, Spot]]  # by resource and action


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAction:
    """An action that both have on one resource, in another order; places count from 0."""

    action: str
    resource: str
    place_a: int
    place_b: int
    start_a: int
    start_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElsewhereAction:
    """An action on different resources, joined by ``+`` where it takes several."""

    action: str
    resource_a: str
    resource_b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDifference:
    """How schedule b differs from schedule a.

    ``sooner`` and ``later`` count the actions that start at another tick on the same resource,
    ``common`` those that both have.
    """

    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    elsewhere: tuple[ElsewhereAction, ...]
    moved: tuple[MovedAction, ...]
    sooner: int
    later: int
    common: int

    @property
    def is_none(self) -> bool:
        """Whether the two have the same actions at the same places and starts."""
        lists = (self.only_a, self.only_b, self.elsewhere, self.moved)
        return not any(lists) and self.sooner == self.later == 0


def difference(
    one: tuple[Problem, Schedule], other: tuple[Problem, Schedule]
) -> ScheduleDifference:
    """How the second schedule differs from the first."""
    a, b = spots(*one), spots(*other)
    homes_a, homes_b = _homes(a), _homes(b)
    both = [action for action in homes_a if action in homes_b]
    moved, shifts = _moved(a, b)
    return ScheduleDifference(
        only_a=tuple(action for action in homes_a if action not in homes_b),
        only_b=tuple(action for action in homes_b if action not in homes_a),
        elsewhere=tuple(
            ElsewhereAction(
                action=action,
                resource_a=" + ".join(homes_a[action]),
                resource_b=" + ".join(homes_b[action]),
            )
            for action in both
            if homes_a[action] != homes_b[action]
        ),
        moved=tuple(moved),
        sooner=sum(shift < 0 for shift in shifts.values()),
        later=sum(shift > 0 for shift in shifts.values()),
        common=len(both),
    )


def _moved(a: Spots, b: Spots) -> tuple[list[MovedAction], dict[str, int]]:
    """What stands in another order, and by how many ticks each action starts later in b."""
    moved: list[MovedAction] = []
    shifts: dict[str, int] = {}
    for resource, here in a.items():
        there = b.get(resource, {})
        shared = [action for action in here if action in there]
        stays = _kept([there[action][0] for action in shared])
        for number, action in enumerate(shared):
            (place_a, start_a), (place_b, start_b) = here[action], there[action]
            shifts[action] = start_b - start_a
            if number not in stays:
                moved.append(
                    MovedAction(
                        action=action,
                        resource=resource,
                        place_a=place_a,
                        place_b=place_b,
                        start_a=start_a,
                        start_b=start_b,
                    )
                )
    return moved, shifts


def spots(problem: Problem, schedule: Schedule) -> Spots:
    """By resource and action its place and start; of a repeated action the first row counts."""
    found: Spots = {}
    program = schedule.program
    rows = zip(program.resource.tolist(), program.actions, schedule.start.tolist(), strict=True)
    for resource, action, start in rows:
        here = found.setdefault(problem.resource_name(resource), {})
        here.setdefault(str(action), (len(here), start))
    return found


def _homes(found: Spots) -> dict[str, list[str]]:
    homes: dict[str, list[str]] = {}
    for resource, here in found.items():
        for action in here:
            homes.setdefault(action, []).append(resource)
    return homes


def _kept(numbers: list[int]) -> set[int]:
    """The indices of a longest rising part.

    >>> sorted(_kept([0, 3, 1, 2, 4]))
    [0, 2, 3, 4]
    """
    ends: list[int] = []  # the last number of the best part of each length
    at: list[int] = []  # its index
    before: list[int] = []
    for index, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        at[length : length + 1] = [index]
    kept: set[int] = set()
    index = at[-1] if at else -1
    while index >= 0:
        kept.add(index)
        index = before[index]
    return kept
