"""Programs and schedules: an order per resource, and a start per task.

A ``Program`` says in which order each resource does its actions; a ``Schedule`` adds the start of
each in ticks. Both are plain tables and promise nothing: they may miss tasks, repeat them or name
foreign ones. Whether a schedule solves a problem is for ``verify`` to say.

A program may also hold SEND and RECV actions (a *lowered* program, see
``theory.pipelines.programs.lowering``); these stand in the order of their rank's compute stream and
have no duration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from bubbleproof.theory.model.actions import Action, ActionTable, Bools, Ints

MAX_START = 1 << 61  # with durations and lags below 2**60 in sum, no end or span overflows
ClaimedNumber = int | str | Fraction | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """An order per resource: row i does ``actions[i]`` on ``resource[i]``.

    Rows are grouped by resource, resource 0 first, and within a resource stand in execution order.
    Raises ``ValueError`` for other rows (``grouped`` sorts them) and for what is no action.
    """

    actions: ActionTable
    resource: Ints

    def __post_init__(self) -> None:
        if len(self.actions) != len(self.resource):
            raise ValueError(f"{len(self.actions)} actions but {len(self.resource)} resources")
        if len(self.resource) and self.resource.min() < 0:
            raise ValueError(f"resources count from 0, got {self.resource.min()}")
        self.actions.require_actions()
        if len(self.resource) and (np.diff(self.resource) < 0).any():
            row = int(np.argmax(np.diff(self.resource) < 0)) + 1
            raise ValueError(
                f"rows of a program must be grouped by resource, row {row} is on resource "
                f"{self.resource[row]} after {self.resource[row - 1]}; use Program.grouped, or "
                "Schedule.grouped where they have starts"
            )

    @classmethod
    def grouped(cls, *, actions: ActionTable, resource: Ints) -> Program:
        """The program of rows in any order; those of one resource keep theirs.

        Parameters
        ----------
        resource
            The resource of each row of ``actions``.
        """
        order = np.argsort(resource, kind="stable")
        return cls(actions=actions.take(order), resource=resource[order])

    @classmethod
    def from_orders(cls, orders: Sequence[Sequence[Action | str]]) -> Program:
        """The program whose resource r does ``orders[r]``, given as actions or in text form."""
        actions = [Action.parse(a) if isinstance(a, str) else a for order in orders for a in order]
        return cls(
            actions=ActionTable.from_actions(actions),
            resource=np.repeat(np.arange(len(orders)), [len(order) for order in orders]),
        )

    def __len__(self) -> int:
        return len(self.actions)

    def orders(self, num_resources: int) -> list[list[Action]]:
        """The actions of each resource 0..num_resources-1, in order.

        Parameters
        ----------
        num_resources
            At least one more than the greatest resource that a row stands on.
        """
        result: list[list[Action]] = [[] for _ in range(num_resources)]
        for resource, action in zip(self.resource.tolist(), self.actions, strict=True):
            result[resource].append(action)
        return result

    def take(self, rows: Bools | Ints) -> Program:
        """Some rows, by mask or by number; those of a resource stay together.

        Parameters
        ----------
        rows
            One flag per row, or indices of rows that leave those of a resource together.
        """
        return Program(actions=self.actions.take(rows), resource=self.resource[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """A program with the start of each row in ticks, and what its author claims of it.

    ``claims`` maps a measure's name (``makespan``, ``idle_ratio``, ``peak_memory``, ...) to the
    claimed value; ``verify`` compares it with the measured one. ``duration`` has the ticks of each
    row where they are known: iterating gives (action, rank or other resource, start, end).
    """

    program: Program
    start: Ints
    claims: Mapping[str, ClaimedNumber] = field(default_factory=dict)
    duration: Ints | None = None

    def __post_init__(self) -> None:
        # a copy, as a plain table: a view of one (``MappingProxyType``) travels to no other process
        object.__setattr__(self, "claims", dict(self.claims))
        if len(self.program) != len(self.start):
            raise ValueError(f"{len(self.program)} actions but {len(self.start)} starts")
        if len(self.start) and not -MAX_START < self.start.min() <= self.start.max() < MAX_START:
            worst = max(self.start.min(), self.start.max(), key=lambda start: abs(int(start)))
            raise ValueError(f"starts must lie within 2**61 ticks of 0, got {worst}")

    @classmethod
    def grouped(
        cls,
        *,
        actions: ActionTable,
        resource: Ints,
        start: Ints,
        claims: Mapping[str, ClaimedNumber] | None = None,
    ) -> Schedule:
        """The schedule of rows in any order, each with its start; those of a resource keep theirs.

        Parameters
        ----------
        resource
            The resource of each row of ``actions``.
        start
            The tick at which each row starts.
        claims
            Numbers that the schedule is said to have, by name.

        Raises
        ------
        ValueError
            For columns of different lengths.
        """
        if not len(actions) == len(resource) == len(start):
            raise ValueError(
                f"{len(actions)} actions but {len(resource)} resources and {len(start)} starts"
            )
        order = np.argsort(resource, kind="stable")
        program = Program(actions=actions.take(order), resource=resource[order])
        return cls(program=program, start=start[order], claims=claims or {})

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[tuple[Action, int, int, int]]:
        if self.duration is None:
            raise ValueError("the ends of this schedule are not known: it holds starts alone")
        columns = self.program.resource, self.start, self.start + self.duration
        return zip(self.program.actions, *(each.tolist() for each in columns), strict=True)

    def __repr__(self) -> str:
        """How many rows on how many resources, and when the first and the last of them start."""
        if not len(self.start):
            return "<Schedule: empty>"
        used = len(np.unique(self.program.resource))
        when = f"{self.start.min()} to {self.start.max()}"
        return f"<Schedule: {len(self)} rows on {used} resources, starting at {when}>"
