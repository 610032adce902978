"""What a store must hold at least at the moment a task starts.

The events of one (stage, slice, microbatch) on a store that ``theory.index_order`` recognises form
a chain: they happen in one order, and the level they leave is known after each. At any moment some
are over for sure and others perhaps, so the chain holds at least the least level in between.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.theory.index_order import index_order
from bubbleproof.theory.problem import Problem

IMPOSSIBLE = 1 << 64  # units; all loads of a problem add up to less than 2**60
Moment = tuple[int, bool]  # task, whether at its end
Chain = list[tuple[Moment, int]]  # what happens, in order, and the level after it


def chains(problem: Problem) -> dict[int, list[Chain]]:
    """The chains of each recognised store with a capacity, by store."""
    order, events, actions = index_order(problem), problem.events, problem.actions
    known = {life.store for life in order.lifecycles} if order is not None else set()
    changes: dict[tuple[int, ...], dict[tuple[int, bool, int], int]] = {}
    for task, at_end, store, delta in zip(
        events.task.tolist(), events.at_end.tolist(), events.store.tolist(),
        events.delta.tolist(), strict=True,
    ):  # fmt: skip
        if store in known and problem.stores[store].capacity is not None:
            owner = (actions.stage[task], actions.slice[task], actions.microbatch[task])
            chain = changes.setdefault((store, *map(int, owner)), {})
            moment = (int(actions.kind[task]), at_end, task)  # F < B < I < W, starts before ends
            chain[moment] = chain.get(moment, 0) + delta
    found: dict[int, list[Chain]] = {}
    for (store, *_), chain in changes.items():
        level, levels = 0, []
        for (_, at_end, task), delta in sorted(chain.items()):
            level += delta
            levels.append(((task, at_end), level))
        found.setdefault(store, []).append(levels)
    return found


def least_level(
    chain: Chain, is_over: Callable[[Moment], bool], may_be_over: Callable[[Moment], bool]
) -> int:
    """The least level after a prefix of the chain that holds all that is over and may be over.

    ``IMPOSSIBLE`` where something is over that cannot be.
    """
    levels, is_blocked = [0], False
    for moment, level in chain:
        is_blocked = is_blocked or not may_be_over(moment)
        if is_over(moment):
            if is_blocked:
                return IMPOSSIBLE
            levels = [level]
        elif not is_blocked:
            levels.append(level)
    return min(levels)
