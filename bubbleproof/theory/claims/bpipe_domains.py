"""The domains of BPipe's claims: finite ranges of ranks, microbatches, stages, chunks and ticks.

The paper writes m >> p and leaves p open. Here p goes up to 12 where one schedule serves all
stages, and less where every case is a schedule of its own or a search.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.theory.claims.claim import Domain, Params, grid

RANKS = range(1, 13)
STAGES = range(12)
COUNTS = range(1, 37)


def is_stage(at: Params) -> bool:
    return at["s"] < at["p"]


def is_filled(at: Params) -> bool:
    """A stage, and at least one microbatch per rank; at most three, to keep the domain finite."""
    return is_stage(at) and at["p"] <= at["m"] <= 3 * at["p"]


def is_evictor(at: Params) -> bool:
    """A stage that transfers by section 3.3, at any m up to 3p."""
    return at["p"] >= 4 and at["s"] <= (at["p"] - 4) // 2 and at["m"] <= 3 * at["p"]


def of_stages(where: Callable[[Params], bool], text: str) -> Domain:
    return grid(text, where=where, p=RANKS, m=COUNTS, s=STAGES)


ALL = of_stages(lambda at: is_stage(at) and at["m"] <= 3 * at["p"], "p <= 12, m <= 3p, all stages")
FILLED = of_stages(is_filled, "p <= 12, p <= m <= 3p, all stages")
PAIRS = of_stages(
    lambda at: is_filled(at) and 2 * at["s"] < at["p"] - 1, "p <= 12, p <= m <= 3p, s < (p-1)/2"
)
EVICTORS = of_stages(is_evictor, "4 <= p <= 12, m <= 3p, s <= floor((p-4)/2)")
STEADY = of_stages(
    lambda at: is_evictor(at) and at["m"] >= 2 * at["p"],
    "4 <= p <= 12, 2p <= m <= 3p, s <= floor((p-4)/2)",
)
SHAPES = grid("p <= 12, m <= 3p", where=lambda at: at["m"] <= 3 * at["p"], p=RANKS, m=COUNTS)
MEMORIES = grid(
    "p <= 6, p <= m <= 3p, W in {0, 7}, A in {1, 5}, all stages",
    where=is_filled, p=range(1, 7), m=range(1, 19), s=range(6), W=(0, 7), A=(1, 5),
)  # fmt: skip
TICKS = grid(
    "p <= 8, m in {p, 2p, 2p+1}, tF and tB up to 4",
    where=lambda at: at["m"] in (at["p"], 2 * at["p"], 2 * at["p"] + 1),
    p=range(1, 9), m=range(1, 18), tF=range(1, 5), tB=range(1, 5),
)  # fmt: skip
LONG_TICKS = grid(
    "4 <= p <= 8, m in {2p, 2p+1}, tF and tB up to 4",
    where=lambda at: at["m"] in (2 * at["p"], 2 * at["p"] + 1),
    p=range(4, 9), m=range(8, 18), tF=range(1, 5), tB=range(1, 5),
)  # fmt: skip
CHUNKED = grid(
    "p <= 6, 2 <= v <= 4, m in {2p, 3p}, all stages",
    where=lambda at: at["s"] < at["p"] and at["m"] in (2 * at["p"], 3 * at["p"]),
    p=range(1, 7), m=range(2, 19), v=range(2, 5), s=range(6),
)  # fmt: skip
CHUNKED_SHAPES = grid(
    "p <= 6, 2 <= v <= 4, m in {p, 2p, 3p}",
    where=lambda at: at["m"] % at["p"] == 0 and at["m"] <= 3 * at["p"],
    p=range(1, 7), m=range(1, 19), v=range(2, 5),
)  # fmt: skip
SEARCHED = of_stages(
    lambda at: is_evictor(at) and at["p"] <= 7 and at["m"] <= 2 * at["p"],
    "4 <= p <= 7, m <= 2p, s <= floor((p-4)/2)",
)
