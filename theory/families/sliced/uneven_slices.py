"""TeraPipe's uneven slices: how long each slice of a sample is, by its dynamic programme.

Symbols: p ranks, m microbatches (samples), L tokens of a sample in whole granules, t(l, c) the
ticks of a slice of l granules behind c others, forward and backward. Causal attention makes later
granules dearer, so that equal slices do not take equally long.

All forwards of p ranks that take as long, one slice behind the other, take the sum of all slices
and p-1 times the longest (a flow shop of equal machines); so do the backwards, and a rank's last
forward is followed by its first backward. With t the sum of both, in one proportion, a step takes

    T = m (t_1 + ... + t_s) + (p-1) max t_i

and the lengths of the least T are found so: for each value that max t_i may have, in rising order,
the least sum of slices that take no longer, S(i) = min over l of S(i-l) + t(l, i-l). It ends where
the longest alone makes T no smaller. All lengths, and every number of slices, are looked at.

Durations by slice are the pipeline's (``stage_numbers``: rows of ticks). Memory is not: a slice's
activation is one unit of a stage, whatever its length. On this order that leaves the peak right, in
units of A/ps: it comes when all slices of all samples lie in memory, m s of them.

Source: Li et al., "TeraPipe: Token-Level Pipeline Parallelism for Training Large-Scale Language
Models" (ICML 2021, arXiv:2102.07988), its latency of K stages and its search over t_max; MEPipe
(EuroSys 2025) section 5 calls it partitioning "in a non-uniform way". We had MEPipe's words and the
formula, not the paper's text; that m samples follow each other is the order of ``gpipe.TeraPipe``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add

from bubbleproof.theory.pipelines.pipeline import Pipeline

SliceTicks = Callable[[int, int], int]  # of a slice's length and of what lies before it


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevenSlices:
    """The lengths of the slices in granules, in order, and T in ticks."""

    lengths: tuple[int, ...]
    ticks: int


def uneven_slices(
    granules: int, *, ranks: int, microbatches: int, ticks: SliceTicks
) -> UnevenSlices:
    """The slices of the least T; of equals those with the shortest longest slice.

    Parameters
    ----------
    granules
        L, the tokens of a sample in whole granules, 1 or more.
    ranks, microbatches
        p and m.
    ticks
        t, of a slice's length and of what lies before it, forward and backward together.

    Raises
    ------
    ValueError
        For fewer than one granule, and for ticks below 0.
    """
    if granules < 1:
        raise ValueError(f"a sample has 1 granule or more, got {granules}")
    table = [[ticks(end - first, first) for first in range(end)] for end in range(granules + 1)]
    values = sorted({each for row in table for each in row})
    if values[0] < 0:
        raise ValueError(f"a slice takes 0 ticks or more, got {values[0]}")

    def within(longest: int) -> UnevenSlices | None:
        if (found := _shortest(table, longest)) is None:
            return None
        total, lengths = found
        step = microbatches * total + (ranks - 1) * longest
        return UnevenSlices(lengths=lengths, ticks=step)

    rising, least = iter(values), microbatches * _least_sum(table)
    best = next(cut for longest in rising if (cut := within(longest)) is not None)
    for longest in rising:
        if least + (ranks - 1) * longest >= best.ticks:
            break
        if (cut := within(longest)) is not None and cut.ticks < best.ticks:
            best = cut
    return best


def _least_sum(table: Sequence[Sequence[int]]) -> int:
    """The least sum of slices of any length; ``table`` as in ``_shortest``."""
    sums = [0]
    for row in table[1:]:
        sums.append(min(map(add, sums, row)))
    return sums[-1]


def _shortest(table: Sequence[Sequence[int]], longest: int) -> tuple[int, tuple[int, ...]] | None:
    """The least sum of slices none of which takes more than ``longest``, and their lengths.

    ``table[end][first]`` is the ticks of the slice from ``first`` to ``end``.
    """
    sums: list[int | None] = [0]
    firsts = [0]
    for end in range(1, len(table)):
        options = [
            (before + table[end][first], first)
            for first, before in enumerate(sums)
            if before is not None and table[end][first] <= longest
        ]
        total, first = min(options, default=(None, 0))
        sums.append(total)
        firsts.append(first)
    last = sums[-1]
    if last is None:
        return None
    lengths: list[int] = []
    end = len(table) - 1
    while end:
        lengths.append(end - firsts[end])
        end = firsts[end]
    return last, tuple(reversed(lengths))


def unevenly_sliced(
    pipeline: Pipeline, granules: int, *, forward: SliceTicks, backward: SliceTicks
) -> tuple[Pipeline, UnevenSlices]:
    """The pipeline with its samples cut as TeraPipe would, each slice with its own ticks.

    Its stages are alike; ``forward`` and ``backward`` are the ticks of a stage. The slices are
    those of the least T where the two are in one proportion, and good ones else.

    Parameters
    ----------
    granules
        L, the tokens of a sample in whole granules, 1 or more.
    forward, backward
        The ticks of a stage, of a slice's length and of what lies before it.
    """
    cut = uneven_slices(
        granules,
        ranks=pipeline.num_stages,
        microbatches=pipeline.num_microbatches,
        ticks=lambda length, before: forward(length, before) + backward(length, before),
    )
    starts = [sum(cut.lengths[:k]) for k in range(len(cut.lengths))]
    rows = {
        name: [[each(length, start) for length, start in zip(cut.lengths, starts, strict=True)]]
        for name, each in (("forward", forward), ("backward", backward))
    }
    return pipeline.with_changes(num_slices=len(cut.lengths), **rows), cut
