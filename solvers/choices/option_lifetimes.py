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
from functools import cached_property, reduce
from itertools import combinations
from operator import and_

import numpy as np

from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.memory_rules import Lifetime, Sample, paired_lifetimes, sample_of
from bubbleproof.theory.model.actions import NONE

MOST_OPTIONS = 4  # of one group: 16 sets of options at most
OptionChange = tuple[int, bool, int, int]  # task, at its end?, delta, option
Edge = tuple[int, int, int]  # before, after, option


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


class OptionLifetimes:
    """The lifetimes of variants; what every group looks up is listed once."""

    def __init__(self, variants: Variants) -> None:
        self.variants = variants
        self.rivals = {
            frozenset(two) for clash in variants.clashes for two in combinations(clash, 2)
        }

    @cached_property
    def _sample(self) -> list[Sample]:
        whole = self.variants.whole
        return [sample_of(whole, task) for task in range(whole.num_tasks)]

    @cached_property
    def _tasks(self) -> dict[Sample, list[int]]:
        found: dict[Sample, list[int]] = {}
        for task, sample in enumerate(self._sample):
            found.setdefault(sample, []).append(task)
        return found

    @cached_property
    def _edges(self) -> dict[Sample, list[Edge]]:
        """The precedences within each sample, those with a negative lag aside."""
        edges, found = self.variants.whole.edges, dict[Sample, list[Edge]]()
        columns = edges.before, edges.after, edges.lag, self.variants.edge_option
        for before, after, lag, option in zip(*(c.tolist() for c in columns), strict=True):
            if lag >= 0 and self._sample[before] == self._sample[after]:
                found.setdefault(self._sample[before], []).append((before, after, option))
        return found

    def of(self, stores: tuple[int, ...]) -> tuple[OptionalLifetime, ...] | None:
        """The joint load of the stores above their base; None where it is no sum of lifetimes.

        Parameters
        ----------
        stores
            Indices of stores.
        """
        found: list[OptionalLifetime] = []
        for sample, changes in self._changes(stores).items():
            lifetimes = self._of_group(sample, changes)
            if lifetimes is None:
                return None
            found += lifetimes
        return tuple(found)

    def _changes(self, stores: tuple[int, ...]) -> dict[Sample, list[OptionChange]]:
        events, event_option = self.variants.whole.events, self.variants.event_option
        sums: Counter[tuple[int, bool, int]] = Counter()
        for row in np.flatnonzero(np.isin(events.store, stores)).tolist():
            key = (int(events.task[row]), bool(events.at_end[row]), int(event_option[row]))
            sums[key] += int(events.delta[row])
        found: dict[Sample, list[OptionChange]] = {}
        for (task, at_end, option), delta in sums.items():
            if delta:
                change = (task, at_end, delta, option)
                found.setdefault(self._sample[task], []).append(change)
        return found

    def _of_group(
        self, sample: Sample, changes: list[OptionChange]
    ) -> list[OptionalLifetime] | None:
        involved = sorted({option for *_, option in changes} - {NONE})
        if len(involved) > MOST_OPTIONS:
            return None
        by_set: dict[tuple[int, ...], Counter[Lifetime]] = {}
        for taken in self._sets(involved):
            there = [change[:3] for change in changes if change[3] in (NONE, *taken)]
            paired = paired_lifetimes(there, self._behind(sample, taken), newest_first=True)
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

    def _sets(self, involved: list[int]) -> Iterator[tuple[int, ...]]:
        for size in range(len(involved) + 1):
            for taken in combinations(involved, size):
                if not any(frozenset(two) in self.rivals for two in combinations(taken, 2)):
                    yield taken

    def _behind(self, sample: Sample, taken: tuple[int, ...]) -> dict[int, set[int]]:
        """For each task those of the sample that must start after it ends, by paths among them."""
        tasks = self._tasks[sample]
        behind: dict[int, set[int]] = {task: set() for task in tasks}
        for before, after, option in self._edges.get(sample, ()):
            if option in (NONE, *taken):
                behind[before].add(after)
        for through in tasks:
            for reached in behind.values():
                if through in reached:
                    reached |= behind[through]
        return behind
