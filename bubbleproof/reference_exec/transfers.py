"""Transfers put into lowered programs: where each rank posts an EVICT or LOAD and waits for it.

A schedule runs transfers on links, beside computation. A rank's program is one sequence, so each
transfer stands in it twice, posted and waited for, in the programs of both of its ranks; likewise
OFFLOAD, STEP and RELOAD, which run on the engines of one rank. Rows are merged by the schedule's
times such that memory at the rows is what it is in time: a computation counts at its start where it
acquires (F, R, and an I that leaves more behind than it found) and at its end where it releases (B,
W, another I); a SEND or RECV at the end of what makes its message; a transfer where it starts and
where it ends. At equal times releases come before acquisitions.

All rows of all ranks then agree with one order in time, in which everything waited for comes
earlier; so the waits added here make no deadlock where there was none.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.actions import Action, ActionTable, Kind
from bubbleproof.theory.messages import messages
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule

Moment = tuple[int, int]  # (ticks, 0 for a release or 1 for an acquisition)
RELEASE, ACQUISITION = 0, 1
Row = tuple[Moment, int, Action]  # at one moment what ends comes before what begins


def with_transfers(
    problem: Problem, schedule: Schedule, lowered: Program, transfers: dict[Action, tuple[int, ...]]
) -> Program:
    """The lowered program with every transfer posted and waited for on both of its ranks.

    ``transfers`` has the ranks of each task of the problem that runs beside computation.
    Precondition: the schedule is verified, and the computations of ``lowered`` are the schedule's,
    in its order.
    """
    moment = _moments(problem, schedule)
    rows = _transfer_rows(problem, schedule, transfers)
    orders = [
        _merged(lowered_order, moment, rows.get(rank, []))
        for rank, lowered_order in enumerate(lowered.orders(problem.num_ranks))
    ]
    return Program(
        actions=ActionTable.from_actions(action for order in orders for action in order),
        resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
    )


def _moments(problem: Problem, schedule: Schedule) -> dict[Action, Moment]:
    """When each computation, SEND and RECV counts."""
    actions, start = schedule.program.actions, schedule.start.tolist()
    task = problem.locate(actions)
    end = (schedule.start + problem.ticks(task)).tolist()
    grows = _acquiring(problem)
    found: dict[Action, Moment] = {}
    ends: dict[int, int] = {}
    for row, action in enumerate(actions):
        number = int(task[row])
        ends[number] = end[row]
        found[action] = (start[row], ACQUISITION) if grows[number] else (end[row], RELEASE)
    for message in messages(problem):
        found[message.send] = found[message.recv] = (ends[message.producer], RELEASE)
    return found


def _acquiring(problem: Problem) -> list[bool]:
    """Whether each task changes memory at its start; by kind where the problem counts none."""
    grows = problem.actions.is_kind(Kind.F, Kind.R, Kind.OVERLAP_F_B)
    events = problem.events
    own = problem.rank_of_task[events.task] == events.store
    grows[events.task[own & ~events.at_end & (events.delta > 0)]] = True
    return [bool(flag) for flag in grows]


def _transfer_rows(
    problem: Problem, schedule: Schedule, transfers: dict[Action, tuple[int, ...]]
) -> dict[int, list[Row]]:
    """The post and the wait of each transfer by rank, in time order, each link's order kept.

    An OFFLOAD releases the weights where it begins; every other task begins by acquiring.
    """
    rows: dict[int, list[Row]] = {}
    program = schedule.program
    task = problem.locate(program.actions)
    for row in np.argsort(schedule.start, kind="stable").tolist():
        action, begin = program.actions[row], int(schedule.start[row])
        if action not in transfers:
            continue
        finish = begin + int(problem.duration[task[row]])
        acquires = finish > begin and action.kind is not Kind.OFFLOAD
        post = ((begin, ACQUISITION if acquires else RELEASE), 1, action)
        wait = ((finish, RELEASE), 0 if finish > begin else 2, action)
        for rank in transfers[action]:
            rows.setdefault(rank, []).extend([post, wait])
    for own in rows.values():
        own.sort(key=lambda row: row[:2])
    return rows


def _merged(order: list[Action], moment: dict[Action, Moment], rows: list[Row]) -> list[Action]:
    """The order with the rows put in before whatever counts later; the order itself is kept."""
    result: list[Action] = []
    waiting = iter([*rows, None])
    following = next(waiting)
    latest: Moment | None = None
    for action in order:
        own = moment[action]
        latest = own if latest is None else max(latest, own)
        while following is not None and following[0] < latest:
            result.append(following[2])
            following = next(waiting)
        result.append(action)
    while following is not None:
        result.append(following[2])
        following = next(waiting)
    return result
