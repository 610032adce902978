"""The rows of a lowered program: which of them are a message, and where they do not match.

Every message of the problem (``theory.pipelines.programs.messages``) needs exactly one SEND on the
producer's rank, after the producer, and exactly one RECV on the consumer's rank, before the
consumer; and for each ordered pair of ranks the k-th SEND and the k-th RECV must be the same
message, because neither NCCL nor an untagged queue matches by name; in each flow of its own where
activations and gradients go over two communicators (``per-direction``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import Message, messages
from bubbleproof.verify.communication.channels import Channels, crossed
from bubbleproof.verify.communication.evict_load import PeerTransfers
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.send_waits import SendWaits
from bubbleproof.verify.communication.stream_ends import Flow, StreamEnds
from bubbleproof.verify.communication.training_exchanges import Exchanges
from bubbleproof.verify.communication.waiting_rules import RULES, Stream
from bubbleproof.verify.explain.programs import ProgramFault

ENDS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedTransfer:
    """A message with the rows of its two ends."""

    message: Message
    send: int
    recv: int


class Steps:
    """The rows of a program; ``transfers`` are the messages of which both ends stand once."""

    def __init__(self, problem: Problem, program: Program, *, has_barrier: bool = False) -> None:
        self.problem = problem
        self.rank = program.resource
        self.actions = list(program.actions)
        self.is_transfer = program.actions.is_kind(*ENDS)
        self._is_forward = program.actions.is_kind(Kind.SEND_F)
        task, home = problem.locate(program.actions), np.append(problem.rank_of_task, NONE)
        on_rank = np.flatnonzero(home[task] != NONE)  # others run beside the ranks' computations
        self._row = np.full(problem.num_tasks + 1, NONE, dtype=np.int64)  # of each task, or none
        self._row[task[on_rank]] = on_rank
        rank = self.rank.tolist()
        self.peer_transfers = PeerTransfers(problem, self.actions, rank, on_rank.tolist())
        self.exchanges = Exchanges(
            problem, self.actions, rank, task.tolist(), has_barrier=has_barrier
        )
        self.waits = SendWaits(self.actions, rank)
        self.transfers: list[MatchedTransfer] = []

    @cached_property
    def pairs(self) -> Ints:
        """(SEND, RECV): the rows of each of the ``transfers``, shape (number, 2)."""
        rows = [(t.send, t.recv) for t in self.transfers]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def consumer(self) -> Ints:
        """The row for which each of the ``transfers`` comes, or ``NONE``."""
        return self._row[[t.message.consumer for t in self.transfers]]

    @cached_property
    def inputs(self) -> Ints:
        """(before, after): rows of one rank that wait for each other, shape (number, 2)."""
        edges, rank = self.problem.edges, self.problem.rank_of_task
        same = rank[edges.before] == rank[edges.after]
        rows = np.stack([self._row[edges.before[same]], self._row[edges.after[same]]], axis=1)
        return rows.compress((rows != NONE).all(axis=1), axis=0)

    @cached_property
    def ends(self) -> StreamEnds:
        """The ends of messages, exchanges and transfers."""
        sent, received = self.pairs.T
        flow = np.where(self._is_forward[sent], Flow.FORWARD, Flow.BACKWARD)
        direction = (flow, self.rank[sent], self.rank[received])
        talks = [(row, Flow.EXCHANGE, rank, peer) for rank, row, peer, _ in self.exchanges.ends()]
        links = [(row, Flow.LINK, home, peer) for row, home, peer in self.peer_transfers.ends()]
        return StreamEnds.of(
            [
                np.stack([sent, *direction], axis=1),
                np.stack([received, *direction], axis=1),
                *(np.array(rows, dtype=np.int64).reshape(-1, 4) for rows in (talks, links)),
            ]
        )

    def unmatched(self) -> list[ProgramFault]:
        """Missing, repeated, foreign and misplaced rows."""
        found: list[ProgramFault] = []
        rows: dict[tuple[int, Action], list[int]] = {}
        rank = self.rank.tolist()
        for row in np.flatnonzero(self.is_transfer).tolist():
            rows.setdefault((rank[row], self.actions[row]), []).append(row)
        for message in messages(self.problem):
            send = rows.pop((message.source, message.send), [])
            recv = rows.pop((message.target, message.recv), [])
            found += self._ends(message, send, recv)
            if len(send) == len(recv) == 1:
                self.transfers.append(MatchedTransfer(message=message, send=send[0], recv=recv[0]))
        for (rank, action), where in rows.items():
            sentence = f"{action} on rank {rank} belongs to no message of the problem"
            found.append((sentence, where))
        found += (*self.waits.faults(), *self.peer_transfers.faults(), *self.exchanges.faults())
        return found

    def crossed(self, semantics: Semantics) -> list[ProgramFault]:
        """Channels out of order. Precondition: no row is unmatched."""
        return self._crossed_channels(RULES[semantics].stream is Stream.FLOW)

    def _ends(self, message: Message, send: list[int], recv: list[int]) -> list[ProgramFault]:
        found = []
        for action, rank, where in (
            (message.send, message.source, send),
            (message.recv, message.target, recv),
        ):
            if len(where) != 1:
                sentence = f"{action} stands {len(where)} times on rank {rank}, must stand once"
                found.append((sentence, where))
        producer, consumer = int(self._row[message.producer]), int(self._row[message.consumer])
        if len(send) == 1 and send[0] < producer:
            sentence = f"{message.send} is sent before {self.actions[producer]} has made it"
            found.append((sentence, [send[0], producer]))
        if len(recv) == 1 and recv[0] > consumer != NONE:
            sentence = f"{self.actions[consumer]} runs before {message.recv} has received its input"
            found.append((sentence, [consumer, recv[0]]))
        return found

    def _crossed_channels(self, has_flows: bool) -> list[ProgramFault]:
        """Channels (ordered pairs of ranks) whose k-th SEND and k-th RECV differ.

        Each ``has_flows`` of its own where F and B go over two communicators.
        """
        flows: dict[Kind | None, Channels] = defaultdict(lambda: defaultdict(list))
        for transfer in self.transfers:
            flow = transfer.message.send.kind if has_flows else None
            channel = (transfer.message.source, transfer.message.target)
            flows[flow][channel].append((transfer.send, transfer.recv))
        for rank, row, peer, row_of_peer in self.exchanges.ends():
            flows[None][rank, peer].append((row, row_of_peer))
        return [
            fault
            for channels in flows.values()
            for fault in crossed(channels, self.actions, "message")
        ]
