"""A second judge of rule 6: run the programs token by token and see what happens.

It executes a lowered program under one semantics in a seeded random interleaving. Transfers match
by order alone, as they do on the wire; each carries a token that says what it is, so a wrong match
is seen when it happens. Nothing is shared with ``verify.communication.matching``: messages follow
from the stages' neighbours, not from ``theory.pipelines.programs.messages``, and there is no graph
and no cycle, only a program that can or cannot go on. Verdicts:

``ok``         every program ran to its end and every token sent was received
``stuck``      nobody can go on
``mismatch``   a RECV got another token than it names
``garbage``    a SEND was reached before its token was made
``foreign``    a SEND or RECV that no two tasks of the problem need, or on another rank
``twice``      a token arrived a second time, or a transfer was posted or waited for again
``left over``  all programs ended, and some token was never received, or never waited for

A WAIT_SEND goes on once its token has arrived; where sends are buffered, once it was posted.

EVICT and LOAD may stand in the programs of the two ranks whose memory they change: the first time a
rank comes to one it posts it and goes on, the second time it waits. They carry tokens of their own
over links of their own, one stream per unordered pair of ranks. What a device may start before what
is ``token_launches``. ``one-queue`` is a device with one queue for computations and ends alike: a
rank stops at every post until it has passed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from proofs_tests.verify.token_launches import Launch, Launches
from proofs_tests.verify.token_links import Links, Move, Movers, Part, Verdict, movers_of

End = tuple[str, Part, int]  # "send" or "recv", token, peer
Post = tuple[str, Part, int, int]  # and where in the program it stands

SEMANTICS = ("buffered", "rendezvous", "pair-stream", "launch-order", "rank-stream", "one-queue")
MEETING = ("rendezvous", "one-queue")
_DIRECTION = {
    Kind.SEND_F: ("F", 1),
    Kind.RECV_F: ("F", 1),
    Kind.SEND_B: ("B", -1),
    Kind.RECV_B: ("B", -1),
}
_SENDS = (Kind.SEND_F, Kind.SEND_B)
WAITS = {Kind.WAIT_SEND_F: "F", Kind.WAIT_SEND_B: "B"}


def parts_of(action: Action) -> list[Part]:
    """The forward and the backward that an action computes (an overlap computes both)."""
    where = (action.stage, action.microbatch, action.slice)
    if action.partner is not None:
        return [("F", *where), *parts_of(action.partner)]
    letter = {Kind.F: "F", Kind.B: "B", Kind.I: "B"}.get(action.kind)
    return [(letter, *where)] if letter else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Who computes which part, what every task waits for on its own rank, and by message."""

    rank_of: dict[Part, int]
    local: dict[Action, set[Action]]
    inputs: dict[Action, set[Part]]
    movers: Movers

    @classmethod
    def of(cls, problem: Problem) -> Wiring:
        tasks = list(problem.actions)
        homes = zip(
            problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
        )
        # A task of a link or copy engine alone stands in no rank's program.
        rank = {tasks[t]: r for t, r in homes if r < problem.num_ranks}
        rank_of = {part: rank[task] for task in rank for part in parts_of(task)}
        local: dict[Action, set[Action]] = {task: set() for task in rank}
        edges = problem.edges
        for a, b in zip(edges.before.tolist(), edges.after.tolist(), strict=True):
            before, after = tasks[a], tasks[b]
            if before in rank and after in rank and rank[before] == rank[after]:
                local[after].add(before)
        inputs = {
            task: {
                source
                for part in parts_of(task)
                for source in [neighbour(part, -1)]
                if rank_of.get(source, rank[task]) != rank[task]
            }
            for task in rank
        }
        movers = movers_of(problem, {task for task in tasks if task not in rank})
        return cls(rank_of=rank_of, local=local, inputs=inputs, movers=movers)

    def post(self, rank: int, action: Action) -> End:
        """The token and the peer of a SEND or RECV; raises ``Verdict`` for a foreign one."""
        letter, _ = _DIRECTION[action.kind]
        mine: Part = (letter, action.stage, action.microbatch, action.slice)
        is_send = action.kind in _SENDS
        token = mine if is_send else neighbour(mine, -1)
        theirs = neighbour(mine, 1) if is_send else token
        peer = self.rank_of.get(theirs, rank)
        if self.rank_of.get(mine) != rank or peer == rank:
            raise Verdict("foreign")
        return ("send" if is_send else "recv", token, peer)


def neighbour(part: Part, steps: int) -> Part:
    """The part ``steps`` later in the flow of its direction: stages rise forward, fall backward."""
    letter, stage, microbatch, slice_ = part
    return (letter, stage + steps * (1 if letter == "F" else -1), microbatch, slice_)


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution; ``streams[rank, name]`` are the transfers a rank posted and did not finish."""

    wiring: Wiring
    orders: list[list[Action]]
    semantics: str
    random: Random
    position: list[int] = field(default_factory=list)
    done: set[Action] = field(default_factory=set)
    made: set[Part] = field(default_factory=set)
    arrived: set[Part] = field(default_factory=set)
    links: Links = field(init=False)
    launches: Launches = field(init=False)
    places: list[Callable[[], list[Move]]] = field(init=False)
    posted: set[tuple[int, Part]] = field(default_factory=set)  # sends, by rank
    waited: set[tuple[int, Part]] = field(default_factory=set)
    held: dict[int, Action] = field(default_factory=dict)  # what a rank stopped at (one-queue)
    streams: dict[tuple[int, object], deque[Post]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def verdict(self) -> str:
        self.position = [0] * len(self.orders)
        self.links = Links.of(self.wiring.movers, self.orders)
        self.launches = Launches(semantics=self.semantics)
        self.places = self._places()
        try:
            while moves := self.some_moves():
                (moves[0] if len(moves) == 1 else self.random.choice(moves))()
        except Verdict as end:
            return str(end)
        if any(self.next(rank) is not None for rank in range(len(self.orders))):
            return "stuck"
        if self.waited and self.waited != self.posted:
            return "left over"
        waiting = {kind for stream in self.streams.values() for kind, *_ in stream}
        if waiting == {"send"} or (not waiting and not self.links.is_empty()):
            return "left over"
        return "stuck" if waiting else "ok"

    def next(self, rank: int) -> Action | None:
        order, at = self.orders[rank], self.position[rank]
        return order[at] if at < len(order) else None

    def some_moves(self) -> list[Move]:
        """What could happen now at a place drawn at random where anything could; else nothing."""
        for rank in [rank for rank, move in self.held.items() if move in self.links.crossed]:
            del self.held[rank]
        drawn = self.random.random
        for place in sorted(self.places, key=lambda _: drawn()):
            if found := place():
                return found
        return []

    def _places(self) -> list[Callable[[], list[Move]]]:
        """Who can make something happen: each rank, messages, launches, and links."""
        found: list[Callable[[], list[Move]]] = [
            partial(self.moves_of_rank, rank) for rank in range(len(self.orders))
        ]
        found.append(self.meetings if self.semantics in MEETING else self.transfers)
        if self.semantics == "launch-order":
            found.append(partial(self.launches.starts, self.is_first))
        return (
            [*found, partial(self.links.crossings, self.launches)] if self.links.is_used else found
        )

    def moves_of_rank(self, rank: int) -> list[Move]:
        action = None if rank in self.held else self.next(rank)
        return [] if action is None else self.own_moves(rank, action)

    def own_moves(self, rank: int, action: Action) -> list[Move]:
        """What a rank can do by itself about the action it has come to."""
        move: Callable[[int, Action], None]
        if self.links.is_used and action in self.wiring.movers:
            move, is_able = self.move, self.links.can_go_on(rank, action)
        elif action.kind in WAITS:
            move, is_able = self.go_on, self.has_left(rank, action)
        elif action.kind not in _DIRECTION:
            move, is_able = self.compute, self.is_ready(action)
        else:
            move, is_able = self.enqueue, self.semantics not in MEETING
        return [partial(move, rank, action)] if is_able else []

    def has_left(self, rank: int, action: Action) -> bool:
        """Whether what a WAIT_SEND waits for has left; raises ``Verdict`` where it was not sent."""
        token: Part = (WAITS[action.kind], action.stage, action.microbatch, action.slice)
        if (rank, token) not in self.posted:
            raise Verdict("foreign")
        return self.semantics == "buffered" or token in self.arrived

    def go_on(self, rank: int, action: Action) -> None:
        token: Part = (WAITS[action.kind], action.stage, action.microbatch, action.slice)
        if (rank, token) in self.waited:
            raise Verdict("twice")
        self.waited.add((rank, token))
        self.position[rank] += 1

    def is_first(self, rank: int, launch: Launch) -> bool:
        """Whether a launch is first in its own stream."""
        kind, which = launch
        if kind == "message":
            return any(
                queue[0][3] == which
                for (r, _), queue in self.streams.items()
                if r == rank and queue
            )
        return any(
            queue[0] == which for (r, _), queue in self.links.queues.items() if r == rank and queue
        )

    def is_ready(self, task: Action) -> bool:
        if not self.wiring.local[task] <= self.done or not self.wiring.inputs[task] <= self.arrived:
            return False
        return not self.links.is_used or not any(
            self.links.is_away(part) for part in parts_of(task) if part[0] == "B"
        )

    def move(self, rank: int, action: Action) -> None:
        """Post an EVICT or a LOAD, or go on after its end."""
        is_post = self.links.pass_by(rank, action, self.made)
        if is_post:
            self.launches.add(rank, ("link", action))
        if is_post and self.semantics == "one-queue":
            self.held[rank] = action
        self.position[rank] += 1

    def compute(self, rank: int, task: Action) -> None:
        self.done.add(task)
        self.made.update(parts_of(task))
        self.position[rank] += 1

    def checked_post(self, rank: int, action: Action) -> Post:
        kind, token, peer = self.wiring.post(rank, action)
        if kind == "send" and token not in self.made:
            raise Verdict("garbage")
        return kind, token, peer, self.position[rank]

    def enqueue(self, rank: int, action: Action) -> None:
        """Post a transfer to its stream and go on."""
        post = kind, _, peer, number = self.checked_post(rank, action)
        self.streams[rank, self.stream(kind, rank, peer)].append(post)
        self.launches.add(rank, ("message", number))
        if kind == "send":
            self.posted.add((rank, post[1]))
        self.position[rank] += 1

    def stream(self, kind: str, rank: int, peer: int) -> object:
        """Buffered: one per direction; rank-stream: one in all; the others: one per pair."""
        if self.semantics == "buffered":
            return (rank, peer) if kind == "send" else (peer, rank)
        return None if self.semantics == "rank-stream" else frozenset((rank, peer))

    def transfers(self) -> list[Move]:
        """Pairs of stream heads that are a SEND and a RECV to each other."""
        heads = [
            (rank, queue)
            for (rank, _), queue in self.streams.items()
            if queue and self.launches.may_pass(rank, ("message", queue[0][3]))
        ]
        found: list[Move] = []
        for rank, queue in heads:
            kind, _, peer, _ = queue[0]
            for other, opposite in heads:
                if kind == "send" and other == peer and opposite[0][::2] == ("recv", rank):
                    found.append(partial(self.transfer, rank, queue, peer, opposite))
        return found

    def transfer(self, rank: int, sending: deque[Post], peer: int, receiving: deque[Post]) -> None:
        self.launches.passed(rank)
        self.launches.passed(peer)
        self.deliver(sending.popleft()[1], receiving.popleft()[1])

    def meetings(self) -> list[Move]:
        """Pairs of ranks of which one is about to SEND and the other to RECV."""
        posts: dict[int, Post] = {}
        for rank in range(len(self.orders)):
            action = self.next(rank)
            if action is not None and action.kind in _DIRECTION and rank not in self.held:
                posts[rank] = self.checked_post(rank, action)
        return [
            partial(self.meet, rank, peer, posts)
            for rank, (kind, _, peer, _) in posts.items()
            if kind == "send" and peer in posts and posts[peer][::2] == ("recv", rank)
        ]

    def meet(self, rank: int, peer: int, posts: dict[int, Post]) -> None:
        self.posted.add((rank, posts[rank][1]))
        self.deliver(posts[rank][1], posts[peer][1])
        self.position[rank] += 1
        self.position[peer] += 1

    def deliver(self, token: Part, expected: Part) -> None:
        if token != expected:
            raise Verdict("mismatch")
        if token in self.arrived:
            raise Verdict("twice")
        self.arrived.add(token)


def simulate(wiring: Wiring, orders: list[list[Action]], semantics: str, seed: int) -> str:
    """The verdict of one seeded run."""
    return Run(wiring=wiring, orders=orders, semantics=semantics, random=Random(seed)).verdict()
