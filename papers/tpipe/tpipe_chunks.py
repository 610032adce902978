"""T-Pipe's claims of three and four chunks (section 6.4, Figure 14), and of AdaPipe (section 6.3).

Symbols: p ranks, m microbatches, v chunks per rank, k of them recomputed. Figure 14 ignores the
buffer of what is recomputed: "kept" are the activations of the other chunks, on the rank where
there are most. Its ratios are R = k/v. Units are m_a / vp.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.papers.claims.measured_pipelines import peaks_of
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_schedules import INTERLEAVED, TPIPE, TRECOMP
from bubbleproof.theory.families.adapipe import AdaPipe
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.recomputed_1f1b import (
    RecomputedOneForwardOneBackward,
    share_of_chunks,
)
from bubbleproof.theory.families.trecomp import TRecompInterleaved, recomputed_chunks
from bubbleproof.theory.model.measures import measure

RECOMPUTED_1F1B, RECOMPUTED_INTERLEAVED = RecomputedOneForwardOneBackward(), TRecompInterleaved()

_SOME = (3, 4, 5, 6, 8)
_WIDE = range(3, 17)
_CHUNKS = (2, 3, 4)
_PLAIN = domain("p in 3 4 5 6 8, v in 2 3 4, m = 3p", p=_SOME, v=_CHUNKS, m="(3*p,)").widened(
    "3 <= p <= 16, v in 2 3 4, m = 3p", p=_WIDE
)
_RATIOS = domain(
    "p in 3 4 5 6 8, v in 2 3 4, 1 <= k < v, m = 3p",
    p=_SOME,
    v=_CHUNKS,
    k="range(1, v)",
    m="(3*p,)",
).widened("3 <= p <= 16, v in 2 3 4, 1 <= k < v, m = 3p", p=_WIDE)
_EIGHT = domain("p = 8, v in 3 4, m = 24", p=(8,), v=(3, 4), m=(24,))
_MANY = domain("3 <= p <= 12, v in 3 4, m = 3p", p=range(3, 13), v=(3, 4), m="(3*p,)")
_BATCH = domain(
    "p = 8, m = 32 (Figure 10's global batch, microbatches of 1), 6 or 12 parts a rank",
    p=(8,),
    m=(32,),
    v=(6, 12),
)


def _share(at: Params) -> int:
    return share_of_chunks(at["k"], at["v"])


@lru_cache(maxsize=256)
def _kept(family: Family, p: int, m: int, v: int, share: int) -> int:
    made = family.member(FamilyParameters(p=p, m=m, v=v, R=share))
    problem = made.problem
    first = recomputed_chunks(made.pipeline) * p
    if isinstance(family, RecomputedOneForwardOneBackward):  # its chunks lie side by side
        kept = problem.actions.stage % v >= first // p
    else:
        kept = problem.actions.stage >= first
    return max(peaks_of(made, np.asarray(kept[problem.events.task], dtype=np.bool_)))


def kept(family: Family, at: Params) -> int:
    """The most activations on a rank of chunks that are not recomputed."""
    return _kept(family, at["p"], at["m"], at["v"], _share(at))


def share_of(chunks: int, at: Params) -> Fraction:
    """T-Pipe's peak at so many chunks, of m_a."""
    return on.share(TPIPE, {"p": at["p"], "m": at["m"], "v": chunks})


def adapipe_over_trecomp(at: Params) -> Fraction:
    """AdaPipe's step over T-Recomp's of two chunks, at the activations of T-Recomp.

    A rank is v parts (layers, or halves) for AdaPipe; both times are in parts.
    """
    p, m, v = at["p"], at["m"], at["v"]
    recomputed = on.run(TRECOMP, {"p": p, "m": m}).measures
    held = max(recomputed.peak_activations) * v // 2  # parts of half a rank each
    plan = AdaPipe().member(FamilyParameters(p=p, m=m, v=v, f=held))
    found = measure(plan.problem, plan.schedule)
    if max(found.peak_activations) > held:
        raise ValueError(f"AdaPipe's plan holds {max(found.peak_activations)} parts of {held}")
    return Fraction(2 * found.makespan, v * recomputed.makespan)


_FIGURE_14 = (
    stated("tpipe.sec6.4.below", "§6.4, Figure 14",
           "T-Pipe holds less than 1F1B without recomputation, at two, three and four chunks.",
           "share of m_a", lambda at: on.share(TPIPE, at), "<=", "1 - 1/(v*p)", _PLAIN),
    stated("tpipe.sec6.4.ratios", "§6.4, Figure 14",
           "With T-Recomp it keeps less than 1F1B with as much recomputed, at every ratio.",
           "kept activations", lambda at: kept(TRECOMP, at), "<=",
           lambda at: kept(RECOMPUTED_1F1B, at) - 1, _RATIOS),
    read_as("tpipe.sec6.4.finer", "§6.4, Figure 14",
            "Finer chunks are better: of three and four, T-Pipe holds a smaller share of m_a than "
            "of one chunk less.", "share of m_a", [
                reading("on 8 ranks, as section 6.3 evaluates", "§6.3: PP8",
                        lambda at: share_of(at["v"], at), "<=",
                        lambda at: share_of(at["v"] - 1, at), _EIGHT,
                        slack="19/24 and 11/16 for 13/16 and 19/24: each is smaller, none equal"),
                reading("on any number of ranks", "§6.4 without the number of ranks of its figure",
                        lambda at: share_of(at["v"], at), "<=",
                        lambda at: share_of(at["v"] - 1, at), _MANY, is_contrast=True),
            ]),
    stated("tpipe.sec6.4.interleaved-above", "§6.4, Figure 14",
           "Interleaved 1F1B holds more than 1F1B; recomputed at one ratio, both keep that share.",
           "share of m_a", lambda at: on.share(INTERLEAVED, at), ">=", "1 + 1/(v*p)", _PLAIN,
           slack="it is (p-1)/(v p) more (section 2.1)"),
    stated("tpipe.sec6.4.interleaved-matches", "§6.4, Figure 14",
           "With T-Recomp interleaved 1F1B keeps what 1F1B keeps with as much recomputed.",
           "kept activations", lambda at: kept(RECOMPUTED_INTERLEAVED, at), "==",
           lambda at: kept(RECOMPUTED_1F1B, at), _RATIOS),
)  # fmt: skip
_ADAPIPE = (
    stated(
        "tpipe.sec6.3.adapipe-ticks",
        "ours, for T-Pipe §6.3, with AdaPipe's plan for whole layers and messages of 0 ticks",
        "By ticks alone AdaPipe, at T-Recomp's activations, takes no less than T-Recomp.",
        "ratio of the steps",
        adapipe_over_trecomp,
        ">=",
        1,
        _BATCH,
        slack="6.0 % more of 48 layers and 3.0 % of 96; of ever smaller parts it comes to about "
        "as long",
    ),
)

CLAIMS: tuple[PaperClaim, ...] = (*_FIGURE_14, *_ADAPIPE)
