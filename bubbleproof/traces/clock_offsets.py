"""How far the clocks of the ranks' hosts may lie apart, by the messages that they exchanged.

No message is there before it was begun to be sent. If rank b had a message of rank a at time t on
its clock, and a began to send it at time s on its own, then b's clock is ahead of a's by at most
t - s. Messages both ways bound the difference from both sides. Clocks are taken to agree where that
is allowed; otherwise each is moved to the middle of what its messages with rank 0's component allow
(which together is allowed, as the allowed offsets are convex). Where nothing is allowed the traces
are not of one run, or a clock jumped.

Between clocks that drift apart (quartz: up to ``DRIFT``) no offset is right for long: ``drifting``
lets each message be earlier by what that is over the time that the messages took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bubbleproof.formats.errors import UnusableInput

_FAR = 1 << 62
DRIFT = 10_000  # a nanosecond in so many: 100 parts in a million


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A message: ``sent`` (ns, its begin on the source's clock), ``there`` on the target's."""

    source: int
    target: int
    sent: int
    there: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsets:
    """What is taken from each rank's times (ns), and the widest that an offset can be wrong by.

    Rank b's clock is ahead of a's by ``ahead[a][b]`` at most.
    """

    offsets: tuple[int, ...]
    uncertainty: int
    ahead: tuple[tuple[int, ...], ...]

    def late(self, source: int, target: int) -> tuple[int, int]:
        """How much earlier and later than by the offsets a time of ``source`` may be on ``target``.

        Both are ``_FAR`` at most, and that where no message bounds them.
        """
        taken = self.offsets[target] - self.offsets[source]
        earlier = self.ahead[target][source] + taken
        later = self.ahead[source][target] - taken
        return max(0, min(earlier, _FAR)), max(0, min(later, _FAR))


def drifting(passages: Sequence[Passage]) -> list[Passage]:
    """The messages of clocks that drift."""
    by_rank: dict[int, list[int]] = {}
    for each in passages:
        by_rank.setdefault(each.source, []).append(each.sent)
        by_rank.setdefault(each.target, []).append(each.there)
    lasted = max((max(times) - min(times) for times in by_rank.values()), default=0)
    return [replace(each, there=each.there + lasted // DRIFT) for each in passages]


def clock_offsets(num_ranks: int, passages: Sequence[Passage]) -> ClockOffsets:
    """The offsets of ranks. Raises ``UnusableInput`` where no offsets let time run forwards."""
    most = [[0 if a == b else _FAR for b in range(num_ranks)] for a in range(num_ranks)]
    for each in passages:
        row = most[each.source]
        row[each.target] = min(row[each.target], each.there - each.sent)
    for via in range(num_ranks):
        through = most[via]
        for row in most:
            if row[via] < _FAR:
                row[:] = [
                    min(known, row[via] + more) if more < _FAR else known
                    for known, more in zip(row, through, strict=True)
                ]
    for rank in range(num_ranks):
        if most[rank][rank] < 0:
            raise UnusableInput.of_values(
                "",
                f"rank {rank} would have had messages {-most[rank][rank] / 1e6:.3f} ms before "
                "they were sent, whatever its clock: the traces are of several runs, or a clock "
                "was set meanwhile",
            )
    widths = [
        most[0][rank] + most[rank][0]
        for rank in range(1, num_ranks)
        if max(most[0][rank], most[rank][0]) < _FAR
    ]
    if all(bound >= 0 for row in most for bound in row):
        offsets = (0,) * num_ranks
    else:
        offsets = tuple(_middle(most[0][rank], most[rank][0]) for rank in range(num_ranks))
    return ClockOffsets(
        offsets=offsets,
        uncertainty=max(widths, default=0) // 2,
        ahead=tuple(tuple(min(bound, _FAR) for bound in row) for row in most),
    )


def _middle(most: int, least: int) -> int:
    if max(most, least) >= _FAR:
        return 0 if most >= _FAR and least >= _FAR else (most if least >= _FAR else -least)
    return (most - least) // 2
