"""Interleaved 1F1B: each rank holds v chunks and works through them depth first.

Microbatches run in groups: a group passes chunk 0, then chunk 1, ... up to v-1, and then the next
group starts (backwards: chunk v-1 first). With groups of n microbatches, rank r warms up with
(v-1)n + 2(p-r-1) + 1 forwards (BPipe Appendix A counts the same with n = p), at most m*v of them,
and then runs one backward and one forward in turn.

Source: Narayanan et al., "Megatron-LM" (SC 2021) section 2.2; order as in Megatron-LM's
``get_schedule_table``. Where p divides m the groups are p microbatches, as there.

Where p does not divide m, Megatron refuses, and a short last group can deadlock (first at p=4, m=5,
v=3). Such orders are ours. ``depth_first_order`` spreads the remainder over the max(1, m div p)
groups, larger groups first. As long as it, but with fewer activations, are, by rising peak:

- v*p: one slice per sample of ``svpp_orders``, or groups of p of which the last two share what is
  left evenly, the smaller first, with warm-ups that fall by one forward per rank and not by two;
- (v-1)n + p: the groups of ``depth_first_order``, n the first, with such warm-ups.

The first of them that is no longer at tF = tB and at tB = 2 tF is taken (tried with at most 6p
microbatches of the same remainder; beyond 5p without ``svpp_orders``, which has no closed form).
At tF > tB slice orders can be longer; ``interleaved-spread`` is ``depth_first_order`` by name.
Legal range: any p, m, v.

Megatron-core takes another group size, ``--microbatch-group-size-per-virtual-pipeline-stage`` G:
the groups are G microbatches and the last has the rest. With ``G`` the order is Megatron's to the
cell, and legal where Megatron runs it: v >= 2, p <= G <= m, and a rest of none or of p or more (a
shorter one would leave ranks waiting for each other). Megatron interleaves no single chunk: there
it runs 1f1b, and the order of one chunk here is that of torch's ``ScheduleInterleaved1F1B``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from bubbleproof.theory.families.base import Family, in_turn
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.svpp_orders import slice_orders
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift

FEW = 5  # times as many microbatches as ranks: up to here slice orders are tried
TRIED = 4  # group sizes of Megatron, where ranks do not divide microbatches
LARGER = (1.5, 2, 3)  # times as many microbatches as ranks: groups that hide slow messages
MOST_TASKS = 20_000  # of the shape that is tried; larger ones keep ``depth_first_order``
Order = Callable[[Pipeline], Program]


class InterleavedOneForwardOneBackward(Family):
    """Megatron's depth-first order over v chunks per rank; frugal where p does not divide m."""

    name = "interleaved"
    title = "Interleaved 1F1B"
    source = "Megatron-LM (SC 2021) section 2.2; BPipe Appendix A"
    least = frozenset({"bubble"})
    options = frozenset({"v", "G"})
    default_chunks = 2

    def __init__(self, group: int | None = None) -> None:
        self.group = group

    def variant(self, params: FamilyParameters) -> Family:
        return type(self)(params.G)

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        told = super().full_params(params, pipeline)
        return told if self.group is None else {**told, "G": self.group}

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None or self.group is None:
            return why
        p, m, group = pipeline.num_ranks, pipeline.num_microbatches, self.group
        if pipeline.num_chunks == 1:
            return f"{self.name} with groups has two chunks or more, got v=1; use 1f1b, as Megatron"
        if is_group(group, p, m):
            return None
        known = " ".join(str(each) for each in group_choices(p, m)) or "none: leave G out"
        return (
            f"{self.name} takes groups of p={p} to m={m} microbatches whose rest is 0, or p or "
            f"more, got G={group} with a rest of {m % group}; use {known}"
        )

    def grouped(self, pipeline: Pipeline) -> Mapping[str, Family]:
        """Megatron's: of p microbatches where p divides m, else of the least ``TRIED`` legal G;
        the least G of ``LARGER`` p or more, and m.

        They follow from p and m alone: a faster network or card takes none of them away. Of 400
        drawn pipelines, with messages of up to two passes, the best of all legal G is among them in
        344 or more, and at most 5 % shorter in the others.
        """
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        if pipeline.num_chunks == 1:
            return {}
        legal, full = group_choices(p, m), super().grouped(pipeline) if m % p == 0 else {}
        larger = [next((size for size in legal if size >= part * p), m) for part in LARGER]
        sizes = sorted({*larger, m} - {p} if full else {*legal[:TRIED], *larger, m})
        tried = {f"{self.name} G={size}": type(self)(size) for size in sizes}
        ran = {name: each for name, each in tried.items() if each.refusal(pipeline) is None}
        return {**full, **ran}

    def program(self, pipeline: Pipeline) -> Program:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        if self.group is not None:
            rest = [m % self.group] * (m % self.group > 0)
            sizes = np.array([self.group] * (m // self.group) + rest)
            return grouped_order(pipeline, sizes, fall=2)
        few = m if m <= FEW * p else FEW * p + m % p
        if m % p == 0 or 2 * p * v * few > MOST_TASKS:
            return depth_first_order(pipeline)
        return ORDERS[_chosen(p, few, v, is_sliced=few == m)](pipeline)

    def ours(self, pipeline: Pipeline) -> str | None:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        if pipeline.num_chunks == 1:
            return (
                "The source has two chunks or more, and Megatron runs 1f1b at one, which holds "
                "less; this order is torch's Interleaved1F1B of one stage per rank."
            )
        if m % p == 0 or self.group is not None:
            return None
        return f"The source takes multiples of p={p}; bubbleproof groups the remainder."


class DepthFirst(InterleavedOneForwardOneBackward):
    """The same with a remainder spread over the groups: Megatron's warm-ups at any m."""

    name = "interleaved-spread"
    title = "Interleaved 1F1B, the remainder spread over the groups"
    options = frozenset({"v"})

    def program(self, pipeline: Pipeline) -> Program:
        return depth_first_order(pipeline)


def depth_first_order(pipeline: Pipeline) -> Program:
    """Megatron's order; where p does not divide m the remainder is spread over the groups."""
    sizes = group_sizes(pipeline.num_ranks, pipeline.num_microbatches)
    return grouped_order(pipeline, sizes, fall=2)


def grouped_order(pipeline: Pipeline, sizes: Ints, *, fall: int) -> Program:
    """Groups of ``sizes`` microbatches; warm-ups fall by ``fall`` forwards per rank.

    Parameters
    ----------
    sizes
        Microbatches of each group, which add up to all.
    fall
        Forwards by which a rank's warm-up is shorter than that of the rank before.
    """
    lead = (pipeline.num_chunks - 1) * int(sizes[: len(sizes) - 1 or 1].max()) + 1
    return in_turn(pipeline, [fall * r + lead for r in range(pipeline.num_ranks)[::-1]], sizes)


def _sliced(pipeline: Pipeline) -> Program:
    p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
    return slice_orders(pipeline, min(p, m) * v)


def _shared(pipeline: Pipeline) -> Program:
    full, rest = divmod(pipeline.num_microbatches, pipeline.num_ranks)
    both = pipeline.num_ranks + rest
    sizes = [pipeline.num_ranks] * (full - 1) + [both // 2, both - both // 2]
    return grouped_order(pipeline, np.array(sizes if full else [rest]), fall=1)


def _steep(pipeline: Pipeline) -> Program:
    sizes = group_sizes(pipeline.num_ranks, pipeline.num_microbatches)
    return grouped_order(pipeline, sizes, fall=1)


ORDERS: tuple[Order, ...] = (_sliced, _shared, _steep, depth_first_order)


@lru_cache(maxsize=1024)
def _chosen(p: int, m: int, v: int, *, is_sliced: bool) -> int:
    """Which of ``ORDERS`` holds least among those that take no longer than the last."""
    pipelines = [
        Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, forward=1, backward=ticks)
        for ticks in (1, 2)
    ]
    limits = [_spans(pipeline, depth_first_order) for pipeline in pipelines]
    for number, order in enumerate(ORDERS[:-1]):
        if order is _sliced and not is_sliced:
            continue
        try:
            spans = [_spans(pipeline, order) for pipeline in pipelines]
        except Deadlock:
            continue
        if all(a[0] <= b[0] and a[1] < b[1] for a, b in zip(spans, limits, strict=True)):
            return number
    return len(ORDERS) - 1


def _spans(pipeline: Pipeline, order: Order) -> tuple[int, int]:
    """(makespan, peak of the fullest rank)."""
    problem = pipeline.problem()
    found = measure(problem, left_shift(problem, order(pipeline)))
    return found.makespan, max(found.peak_activations)


def is_group(group: int, p: int, m: int) -> bool:
    """Whether Megatron takes groups of so many microbatches.

    Parameters
    ----------
    group
        Microbatches of a group.
    p, m
        Ranks and microbatches.
    """
    return p <= group <= m and not 0 < m % group < p


def group_choices(p: int, m: int) -> list[int]:
    """All group sizes that Megatron takes, rising; none where m < p.

    >>> group_choices(4, 18)
    [6, 7, 9, 10, 11, 12, 13, 14, 18]

    Parameters
    ----------
    p, m
        Ranks and microbatches.
    """
    return [group for group in range(p, m + 1) if is_group(group, p, m)]


def group_sizes(p: int, m: int) -> Ints:
    """Microbatches of each group: max(1, m div p) groups, as equal as can be, larger ones first.

    Parameters
    ----------
    p, m
        Ranks and microbatches.
    """
    count = max(1, m // p)
    return m // count + (np.arange(count) < m % count).astype(np.int64)
