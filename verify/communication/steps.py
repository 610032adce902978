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

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import Message, messages
from bubbleproof.verify.communication.channels import Channels, crossed
from bubbleproof.verify.communication.evict_load import PeerTransfers
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.send_waits import SendWaits
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
        self.rank = program.resource.tolist()
        self.actions = list(program.actions)
        self.is_transfer = program.actions.is_kind(*ENDS).tolist()
        task, home = problem.locate(program.actions), np.append(problem.rank_of_task, NONE)
        on_rank = (home[task] != NONE).tolist()  # the others run beside the ranks' computations
        self.row_of_task = {t: row for row, t in enumerate(task.tolist()) if on_rank[row]}
        self.peer_transfers = PeerTransfers(
            problem, self.actions, self.rank, self.row_of_task.values()
        )
        self.exchanges = Exchanges(
            problem, self.actions, self.rank, task.tolist(), has_barrier=has_barrier
        )
        self.waits = SendWaits(self.actions, self.rank)
        self.transfers: list[MatchedTransfer] = []

    def unmatched(self) -> list[ProgramFault]:
        """Missing, repeated, foreign and misplaced rows."""
        found: list[ProgramFault] = []
        rows: dict[tuple[int, Action], list[int]] = {}
        for row, action in enumerate(self.actions):
            if self.is_transfer[row]:
                rows.setdefault((self.rank[row], action), []).append(row)
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
        producer = self.row_of_task.get(message.producer)
        consumer = self.row_of_task.get(message.consumer)
        if producer is not None and len(send) == 1 and send[0] < producer:
            sentence = f"{message.send} is sent before {self.actions[producer]} has made it"
            found.append((sentence, [send[0], producer]))
        if consumer is not None and len(recv) == 1 and recv[0] > consumer:
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
