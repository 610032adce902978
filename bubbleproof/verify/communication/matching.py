"""Rule 6: do the SENDs and RECVs of a lowered program match, and can it get stuck?

Every message of the problem (``theory.pipelines.messages``) needs exactly one SEND on the
producer's rank, after the producer, and exactly one RECV on the consumer's rank, before the
consumer; and for each ordered pair of ranks the k-th SEND and the k-th RECV must be the same
message, because neither NCCL nor an untagged queue matches by name. Whether the program can then
get stuck depends on what SEND and RECV wait for. A rank computes in program order; a computation
waits for the RECVs of its inputs. The named semantics:

``buffered``
    Neither SEND nor RECV blocks its rank: both are posted where the program reaches them (isend and
    irecv). A SEND is then done (unbounded buffer); a RECV is done when its message, and all earlier
    ones from the same rank, were sent, and what waits for it is the computation that needs it.
``rendezvous``
    SEND and RECV block: each is one step of its rank's program, and both ends finish together
    (MPI_Ssend and MPI_Recv; ``dist.send`` and ``dist.recv`` on gloo or a single CUDA stream).
``pair-stream``
    SEND and RECV are posted when the program reaches them and do not block; a transfer runs when
    both ends are posted and it is next, on both ranks, in the one stream of its *unordered* pair of
    ranks (un-batched isend/irecv on NCCL).
``rank-stream``
    as ``pair-stream``, but each rank has one stream for all its transfers (NCCL with eager
    initialisation, where all point-to-point operations share the group's communicator).

EVICT and LOAD may stand in the programs of their ranks too (``evict_load``), and so may the
exchanges of a training and the barrier before its STEPs (``training_exchanges``). A program that is
run several times, each pass after the other on every rank, needs no more than one pass: no wait
leads from a later pass to an earlier one, so what has no cycle in one has none in all, and channels
that match in each pass match in all.

The rules give a graph of "waits for" over steps; the program is free of deadlock exactly when the
graph has no cycle. Each semantics is deterministic in what can complete, so no interleaving needs
to be searched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, NONE, Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.links import program_without_messages, without_messages
from bubbleproof.theory.pipelines.messages import Message, messages
from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.communication.channels import Channels, crossed
from bubbleproof.verify.communication.evict_load import PeerTransfers
from bubbleproof.verify.communication.training_exchanges import Exchanges
from bubbleproof.verify.explain.programs import Fault, violation
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import SHOWN, Decision, Verdict


class Semantics(StrEnum):
    """What SEND and RECV wait for; see the module's text."""

    BUFFERED = "buffered"
    RENDEZVOUS = "rendezvous"
    PAIR_STREAM = "pair-stream"
    RANK_STREAM = "rank-stream"


def check_communication(
    problem: Problem,
    program: Program,
    semantics: Sequence[Semantics] = tuple(Semantics),
    *,
    has_barrier: bool = False,
) -> Verdict:
    """Decide rule 6 for a lowered program, once per semantics.

    Its rows are computations, SENDs and RECVs and, posted and waited for, EVICTs and LOADs; in a
    training also REDUCE_GRADs and STEPs, before the first of which all ranks wait for each other
    where it ``has_barrier``.
    """
    program = program_without_messages(problem, program)
    problem = without_messages(problem)
    steps = _Steps(problem, program, has_barrier=has_barrier)
    unmatched = steps.unmatched()
    decisions = []
    for number, name in enumerate(semantics):
        faults = unmatched or steps.deadlock(name)
        shown = faults[:SHOWN] if number == 0 or not unmatched else []
        told = tuple(violation(problem, program, Rule.COMMUNICATION, fault) for fault in shown)
        decisions.append(
            Decision(rule=Rule.COMMUNICATION, count=len(faults), violations=told, detail=name.value)
        )
    return Verdict(decisions=tuple(decisions))


def compute_part(program: Program) -> Program:
    """The program without its SEND and RECV rows."""
    return program.take(~program.actions.is_kind(*COMMUNICATION_KINDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transfer:
    """A message with the rows of its two ends."""

    message: Message
    send: int
    recv: int


class _Steps:
    """The rows of a program and who waits for whom; row numbers are the graph's nodes."""

    def __init__(self, problem: Problem, program: Program, *, has_barrier: bool = False) -> None:
        self.problem = problem
        self.rank = program.resource.tolist()
        self.actions = list(program.actions)
        self.is_transfer = program.actions.is_kind(*COMMUNICATION_KINDS).tolist()
        task, home = problem.locate(program.actions), np.append(problem.rank_of_task, NONE)
        on_rank = (home[task] != NONE).tolist()  # the others run beside the ranks' computations
        self.row_of_task = {t: row for row, t in enumerate(task.tolist()) if on_rank[row]}
        self.peer_transfers = PeerTransfers(
            problem, self.actions, self.rank, self.row_of_task.values()
        )
        self.exchanges = Exchanges(
            problem, self.actions, self.rank, task.tolist(), has_barrier=has_barrier
        )
        self.transfers: list[_Transfer] = []

    def unmatched(self) -> list[Fault]:
        """Missing, repeated, foreign and misplaced SENDs and RECVs, and channels out of order."""
        found: list[Fault] = []
        rows: dict[tuple[int, Action], list[int]] = {}
        for row, action in enumerate(self.actions):
            if self.is_transfer[row]:
                rows.setdefault((self.rank[row], action), []).append(row)
        for message in messages(self.problem):
            send = rows.pop((message.source, message.send), [])
            recv = rows.pop((message.target, message.recv), [])
            found += self._ends(message, send, recv)
            if len(send) == len(recv) == 1:
                self.transfers.append(_Transfer(message=message, send=send[0], recv=recv[0]))
        for (rank, action), where in rows.items():
            sentence = f"{action} on rank {rank} belongs to no message of the problem"
            found.append((sentence, where))
        faults = (*self.peer_transfers.faults(), *self.exchanges.faults())
        found += faults
        return found or self._crossed_channels()

    def _ends(self, message: Message, send: list[int], recv: list[int]) -> list[Fault]:
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

    def _crossed_channels(self) -> list[Fault]:
        """Channels (ordered pairs of ranks) whose k-th SEND and k-th RECV differ."""
        channels: Channels = defaultdict(list)
        for transfer in self.transfers:
            channel = (transfer.message.source, transfer.message.target)
            channels[channel].append((transfer.send, transfer.recv))
        for rank, row, peer, row_of_peer in self.exchanges.ends():
            channels[rank, peer].append((row, row_of_peer))
        return list(crossed(channels, self.actions, "message"))

    def deadlock(self, semantics: Semantics) -> list[Fault]:
        """One fault with the chain of waiting, or none. Precondition: all messages match."""
        edges = self._edges(semantics)
        before = np.array([edge[0] for edge in edges], dtype=np.int64)
        after = np.array([edge[1] for edge in edges], dtype=np.int64)
        cycle = find_cycle(len(self.actions), before, after)
        if not cycle:
            return []
        recv_of = {transfer.send: transfer.recv for transfer in self.transfers}
        names = [
            self._name(row, recv_of if semantics is not Semantics.BUFFERED else {}) for row in cycle
        ]
        chain = " waits for ".join([*names, names[0]])
        return [(f"deadlock under {semantics.value}: {chain}", cycle)]

    def _name(self, row: int, recv_of: dict[int, int]) -> str:
        name = f"{self.actions[row]} on rank {self.rank[row]}"
        if row in recv_of:
            name += f" (with {self.actions[recv_of[row]]} on rank {self.rank[recv_of[row]]})"
        return name

    def _edges(self, semantics: Semantics) -> list[tuple[int, int]]:
        """(before, after) rows. Unless buffered, a message is one node: the row of its SEND."""
        buffered = semantics is Semantics.BUFFERED
        merged = self.peer_transfers.merged() | self.exchanges.merged()
        if not buffered:
            merged |= {t.recv: t.send for t in self.transfers}
        node = [merged.get(row, row) for row in range(len(self.actions))]
        edges = self._program_order(node, blocking=semantics is Semantics.RENDEZVOUS)
        edges += self._local_inputs() + self.peer_transfers.edges()
        for transfer in self.transfers:
            if buffered:
                edges.append((transfer.send, transfer.recv))
            consumer = self.row_of_task.get(transfer.message.consumer)
            if consumer is not None:
                edges.append((node[transfer.recv], consumer))
        return edges + self._stream_order(node, semantics)

    def _program_order(self, node: list[int], *, blocking: bool) -> list[tuple[int, int]]:
        """Each row after the last its rank waited for: SEND and RECV only where they block."""
        edges = []
        last: dict[int, int] = {}
        posts = self.peer_transfers.posts()
        for row, rank in enumerate(self.rank):
            if rank in last and last[rank] != node[row]:
                edges.append((last[rank], node[row]))
            if row not in posts and (blocking or not self.is_transfer[row]):
                last[rank] = node[row]
        return edges

    def _local_inputs(self) -> list[tuple[int, int]]:
        """Precedences between tasks of one rank."""
        edges, rank = self.problem.edges, self.problem.rank_of_task
        same = rank[edges.before] == rank[edges.after]
        pairs = zip(edges.before[same].tolist(), edges.after[same].tolist(), strict=True)
        row = self.row_of_task
        return [(row[a], row[b]) for a, b in pairs if a in row and b in row]

    def _stream_order(self, node: list[int], semantics: Semantics) -> list[tuple[int, int]]:
        """Each transfer after the one before it in its stream, on both of its ranks."""
        streams: dict[tuple[int, object], list[int]] = {}
        ends = [
            (row, t.message.source, t.message.target)
            for t in self.transfers
            for row in (t.send, t.recv)
        ]
        for rank, row, peer, row_of_peer in self.exchanges.ends():
            ends += [(row, rank, peer), (row_of_peer, rank, peer)]
        for row, source, target in sorted(ends):
            if semantics is Semantics.PAIR_STREAM:
                stream: object = frozenset((source, target))
            elif semantics is Semantics.BUFFERED:
                stream = (source, target)
            else:
                stream = None
            own = streams.setdefault((self.rank[row], stream), [])
            if not own or own[-1] != node[row]:
                own.append(node[row])
        return [pair for rows in streams.values() for pair in pairwise(rows)]
