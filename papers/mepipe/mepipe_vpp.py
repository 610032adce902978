"""VPP (interleaved 1F1B) of MEPipe's Table 3: its least warm-up, and fewer samples than ranks.

Symbols: p ranks, m microbatches (the paper's n), v chunks, r a rank, A the activations of one
sample, g = min(m, p) the microbatches of a group; g divides m. Megatron's rank r runs (v-1)g +
2(p-r-1) + 1 forwards before its first backward, two per hop to the last rank; from then on a
forward and a backward alternate. Table 3's memory of VPP, 1 + (p-1)/(pv), is that of this warm-up.
The orders here differ from Megatron's in that number alone: with one forward per hop the same order
is as fast and keeps A.

Every order with n <= p takes (vp + n-1)(tF + tB) or more: the last stage waits vp-1 forwards, has
n forwards and backwards to run, and vp-1 backwards follow. VPP takes no longer.

Source: Sun et al., "MEPipe" (EuroSys 2025) Table 3; Narayanan et al. (SC 2021) section 2.2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    RATIOS,
    CaseValues,
    Domain,
    Params,
    Ratios,
    Words,
    among,
    ratios_text,
    worded,
)
from bubbleproof.papers.claims.measured_pipelines import idle_ratio
from bubbleproof.papers.mepipe.mepipe_table3 import HANAYO_FEW, SOURCE, VPP_BUBBLE
from bubbleproof.theory.families.base import one_forward_one_backward, passes, program_of_ranks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import Deadlock, left_shift

CHUNKS = (2, 4)


def _cases(text: str, counts: str, ratios: Ratios = RATIOS[:3], **rank: Words) -> Domain:
    """The m of each p, two v, the ratios; and some ranks r where asked for."""
    parts: dict[str, Words] = {
        "p": among("p", (2, 3, 4)),
        "m": (f"n in {text}", counts),
        "v": among("v", CHUNKS),
        **rank,
        "tF_tB": ("", ratios),
    }
    return worded(parts, ratios_text(ratios), wider={"p": among("p", (2, 3, 4, 5, 7, 11, 16))})


FEW = _cases("1 p/2 p-1", "{1, p//2, p-1}")
MANY = _cases("p 2p 4p", "{p, 2*p, 4*p}")
BOTH = _cases(
    "1 p/2 p-1 p 2p 4p",
    "{1, p//2, p-1, p, 2*p, 4*p}",
    RATIOS[1:2],
    r=("r in 0 p/2 p-1", "{0, p//2, p-1}"),
)


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
def _measured(
    p: int, m: int, v: int, ticks: CaseValues, warm_up: tuple[int, ...]
) -> Measures | None:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, num_chunks=v, forward=ticks[0], backward=ticks[1]
    )
    size = min(m, p)
    chunk, microbatch = passes(np.full(m // size, size), range(v))
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


CLAIMS: tuple[PaperClaim, ...] = (
    stated("mepipe.table3.vpp.warm-up", "ours, for MEPipe Table 3",
           "Rank r of VPP needs (v-1)g + min(p-r, g) forwards before its first backward, g = "
           "min(n, p): with one fewer a step takes longer.",
           "least forwards of rank r in the makespan of Megatron's order", fewest_forwards, "==",
           lambda at: least(at, at["r"]), BOTH),
    stated("mepipe.table3.vpp.least-bubble", "ours, for MEPipe Table 3",
           "So warmed up on every rank VPP still has the bubble ratio (p-1)/(p-1+nv).",
           "idle_ratio", lambda at: at_least_warm_up(at).idle_ratio, "==", VPP_BUBBLE, MANY),
    stated("mepipe.table3.vpp.least-memory", "ours, for MEPipe Table 3",
           "So warmed up VPP keeps A, not (1 + (p-1)/(pv)) A.",
           "peak activations of the fullest rank over A", least_peak, "==", 1, MANY),
    read_as("mepipe.table3.vpp.few", SOURCE, "VPP does not support n < p.", "see the readings", (
        reading("Megatron asks for a multiple of p", "Table 3: unsupported; VPP is Megatron-LM's, "
                "whose samples p must divide, so some are left over", "m % p", ">=", 1, FEW),
        reading("the order does not run", "of no sentence; one group of n samples",
                runs, "==", 0, FEW, is_contrast=True),
    )),
    stated("mepipe.table3.vpp.bubble-few", "ours, for MEPipe Table 3",
           "With n < p one group of n samples has the bubble ratio (vp+n-1-nv)/(vp+n-1), Hanayo's, "
           "at any durations.", "idle_ratio", idle_ratio("interleaved"), "==", HANAYO_FEW, FEW),
    stated("mepipe.table3.vpp.bubble-few-least", "ours, for MEPipe Table 3",
           "With n < p the least warm-up has that bubble ratio.", "idle_ratio",
           lambda at: at_least_warm_up(at).idle_ratio, "==", HANAYO_FEW, FEW),
    stated("mepipe.table3.vpp.memory-few", "ours, for MEPipe Table 3",
           "With n < p the least warm-up keeps n/p A.",
           "peak activations of the fullest rank over A", least_peak, "==", "m/p", FEW),
)  # fmt: skip
