"""The load of stores as lifetimes, some of which depend on which options are taken.

A lifetime lasts from the start of one task to the end of a later one. Changes are grouped by
(stage, microbatch, slice). For each set of options that touch a group and may be taken together,
the tasks that are then there are put in the order that precedences among them force, and what is
given back at an end closes the lifetimes begun last. Pairing the last one first leaves the
lifetimes of computation as they are when options move load between the stores that are added up.

A lifetime that stands for all those sets is unconditional; the others are active for their set
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_

import numpy as np

from bubbleproof.solvers.memory_rules import Lifetime, Sample, paired_lifetimes, sample_of
from bubbleproof.solvers.variants import Variants
from bubbleproof.theory.model.actions import NONE

MOST_OPTIONS = 4  # of one group: 16 sets of options at most
Change = tuple[int, bool, int, int]  # task, at its end?, delta, option


@dataclass(frozen=True, slots=True)
class OptionalLifetime:
    """``amount`` units from the start of ``first`` to the end of ``last``.

    It is there where all options of ``taken`` are and none of ``left``.
    """

    first: int
    last: int
    amount: int
    taken: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


def optional_lifetimes(
    variants: Variants, stores: tuple[int, ...]
) -> tuple[OptionalLifetime, ...] | None:
    """The joint load of the stores above their base; None where it is no sum of lifetimes."""
    found: list[OptionalLifetime] = []
    members = _tasks_by_sample(variants)
    for sample, changes in _changes_by_sample(variants, stores).items():
        lifetimes = _lifetimes_of_group(variants, members[sample], changes)
        if lifetimes is None:
            return None
        found += lifetimes
    return tuple(found)


def _tasks_by_sample(variants: Variants) -> dict[Sample, list[int]]:
    found: dict[Sample, list[int]] = {}
    for task in range(variants.whole.num_tasks):
        found.setdefault(sample_of(variants.whole, task), []).append(task)
    return found


def _changes_by_sample(variants: Variants, stores: tuple[int, ...]) -> dict[Sample, list[Change]]:
    events = variants.whole.events
    sums: Counter[tuple[int, bool, int]] = Counter()
    for row in np.flatnonzero(np.isin(events.store, stores)).tolist():
        key = (int(events.task[row]), bool(events.at_end[row]), int(variants.event_option[row]))
        sums[key] += int(events.delta[row])
    found: dict[Sample, list[Change]] = {}
    for (task, at_end, option), delta in sums.items():
        if delta:
            found.setdefault(sample_of(variants.whole, task), []).append(
                (task, at_end, delta, option)
            )
    return found


def _lifetimes_of_group(
    variants: Variants, tasks: list[int], changes: list[Change]
) -> list[OptionalLifetime] | None:
    involved = sorted({option for *_, option in changes} - {NONE})
    if len(involved) > MOST_OPTIONS:
        return None
    by_set: dict[tuple[int, ...], Counter[Lifetime]] = {}
    for taken in _sets(variants, involved):
        there = [change[:3] for change in changes if change[3] in (NONE, *taken)]
        paired = paired_lifetimes(there, _behind(variants, tasks, taken), newest_first=True)
        if paired is None:
            return None
        by_set[taken] = Counter(paired)
    always = reduce(and_, by_set.values())  # the empty set of options may always be taken
    lifetimes = [
        OptionalLifetime(lifetime.first, lifetime.last, lifetime.amount)
        for lifetime in always.elements()
    ]
    for taken, found in by_set.items():
        left = tuple(option for option in involved if option not in taken)
        lifetimes += [
            OptionalLifetime(lifetime.first, lifetime.last, lifetime.amount, taken, left)
            for lifetime in (found - always).elements()
        ]
    return lifetimes


def _sets(variants: Variants, involved: list[int]) -> Iterator[tuple[int, ...]]:
    rivals = {frozenset(pair) for clash in variants.clashes for pair in combinations(clash, 2)}
    for size in range(len(involved) + 1):
        for taken in combinations(involved, size):
            if not any(frozenset(pair) in rivals for pair in combinations(taken, 2)):
                yield taken


def _behind(variants: Variants, tasks: list[int], taken: tuple[int, ...]) -> dict[int, set[int]]:
    """For each task those of the sample that must start after it ends, by paths among them."""
    edges, option = variants.whole.edges, variants.edge_option
    rows = np.flatnonzero(np.isin(edges.before, tasks) & np.isin(edges.after, tasks))
    after: dict[int, set[int]] = {task: set() for task in tasks}
    for row in rows.tolist():
        if edges.lag[row] >= 0 and option[row] in (NONE, *taken):
            after[int(edges.before[row])].add(int(edges.after[row]))
    for through in tasks:
        for reached in after.values():
            if through in reached:
                reached |= after[through]
    return after
