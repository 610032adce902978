"""Rule 6 for EVICT and LOAD that stand in the programs of ranks.

There each stands twice on both of its ranks: where it is posted, which never waits, and where it is
waited for. The *home* is the rank that runs the stage for that microbatch, the *guest* the other
one; the home sends an EVICT, the guest a LOAD. Every EVICT and LOAD of the problem must stand so,
if any does (a lowered program leaves them all to their links), and

- the home posts EVICT after F, and waits for LOAD before B or I;
- the guest waits for EVICT before it posts LOAD;
- for each ordered pair of ranks the k-th transfer sent is the k-th received.

Under every semantics the transfers of an unordered pair of ranks are one in-order stream: a link
carries one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.theory.model.problem import Problem

Fault = tuple[str, list[int]]  # a sentence, and the rows that it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """An EVICT or a LOAD with the rows of its two posts and its two waits."""

    action: Action
    home: int
    guest: int
    post: Mapping[int, int]
    wait: Mapping[int, int]

    @property
    def channel(self) -> tuple[int, int]:
        """(sender, receiver)."""
        ends = (self.home, self.guest)
        return ends if self.action.kind is Kind.EVICT else ends[::-1]

    @property
    def node(self) -> int:
        """The row that stands for the transfer itself: the sender's post."""
        return self.post[self.channel[0]]


class Moves:
    """The EVICTs and LOADs among the rows of a program, if there are any on ranks."""

    def __init__(
        self,
        problem: Problem,
        actions: Sequence[Action],
        rank: Sequence[int],
        computations: Iterable[int],
    ) -> None:
        """``rank`` of each row; ``computations`` are the rows of tasks that occupy a rank."""
        self._row_of: dict[Action, int] = {}
        for row in computations:
            self._row_of |= dict.fromkeys(_parts(actions[row]), row)
        self._rows: dict[Action, dict[int, list[int]]] = {}
        for row, action in enumerate(actions):
            is_move = action.kind in (Kind.EVICT, Kind.LOAD) and action not in self._row_of
            if is_move and rank[row] < problem.num_ranks:
                self._rows.setdefault(action, {}).setdefault(rank[row], []).append(row)
        beside = problem.actions.is_kind(Kind.EVICT, Kind.LOAD) & (problem.rank_of_task == NONE)
        self._wanted = set(problem.actions.take(beside)) if self._rows else set()
        self._rank = rank
        self._moves: list[_Move] = []

    def posts(self) -> set[int]:
        """The rows that post a transfer: the first of each rank."""
        return {rows[0] for ranks in self._rows.values() for rows in ranks.values()}

    def faults(self) -> list[Fault]:
        """What is missing, repeated, foreign or misplaced, and links with transfers crossed."""
        found: list[Fault] = []
        for action in sorted(self._wanted - self._rows.keys(), key=str):
            found.append((f"{action} stands on no rank, must stand twice on two", []))
        for action, ranks in self._rows.items():
            found += self._placed(action, ranks)
        found += [fault for move in self._moves for fault in self._in_order(move)]
        return found or list(self._crossed())

    def _placed(self, action: Action, ranks: dict[int, list[int]]) -> Iterator[Fault]:
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
                (guest,) = ranks.keys() - {home}
                post, wait = ({r: rows[i] for r, rows in ranks.items()} for i in (0, 1))
                move = _Move(action=action, home=home, guest=guest, post=post, wait=wait)
                self._moves.append(move)

    def _home(self, action: Action) -> int | None:
        row = self._row_of.get(_sibling(action, Kind.F))
        return None if row is None else self._rank[row]

    def _in_order(self, move: _Move) -> Iterator[Fault]:
        """The home's F before EVICT and LOAD before its backward; the guest's EVICT before LOAD."""
        action, post = move.action, move.post[move.channel[0]]
        if action.kind is Kind.EVICT:
            forward = _sibling(action, Kind.F)
            if post < self._row_of[forward]:
                sentence = f"{action} is sent before {forward} has run"
                yield sentence, [post, self._row_of[forward]]
            return
        back = move.wait[move.home]
        for backward in (_sibling(action, Kind.B), _sibling(action, Kind.I)):
            if self._row_of.get(backward, back) < back:
                sentence = f"{backward} runs before {action} has brought its activations back"
                yield sentence, [self._row_of[backward], back]
        evict = _sibling(action, Kind.EVICT)
        for parked in self._moves:
            if parked.action != evict:
                continue
            if parked.guest != move.guest:
                sentence = f"{action} comes from rank {move.guest}, {evict} went to {parked.guest}"
                yield sentence, [post, parked.node]
            elif post < parked.wait[move.guest]:
                sentence = f"{action} is sent before {evict} has arrived on rank {move.guest}"
                yield sentence, [post, parked.wait[move.guest]]

    def _crossed(self) -> Iterator[Fault]:
        channels: dict[tuple[int, int], list[_Move]] = {}
        for move in self._moves:
            channels.setdefault(move.channel, []).append(move)
        for (source, target), moves in channels.items():
            sent = sorted(moves, key=lambda m: m.post[m.channel[0]])
            received = sorted(moves, key=lambda m: m.post[m.channel[1]])
            for number, (out, into) in enumerate(zip(sent, received, strict=True)):
                if out is not into:
                    yield (
                        f"transfer {number} from rank {source} to rank {target} is sent as "
                        f"{out.action} but received as {into.action}",
                        [out.post[source], into.post[target]],
                    )
                    break

    def merged(self) -> dict[int, int]:
        """The receiver's post of each transfer -> the sender's, which stands for the transfer."""
        return {move.post[move.channel[1]]: move.node for move in self._moves}

    def edges(self) -> list[tuple[int, int]]:
        """(before, after): each transfer before its waits and after the one before it."""
        found = [(move.node, row) for move in self._moves for row in move.wait.values()]
        streams: dict[tuple[int, frozenset[int]], list[tuple[int, int]]] = {}
        for move in self._moves:
            pair = frozenset((move.home, move.guest))
            for rank in pair:
                streams.setdefault((rank, pair), []).append((move.post[rank], move.node))
        for posts in streams.values():
            found += pairwise(node for _, node in sorted(posts))
        return found


def _parts(action: Action) -> tuple[Action, ...]:
    """A computation, or both of an overlapped pair."""
    if action.partner is None:
        return (action,)
    return _sibling(action, Kind.F), action.partner


def _sibling(action: Action, kind: Kind) -> Action:
    """The action of another kind on the same stage, microbatch and slice."""
    return Action(stage=action.stage, kind=kind, microbatch=action.microbatch, slice=action.slice)
