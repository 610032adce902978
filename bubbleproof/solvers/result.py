"""What a solver returns: a status, the best schedule, the bounds, and how the proof stands.

``OPTIMAL`` is said only when a schedule that ``verify`` accepts meets a lower bound whose
certificate ``verify`` accepts. An engine's own word that it closed the gap is reported as
``engine_bound`` and believed by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bubbleproof.theory.measures import Measures
from bubbleproof.theory.schedule import Schedule
from bubbleproof.verify.certificate import OneMachine


class Status(Enum):
    """How a solve ended; the value is the sentence shown to the user."""

    OPTIMAL = "optimal: the schedule and the bound that it meets were both checked"
    FEASIBLE = "feasible: the schedule was checked, but no checked bound meets it"
    INFEASIBLE = "infeasible: no schedule exists"
    UNKNOWN = "unknown: no schedule was found in the time given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a solve.

    ``lower_bound`` (ticks) is the one its ``certificate`` proves; ``engine_bound`` is what the
    engine claims beyond it, unchecked. ``schedule`` and ``measured`` are None unless found.
    ``origin`` names who found the schedule; ``reason`` explains INFEASIBLE, and UNKNOWN
    where it is not for want of time.
    """

    status: Status
    schedule: Schedule | None
    measured: Measures | None
    lower_bound: int
    certificate: OneMachine | None
    engine_bound: int | None
    origin: str
    seconds: float
    reason: str = ""

    @property
    def makespan(self) -> int | None:
        return None if self.measured is None else self.measured.makespan

    @property
    def gap(self) -> int | None:
        """Ticks between the schedule and the checked bound."""
        return None if self.makespan is None else self.makespan - self.lower_bound
