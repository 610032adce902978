"""Whether a program whose messages match can get stuck under one semantics.

What may happen under a semantics (``semantics``) makes a graph of "waits for": its nodes are the
rows of the program, a message's two ends one node, as they end together; where ends start in order
or in batches also the start of each end, and the end of each batch; and the making of a
communicator. The program is free of deadlock exactly when the graph has no cycle. No interleaving
needs to be searched, since what may happen stays possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.communication.batches import batches_of, met_batches
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.steps import Steps
from bubbleproof.verify.communication.waiting_rules import RULES, Batching, Blocking, Stream
from bubbleproof.verify.explain.programs import ProgramFault

Edge = tuple[int, int]  # what waits for the first is the second
_LEVELS = ("", "the start of ", "the end of the batch of ", "the communicator of ")


def deadlock(steps: Steps, semantics: Semantics) -> list[ProgramFault]:
    """One fault with the chain of waiting, or none. Precondition: no step is unmatched."""
    return _Waits(steps, semantics).fault()


class _Waits:
    """Who waits for whom: ``start``, ``node`` and ``end`` of each row.

    ``node[row]`` is where the row happens, a message's two ends at once; ``start`` and ``end`` are
    the same unless its semantics tells them apart.
    """

    def __init__(self, steps: Steps, semantics: Semantics) -> None:
        self.steps, self.semantics, self.rule = steps, semantics, RULES[semantics]
        count = len(steps.actions)
        merged = steps.peer_transfers.merged() | steps.exchanges.merged()
        if self.rule.held == 0:
            merged |= {t.recv: t.send for t in steps.transfers}
        batches = batches_of(steps.is_transfer, steps.rank)
        if self.rule.batching is Batching.MET_BATCHES:
            merged |= met_batches(batches, [(t.send, t.recv) for t in steps.transfers])
        self.node = [merged.get(row, row) for row in range(count)]
        self.ends = sorted(self._ends())
        self.start, self.end = list(self.node), list(self.node)
        self.unit = list(self.node)  # what starts at once
        if self.rule.starts_in_order:
            for row, _ in self.ends:
                self.start[row] = count + row
        for batch in batches if self.rule.batching is not Batching.SINGLE_END else ():
            for row in batch:
                self.unit[row] = batch[0]
                if self.rule.batching is Batching.OWN_BATCH:
                    self.start[row], self.end[row] = count + batch[0], 2 * count + batch[0]

    def fault(self) -> list[ProgramFault]:
        """A cycle, as a sentence and as rows, or none."""
        edges = [*self._starts(), *self._program_order(), *self._inputs(), *self._stream_order()]
        before = np.array([edge[0] for edge in edges], dtype=np.int64)
        after = np.array([edge[1] for edge in edges], dtype=np.int64)
        count = len(self.node)
        cycle = find_cycle(len(_LEVELS) * count, before, after)
        if not cycle:
            return []
        names = [self._name(step) for step in cycle]
        chain = " waits for ".join([*names, names[0]])
        rows = [step % count for step in cycle]
        return [(f"deadlock under {self.semantics.value}: {chain}", rows)]

    def _name(self, step: int) -> str:
        steps, count = self.steps, len(self.node)
        level, row = divmod(step, count)
        name = f"{steps.actions[row]} on rank {steps.rank[row]}"
        if level:
            return f"{_LEVELS[level]}{name}"
        others = [other for other, node in enumerate(self.node) if node == row != other]
        ends = [f"{steps.actions[other]} on rank {steps.rank[other]}" for other in others]
        return f"{name} (with {', '.join(ends)})" if ends else name

    def _ends(self) -> Iterator[tuple[int, tuple[object, ...]]]:
        """Each row that is an end, with the stream of its rank in which it stands."""
        steps = self.steps
        for t in steps.transfers:
            for row in (t.send, t.recv):
                flow = "F" if t.message.send.kind is Kind.SEND_F else "B"
                yield row, self._stream(flow, t.message.source, t.message.target)
        for rank, row, peer, row_of_peer in steps.exchanges.ends():
            for end in (row, row_of_peer):
                yield end, self._stream("exchange", rank, peer)
        for row, rank, peer in steps.peer_transfers.ends():
            yield row, self._stream("link", rank, peer)

    def _stream(self, of: str, source: int, target: int) -> tuple[object, ...]:
        stream, on = self.rule.stream, "link" if of == "link" else "message"
        if stream is Stream.RANK:
            return ()
        if stream is Stream.PAIR or of == "link":
            return (on, min(source, target), max(source, target))
        if stream is Stream.ORDERED_PAIR:
            return (on, source, target)
        return (of,) if stream is Stream.FLOW else (on, source % 2)

    def _starts(self) -> list[Edge]:
        """No end ends before it has started, no batch before what is in it."""
        steps = zip(self.start, self.node, self.end, strict=True)
        return [pair for three in steps for pair in pairwise(three) if pair[0] != pair[1]]

    def _program_order(self) -> list[Edge]:
        """Each row after the last that its rank did not only post."""
        edges = []
        last: dict[int, int] = {}
        posts, makes = self._posts(), self._makes()
        for row, rank in enumerate(self.steps.rank):
            for made in makes.get(row, ()):
                if rank in last:
                    edges.append((last[rank], made))
                last[rank] = made
            if rank in last and last[rank] != self.node[row]:
                edges.append((last[rank], self.start[row]))
            if row not in posts:
                last[rank] = self.end[row]
        return edges

    def _posts(self) -> set[int]:
        """The rows after which a rank goes on at once."""
        if self.rule.blocking is Blocking.ALL:
            return set()
        posts = self.steps.peer_transfers.posts()
        if self.rule.blocking is Blocking.COMPUTATIONS:
            posts |= {row for row, is_transfer in enumerate(self.steps.is_transfer) if is_transfer}
        return posts

    def _makes(self) -> dict[int, list[int]]:
        """The communicators that must be made before a row: its rank's first with each other."""
        first: dict[tuple[int, ...], dict[int, int]] = {}
        for t in self.steps.transfers if self.rule.makes_communicators else ():
            ranks = (t.message.source, t.message.target)
            rows = first.setdefault(tuple(sorted(ranks)), {})
            for rank, row in zip(ranks, (t.send, t.recv), strict=True):
                rows[rank] = min(row, rows.get(rank, row))
        found: dict[int, list[int]] = {}
        for rows in first.values():
            for row in rows.values():
                found.setdefault(row, []).append(3 * len(self.node) + min(rows.values()))
        return found

    def _inputs(self) -> list[Edge]:
        """What computations and waits wait for: on their rank, and from others."""
        steps, row = self.steps, self.steps.row_of_task
        edges, rank = steps.problem.edges, steps.problem.rank_of_task
        same = rank[edges.before] == rank[edges.after]
        pairs = zip(edges.before[same].tolist(), edges.after[same].tolist(), strict=True)
        found = [(row[a], row[b]) for a, b in pairs if a in row and b in row]
        for transfer in steps.transfers:
            if self.rule.held != 0:
                found.append((transfer.send, transfer.recv))
            if (consumer := row.get(transfer.message.consumer)) is not None:
                found.append((self.end[transfer.recv], consumer))
        found += [(self.end[sent], wait) for sent, wait in steps.waits.edges]
        return found + steps.peer_transfers.edges() + self._full_channels()

    def _full_channels(self) -> list[Edge]:
        """A SEND that finds its channel full waits until one before it has been received."""
        if not self.rule.held:
            return []
        channels: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for t in self.steps.transfers:
            ends = channels.setdefault((t.message.source, t.message.target), [])
            ends.append((t.send, t.recv))
        return [
            (received[1], sent[0])
            for ends in map(sorted, channels.values())
            for received, sent in zip(ends, ends[self.rule.held :], strict=False)
        ]

    def _stream_order(self) -> list[Edge]:
        """Each end after those before it: their ends in its stream, their starts on its rank."""
        streams: dict[tuple[object, ...], list[int]] = {}
        for row, stream in self.ends:
            own = streams.setdefault((self.steps.rank[row], *stream), [])
            if not own or self.unit[own[-1]] != self.unit[row]:
                own.append(row)
        edges = [
            (self.end[a], self.start[b]) for rows in streams.values() for a, b in pairwise(rows)
        ]
        if self.rule.starts_in_order:
            for a, b in pairwise(dict.fromkeys(row for row, _ in self.ends)):
                if self.steps.rank[a] == self.steps.rank[b]:
                    edges.append((self.start[a], self.start[b]))
        return edges
