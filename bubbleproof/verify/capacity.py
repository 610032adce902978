"""Rule 5: does every store stay within its capacity, at every instant?"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.rows import SHOWN, Rows, finding
from bubbleproof.verify.verdict import Finding, Rule, Violation

LIVE_SHOWN = 12
NO_LIMIT = int(np.iinfo(np.int64).max)


def memory(rows: Rows) -> Finding:
    problem = rows.problem
    task = np.flatnonzero(rows.present)
    profile = memory_profile(problem, task, rows.start[task])
    limit = np.array(
        [NO_LIMIT if s.capacity is None else min(s.capacity, NO_LIMIT) for s in problem.stores],
        dtype=np.int64,
    )
    base = np.array([store.base for store in problem.stores], dtype=np.int64)
    wrong = np.flatnonzero(
        (profile.level > limit[profile.store]) | ((profile.level < 0) & profile.is_settled)
    )
    full = np.flatnonzero(base > limit)
    violations = [
        Violation(
            rule=Rule.MEMORY,
            tasks=(),
            at=None,
            message=f"{problem.stores[s].name}: the base load {base[s]} exceeds the capacity "
            f"{limit[s]} {problem.memory_unit}",
        )
        for s in full[:SHOWN].tolist()
    ]
    first_per_store = wrong[np.unique(profile.store[wrong], return_index=True)[1]]
    for at in first_per_store[:SHOWN].tolist():
        store, level = int(profile.store[at]), int(profile.level[at])
        culprit = int(problem.events.task[profile.event[at]])
        happened = profile.event[: at + 1][profile.store[: at + 1] == store]
        message = (
            f"{problem.stores[store].name} holds {level} at {profile.time[at]}, when "
            f"{rows.name(culprit)} runs; {_bound(problem, store, level)}; "
            f"live: {_live(rows, happened)}"
        )
        violations.append(
            rows.violation(Rule.MEMORY, message, rows.rows_of(culprit), int(profile.time[at]))
        )
    return finding(Rule.MEMORY, len(wrong) + len(full), violations)


def _bound(problem: Problem, store: int, level: int) -> str:
    capacity = problem.stores[store].capacity
    if level < 0:
        return "a load cannot fall below 0: something is released before it is acquired"
    return f"its capacity is {capacity} {problem.memory_unit}"


def _live(rows: Rows, happened: Ints) -> str:
    """What the store holds after the given events: net change per (stage, microbatch, slice)."""
    events, actions = rows.problem.events, rows.problem.actions
    held: dict[tuple[int, int, int], int] = {}
    for event in happened.tolist():
        task = int(events.task[event])
        key = (int(actions.stage[task]), int(actions.microbatch[task]), int(actions.slice[task]))
        held[key] = held.get(key, 0) + int(events.delta[event])
    live = [(key, amount) for key, amount in held.items() if amount > 0]
    shown = [
        f"stage {stage} microbatch {microbatch}"
        + (f".{slice_}" if actions.is_sliced else "")
        + f" ({amount})"
        for (stage, microbatch, slice_), amount in live[:LIVE_SHOWN]
    ]
    more = f" and {len(live) - LIVE_SHOWN} more" if len(live) > LIVE_SHOWN else ""
    return (", ".join(shown) or "nothing") + more
