"""Variants from their rows alone: every choice there is, and the floor that the rows make.

What a schedule of any choice must obey is the problem of the tasks that are always there, with

- each store that no option touches;
- for stores between which options move load (``pools``), one store of their joint capacity: a
  transfer in flight counts on both, so moving never lowers the joint load. It is there only where
  what is always there never takes it below 0 (options might then be what keeps it above);
- where some option does lower it, and for any other store that options touch, nothing: they may
  make room, and they may bring what others release.

``verify.candidates.relaxation`` says the same of a pipeline's options, but that options that move
nothing touch a store there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import MemoryEvents, Problem


def with_floor(**columns: Any) -> Variants:
    """The variants of rows, with the floor that they make."""
    made = Variants(floor=columns["whole"], **columns)
    return replace(made, floor=derived_floor(made))


def choices_of(variants: Variants) -> Iterator[tuple[int, ...]]:
    """Every set of options that may be taken, 2**options at most."""
    for size in range(len(variants.options) + 1):
        for chosen in combinations(range(len(variants.options)), size):
            if all(len(set(clash) & set(chosen)) < 2 for clash in variants.clashes):
                yield chosen


def derived_floor(variants: Variants) -> Problem:
    """What holds whatever is chosen, by the rows."""
    plain = variants.plain
    stores, events = list(plain.stores), plain.events
    into = np.arange(len(stores))
    joint = {store for pool in variants.safe_pools for store in pool}
    for number in variants.touched:
        stores[number] = replace(stores[number], capacity=None)
        if number not in joint:
            into[number] = NONE
    for pool in variants.safe_pools:
        whole = [plain.stores[store] for store in pool]
        stores[pool[0]] = replace(
            whole[0],
            name=" and ".join(store.name for store in whole),
            base=sum(store.base for store in whole),
            capacity=sum(store.capacity or 0 for store in whole),
        )
        into[list(pool)] = pool[0]
    kept = into[events.store] != NONE
    changes = MemoryEvents(
        task=events.task[kept],
        at_end=events.at_end[kept],
        store=into[events.store[kept]],
        delta=events.delta[kept],
    )
    return replace(plain, stores=tuple(stores), events=changes)
