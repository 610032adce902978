"""Collectives that a problem has itself, read by what they wait for and what waits for them.

An UNSHARD serves the forwards, recomputations and backwards that wait for it, a REDUCE_GRAD takes
what the B, I and W add that it waits for, a RESHARD frees what those use that it waits for; each
stands on the rank of these. An I that no REDUCE_GRAD waits for is taken with its W, and an R that
waits for no UNSHARD reads what its backward does. RESHARDs mean ZeRO-3. UNSHARDs alone are enough
for ZeRO-2, whose gradient one REDUCE_GRAD takes as well as several do; no UNSHARDs mean whole
replicas.

(Forwards and full backwards of whole samples in PipeMesh's visits are read by ``sharded_step``,
which also gives back the sequences.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from bubbleproof.reference_exec.plans.plan import COLLECTIVE_KINDS
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.replication import (
    ADDERS,
    FIRST_REDUCTION,
    READERS,
    Placed,
    Use,
    uses_of,
)

_SERVED = {
    Kind.UNSHARD: (*READERS[0], *READERS[1]),
    Kind.RESHARD: (*READERS[0], *READERS[1]),
    Kind.REDUCE_GRAD: ADDERS,
}


def own_collectives(problem: Problem, schedule: Schedule) -> list[Placed]:
    """The collectives of a problem with what each serves, in the order of the schedule.

    Raises ``ValueError`` for one that serves nothing or on several ranks, and for a computation
    whose gradient, or where parameters are freed whose parameters, are not those of one collective.
    """
    start = _starts(problem, schedule)
    found = [
        _read(problem, task, start)
        for task in np.flatnonzero(problem.actions.is_kind(*COLLECTIVE_KINDS)).tolist()
    ]
    found = _with_implied(problem, found, start)
    _require_once(problem, found, Kind.REDUCE_GRAD, ADDERS)
    if level_of(found) == 3:
        _require_once(problem, found, Kind.UNSHARD, (Kind.F, Kind.B, Kind.I))
    return found


def level_of(placed: Iterable[Placed]) -> int:
    """The highest ZeRO level that the collectives are enough for; 0 for whole replicas."""
    kinds = {c.kind for c in placed}
    if Kind.RESHARD in kinds:
        return 3
    return 2 if Kind.UNSHARD in kinds else 0


def require_numbers(placed: Iterable[Placed]) -> None:
    """Raise ``ValueError`` for a REDUCE_GRAD called like one among the ranks of a replica."""
    for c in placed:
        if c.kind is Kind.REDUCE_GRAD and c.number < FIRST_REDUCTION:
            raise ValueError(
                f"REDUCE_GRADs 0 and 1 add the gradients of ranks where stages are on two or tied; "
                f"those among replicas are numbered from {FIRST_REDUCTION}, got {c.action}"
            )


def _starts(problem: Problem, schedule: Schedule) -> list[int]:
    """The start of each task; what the schedule lacks comes last."""
    start = np.full(problem.num_tasks + 1, np.iinfo(np.int64).max)
    start[problem.locate(schedule.program.actions)] = schedule.start
    found: list[int] = start[:-1].tolist()
    return found


def _read(problem: Problem, task: int, start: Sequence[int]) -> Placed:
    actions, edges = problem.actions, problem.edges
    action = actions[task]
    if action.kind is Kind.UNSHARD:
        others = edges.after[edges.before == task]
    else:
        others = edges.before[edges.after == task]
    served = sorted(set(others.tolist()), key=start.__getitem__)
    pairs = [
        (use, other)
        for other in served
        for use in uses_of(actions[other])
        if use.stage == action.stage and use.kind in _SERVED[action.kind]
    ]
    ranks = {int(problem.rank_of_task[other]) for _, other in pairs}
    if len(ranks) != 1 or NONE in ranks:
        raise ValueError(
            f"replay needs {action} to serve computations of its stage on one rank; it serves "
            f"{len(pairs)} on {len(ranks)}"
        )
    return Placed(
        kind=action.kind,
        stage=action.stage,
        rank=ranks.pop(),
        number=action.slice,
        uses=tuple(use for use, _ in pairs),
        tasks=tuple(other for _, other in pairs),
        start=start[task],
    )


def _with_implied(problem: Problem, placed: list[Placed], start: Sequence[int]) -> list[Placed]:
    """The collectives with the Is and Rs that no edge names."""
    task_of = {
        use: task
        for task in range(problem.num_tasks)
        for use in uses_of(problem.actions[task])
        if use.kind in (Kind.I, Kind.R)
    }
    named = {(c.kind, use) for c in placed for use in c.uses}
    found = []
    for c in placed:
        own = dict(zip(c.uses, c.tasks, strict=True))
        implied = {Use(_IMPLIED[c.kind], *use[1:4]) for use in c.uses if use.kind in _BY[c.kind]}
        for use in sorted(implied & task_of.keys()):
            if (c.kind, use) not in named:
                own[use] = task_of[use]
        order = sorted(own, key=lambda use: start[own[use]])
        found.append(_with_uses(c, order, own))
    return found


_IMPLIED = {Kind.UNSHARD: Kind.R, Kind.RESHARD: Kind.R, Kind.REDUCE_GRAD: Kind.I}
_BY = {Kind.UNSHARD: (Kind.B, Kind.I), Kind.RESHARD: (Kind.B, Kind.I), Kind.REDUCE_GRAD: (Kind.W,)}


def _with_uses(c: Placed, order: list[Use], task: dict[Use, int]) -> Placed:
    return Placed(
        kind=c.kind,
        stage=c.stage,
        rank=c.rank,
        number=c.number,
        uses=tuple(order),
        tasks=tuple(task[use] for use in order),
        start=c.start,
    )


def _require_once(
    problem: Problem, placed: list[Placed], kind: Kind, kinds: tuple[Kind, ...]
) -> None:
    """Raise ``ValueError`` for a use of some kinds that not just one collective serves."""
    count = Counter(use for c in placed if c.kind is kind for use in set(c.uses))
    for action in problem.actions:
        for use in uses_of(action):
            if use.kind in kinds and count[use] != 1:
                raise ValueError(
                    f"replay needs one {kind.name} to serve each computation; {count[use]} serve "
                    f"{use.kind.name} of stage {use.stage}, microbatch {use.microbatch}"
                )
