"""Transfers put into lowered programs: where each rank posts an EVICT or LOAD and waits for it.

A schedule runs transfers on links, beside computation. A rank's program is one sequence, so each
transfer stands in it twice, posted and waited for, in the programs of both of its ranks; likewise
OFFLOAD, STEP and RELOAD, which run on the engines of one rank, and UNSHARD and REDUCE_GRAD.

Rows are merged by *moments*, times of the schedule chosen such that memory at the rows is what it
is in time. A computation counts at its start where it acquires and at its end where it releases;
where it does both (a forward that drops what it saved, an overlapped pair) it counts when its rank
holds most while it runs. A SEND or RECV counts at the end of what makes its message, a transfer
where it starts and where it ends. At equal times releases come before acquisitions.

``by_moments`` brings SEND and RECV of a lowered program into that order too. All rows of all ranks
then agree with one order in time, in which everything waited for comes earlier, so no semantics can
make the ranks wait for each other.

Nothing of no duration has an order in time: a forward of 0 ticks ends when it begins, and an
activation that leaves and returns at one moment is on its other end, in the program, for bytes that
the model never counts. Both are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bubbleproof.reference_exec.plans.replay_plan import COMPUTE_KINDS, key_of
from bubbleproof.theory.model.actions import Action, Ints, Kind
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.messages import messages

TransferMoment = tuple[int, int]  # (ticks, what happens then)
RELEASE, ACQUISITION, SETTLED = 0, 1, 2
Moments = Mapping[Action, TransferMoment]
TransferRow = tuple[TransferMoment, int, Action]  # at one moment what ends comes before what begins


def moments(problem: Problem, schedule: Schedule) -> Moments:
    """When each computation, SEND and RECV counts; memory is that of ``problem`` (in bytes)."""
    actions, start = schedule.program.actions, schedule.start
    task = problem.locate(actions)
    end = start + problem.ticks(task)
    grows, shrinks = _changes(problem)
    fullest = _fullest(problem, schedule, task, np.flatnonzero(grows[task] & shrinks[task]))
    found: dict[Action, TransferMoment] = {}
    ends: dict[int, int] = {}
    for row, action in enumerate(actions):
        number = int(task[row])
        ends[number] = int(end[row])
        if row in fullest:
            found[action] = (fullest[row], SETTLED)
        elif grows[number]:
            found[action] = (int(start[row]), ACQUISITION)
        else:
            found[action] = (int(end[row]), RELEASE)
    for message in messages(problem):
        if message.producer in ends:  # it is, unless the schedule lacks tasks
            found[message.send] = found[message.recv] = (ends[message.producer], RELEASE)
    return found


def by_moments(lowered: Program, moment: Moments) -> Program:
    """The lowered program with its rows in the order of their moments, ties as they were."""
    rows = zip(lowered.resource.tolist(), lowered.actions, strict=True)
    keys = [(rank, moment[action]) for rank, action in rows]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    return lowered.take(order)


def with_transfers(
    problem: Problem,
    schedule: Schedule,
    lowered: Program,
    moment: Moments,
    transfers: Mapping[Action, tuple[int, ...]],
) -> Program:
    """The lowered program with every transfer posted and waited for on both of its ranks.

    ``transfers`` has the ranks of each task of the problem that runs beside computation. The order
    of ``lowered`` is kept. Precondition: the schedule is verified, and the computations of
    ``lowered`` are the schedule's, in its order.
    """
    rows = _transfer_rows(problem, schedule, transfers)
    orders = enumerate(lowered.orders(problem.num_ranks))
    return Program.from_orders([_merged(own, moment, rows.get(rank, [])) for rank, own in orders])


def _changes(problem: Problem) -> tuple[Ints, Ints]:
    """Whether each task acquires on its rank at its start, and whether it releases at its end."""
    events = problem.events
    own = problem.rank_of_task[events.task] == events.store
    columns = []
    for mask in (own & ~events.at_end & (events.delta > 0), own & events.at_end):
        flags = np.zeros(problem.num_tasks + 1, dtype=np.int64)
        flags[events.task[mask]] = 1
        columns.append(flags)
    return columns[0], columns[1]


def _fullest(problem: Problem, schedule: Schedule, task: Ints, rows: Ints) -> dict[int, int]:
    """When the rank of each of the rows holds most while the row runs."""
    if not len(rows):
        return {}
    profile = memory_profile(problem, task, schedule.start)
    found = {}
    for row in rows.tolist():
        begin = int(schedule.start[row])
        end = max(begin + int(problem.duration[task[row]]), begin + 1)
        inside = (profile.time >= begin) & (profile.time < end)
        near = np.flatnonzero(inside & (profile.store == schedule.program.resource[row]))
        found[row] = int(profile.time[near[np.argmax(profile.level[near])]])
    return found


def _transfer_rows(
    problem: Problem, schedule: Schedule, transfers: Mapping[Action, tuple[int, ...]]
) -> dict[int, list[TransferRow]]:
    """The post and the wait of each transfer by rank, in time order, each link's order kept.

    What frees memory where it begins (an OFFLOAD of weights) counts as a release there. RESHARD
    stands once; it and a REDUCE_GRAD of no time come before whatever acquires at that moment.
    """
    rows: dict[int, list[TransferRow]] = {}
    program = schedule.program
    task = problem.locate(program.actions)
    events = problem.events
    frees = set(events.task[~events.at_end & (events.delta < 0)].tolist())
    for row in np.argsort(schedule.start, kind="stable").tolist():
        action, begin = program.actions[row], int(schedule.start[row])
        if action not in transfers:
            continue
        finish = begin + int(problem.duration[task[row]])
        acquires = finish > begin and int(task[row]) not in frees
        only_frees = action.kind in (Kind.RESHARD, Kind.REDUCE_GRAD)
        post = ((begin, ACQUISITION if acquires else RELEASE), int(not only_frees), action)
        wait = ((finish, RELEASE), int(finish == begin and not only_frees), action)
        both = [wait] if action.kind is Kind.RESHARD else [post, wait]
        for rank in transfers[action]:
            rows.setdefault(rank, []).extend(both)
    for own in rows.values():
        own.sort(key=lambda row: row[:2])
    return rows


def _merged(order: list[Action], moment: Moments, rows: list[TransferRow]) -> list[Action]:
    """The order with the rows put in before whatever counts later; the order itself is kept."""
    result: list[Action] = []
    waiting = iter([*rows, None])
    following = next(waiting)
    latest: TransferMoment | None = None
    for action in order:
        own = moment.get(action, latest)  # what the problem does not know counts with its neighbour
        latest = own if latest is None or own is None else max(latest, own)
        while following is not None and latest is not None and following[0] < latest:
            result.append(following[2])
            following = next(waiting)
        result.append(action)
    while following is not None:
        result.append(following[2])
        following = next(waiting)
    return result


_RETURNS = {Kind.EVICT: Kind.LOAD, Kind.OFFLOAD: Kind.RELOAD}


def require_ticks(problem: Problem) -> None:
    """Raise ``ValueError`` for a computation of no duration.

    Precondition: something of the problem runs beside computation.
    """
    instant = problem.actions.is_kind(*COMPUTE_KINDS) & (problem.duration < 1)
    if instant.any():
        raise ValueError(
            "replays of schedules with transfers or collectives need computations of 1 tick or "
            f"more; {problem.label(int(instant.argmax()))} takes none"
        )


def require_stays(problem: Problem, schedule: Schedule) -> None:
    """Raise ``ValueError`` for an activation that leaves and is back at the same moment.

    Precondition: the schedule is verified.
    """
    task = problem.locate(schedule.program.actions)
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[task] = schedule.start
    for away, back in _RETURNS.items():
        tasks = np.flatnonzero(problem.actions.is_kind(away)).tolist()
        left = {key_of(problem.actions[task]): task for task in tasks}
        for returning in np.flatnonzero(problem.actions.is_kind(back)).tolist():
            action = problem.actions[returning]
            key, end = key_of(action), start[returning] + problem.duration[returning]
            if key in left and start[left[key]] == end:
                raise ValueError(
                    f"replay cannot tell the bytes of {problem.label(left[key])}, which is undone "
                    f"by {action} at the same moment, {end}; give a transfer 1 tick or more"
                )
