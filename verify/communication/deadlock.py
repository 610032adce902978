"""Whether a program whose messages match can get stuck under one semantics.

What may happen under a semantics (``semantics``) makes a graph of "waits for": its nodes are the
rows of the program, a message's two ends one node, as they end together, and under ``launch-order``
the start of each end besides. The program is free of deadlock exactly when the graph has no cycle.
No interleaving needs to be searched, since what may happen stays possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.steps import Steps
from bubbleproof.verify.explain.programs import ProgramFault

Edge = tuple[int, int]  # what waits for the first is the second


def deadlock(steps: Steps, semantics: Semantics) -> list[ProgramFault]:
    """One fault with the chain of waiting, or none. Precondition: no step is unmatched."""
    return _Waits(steps, semantics).fault()


class _Waits:
    """Who waits for whom: ``node[row]`` is the row's end, ``start[row]`` its start."""

    def __init__(self, steps: Steps, semantics: Semantics) -> None:
        self.steps, self.semantics = steps, semantics
        count = len(steps.actions)
        merged = steps.peer_transfers.merged() | steps.exchanges.merged()
        if semantics is not Semantics.BUFFERED:
            merged |= {t.recv: t.send for t in steps.transfers}
        self.node = [merged.get(row, row) for row in range(count)]
        self.ends = sorted(self._ends())
        self.start = list(self.node)
        if semantics is Semantics.LAUNCH_ORDER:
            for row, _ in self.ends:
                self.start[row] = count + row

    def fault(self) -> list[ProgramFault]:
        """A cycle, as a sentence and as rows, or none."""
        edges = [*self._starts(), *self._program_order(), *self._inputs(), *self._stream_order()]
        before = np.array([edge[0] for edge in edges], dtype=np.int64)
        after = np.array([edge[1] for edge in edges], dtype=np.int64)
        count = len(self.node)
        cycle = find_cycle(2 * count, before, after)
        if not cycle:
            return []
        names = [self._name(step) for step in cycle]
        chain = " waits for ".join([*names, names[0]])
        rows = [step % count for step in cycle]
        return [(f"deadlock under {self.semantics.value}: {chain}", rows)]

    def _name(self, step: int) -> str:
        steps, count = self.steps, len(self.node)
        row = step % count
        name = f"{steps.actions[row]} on rank {steps.rank[row]}"
        if step >= count:
            return f"the start of {name}"
        others = [other for other, node in enumerate(self.node) if node == row != other]
        ends = [f"{steps.actions[other]} on rank {steps.rank[other]}" for other in others]
        return f"{name} (with {', '.join(ends)})" if ends else name

    def _ends(self) -> Iterator[tuple[int, tuple[object, ...]]]:
        """Each row that is an end, with the stream of its rank in which it stands."""
        steps = self.steps
        messages = [
            (row, t.message.source, t.message.target)
            for t in steps.transfers
            for row in (t.send, t.recv)
        ]
        for rank, row, peer, row_of_peer in steps.exchanges.ends():
            messages += [(row, rank, peer), (row_of_peer, rank, peer)]
        for row, source, target in messages:
            yield row, self._stream("message", source, target)
        for row, rank, peer in steps.peer_transfers.ends():
            yield row, self._stream("link", rank, peer)

    def _stream(self, of: str, source: int, target: int) -> tuple[object, ...]:
        if self.semantics is Semantics.RANK_STREAM:
            return ()
        if self.semantics in (Semantics.BUFFERED, Semantics.RENDEZVOUS) and of == "message":
            return (of, source, target)
        return (of, min(source, target), max(source, target))

    def _starts(self) -> list[Edge]:
        """No end ends before it has started."""
        pairs = zip(self.start, self.node, strict=True)
        return [(start, node) for start, node in pairs if start != node]

    def _program_order(self) -> list[Edge]:
        """Each row after the last that its rank did not only post."""
        edges = []
        last: dict[int, int] = {}
        posts = self._posts()
        for row, rank in enumerate(self.steps.rank):
            if rank in last and last[rank] != self.node[row]:
                edges.append((last[rank], self.start[row]))
            if row not in posts:
                last[rank] = self.node[row]
        return edges

    def _posts(self) -> set[int]:
        """The rows after which a rank goes on at once."""
        posts = self.steps.peer_transfers.posts()
        if self.semantics is not Semantics.RENDEZVOUS:
            posts |= {row for row, is_transfer in enumerate(self.steps.is_transfer) if is_transfer}
        return posts

    def _inputs(self) -> list[Edge]:
        """What computations and waits wait for: on their rank, and from others."""
        steps, row = self.steps, self.steps.row_of_task
        edges, rank = steps.problem.edges, steps.problem.rank_of_task
        same = rank[edges.before] == rank[edges.after]
        pairs = zip(edges.before[same].tolist(), edges.after[same].tolist(), strict=True)
        found = [(row[a], row[b]) for a, b in pairs if a in row and b in row]
        for transfer in steps.transfers:
            if self.semantics is Semantics.BUFFERED:
                found.append((transfer.send, transfer.recv))
            if (consumer := row.get(transfer.message.consumer)) is not None:
                found.append((self.node[transfer.recv], consumer))
        return found + steps.waits.edges + steps.peer_transfers.edges()

    def _stream_order(self) -> list[Edge]:
        """Each end after those before it: their ends in its stream, their starts on its rank."""
        streams: dict[tuple[object, ...], list[int]] = {}
        for row, stream in self.ends:
            own = streams.setdefault((self.steps.rank[row], *stream), [])
            if not own or self.node[own[-1]] != self.node[row]:
                own.append(row)
        edges = [
            (self.node[a], self.start[b]) for rows in streams.values() for a, b in pairwise(rows)
        ]
        if self.semantics is Semantics.LAUNCH_ORDER:
            for a, b in pairwise(dict.fromkeys(row for row, _ in self.ends)):
                if self.steps.rank[a] == self.steps.rank[b]:
                    edges.append((self.start[a], self.start[b]))
        return edges
