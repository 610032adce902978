"""Transfers put into lowered programs: where each rank posts an EVICT or LOAD and waits for it.

A schedule runs transfers on links, beside computation. A rank's program is one sequence, so each
transfer stands in it twice, posted and waited for, in the programs of both of its ranks. Rows are
merged by the schedule's times such that memory at the rows is what it is in time: a computation
counts at its start where it acquires (F, R, and an I that leaves more behind than it found) and at
its end where it releases (B, W, another I); a SEND or RECV at the end of what makes its message; a
transfer where it starts and where it ends. At equal times releases come before acquisitions.

All rows of all ranks then agree with one order in time, in which everything waited for comes
earlier; so the waits added here make no deadlock where there was none.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.reference_exec.plan import TRANSFER_KINDS
from bubbleproof.theory.actions import Action, ActionTable, Kind
from bubbleproof.theory.messages import messages
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Program, Schedule

Moment = tuple[int, int]  # (ticks, 0 for a release or 1 for an acquisition)
RELEASE, ACQUISITION = 0, 1
Ends = tuple[int, int]  # the two ranks of a transfer


def with_transfers(
    problem: Problem, schedule: Schedule, lowered: Program, transfers: dict[Action, Ends]
) -> Program:
    """The lowered program with every transfer posted and waited for on both of its ranks.

    ``transfers`` has the ranks of each EVICT and LOAD of the problem. Precondition: the schedule is
    verified, and the computations of ``lowered`` are the schedule's, in its order.
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
    problem: Problem, schedule: Schedule, transfers: dict[Action, Ends]
) -> dict[int, list[tuple[Moment, Action]]]:
    """(moment, action) of each post and wait by rank, in time order, each link's order kept."""
    rows: dict[int, list[tuple[Moment, Action]]] = {}
    program = schedule.program
    moves = np.flatnonzero(program.actions.is_kind(*TRANSFER_KINDS))
    moves = moves[np.argsort(schedule.start[moves], kind="stable")]
    task = problem.locate(program.actions)
    for row in moves.tolist():
        action, begin = program.actions[row], int(schedule.start[row])
        finish = begin + int(problem.duration[task[row]])
        post = (begin, ACQUISITION if finish > begin else RELEASE)
        for rank in transfers[action]:
            rows.setdefault(rank, []).extend([(post, action), ((finish, RELEASE), action)])
    for own in rows.values():
        own.sort(key=lambda row: row[0])
    return rows


def _merged(
    order: list[Action], moment: dict[Action, Moment], rows: list[tuple[Moment, Action]]
) -> list[Action]:
    """The order with the rows put in before whatever counts later; the order itself is kept."""
    result: list[Action] = []
    waiting = iter([*rows, None])
    following = next(waiting)
    latest: Moment | None = None
    for action in order:
        own = moment[action]
        latest = own if latest is None else max(latest, own)
        while following is not None and following[0] < latest:
            result.append(following[1])
            following = next(waiting)
        result.append(action)
    while following is not None:
        result.append(following[1])
        following = next(waiting)
    return result
