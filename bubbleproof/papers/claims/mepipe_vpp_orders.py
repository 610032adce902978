"""VPP's orders (interleaved 1F1B) by their warm-up, and how long and how full they are.

Symbols: p ranks, m microbatches, v chunks, r a rank, g = min(m, p) the microbatches of a group; g
divides m. Megatron's rank r runs (v-1)g + 2(p-r-1) + 1 forwards before its first backward; from
then on a forward and a backward alternate. The orders here differ from it in that number alone.

Source: Narayanan et al., "Megatron-LM" (SC 2021) section 2.2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.claim import Params
from bubbleproof.papers.claims.points import Row
from bubbleproof.theory.families.base import one_forward_one_backward, program_of_ranks
from bubbleproof.theory.families.interleaved import depth_first_table
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift


def group(at: Params) -> int:
    """g = min(n, p)."""
    return min(at["m"], at["p"])


def megatrons(at: Params) -> tuple[int, ...]:
    """Forwards before the first backward, two per hop to the last rank."""
    return tuple(
        min((at["v"] - 1) * group(at) + 2 * (at["p"] - r - 1) + 1, at["v"] * at["m"])
        for r in range(at["p"])
    )


def least(at: Params, rank: int) -> int:
    """(v-1)g + min(p-r, g): one forward per hop, and none that the group does not have."""
    return (at["v"] - 1) * group(at) + min(at["p"] - rank, group(at))


@lru_cache(maxsize=256)
def _measured(p: int, m: int, v: int, ticks: Row, warm_up: tuple[int, ...]) -> Measures | None:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, num_chunks=v, forward=ticks[0], backward=ticks[1]
    )
    size = min(m, p)
    chunk, microbatch = depth_first_table(np.full(m // size, size), v)
    rows = []
    for rank, forwards in enumerate(warm_up):
        kind, position = one_forward_one_backward(forwards, m * v)
        which = np.where(kind == Kind.F, chunk[position], v - 1 - chunk[position])
        rows.append((kind, which * p + rank, microbatch[position]))
    problem = pipeline.problem()
    try:
        return measure(problem, left_shift(problem, program_of_ranks(rows)))
    except Deadlock:
        return None


def warmed_up(at: Params, warm_up: tuple[int, ...]) -> Measures | None:
    """VPP with so many forwards before each rank's first backward; None where it deadlocks."""
    return _measured(at["p"], at["m"], at["v"], (at["tF"], at["tB"]), warm_up)


def at_least_warm_up(at: Params) -> Measures:
    found = warmed_up(at, tuple(least(at, r) for r in range(at["p"])))
    if found is None:
        raise ValueError(f"the order of the least warm-up deadlocks at {dict(at)}")
    return found


def fewest_forwards(at: Params) -> Fraction:
    """The least warm-up of rank r, the others warmed up least, that costs no time: by trial.

    The first to be tried is (v-1)g + 1: rank r's first backward needs that forward, the first
    sample's on its last chunk.
    """
    others, rank = [least(at, r) for r in range(at["p"])], at["r"]
    usual = megatrons(at)
    plain = warmed_up(at, usual)
    for forwards in range((at["v"] - 1) * group(at) + 1, usual[rank] + 1):
        tried = warmed_up(at, (*others[:rank], forwards, *others[rank + 1 :]))
        if tried is not None and plain is not None and tried.makespan <= plain.makespan:
            return Fraction(forwards)
    raise ValueError(f"no warm-up of rank {rank} is as fast as Megatron's at {dict(at)}")


def runs(at: Params) -> Fraction:
    """1 where Megatron's order has a timing."""
    return Fraction(warmed_up(at, megatrons(at)) is not None)


def least_peak(at: Params) -> Fraction:
    """The fullest rank's activations over A, warmed up least."""
    return Fraction(max(at_least_warm_up(at).peak_activations), at["p"] * at["v"])
