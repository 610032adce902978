"""Whether a program whose messages match can get stuck under one semantics.

What may happen under a semantics (``semantics``) makes a graph of "waits for": its nodes are the
rows of the program, a message's two ends one node, as they end together; where ends start in order
or in batches also the start of each end, and the end of each batch; and the making of a
communicator. The program is free of deadlock exactly when the graph has no cycle. No interleaving
needs to be searched, since what may happen stays possible.

A *batch* is what a rank posts without a computation or a wait between, as one group call; it lists
its rows in order. Batches of several ranks *meet* where a message goes from one to the other, and
so do those that meet a third.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bubbleproof.theory.model.actions import NONE, Bools, Ints
from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.communication.semantics import Semantics
from bubbleproof.verify.communication.steps import Steps
from bubbleproof.verify.communication.waiting_rules import RULES, Batching, Blocking
from bubbleproof.verify.explain.programs import ProgramFault

Edges = Ints  # shape (number, 2): what waits for the first of a row is the second
# What is safe under the first is safe under the others where nothing but messages stands between
# the computations: lemma 8 of docs/guide/formal.md, which Coq proves (proofs/Stricter.v).
WEAKER = {
    Semantics.RANK_STREAM: (Semantics.LAUNCH_ORDER, Semantics.PAIR_STREAM, Semantics.BUFFERED),
    Semantics.LAUNCH_ORDER: (Semantics.PAIR_STREAM, Semantics.BUFFERED),
    Semantics.PAIR_STREAM: (Semantics.BUFFERED,),
    Semantics.RENDEZVOUS: (Semantics.BUFFERED,),
}
_LEVELS = ("", "the start of ", "the end of the batch of ", "the communicator of ")


def deadlocks(steps: Steps, semantics: Sequence[Semantics]) -> dict[Semantics, list[ProgramFault]]:
    """``deadlock`` under each; not looked for where a stricter semantics has none (``WEAKER``).

    Parameters
    ----------
    steps
        With no step unmatched.
    semantics
        In any order.
    """
    found: dict[Semantics, list[ProgramFault]] = {}
    for name in sorted(semantics, key=lambda one: -len(WEAKER.get(one, ()))):
        stricter = [other for other in found if name in WEAKER.get(other, ()) and not found[other]]
        found[name] = [] if stricter and steps.is_plain else deadlock(steps, name)
    return found


def deadlock(steps: Steps, semantics: Semantics) -> list[ProgramFault]:
    """One fault with the chain of waiting, or none. Precondition: no step is unmatched."""
    return _Waits(steps, semantics).fault()


def _rises(edges: Edges, moment: Ints | None, level: int) -> bool:
    """Whether every wait leads to a later moment, starts before ends, so that there is no cycle.

    Decided from below: False where no moments are told, or a wait has a node of a higher level.
    """
    if moment is None or edges.max(initial=0) >= 2 * level:
        return False
    late = np.concatenate([2 * moment + 1, 2 * moment])
    return bool((late[edges[:, 0]] < late[edges[:, 1]]).all())


class _Waits:
    """Who waits for whom: ``start``, ``node`` and ``end`` of each row.

    ``node[row]`` is where the row happens, a message's two ends at once; ``start`` and ``end`` are
    the same unless its semantics tells them apart.
    """

    def __init__(self, steps: Steps, semantics: Semantics) -> None:
        self.steps, self.semantics, self.rule = steps, semantics, RULES[semantics]
        count = len(steps.actions)
        merged = steps.peer_transfers.merged() | steps.exchanges.merged()
        self.node = np.arange(count)
        if self.rule.held == 0:
            self.node[steps.pairs[:, 1]] = steps.pairs[:, 0]
        batching = self.rule.batching
        is_batched = batching is not Batching.SINGLE_END
        batches = batches_of(steps.is_transfer.tolist(), steps.rank.tolist()) if is_batched else []
        if batching is Batching.MET_BATCHES:
            merged |= met_batches(batches, steps.pairs.tolist())
        self.node[list(merged)] = list(merged.values())
        self.ends = steps.ends
        differ = self.rule.starts_in_order or bool(batches)  # ``unit`` is what starts at once
        self.start, self.end, self.unit = (np.array(self.node, copy=differ) for _ in range(3))
        if self.rule.starts_in_order:
            self.start[self.ends.row] = count + self.ends.row
        for batch in batches:
            self.unit[batch] = batch[0]
            if batching is Batching.OWN_BATCH:
                self.start[batch], self.end[batch] = count + batch[0], 2 * count + batch[0]

    def fault(self) -> list[ProgramFault]:
        """A cycle, as a sentence and as rows, or none."""
        parts = (self._starts, self._program_order, self._inputs, self._stream_order)
        count = len(self.node)
        if all(_rises(_edges(part()), self.steps.moment, count) for part in parts):
            return []
        edges = np.concatenate([_edges(part()) for part in parts])
        cycle = find_cycle(len(_LEVELS) * count, edges[:, 0], edges[:, 1])
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
        others = [other for other in np.flatnonzero(self.node == row).tolist() if other != row]
        ends = [f"{steps.actions[other]} on rank {steps.rank[other]}" for other in others]
        return f"{name} (with {', '.join(ends)})" if ends else name

    def _starts(self) -> Edges:
        """No end ends before it has started, no batch before what is in it."""
        told = np.flatnonzero((self.start != self.node) | (self.node != self.end))
        edges = _edges(np.stack([c[told] for c in (self.start, self.node, self.node, self.end)], 1))
        differs: Bools = edges[:, 0] != edges[:, 1]
        return edges.compress(differs, axis=0)

    def _program_order(self) -> Edges:
        """Each row after what its rank last did not only post; communicators before their rows."""
        start, node, end, rank = self.start, self.node, self.end, self.steps.rank
        goes_on = self._posts()
        if self.rule.makes_communicators:
            made, row = self._makes()
            start, node, end = (np.insert(c, row, made) for c in (start, node, end))
            rank, goes_on = np.insert(rank, row, rank[row]), np.insert(goes_on, row, False)
        last = np.maximum.accumulate(np.where(goes_on, NONE, np.arange(len(rank))))
        last = np.concatenate([[NONE], last[:-1]])
        waits = (last >= np.searchsorted(rank, rank)) & (end[last] != node)
        return np.stack([end[last[waits]], start[waits]], axis=1)

    def _posts(self) -> Bools:
        """The rows after which a rank goes on at once."""
        posts = np.zeros(len(self.node), dtype=np.bool_)
        if self.rule.blocking is not Blocking.ALL:
            posts[list(self.steps.peer_transfers.posts())] = True
        if self.rule.blocking is Blocking.COMPUTATIONS:
            posts |= self.steps.is_transfer
        return posts

    def _makes(self) -> tuple[Ints, Ints]:
        """The communicators to be made, and before which row: a rank's first with each other."""
        first: dict[tuple[int, int], dict[int, int]] = {}
        rank = self.steps.rank.tolist()
        for pair in self.steps.pairs.tolist():
            low, high = sorted(rank[row] for row in pair)
            rows = first.setdefault((low, high), {})
            for row in pair:
                rows[rank[row]] = min(row, rows.get(rank[row], row))
        made = {row: min(rows.values()) for rows in first.values() for row in rows.values()}
        rows_in_order = np.array(sorted(made), dtype=np.int64)
        number = np.array([made[row] for row in sorted(made)], dtype=np.int64)
        return len(_LEVELS[1:]) * len(self.node) + number, rows_in_order

    def _inputs(self) -> Edges:
        """What computations and waits wait for: on their rank, and from others."""
        steps = self.steps
        sent, received = steps.pairs.T
        arrivals = np.stack([sent, received, self.end[received], steps.consumer], axis=1)
        if self.rule.held == 0:
            arrivals = arrivals[:, 2:]
        arrivals = _edges(arrivals)
        waits = _edges(steps.waits.edges)
        return np.concatenate(
            [
                steps.inputs,
                arrivals[arrivals[:, 1] != NONE],
                np.stack([self.end[waits[:, 0]], waits[:, 1]], axis=1),
                _edges(steps.peer_transfers.edges()),
                self._full_channels(),
            ]
        )

    def _full_channels(self) -> Edges:
        """A SEND that finds its channel full waits until one before it has been received."""
        held = self.rule.held
        if not held:
            return _edges([])
        sent, received = self.steps.pairs[np.argsort(self.steps.pairs[:, 0])].T
        channel = self.steps.rank[sent] * (1 + self.steps.rank.max()) + self.steps.rank[received]
        order = np.argsort(channel, kind="stable")
        sent, received, channel = sent[order], received[order], channel[order]
        is_full = channel[held:] == channel[:-held]
        return np.stack([received[:-held][is_full], sent[held:][is_full]], axis=1)

    def _stream_order(self) -> Edges:
        """Each end after those before it: their ends in its stream, their starts on its rank."""
        rows, streams = self.ends.in_streams(self.rule.stream, self.steps.rank)
        before, after = rows[:-1], rows[1:]
        follows = (streams[:-1] == streams[1:]) & (self.unit[before] != self.unit[after])
        edges = np.stack([self.end[before[follows]], self.start[after[follows]]], axis=1)
        if self.rule.starts_in_order:
            rows = self.ends.row[np.diff(self.ends.row, prepend=NONE) > 0]
            same = self.steps.rank[rows[:-1]] == self.steps.rank[rows[1:]]
            starts = np.stack([self.start[rows[:-1]][same], self.start[rows[1:]][same]], axis=1)
            edges = np.concatenate([edges, starts])
        return edges


def _edges(pairs: object) -> Edges:
    return np.asarray(pairs, dtype=np.int64).reshape(-1, 2)


def batches_of(is_transfer: Sequence[bool], rank: Sequence[int]) -> list[list[int]]:
    """The longest runs of SENDs and RECVs of each rank.

    Parameters
    ----------
    is_transfer
        Of each row of the programs whether it is a SEND or a RECV.
    rank
        The rank of each row.

    Returns
    -------
    list[list[int]]
        Rows of each run, in program order.
    """
    found: list[list[int]] = []
    current: dict[int, list[int]] = {}
    for row, r in enumerate(rank):
        if not is_transfer[row]:
            current.pop(r, None)
        elif r in current:
            current[r].append(row)
        else:
            found.append([row])
            current[r] = found[-1]
    return found


def met_batches(
    batches: Sequence[Sequence[int]], transfers: Iterable[tuple[int, int]]
) -> dict[int, int]:
    """Each row of a batch -> the least row of all batches that it meets.

    Parameters
    ----------
    batches
        Rows of each batch.
    transfers
        Rows of the SEND and the RECV of each message.
    """
    parent = {row: batch[0] for batch in batches for row in batch}

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for send, recv in transfers:
        low, high = sorted((root(send), root(recv)))
        parent[high] = low
    return {row: root(row) for row in parent}
