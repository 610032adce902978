"""Rule 5: does every store stay within its capacity, after all changes of every instant?"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Breaches, Rows

NO_LIMIT = int(np.iinfo(np.int64).max)


def memory(rows: Rows) -> list[Breaches]:
    """Rule 5: base loads above the capacity, and instants that leave a load below 0 or above it."""
    problem = rows.problem
    task = np.flatnonzero(rows.present)
    profile = memory_profile(problem, task, rows.start[task])
    limit = np.array(
        [NO_LIMIT if s.capacity is None else min(s.capacity, NO_LIMIT) for s in problem.stores],
        dtype=np.int64,
    )
    base = np.array([store.base for store in problem.stores], dtype=np.int64)
    is_wrong = (profile.level > limit[profile.store]) | (profile.level < 0)
    wrong = np.flatnonzero(is_wrong & profile.is_settled)
    full = np.flatnonzero(base > limit)

    def overfull(number: int) -> Finding:
        return Finding(Rule.MEMORY, (), None, int(full[number]))

    def instant(number: int) -> Finding:
        store, time = profile.store[wrong[number]], profile.time[wrong[number]]
        changes = profile.event[(profile.store == store) & (profile.time == time)]
        tasks = {rows.name(task) for task in problem.events.task[changes].tolist()}
        return Finding(Rule.MEMORY, tuple(sorted(tasks)), int(time), int(store))

    first_of_each_store = np.unique(profile.store[wrong], return_index=True)[1]
    return [
        Breaches(len(full), overfull),
        Breaches(len(wrong), instant, first_of_each_store.tolist()),
    ]
