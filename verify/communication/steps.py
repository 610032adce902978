"""The rows of a lowered program: which of them are a message, and where they do not match.

Every message of the problem (``theory.pipelines.programs.messages``) needs exactly one SEND on the
producer's rank, after the producer, and exactly one RECV on the consumer's rank, before the
consumer; and for each ordered pair of ranks the k-th SEND and the k-th RECV must be the same
message, because neither NCCL nor an untagged queue matches by name; in each flow of its own where
activations and gradients go over two communicators (``per-direction``).

An *end* of a message, an exchange or a transfer is one row of a program that sends to another rank,
receives from it, or both; an exchange has one for each direction in which it talks. A semantics
puts the ends of each rank in streams (``waiting_rules``), which hold them in program order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import Message, MessageTable, message_table
from bubbleproof.verify.communication.evict_load import Channels, PeerTransfers, crossed
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.send_waits import SendWaits
from bubbleproof.verify.communication.training_exchanges import Exchanges, Joint
from bubbleproof.verify.communication.waiting_rules import RULES, Stream
from bubbleproof.verify.explain.programs import ProgramFault

ENDS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)


class Steps:
    """The rows of a program, and of messages ``pairs``, the rows of a SEND and of its RECV.

    ``is_plain``: there is nothing but messages and computations of ranks. ``moment`` may tell when
    each row happens in some order of all; nothing rests on its being right.

    Precondition of all but ``unmatched``: there are no unmatched rows.
    """

    def __init__(
        self,
        problem: Problem,
        program: Program,
        joint: Joint = (False, ()),
        moment: Ints | None = None,
    ) -> None:
        self.problem, self.actions, self.rank = problem, program.actions, program.resource
        self.moment = moment
        self.is_transfer = program.actions.is_kind(*ENDS)
        self._is_forward = program.actions.is_kind(Kind.SEND_F)
        task, home = problem.locate(program.actions), np.append(problem.rank_of_task, NONE)
        on_rank = np.flatnonzero(home[task] != NONE)  # others run beside the ranks' computations
        self.is_plain = bool((self.is_transfer | (home[task] != NONE)).all())
        self._row = np.full(problem.num_tasks + 1, NONE, dtype=np.int64)  # of each task, or none
        self._row[task[on_rank]] = on_rank
        self.peer_transfers = PeerTransfers(problem, program, on_rank)
        self.exchanges = Exchanges(problem, program, task, joint)
        self.waits = SendWaits(program)
        self._messages = message_table(problem)
        self._ends = MessageEnds(program, self.is_transfer, self._messages)
        self._crossed: dict[bool, list[ProgramFault]] = {}

    @cached_property
    def pairs(self) -> Ints:
        """(SEND, RECV): the rows of each message, shape (number, 2)."""
        return np.stack([self._ends.send, self._ends.recv], axis=1)

    @cached_property
    def consumer(self) -> Ints:
        """The row for which each message comes, or ``NONE``."""
        return self._row[self._messages.consumer]

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
        more = [(row, Flow.EXCHANGE, rank, peer) for rank, row, peer, _ in self.exchanges.ends()]
        more += [(row, Flow.LINK, home, peer) for row, home, peer in self.peer_transfers.ends()]
        both = [(sent, received), *zip(direction, direction, strict=True)]
        rows = np.array(more, dtype=np.int64).reshape(-1, 4).T
        columns = [np.concatenate([*two, other]) for two, other in zip(both, rows, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return StreamEnds(*(column[order] for column in columns))

    def unmatched(self) -> list[ProgramFault]:
        """Missing, repeated, foreign and misplaced rows."""
        ends, found = self._ends, list[ProgramFault]()
        producer, consumer = self._row[self._messages.producer], self.consumer
        wrong = ~ends.is_whole | (ends.send < producer)
        wrong |= (ends.recv > consumer) & (consumer != NONE)
        for number in np.flatnonzero(wrong).tolist():
            places = int(producer[number]), int(consumer[number])
            found += self._misplaced(self._messages[number], *ends.rows_of(number), *places)
        for rows in ends.foreign():
            where = f"{self.actions[rows[0]]} on rank {self.rank[rows[0]]}"
            found.append((f"{where} belongs to no message of the problem", rows))
        found += (*self.waits.faults(), *self.peer_transfers.faults(), *self.exchanges.faults())
        return found

    def crossed(self, semantics: Semantics) -> list[ProgramFault]:
        """Channels out of order, of each flow its own where F and B go over two communicators."""
        has_flows = RULES[semantics].stream is Stream.FLOW
        if has_flows not in self._crossed:
            self._crossed[has_flows] = self._crossed_channels(has_flows=has_flows)
        return self._crossed[has_flows]

    def _misplaced(
        self, message: Message, send: list[int], recv: list[int], producer: int, consumer: int
    ) -> Iterator[ProgramFault]:
        """What is wrong with the rows of a message; ``producer`` and ``consumer`` are rows."""
        for action, rank, where in (
            (message.send, message.source, send),
            (message.recv, message.target, recv),
        ):
            if len(where) != 1:
                sentence = f"{action} stands {len(where)} times on rank {rank}, must stand once"
                yield sentence, where
        if len(send) == 1 and send[0] < producer:
            sentence = f"{message.send} is sent before {self.actions[producer]} has made it"
            yield sentence, [send[0], producer]
        if len(recv) == 1 and recv[0] > consumer != NONE:
            sentence = f"{self.actions[consumer]} runs before {message.recv} has received its input"
            yield sentence, [consumer, recv[0]]

    def _crossed_channels(self, *, has_flows: bool) -> list[ProgramFault]:
        """Channels (ordered pairs of ranks) whose k-th SEND and k-th RECV differ."""
        flows: dict[int, Channels] = defaultdict(lambda: defaultdict(list))
        sent, received = self.pairs.T
        flow = has_flows * (1 + self._is_forward[sent])  # 0 where all go over one communicator
        columns = [flow, self.rank[sent], self.rank[received], sent, received]
        talks = list(self.exchanges.ends())
        if not talks:  # channels whose two orders are one have no fault
            channel = np.ravel_multi_index(columns[:3], (3, *2 * [1 + self.rank.max(initial=0)]))
            by_sent, by_received = (np.lexsort((rows, channel)) for rows in (sent, received))
            differs = np.isin(channel, channel[by_sent[by_sent != by_received]])
            columns = [column[differs] for column in columns]
        for of, source, target, *rows in zip(*(c.tolist() for c in columns), strict=True):
            flows[of][source, target].append((rows[0], rows[1]))
        for rank, row, peer, row_of_peer in talks:
            flows[0][rank, peer].append((row, row_of_peer))
        return [
            fault
            for channels in flows.values()
            for fault in crossed(channels, self.actions, "message")
        ]


class MessageEnds:
    """The rows of the SEND and of the RECV of each message.

    ``is_whole``: both stand once. ``send`` and ``recv`` are their rows then, and any row otherwise.
    """

    def __init__(self, program: Program, is_end: Bools, messages: MessageTable) -> None:
        """``is_end``: which rows of the program are ends of messages."""
        rows = np.flatnonzero(is_end)
        keys = program.actions.keys()[rows], messages.send.keys(), messages.recv.keys()
        place = np.unique(np.concatenate(keys), return_inverse=True)[1].ravel()
        ranks = np.concatenate([program.resource[rows], messages.source, messages.target])
        place = place * (1 + ranks.max(initial=0)) + ranks
        del keys, ranks  # of a large program each is as much as all that is kept
        found, wanted = np.split(place, [len(rows)])
        order = np.argsort(found, kind="stable")
        self._rows, found = rows[order], found[order]
        self._begin = np.searchsorted(found, wanted)
        again = np.ones(len(wanted), dtype=np.bool_)  # what is wanted twice stands for the first
        again[np.unique(wanted, return_index=True)[1]] = False
        self._stop = np.where(again, self._begin, np.searchsorted(found, wanted, side="right"))
        self.is_whole: Bools = (self._stop - self._begin == 1).reshape(2, -1).all(axis=0)
        self.send, self.recv = np.append(self._rows, NONE)[self._begin].reshape(2, -1)
        ends = (np.bincount(at, minlength=len(found) + 1) for at in (self._begin, self._stop))
        is_foreign = np.subtract(*ends).cumsum()[:-1] == 0  # between a begin and its stop it is not
        self._foreign = self._rows[is_foreign], found[is_foreign]

    def rows_of(self, number: int) -> tuple[list[int], list[int]]:
        """All rows of a message's SEND, and of its RECV.

        Parameters
        ----------
        number
            Of the message, in the order of the table.
        """
        send, recv = (
            self._rows[self._begin[end] : self._stop[end]].tolist()
            for end in (number, number + len(self.send))
        )
        return send, recv

    def foreign(self) -> list[list[int]]:
        """The rows of each end that no message has, in the order of their first."""
        rows: dict[int, list[int]] = {}
        for row, place in zip(*(column.tolist() for column in self._foreign), strict=True):
            rows.setdefault(place, []).append(row)
        return sorted(rows.values())


class Flow(IntEnum):
    """What an end carries."""

    FORWARD = 0
    BACKWARD = 1
    EXCHANGE = 2
    LINK = 3  # EVICT and LOAD


@dataclass(frozen=True, slots=True)
class StreamEnds:
    """Columns of one length in program order: the row of each end, what it carries, and between
    which ranks, in the direction of the message."""

    row: Ints
    flow: Ints
    source: Ints
    target: Ints

    def in_streams(self, stream: Stream, rank: Ints) -> tuple[Ints, Ints]:
        """The rows of all ends stream by stream, in program order in each, and a number for each
        row's stream; ``rank`` is that of each row of the program.

        Parameters
        ----------
        rank
            The rank of each row of the program.
        """
        is_link = self.flow == Flow.LINK
        low, high = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        nothing = np.zeros_like(low)
        first, second = {
            Stream.RANK: (nothing, nothing),
            Stream.PAIR: (low, high),
            Stream.ORDERED_PAIR: (self.source, self.target),
            Stream.FLOW: (self.flow, nothing),
            Stream.PARITY: (self.source % 2, nothing),
        }[stream]
        if stream is not Stream.RANK:
            first, second = np.where(is_link, low, first), np.where(is_link, high, second)
        kind = nothing if stream is Stream.RANK else is_link.astype(np.int64)
        size = 1 + max(max(c.max(initial=0) for c in (first, second)), 1)
        number = ((rank[self.row] * 2 + kind) * size + first) * size + second
        order = np.argsort(number, kind="stable")
        return self.row[order], number[order]
