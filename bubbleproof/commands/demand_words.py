"""What the command line demands of a schedule, and why no schedule meets it.

``--require "0F1<0B0"``: 0F1 has ended when 0B0 starts. ``--forbid "0F1<0B0"``: it has not; for two
tasks of one resource, so that 0B0 comes first. ``--keep FILE`` with ``--keep-ranks 0,2`` keeps the
orders that a schedule has on these ranks, with ``--keep-until T`` the starts of everything that
begins before tick T.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bubbleproof.commands.options.shared_options import DemandOptions
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.demands import Demands, forbidden, orders_of, starts_until
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.units import counted

if TYPE_CHECKING:  # loaded where there is no schedule
    from bubbleproof.solvers.explain import Cause, Reason

EXPLAINING = 20.0  # seconds at most
CLOSINGS = (
    "without any one of these there are schedules",
    "some of these may not be needed: the time ran out",
)


def read_demands(problem: Problem, asked: DemandOptions) -> Demands:
    """The demands that the words say. Raises ``ValueError`` for what they cannot say."""
    orders = [_order(problem, "--require", text) for text in asked.require or ()]
    orders += [forbidden(problem, *_order(problem, "--forbid", t)) for t in asked.forbid or ()]
    demands = Demands(orders=tuple(orders))
    keep_ranks, keep_until = asked.keep_ranks, asked.keep_until
    if asked.keep is None:
        if keep_ranks is not None or keep_until is not None:
            raise ValueError("--keep-ranks and --keep-until need the schedule to --keep")
        return demands
    if keep_until is not None and keep_ranks is None:
        schedule = read_schedule_input([asked.keep]).timed()
        return demands.union(starts_until(problem, schedule, keep_until))
    if keep_ranks is not None and keep_until is None:
        schedule = read_schedule_input([asked.keep]).timed()
        return demands.union(orders_of(problem, schedule, _ranks(problem, keep_ranks)))
    raise ValueError("--keep takes either --keep-ranks or --keep-until")


def _order(problem: Problem, flag: str, text: str) -> tuple[int, int]:
    before, sign, after = (part.strip() for part in text.partition("<"))
    if not sign:
        raise ValueError(f"{flag} must be two actions such as 0F1<0B0, got {text!r}")
    return _task(problem, flag, before), _task(problem, flag, after)


def _task(problem: Problem, flag: str, text: str) -> int:
    try:
        return problem.task(text)
    except KeyError:
        raise ValueError(f"{flag}: {text} is no task of the problem") from None


def _ranks(problem: Problem, text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) < problem.num_ranks for word in words):
        raise ValueError(
            f"--keep-ranks must be ranks 0..{problem.num_ranks - 1} such as 0,1, got {text!r}"
        )
    return [int(word) for word in words]


def why_not(problem: Problem, options: SolveOptions, demands: Demands) -> tuple[str, ...]:
    """The irreducible reason that there is no schedule, a line for each cause."""
    from bubbleproof.solvers.explain import explain

    limited = replace(options.at_most(EXPLAINING), progress=None)
    reason = explain(problem, limited, demands)
    return () if reason is None else lines_of(problem, reason)


def lines_of(problem: Problem, reason: Reason) -> tuple[str, ...]:
    """The causes as sentences; the last says whether each of them is needed."""
    if not reason.causes:
        return ("the precedences alone allow no schedule",)
    closing = CLOSINGS[not reason.is_irreducible]
    return (*(_line(problem, cause) for cause in reason.causes), closing)


def _line(problem: Problem, cause: Cause) -> str:
    from bubbleproof.solvers.explain import Limit, Order, Start, StoreUse

    match cause:
        case Limit():
            return f"no more than {counted(cause.ticks, problem.unit)} are allowed"
        case Order():
            return f"{problem.label(cause.before)} must end before {problem.label(cause.after)}"
        case Start():
            return f"{problem.label(cause.task)} must start at {cause.at}"
        case StoreUse():
            store = problem.stores[cause.store]
            tasks = " ".join(problem.label(task) for task in cause.tasks)
            room = f"{store.capacity} {problem.memory_unit}, {store.base} of it taken"
            return f"{store.name} ({room}) keeps what {tasks} hold"
