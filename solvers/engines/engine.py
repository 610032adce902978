"""What every engine is: a model of an encoding, and a search for its best start times.

``Model`` names the constraint families and says what each is made of; an engine's model gives the
parts their form (precedences, one at a time, memory, the objective), and ``build`` calls them in
one order. An ``Engine`` searches below ``encoding.limit`` and answers with an ``EngineOutcome``.
What it says is believed by nobody: a schedule goes to the checker, a bound needs a certificate to
be more than the engine's claim.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Generic, Protocol, TypeVar

from bubbleproof.engine_process.loss import EngineLoss
from bubbleproof.solvers.encoding import Encoding, TaskMoment
from bubbleproof.solvers.starts import rows
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Edges

SMALL = 0.002  # units of work for a small step of propagation or replay
ReportProgress = Callable[[int | None, int | None], None]  # best objective value and bound so far


class Meter:
    """Deterministic work done so far: ``units`` of about a second each, CP-SAT's own measure."""

    def __init__(self) -> None:
        self.millionths = 0  # whole numbers: their sum is the same in any order

    @property
    def units(self) -> float:
        return self.millionths / 1e6

    def spend(self, units: float) -> None:
        """Count work that was done.

        Parameters
        ----------
        units
            Units of work, of about a second each.
        """
        self.millionths += round(units * 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long and how to search: a deadline (``time.perf_counter`` seconds), seed and threads.

    Where work is limited the budget ends once ``meter`` shows ``work`` units, and the deadline is
    that of the whole search: every step then does the same in every run that meets no deadline.
    Setting ``stop`` ends the search early with what it has. ``report`` hears of improvements.
    ``keep`` hears the starts of better schedules where an engine tells them before its end.
    ``memory`` (bytes) is what each engine may take, in a process of its own; those that were lost
    are added to ``losses``.
    """

    deadline: float
    seed: int = 1
    threads: int = 2
    report: ReportProgress | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    work: float = inf
    meter: Meter = field(default_factory=Meter)
    memory: int | None = None
    keep: Callable[[Ints], None] | None = None
    losses: list[EngineLoss] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """What is left, 0 or more."""
        if self.stop.is_set() or self.meter.units >= self.work:
            return 0.0
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def is_counted(self) -> bool:
        """Whether work is limited."""
        return self.work < inf

    @property
    def is_late(self) -> bool:
        """Whether the deadline came before the work was done that is limited."""
        return self.is_counted and time.perf_counter() > self.deadline

    def part(self, share: float, report: ReportProgress | None = None) -> Budget:
        """A share of what is left: of the work where that is limited, else of the time.

        Parameters
        ----------
        share
            Between 0 and 1.
        report
            Who hears of progress from now on.
        """
        if self.is_counted:
            done = self.meter.units
            return replace(self, work=done + share * max(0.0, self.work - done), report=report)
        now = time.perf_counter()
        return replace(self, deadline=now + share * max(0.0, self.deadline - now), report=report)

    def until(self, moment: float) -> Budget:
        """What is left up to a moment.

        Parameters
        ----------
        moment
            Units of work where work is limited, else seconds of ``time.perf_counter``.
        """
        if self.is_counted:
            return replace(self, work=moment)
        return replace(self, deadline=moment)

    def now(self) -> float:
        """The moment, in units of work where they are limited, else in seconds."""
        return self.meter.units if self.is_counted else time.perf_counter()

    def after(self, units: float) -> float:
        """The moment so many units of work or seconds from now, or the end.

        Parameters
        ----------
        units
            Units of work where work is limited, else seconds.
        """
        return min(self.now() + units, self.work if self.is_counted else self.deadline)

    def is_past(self, moment: float) -> bool:
        """Whether the moment or the deadline has come; to be asked once for each small step.

        Parameters
        ----------
        moment
            As ``after`` gives it.
        """
        if self.is_counted:
            self.meter.spend(SMALL)
        return self.now() > moment or self.stop.is_set() or time.perf_counter() > self.deadline

    def require(self) -> None:
        """Raise ``OutOfTimeError`` once nothing is left."""
        if not self.seconds:
            raise OutOfTimeError


Truth = TypeVar("Truth")  # what an engine says a truth value with
UNLIMITED = Budget(deadline=inf)


class OutOfTimeError(Exception):
    """The budget was spent while a model was being built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutcome:
    """``start`` (ticks per task) is the best found within the limit, ``bound`` what is claimed.

    ``is_refuted``: the engine claims that no schedule is within the limit.
    """

    start: Ints | None = None
    bound: int | None = None
    is_refuted: bool = False


class Model(ABC):
    """An engine's model of an encoding, one method per constraint family."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding, self.problem = encoding, encoding.problem
        self.duration: list[int] = self.problem.duration.tolist()

    def build(self) -> None:
        """Add every family."""
        self.add_dependencies()
        self.add_index_order()
        self.add_exclusion()
        self.add_links()
        self.add_memory()
        self.add_horizon()

    def add_dependencies(self) -> None:
        """start(after) >= end(before) + lag."""
        self.precede_all(self.encoding.dependencies)

    def add_index_order(self) -> None:
        """Tasks of a class in the order of their microbatches."""
        self.precede_all(self.encoding.index_order)

    def add_exclusion(self) -> None:
        """One task at a time on each rank."""
        for rank in self.encoding.ranks:
            self.exclude(rank)

    def add_links(self) -> None:
        """One task at a time on each link, NIC and copy engine."""
        for resource in self.encoding.links:
            self.exclude(resource)

    def precede_all(self, edges: Edges) -> None:
        """start(after) >= end(before) + lag, for every edge."""
        for before, after, lag in rows(edges):
            self.precede(before, after, lag)

    @abstractmethod
    def precede(self, before: int, after: int, lag: int) -> None:
        """start(after) >= end(before) + lag.

        Parameters
        ----------
        before, after
            Indices of tasks.
        lag
            Ticks, which may be negative.
        """

    @abstractmethod
    def exclude(self, resource: int) -> None:
        """One task at a time on a resource.

        Parameters
        ----------
        resource
            The resource's index.
        """

    @abstractmethod
    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""

    @abstractmethod
    def add_horizon(self) -> None:
        """The objective, not above the limit."""


class LoadModel(Model, Generic[Truth]):
    """A model that says memory change by change: which moments are not after which."""

    def add_memory(self) -> None:
        """Every store within 0 and its capacity."""
        self.precede_all(self.encoding.memory_edges)
        for clause in self.encoding.memory.clauses:
            start = TaskMoment(clause.later, at_end=False)
            self.add_either(
                [self.not_after(TaskMoment(task, True), start) for task in clause.either]
            )
        for load in self.encoding.loads:
            terms = [(self.not_after(moment, load.at), delta) for moment, delta in load.undecided]
            if load.most is not None:
                self.add_sum(terms, load.most - load.known)
            if load.least is not None:
                self.add_sum([(x, -delta) for x, delta in terms], load.known - load.least)

    @abstractmethod
    def not_after(self, moment: TaskMoment, at: TaskMoment) -> Truth:
        """Whether a moment comes no later than another."""

    @abstractmethod
    def add_either(self, truths: list[Truth]) -> None:
        """At least one of them holds."""

    @abstractmethod
    def add_sum(self, terms: list[tuple[Truth, int]], most: int) -> None:
        """The weights of those that hold add up to ``most`` or less.

        Parameters
        ----------
        terms
            What may hold, each with its weight, which may be negative.
        most
            The largest sum that is allowed.
        """


class Engine(Protocol):
    """A search: the best starts within the limit, starting from ``hint`` (ticks per task)."""

    def __call__(self, encoding: Encoding, hint: Ints | None, budget: Budget) -> EngineOutcome: ...
