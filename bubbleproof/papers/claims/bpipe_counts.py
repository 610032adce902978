"""How many microbatches a stage of BPipe evicts: a closed count, and a load for each.

Symbols: p ranks (= stages), m microbatches, s an evictor, mu = ceil((p+2)/2) the most activations
it keeps, n = p - s - mu of its p - s in the warm-up too many, T = p - s - 2. The first n evictions
are those of the warm-up, microbatches mu-1 to mu+n-2. Whenever one is loaded beside a forward
another must go (Algorithm 1, lines 19 to 23), and it is the one last made; so the n places away
from home are filled anew, one microbatch after the other, every T microbatches, as long as there
are forwards left:

    evictions = min(max(m-mu, 0), n) + n floor(x/T) + min(x mod T, n),   x = max(m-mu+1-T, 0)

Source: Kim et al., "BPipe" (ICML 2023) sections 3.2 and 3.4; the count is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from bubbleproof.papers.claims.bpipe_schedules import made
from bubbleproof.papers.claims.claim import Claim, Params, listed
from bubbleproof.papers.claims.field_schedules import stated
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import counts
from bubbleproof.papers.claims.scope import Scope
from bubbleproof.theory.model.actions import Kind


def count(at: Params) -> Fraction:
    """The module's formula."""
    kept = -(-(at["p"] + 2) // 2)
    away, every = at["p"] - at["s"] - kept, at["p"] - at["s"] - 2
    later = max(at["m"] - kept + 1 - every, 0)
    first = min(max(at["m"] - kept, 0), away)
    return Fraction(first + away * (later // every) + min(later % every, away))


@lru_cache(maxsize=4096)  # numbers only: the schedules themselves are not kept
def _moved(p: int, m: int) -> tuple[tuple[int, int], ...]:
    """(EVICTs, LOADs) of each stage in its schedule."""
    actions = made("bpipe", p, m).schedule.program.actions
    of_kind = (actions.stage[actions.is_kind(kind)] for kind in (Kind.EVICT, Kind.LOAD))
    evicted, loaded = (np.bincount(stages, minlength=p).tolist() for stages in of_kind)
    return tuple(zip(evicted, loaded, strict=True))


def evictions(at: Params) -> Fraction:
    return Fraction(_moved(at["p"], at["m"])[at["s"]][0])


def loads(at: Params) -> Fraction:
    return Fraction(_moved(at["p"], at["m"])[at["s"]][1])


def _cases(most: int, counts: Callable[[int], Iterable[int]]) -> Iterator[Row]:
    for p in range(4, most + 1):
        for m, s in product(counts(p), range((p - 4) // 2 + 1)):
            yield p, m, s


NAMES = ("p", "m", "s")
EVICTORS = Scope(
    small=listed(
        "4 <= p <= 8, m <= 4p, s <= floor((p-4)/2)",
        NAMES,
        lambda: _cases(8, lambda p: range(1, 4 * p + 1)),
    ),
    wide=listed(
        "4 <= p <= 16, m <= 4p (from p = 9 on all up to 2p, then 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p), "
        "s <= floor((p-4)/2)",
        NAMES,
        lambda: _cases(16, lambda p: range(1, 4 * p + 1) if p <= 8 else counts(p)),
    ),
)


CLAIMS: tuple[Claim, ...] = (
    stated(
        "bpipe.alg1.count",
        "ours, for BPipe §3.4 Algorithm 1",
        "Stage s evicts min(max(m-mu, 0), n) + n floor(x/T) + min(x mod T, n) microbatches, with n "
        "= p-s-mu, T = p-s-2, x = max(m-mu+1-T, 0).",
        "evictions of stage s",
        EVICTORS,
        count,
        evictions,
    ),
    stated(
        "bpipe.sec3.4.loads",
        "BPipe §3.4",
        "Each eviction requires exactly one load.",
        "loads of stage s",
        EVICTORS,
        evictions,
        loads,
    ),
)
