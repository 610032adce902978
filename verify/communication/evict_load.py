"""Rule 6 for EVICT and LOAD that stand in the programs of ranks.

There each stands twice on both of its ranks: where it is posted, which never waits, and where it is
waited for. The *home* is the rank that runs the stage for that microbatch, the *peer* the other
one; the home sends an EVICT, the peer a LOAD. Every EVICT and LOAD of the problem must stand so,
if any does (a lowered program leaves them all to their links), and

- the home posts EVICT after F, and waits for LOAD before B or I;
- the peer waits for EVICT before it posts LOAD;
- for each ordered pair of ranks the k-th transfer sent is the k-th received.

The transfers of an unordered pair of ranks are one in-order stream at least: a link carries one at
a time. A *channel* is what one rank sends to another, which arrives in the order in which it was
sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import as_kind, parts_of
from bubbleproof.verify.explain.programs import ProgramFault


@dataclass(frozen=True, slots=True, kw_only=True)
class _PeerTransfer:
    """An EVICT or a LOAD with the rows of its two posts and its two waits."""

    action: Action
    home: int
    peer: int
    post: Mapping[int, int]
    wait: Mapping[int, int]

    @property
    def channel(self) -> tuple[int, int]:
        """(sender, receiver)."""
        ends = (self.home, self.peer)
        return ends if self.action.kind is Kind.EVICT else ends[::-1]

    @property
    def node(self) -> int:
        """The row that stands for the transfer itself: the sender's post."""
        return self.post[self.channel[0]]


class PeerTransfers:
    """The EVICTs and LOADs among the rows of a program, if there are any on ranks."""

    def __init__(self, problem: Problem, program: Program, computations: Ints) -> None:
        """``computations`` are the rows of tasks that occupy a rank."""
        self._actions, rank = actions, self._rank = program.actions, program.resource
        self._row_of: dict[Action, int] = {}
        self._rows: dict[Action, dict[int, list[int]]] = {}
        self._transfers: list[_PeerTransfer] = []
        is_there = actions.is_kind(Kind.EVICT, Kind.LOAD) & (program.resource < problem.num_ranks)
        is_there[computations] = False
        self._wanted: set[Action] = set()
        if not is_there.any():
            return
        for row in computations.tolist():
            self._row_of |= dict.fromkeys(parts_of(actions[row]), row)
        for row in np.flatnonzero(is_there).tolist():
            if (action := actions[row]) not in self._row_of:
                self._rows.setdefault(action, {}).setdefault(rank.item(row), []).append(row)
        beside = problem.actions.is_kind(Kind.EVICT, Kind.LOAD) & (problem.rank_of_task == NONE)
        self._wanted = set(problem.actions.take(beside)) if self._rows else set()

    def posts(self) -> set[int]:
        """The rows that post a transfer: the first of each rank."""
        return {rows[0] for ranks in self._rows.values() for rows in ranks.values()}

    def faults(self) -> list[ProgramFault]:
        """What is missing, repeated, foreign or misplaced, and links with transfers crossed."""
        found: list[ProgramFault] = []
        for action in sorted(self._wanted - self._rows.keys(), key=str):
            found.append((f"{action} stands on no rank, must stand twice on two", []))
        for action, ranks in self._rows.items():
            found += self._placed(action, ranks)
        found += [fault for transfer in self._transfers for fault in self._in_order(transfer)]
        return found or list(self._crossed())

    def _placed(self, action: Action, ranks: dict[int, list[int]]) -> Iterator[ProgramFault]:
        everywhere = [row for rows in ranks.values() for row in rows]
        home = self._home(action)
        if action not in self._wanted or home is None:
            yield f"{action} belongs to no transfer of the problem", everywhere
        elif len(ranks) != 2 or home not in ranks:
            where = " and ".join(map(str, ranks))
            yield f"{action} stands on rank {where}, must stand on {home} and one more", everywhere
        else:
            wrong = {rank: rows for rank, rows in ranks.items() if len(rows) != 2}
            for rank, rows in wrong.items():
                yield f"{action} stands {len(rows)} times on rank {rank}, must stand twice", rows
            if not wrong:
                (peer,) = ranks.keys() - {home}
                post, wait = ({r: rows[i] for r, rows in ranks.items()} for i in (0, 1))
                transfer = _PeerTransfer(action=action, home=home, peer=peer, post=post, wait=wait)
                self._transfers.append(transfer)

    def _home(self, action: Action) -> int | None:
        row = self._row_of.get(as_kind(action, Kind.F))
        return None if row is None else self._rank.item(row)

    def _in_order(self, transfer: _PeerTransfer) -> Iterator[ProgramFault]:
        """The home's F before EVICT and LOAD before its backward; the peer's EVICT before LOAD."""
        action, post = transfer.action, transfer.post[transfer.channel[0]]
        if action.kind is Kind.EVICT:
            forward = as_kind(action, Kind.F)
            if post < self._row_of[forward]:
                sentence = f"{action} is sent before {forward} has run"
                yield sentence, [post, self._row_of[forward]]
            return
        back = transfer.wait[transfer.home]
        for backward in (as_kind(action, Kind.B), as_kind(action, Kind.I)):
            if self._row_of.get(backward, back) < back:
                sentence = f"{backward} runs before {action} has brought its activations back"
                yield sentence, [self._row_of[backward], back]
        evict = as_kind(action, Kind.EVICT)
        for evicted in self._transfers:
            if evicted.action != evict:
                continue
            if evicted.peer != transfer.peer:
                where = f"comes from rank {transfer.peer}, {evict} went to {evicted.peer}"
                yield f"{action} {where}", [post, evicted.node]
            elif post < evicted.wait[transfer.peer]:
                sentence = f"{action} is sent before {evict} has arrived on rank {transfer.peer}"
                yield sentence, [post, evicted.wait[transfer.peer]]

    def _crossed(self) -> Iterator[ProgramFault]:
        channels: Channels = defaultdict(list)
        for transfer in self._transfers:
            channels[transfer.channel].append((transfer.node, transfer.post[transfer.channel[1]]))
        return crossed(channels, self._actions, "transfer")

    def merged(self) -> dict[int, int]:
        """The receiver's post of each transfer -> the sender's, which stands for the transfer."""
        return {transfer.post[transfer.channel[1]]: transfer.node for transfer in self._transfers}

    def edges(self) -> list[tuple[int, int]]:
        """(before, after): each transfer before its waits."""
        return [(each.node, row) for each in self._transfers for row in each.wait.values()]

    def ends(self) -> Iterator[tuple[int, int, int]]:
        """(row of a post, home, peer) for both posts of each transfer."""
        for each in self._transfers:
            for row in each.post.values():
                yield row, each.home, each.peer


Channels = dict[tuple[int, int], list[tuple[int, int]]]  # (source, target): rows of (send, receive)


def crossed(channels: Channels, actions: ActionTable, noun: str) -> Iterator[ProgramFault]:
    """Channels whose k-th send and k-th receive are not of one message, each with its first k.

    ``actions`` are those of all rows; ``noun`` says what is sent.

    Parameters
    ----------
    actions
        The action of each row.
    noun
        What is sent, such as ``message``.

    Returns
    -------
    Iterator[ProgramFault]
        A sentence and the two rows.
    """
    for (source, target), ends in channels.items():
        sent, received = sorted(ends), sorted(ends, key=lambda rows: rows[1])
        for number, (out, into) in enumerate(zip(sent, received, strict=True)):
            if out != into:
                sentence = (
                    f"{noun} {number} from rank {source} to rank {target} is sent as "
                    f"{actions[out[0]]} but received as {actions[into[1]]}"
                )
                yield sentence, [out[0], into[1]]
                break
