"""The token simulator's EVICTs and LOADs: posted, crossing a link, waited for.

Each goes over a link of its own kind, one stream per unordered pair of ranks. Which ranks those are
is read from the memory that a transfer changes, not from the programs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from proofs_tests.verify.token_launches import Launch, Launches

Part = tuple[str, int, int, int]  # "F" or "B", stage, microbatch, slice
Move = Callable[[], None]
Movers = dict[Action, tuple[int, int]]  # from which rank to which each EVICT and LOAD goes


class Verdict(Exception):  # noqa: N818 - the end of a run, not an error
    """Ends a run with its verdict."""


def movers_of(problem: Problem, beside: set[Action]) -> Movers:
    """(from, to) of each EVICT and LOAD among the tasks beside: it adds where it goes to."""
    gives: dict[Action, int] = {}
    takes: dict[Action, int] = {}
    tasks, events = list(problem.actions), problem.events
    for t, store, delta in zip(
        events.task.tolist(), events.store.tolist(), events.delta.tolist(), strict=True
    ):
        if tasks[t].kind in (Kind.EVICT, Kind.LOAD) and tasks[t] in beside:
            (takes if delta > 0 else gives)[tasks[t]] = store
    return {task: (gives[task], takes[task]) for task in gives.keys() & takes.keys()}


@dataclass(slots=True, kw_only=True)
class Links:
    """EVICTs and LOADs on their way: ``seen[rank, move]`` is how often a rank came to one."""

    movers: Movers
    is_used: bool
    seen: dict[tuple[int, Action], int] = field(default_factory=lambda: defaultdict(int))
    crossed: set[Action] = field(default_factory=set)
    queues: dict[tuple[int, int], deque[Action]] = field(default_factory=lambda: defaultdict(deque))

    @classmethod
    def of(cls, movers: Movers, orders: list[list[Action]]) -> Links:
        is_used = any(action in movers for row in orders for action in row)
        return cls(movers=movers, is_used=is_used)

    def can_go_on(self, rank: int, move: Action) -> bool:
        return self.seen[rank, move] != 1 or move in self.crossed

    def pass_by(self, rank: int, move: Action, made: set[Part]) -> bool:
        """The first time a rank posts a move (True), the second time it has waited for it."""
        ends = self.movers[move]
        if rank not in ends:
            raise Verdict("foreign")
        self.seen[rank, move] += 1
        if self.seen[rank, move] > 2:
            raise Verdict("twice")
        if self.seen[rank, move] == 1:
            if rank == ends[0] and not self.is_there(rank, move, made):
                raise Verdict("garbage")
            self.queues[rank, sum(ends) - rank].append(move)
        return self.seen[rank, move] == 1

    def is_there(self, rank: int, move: Action, made: set[Part]) -> bool:
        """Whether what a move takes from a rank is there: made, or brought by its EVICT."""
        if move.kind is Kind.EVICT:
            return ("F", move.stage, move.microbatch, move.slice) in made
        return self.seen[rank, _evict(move)] == 2

    def is_away(self, part: Part) -> bool:
        """Whether a backward lacks its activations: those that are evicted are to be loaded."""
        _, stage, microbatch, slice_ = part
        load = Action(stage=stage, kind=Kind.LOAD, microbatch=microbatch, slice=slice_)
        if load not in self.movers:
            return False
        return self.seen[self.movers[load][1], load] < 2

    def crossings(self, launches: Launches) -> list[Move]:
        """Pairs of ranks whose next moves over the link between them go in one direction."""
        found: list[Move] = []
        for (rank, peer), queue in list(self.queues.items()):
            other = self.queues.get((peer, rank))
            if queue and other and self.movers[queue[0]] == self.movers[other[0]] == (rank, peer):
                ends: dict[int, Launch] = {rank: ("link", queue[0]), peer: ("link", other[0])}
                if all(launches.may_pass(*end) for end in ends.items()):
                    found.append(partial(self.cross, queue, other, launches, rank, peer))
        return found

    def cross(
        self,
        sending: deque[Action],
        receiving: deque[Action],
        launches: Launches,
        rank: int,
        peer: int,
    ) -> None:
        launches.passed(rank)
        launches.passed(peer)
        sent = sending.popleft()
        if receiving.popleft() != sent:
            raise Verdict("mismatch")
        self.crossed.add(sent)

    def is_empty(self) -> bool:
        """Whether nothing was posted that its rank did not also wait for."""
        return all(times != 1 for times in self.seen.values())


def _evict(load: Action) -> Action:
    return replace(load, kind=Kind.EVICT)
