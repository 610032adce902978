"""What became of a candidate or a deployment of a plan, and on what that rests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What became of one candidate or deployment, of it alone; the value is what that means."""

    OPTIMAL = "it has a schedule, and none of it is shorter"
    FEASIBLE = "it has a schedule; a shorter one is not excluded"
    INFEASIBLE = "no schedule of it fits"
    UNKNOWN = "no schedule of it is known, and its bound is below the plan"
    BOUNDED = "no schedule of it is known, nor needed: its bound is not below the plan"
    NOT_LEGAL = "a number forbids it"
    TOO_LARGE = "it is larger than a plan takes: whether it is better is not known"


class Ground(Enum):
    """On what kind of fact an outcome rests."""

    COMPARISON = "its value or its bound beside the plan's"
    SAME_PIPELINE = "another candidate is the same pipeline"
    NUMBER = "a number that does not divide, or has no meaning"
    ROOM = "no schedule of it fits"
    TIME = "the time given did not suffice"
    NO_COST = "a paper's costs have no meaning for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReason:
    """The kind of fact, and the sentence that tells it."""

    ground: Ground
    text: str

    def __str__(self) -> str:
        return self.text


def solved_outcome(value: int, bound: int) -> Outcome:
    """That of a schedule of ``value`` ticks where none has less than ``bound``.

    Parameters
    ----------
    value
        Ticks of the schedule.
    bound
        Ticks.
    """
    return Outcome.OPTIMAL if bound >= value else Outcome.FEASIBLE


def unsolved_outcome(bound: int, best: int | None) -> Outcome:
    """That of what has no schedule, beside a plan of ``best`` ticks.

    Parameters
    ----------
    bound
        Ticks.
    best
        Ticks of the plan; None where there is none.
    """
    return Outcome.UNKNOWN if best is None or bound < best else Outcome.BOUNDED


def comparison(value: int | None, bound: int, best: int | None, by: str = "") -> OutcomeReason:
    """Why a candidate is not the plan of ``best`` ticks, or what its bound rests on (``by``).

    Parameters
    ----------
    value
        Ticks of the candidate's schedule; None where it has none.
    bound
        Ticks.
    best
        Ticks of the plan; None where there is none.
    by
        Words after the bound, with a blank before them, or nothing.
    """
    if best is None:
        return OutcomeReason(ground=Ground.TIME, text="no schedule was found in the time given")
    if value == best:
        text = f"no schedule of it is below {bound}{by}"
    elif bound >= best:
        text = f"its bound{by}, {bound}, is not below {best}"
    else:
        text = f"open: its bound, {bound}, is below {best}"
    return OutcomeReason(ground=Ground.COMPARISON, text=text)
