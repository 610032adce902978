"""What a solver returns: a status, the best schedule, the bounds, and how the proof stands.

A schedule is returned only if ``verify`` accepts it. A bound is *certified* when ``verify`` accepts
its certificate; what an engine claims beyond that is ``engine_bound``. ``OPTIMAL`` says that the
schedule meets a bound, and ``proof`` by which of the two: a certificate, or an engine's word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bubbleproof.solvers.encoding import Objective
from bubbleproof.theory.measures import Measures
from bubbleproof.theory.schedule import Schedule
from bubbleproof.verify.certificate import OneMachine


class Status(Enum):
    """How a solve ended; the value is the sentence shown to the user."""

    OPTIMAL = "optimal: the schedule was checked, and no schedule is better"
    FEASIBLE = "feasible: the schedule was checked, but none of the bounds meets it"
    INFEASIBLE = "infeasible: no schedule exists"
    UNKNOWN = "unknown: no schedule was found in the time given"


class Proof(Enum):
    """What an OPTIMAL or INFEASIBLE rests on; the value is the words shown to the user."""

    CERTIFICATE = "certificate checked"
    ARGUMENT = "by the reason given"
    ENGINE = "by the engine's word, without a certificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a solve.

    ``lower_bound`` (ticks) is the one its ``certificate`` proves; ``engine_bound`` is what the
    engine claims beyond it, unchecked. ``schedule`` and ``measured`` are None unless found.
    ``origin`` names who found the schedule; ``reason`` explains INFEASIBLE, UNKNOWN where it is
    not for want of time, and an interruption.
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
    objective: Objective = "makespan"

    @property
    def makespan(self) -> int | None:
        return None if self.measured is None else self.measured.makespan

    @property
    def value(self) -> int | None:
        """The objective's value, in ticks."""
        if self.measured is None:
            return None
        by_name = {"makespan": self.measured.makespan, "span_idle": self.measured.span_idle}
        return by_name[self.objective]

    @property
    def best_bound(self) -> int:
        """The larger of the certified bound and the engine's."""
        return max(self.lower_bound, self.engine_bound or 0)

    @property
    def gap(self) -> int | None:
        """Ticks between the schedule and the best bound."""
        return None if self.value is None else self.value - self.best_bound

    @property
    def proof(self) -> Proof | None:
        """What the status rests on, for OPTIMAL and INFEASIBLE."""
        if self.status is Status.OPTIMAL:
            return Proof.CERTIFICATE if self.value == self.lower_bound else Proof.ENGINE
        if self.status is Status.INFEASIBLE:
            return Proof.ENGINE if self.engine_bound is not None else Proof.ARGUMENT
        return None
