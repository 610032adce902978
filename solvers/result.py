"""What a solver returns: a status, the best schedule, the bounds, and how the proof stands.

A schedule is returned only if ``verify`` accepts it. A bound is *certified* when ``verify`` accepts
its certificate; what an engine claims beyond that is ``engine_bound``. ``OPTIMAL`` says that the
schedule meets a bound, and ``proof`` by which of the two: a certificate, or a solver's claim.
No result contradicts itself: what is made of several searches is compared here once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bubbleproof.engine_process.loss import EngineLoss
from bubbleproof.faults import FaultError
from bubbleproof.solvers.options import Goal
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate_rule import Certificate

FOR_SHAPE = "for this shape"  # what an optimum is one of


class Status(Enum):
    """How a solve ended; the value is the sentence shown to the user."""

    OPTIMAL = "optimal for this shape: the schedule was checked, and no schedule is better"
    FEASIBLE = "feasible: the schedule was checked, but none of the bounds meets it"
    INFEASIBLE = "infeasible: no schedule exists"
    UNKNOWN = "unknown: no schedule was found in the time given"


class ProofOrigin(Enum):
    """What an OPTIMAL or INFEASIBLE rests on; the value is the words shown to the user."""

    CERTIFICATE = "certificate checked"
    ARGUMENT = "by the reason given"
    ENGINE = "by the solver's own bound, without a certificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakBound:
    """No schedule (within the makespan asked for) has a peak below ``value`` memory units.

    What was checked is a certificate of each step's problem, of less memory; none is about the
    problem itself and can be written. So ``proof`` is an ARGUMENT, or the claim of an ENGINE.
    """

    value: int
    proof: ProofOrigin
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSchedule:
    """A schedule that ``verify`` accepted, and what it measured of it."""

    schedule: Schedule
    measured: Measures

    @property
    def peak(self) -> int:
        """The highest load of any rank's memory, in memory units."""
        return max(self.measured.peak_memory, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a solve.

    ``lower_bound`` (ticks) is the one its ``certificate`` proves; ``engine_bound`` is what the
    engine claims beyond it, unchecked. ``found`` is the best schedule, None where there is none.
    ``work`` is what was done, in units of about a second, as far as it is counted.
    ``origin`` names who found the schedule; ``reason`` explains INFEASIBLE, UNKNOWN where it is
    not for want of time, an interruption, and where work was limited whether that limit or the
    clock ended the search; it names certificates that were refused;
    ``losses``: the engines that gave no answer, and why; the reason names them as well.
    ``is_claimed``: INFEASIBLE by an uncertified claim of a solver.
    Raises ``FaultError`` for a value below the best bound, an OPTIMAL above it, and a status that
    says that there is a schedule (or none) where it is not so.
    """

    status: Status
    found: MeasuredSchedule | None
    lower_bound: int
    certificate: Certificate | None
    engine_bound: int | None
    origin: str
    seconds: float
    work: float = 0.0
    reason: str = ""
    objective: Goal = "makespan"
    peak_bound: PeakBound | None = None
    is_claimed: bool = False
    losses: tuple[EngineLoss, ...] = ()

    def __repr__(self) -> str:
        name, by, peak = self.objective, self.proof, ""
        if self.peak_bound is not None and name == "makespan-then-peak":
            name, by = "makespan", self.value_proof
            peak = f", least peak {self.peak_bound.value} ({self.peak_bound.proof.value})"
        proof = "" if by is None else f" ({by.value})"
        found = "" if self.value is None else f", {name} {self.value}"
        bound = f", no schedule is below {self.best_bound}" if self.best_bound else ""
        return f"<Result: {self._heading}{found}{bound}{proof}{peak}>"

    def __post_init__(self) -> None:
        if (self.found is not None) != (self.status in (Status.OPTIMAL, Status.FEASIBLE)):
            found = "no schedule was found" if self.found is None else "a schedule was found"
            raise FaultError("the search", f"the status {self.status.name}", found)
        if self.gap is not None and self.gap < 0:
            bound = f"the bound {self.best_bound}"
            raise FaultError("an engine or a certificate", bound, f"a schedule has {self.value}")
        if self.status is Status.OPTIMAL and self.gap:
            found = f"{self.value} is above the bound {self.best_bound}"
            raise FaultError("the search", "the status OPTIMAL", found)

    @property
    def schedule(self) -> Schedule | None:
        """The best schedule; None where none was found."""
        return None if self.found is None else self.found.schedule

    @property
    def measured(self) -> Measures | None:
        """What the checker measured of the schedule; None where none was found."""
        return None if self.found is None else self.found.measured

    @property
    def makespan(self) -> int | None:
        """The schedule's makespan in ticks; None where none was found."""
        return None if self.found is None else self.found.measured.makespan

    @property
    def peak(self) -> int | None:
        """The highest load of any rank's memory, in memory units; None without a schedule."""
        return None if self.found is None else self.found.peak

    @property
    def value(self) -> int | None:
        """The objective's value: ticks, or for ``peak`` memory units."""
        if self.objective == "peak":
            return self.peak
        if self.objective == "span_idle":
            return None if self.found is None else self.found.measured.span_idle
        return self.makespan

    @property
    def best_bound(self) -> int:
        """The larger of the certified bound and the engine's; for ``peak``, of its bound."""
        if self.objective == "peak":
            return 0 if self.peak_bound is None else self.peak_bound.value
        return max(self.lower_bound, self.engine_bound or 0)

    @property
    def gap(self) -> int | None:
        """How far the value is above the best bound."""
        return None if self.value is None else self.value - self.best_bound

    @property
    def proof(self) -> ProofOrigin | None:
        """What the status rests on, for OPTIMAL and INFEASIBLE."""
        if self.status is Status.INFEASIBLE:
            return self.infeasible_by
        if self.status is not Status.OPTIMAL:
            return None
        if self.value_proof is ProofOrigin.ENGINE or self.peak_bound is None:
            return self.value_proof
        return self.peak_bound.proof

    @property
    def value_proof(self) -> ProofOrigin | None:
        """What it rests on that no schedule has less than ``value``; None where that is open."""
        if self.gap != 0:
            return None
        if self.objective == "peak":
            return None if self.peak_bound is None else self.peak_bound.proof
        is_certified = self.value == self.lower_bound
        return ProofOrigin.CERTIFICATE if is_certified else ProofOrigin.ENGINE

    @property
    def statement(self) -> str:
        """The status in words: an optimum is said of no more than was proved, and by what."""
        if self.status is not Status.OPTIMAL or self.proof is ProofOrigin.CERTIFICATE:
            return self.status.value
        by = "" if self.value_proof is None else f", {self.value_proof.value}"
        text = f"{self._heading}{by}: the schedule was checked"
        if self.objective == "peak" or self.peak_bound is None:
            return text
        return f"{text}; least peak of that makespan {self.peak_bound.proof.value}"

    @property
    def _heading(self) -> str:
        """The status in a few words, an optimum with what it is one of."""
        if self.status is not Status.OPTIMAL or self.peak_bound is None:
            return self.status.value.partition(":")[0]
        word = "least peak" if self.objective == "peak" else "optimal makespan"
        return f"{word} {FOR_SHAPE}"

    @property
    def infeasible_by(self) -> ProofOrigin:
        """What the answer rests on that there is no schedule, where that is the answer."""
        if self.is_claimed:
            return ProofOrigin.ENGINE
        return ProofOrigin.ARGUMENT if self.certificate is None else ProofOrigin.CERTIFICATE
