"""Links: what lies between two ranks, and the messages that go over it.

A message takes ``latency`` ticks more than its sender is busy with it. Where the pipeline says how
large messages are (``message``, memory units of each stage's output, and as many of the gradient
that comes back) and how many of these units go over a link in a tick (``bandwidth``), each message
is a task of its own: SEND_F of a stage's output, SEND_B of the gradient that a stage hands back. It
occupies the link for ceil(message / bandwidth) ticks, after its producer; its consumer starts
``latency`` ticks after it at the earliest. Without a bandwidth, or with nothing to send, links
carry any number of messages at once and only the latency counts.

A link of ``half`` duplex is one resource, ``link a-b``, for both directions; so are the evictions
and loads between its ranks. One of ``full`` duplex is a resource for each, ``link a>b`` and
``link b>a``. Buffers of messages are not part of the memory model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated

import numpy as np

from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.pipelines.extension import extended, more_edges, numbered
from bubbleproof.theory.pipelines.stage_numbers import require_whole
from bubbleproof.theory.pipelines.value_types import OneOf

DUPLEX = ("half", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What lies between two ranks, in both directions; absent keys are those of the pipeline.

    ``latency`` ticks per message; ``bandwidth`` memory units per tick and ``duplex`` are those of
    the pipeline where None.
    """

    ranks: tuple[int, int]
    latency: int
    bandwidth: int | Fraction | None = None
    duplex: Annotated[str, OneOf(DUPLEX)] | None = None

    def require(self, num_ranks: int) -> None:
        """Raise ``ValueError`` for ranks that are not two of ``num_ranks``, or wrong numbers.

        Parameters
        ----------
        num_ranks
            How many ranks the pipeline has.
        """
        if min(self.ranks) < 0 or max(self.ranks) >= num_ranks or len(set(self.ranks)) < 2:
            raise ValueError(
                f"a link joins two different ranks of 0..{num_ranks - 1}, got {self.ranks}"
            )
        require_link(f" of link {self.ranks}", self.latency, self.bandwidth, self.duplex or "half")


def require_link(name: str, latency: int, bandwidth: int | Fraction | None, duplex: str) -> None:
    """Raise ``ValueError`` for a negative latency, a bandwidth of 0 or less, another duplex.

    Parameters
    ----------
    name
        What stands behind a number's name in a message, such as `` of link (0, 1)``.
    latency
        Ticks between the end of a task and the start of what waits for its message.
    bandwidth
        Units of memory per tick; None where messages take no ticks of the link.
    duplex
        ``half`` where both directions share one resource, or ``full``.
    """
    require_whole(f"latency{name}", latency, minimum=0)
    if bandwidth is not None and (
        isinstance(bandwidth, bool) or not isinstance(bandwidth, int | Fraction) or bandwidth <= 0
    ):
        raise ValueError(f"bandwidth{name} must be a number above 0, got {bandwidth!r}")
    if duplex not in DUPLEX:
        raise ValueError(f"duplex{name} must be one of {', '.join(DUPLEX)}, got {duplex!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The links between any two ranks: ``named`` ones, and what holds for all others."""

    latency: int = 0
    bandwidth: int | Fraction | None = None
    duplex: str = "half"
    named: tuple[Link, ...] = ()

    def between(self, one: int, other: int) -> Link:
        """The link of two ranks, with every value filled in.

        Parameters
        ----------
        one, other
            Two different ranks, in either order.
        """
        for link in reversed(self.named):
            if set(link.ranks) == {one, other}:
                bandwidth = self.bandwidth if link.bandwidth is None else link.bandwidth
                return replace(link, bandwidth=bandwidth, duplex=link.duplex or self.duplex)
        return Link(
            ranks=(one, other), latency=self.latency, bandwidth=self.bandwidth, duplex=self.duplex
        )

    def name(self, source: int, target: int) -> str:
        """The resource that a message or a transfer from one rank to another occupies.

        Parameters
        ----------
        source, target
            Two different ranks.
        """
        if self.between(source, target).duplex == "full":
            return f"link {source}>{target}"
        return "link {}-{}".format(*sorted((source, target)))

    def ticks(self, units: int, source: int, target: int) -> int:
        """How long a message of so many memory units occupies the link of two ranks.

        Parameters
        ----------
        units
            The size of the message in units of memory.
        source, target
            Two different ranks.

        Returns
        -------
        int
            Ticks, rounded up; 0 where the link has no bandwidth stated.
        """
        bandwidth = self.between(source, target).bandwidth
        return 0 if bandwidth is None else -(-units // bandwidth)


HALF_DUPLEX = Links()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boundaries:
    """The messages between stages g and g+1: ticks on the link, and latency after it.

    ``ranks`` has shape (num_stages, num_microbatches), ``ticks`` and ``latency`` one stage less.
    """

    links: Links
    ranks: Ints
    ticks: Ints
    latency: Ints


def boundaries(links: Links, ranks: Ints, message: tuple[int, ...]) -> Boundaries:
    """What messages of these sizes, one per stage, take between stages on these ranks.

    Parameters
    ----------
    ranks
        The rank of each stage and microbatch, shape (num_stages, num_microbatches).
    message
        Units of memory of what each stage sends to the next one.
    """
    numbers: dict[tuple[int, ...], int] = {}  # of the columns that differ; mostly all are one
    each = [
        numbers.setdefault(column, len(numbers)) for column in zip(*ranks.tolist(), strict=True)
    ]
    shape = (len(ranks) - 1, len(numbers))
    ticks, latency = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    for column, homes in enumerate(numbers):
        for stage, ends in enumerate(pairwise(homes)):
            if ends[0] != ends[1]:
                ticks[stage, column] = links.ticks(message[stage], *ends)
                latency[stage, column] = links.between(*ends).latency
    return Boundaries(links=links, ranks=ranks, ticks=ticks[:, each], latency=latency[:, each])


def with_messages(problem: Problem, forward: Ints, backward: Ints, between: Boundaries) -> Problem:
    """The problem with a task for every message that takes ticks on its link.

    Parameters
    ----------
    forward, backward
        Indices of tasks by [stage, microbatch, slice].
    """
    if not between.ticks.any():
        return problem
    stage, microbatch, slice_ = (
        column.ravel() for column in np.indices((len(forward) - 1, *forward.shape[1:]))
    )
    takes = between.ticks[stage, microbatch] > 0
    stage, microbatch, slice_ = stage[takes], microbatch[takes], slice_[takes]
    lower = between.ranks[stage, microbatch].tolist()
    upper = between.ranks[stage + 1, microbatch].tolist()
    ways = [*zip(lower, upper, strict=True), *zip(upper, lower, strict=True)]
    names = {way: between.links.name(*way) for way in dict.fromkeys(ways)}
    numbers, new = numbered(problem.resources, [names[way] for way in ways])
    down = problem.num_tasks + np.arange(len(stage))
    up = down + len(stage)
    ticks = between.ticks[stage, microbatch]
    before = forward[stage, microbatch, slice_], backward[stage + 1, microbatch, slice_]
    after = [forward[stage + 1, microbatch, slice_], backward[stage, microbatch, slice_]]
    sent = extended(
        problem,
        actions=ActionTable.concatenate(
            [
                ActionTable.of(int(Kind.SEND_F), stage, microbatch, slice_),
                ActionTable.of(int(Kind.SEND_B), stage + 1, microbatch, slice_),
            ]
        ),
        duration=np.concatenate([ticks, ticks]),
        homes=[(np.concatenate([down, up]), numbers)],
        waits=[(before[0], down), (before[1], up)],
        resources=[Resource(name=name) for name in new],
    )
    lag = between.latency[stage, microbatch]
    arrivals = np.concatenate([down, up]), np.concatenate(after)
    return replace(sent, edges=more_edges(sent.edges, [arrivals], np.concatenate([lag, lag])))
