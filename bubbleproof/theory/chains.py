"""What each microbatch does to a store, change by change.

The events of one (stage, slice, microbatch) on a store that ``theory.index_order`` recognises form
a *chain*: they happen in one order, and the level they leave is known after each.
"""

from __future__ import annotations

from bubbleproof.theory.index_order import IndexOrder
from bubbleproof.theory.problem import Problem

Moment = tuple[int, bool]  # task, whether at its end
Chain = list[tuple[Moment, int]]  # what happens, in order, and the level (units) after it


def chains(problem: Problem, order: IndexOrder | None) -> dict[int, list[Chain]]:
    """The chains of each recognised store with a capacity, by store; ``order`` is the problem's."""
    events, actions = problem.events, problem.actions
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
    for (store, *_), chain in sorted(changes.items()):
        level, levels = 0, []
        for (_, at_end, task), delta in sorted(chain.items()):
            level += delta
            levels.append(((task, at_end), level))
        found.setdefault(store, []).append(levels)
    return found
