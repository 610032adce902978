"""The domains of BPipe's claims: finite ranges of ranks, microbatches, stages, chunks and ticks.

The paper writes m >> p and leaves p open. Every day p goes up to 12 and m up to 3p; an audit takes
every p up to 16 and every m up to 4p, where a schedule or a list of slots is looked at. Where each
case is several schedules (ticks of transfers), m is thinned beyond 2p (``domain.counts``). Where it
is an exhaustive search the domain ends where the search does.
"""

from __future__ import annotations

from itertools import product

from bubbleproof.papers.claims.domain import (
    COUNTS_TEXT,
    RANKS,
    Choice,
    Domain,
    Params,
    counts,
    domain,
)

TICKS_UP_TO_4 = tuple(product(range(1, 5), repeat=2))
EVICTOR = "4 <= p and s <= (p-4)//2"  # a stage that transfers by section 3.3
EVICTORS_OF = "range((p-4)//2 + 1)"


def looked_at(at: Params) -> tuple[int, ...]:
    """The m of ``domain.counts``."""
    return counts(at["p"])


def _scope(text: str, where: str = "True", *, ranks: int = 12, **others: Choice) -> Domain:
    """``{p}`` and ``{m}`` in the text stand for the most ranks and the most microbatches."""
    columns: dict[str, Choice] = {"p": range(2, ranks + 1), "m": "range(1, 3*p + 1)", **others}
    few = domain(text.format(p=ranks, m="3p"), columns, where=where)
    return few.widened(text.format(p=16, m="4p"), p=RANKS, m="range(1, 4*p + 1)")


ALL = _scope("2 <= p <= {p}, m <= {m}, all stages", s="range(p)")
FILLED = _scope("2 <= p <= {p}, p <= m <= {m}, all stages", "m >= p", s="range(p)")
PAIRS = _scope("2 <= p <= {p}, p <= m <= {m}, s < (p-1)/2", "m >= p and 2*s < p-1", s="range(p)")
EVICTORS = _scope("4 <= p <= {p}, m <= {m}, s <= floor((p-4)/2)", EVICTOR, s="range(p)")
STEADY = _scope(
    "4 <= p <= {p}, 2p <= m <= {m}, s <= floor((p-4)/2)", f"{EVICTOR} and m >= 2*p", s="range(p)"
)
SHAPES = _scope("2 <= p <= {p}, m <= {m}")
FILLED_SHAPES = _scope("2 <= p <= {p}, p <= m <= {m}", "m >= p")
MEMORIES = _scope(
    "2 <= p <= {p}, p <= m <= {m}, W in {{0, 7}}, A in {{1, 5}}, all stages",
    "m >= p",
    ranks=6,
    s="range(p)",
    W=(0, 7),
    A=(1, 5),
)
COUNTED = domain(
    "4 <= p <= 8, m <= 4p, s <= floor((p-4)/2)", p=range(4, 9), m="range(1, 4*p + 1)", s=EVICTORS_OF
).widened(
    "4 <= p <= 16, m <= 4p (from p = 9 on all up to 2p, then 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p), "
    "s <= floor((p-4)/2)",
    p=range(4, 17),
    m=lambda at: range(1, 4 * at["p"] + 1) if at["p"] <= 8 else looked_at(at),
)

TICKS = domain(
    "2 <= p <= 8, m in {p, 2p, 2p+1}, tF and tB up to 4",
    p=range(2, 9),
    m="(p, 2*p, 2*p + 1)",
    tF_tB=TICKS_UP_TO_4,
).widened(f"{COUNTS_TEXT}, tF and tB up to 4", p=RANKS, m=looked_at)
TWICE_TICKS = domain(
    "2 <= p <= 8, m in {p, 2p, 2p+1}, tF:tB in 1:2 2:4",
    p=range(2, 9),
    m="(p, 2*p, 2*p + 1)",
    tF_tB=((1, 2), (2, 4)),
).widened(f"{COUNTS_TEXT}, tF:tB in 1:2 2:4", p=RANKS, m=looked_at)
LONG_TICKS = domain(
    "4 <= p <= 8, m in {2p, 2p+1}, tF and tB up to 4",
    p=range(4, 9),
    m="(2*p, 2*p + 1)",
    tF_tB=TICKS_UP_TO_4,
).widened(
    "4 <= p <= 16, m in 2p, 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p, tF and tB up to 4",
    p=range(4, 17),
    m=lambda at: (m for m in looked_at(at) if m >= 2 * at["p"]),
)
RELAXED = domain(
    "2 <= p <= 8, m in {p, 2p, 2p+1}, tF = 2, tB = 4",
    p=range(2, 9),
    m="(p, 2*p, 2*p + 1)",
    tF_tB=((2, 4),),
).widened("2 <= p <= 16, m <= 4p, tF = 2, tB = 4", p=RANKS, m="range(1, 4*p + 1)")
CHUNKED = domain(
    "2 <= p <= 6, 2 <= v <= 4, m in {2p, 3p}, all stages",
    p=range(2, 7),
    m="(2*p, 3*p)",
    v=(2, 3, 4),
    s="range(p)",
).widened("2 <= p <= 16, 2 <= v <= 4, m in {2p, 3p, 4p}, all stages", p=RANKS, m="(2*p, 3*p, 4*p)")
CHUNKED_SHAPES = domain(
    "2 <= p <= 6, 2 <= v <= 4, m in {p, 2p, 3p}", p=range(2, 7), m="(p, 2*p, 3*p)", v=(2, 3, 4)
).widened(
    "2 <= p <= 16, 2 <= v <= 4, m in {p, 2p, 3p, 4p} (the schedule needs p | m)",
    p=RANKS,
    m="(p, 2*p, 3*p, 4*p)",
)


def searched(at: Params) -> tuple[int, ...]:
    """The m that an exhaustive search looks at: as elsewhere up to 12 ranks, then seven."""
    p = at["p"]
    return counts(p) if p <= 12 else (p - 1, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 1, 4 * p)


_SEARCHED_TEXT = (
    f"{COUNTS_TEXT}; from p = 13 on only p-1, p, p+1, 2p, 2p+1, 3p+1, 4p: every case is a search"
)
SEARCHED = domain(
    "4 <= p <= 7, m <= 2p, s <= floor((p-4)/2)", p=range(4, 8), m="range(1, 2*p + 1)", s=EVICTORS_OF
).widened(f"{_SEARCHED_TEXT}; 4 <= p; s <= floor((p-4)/2)", p=range(4, 17), m=searched)
SEARCHED_PAIRS = domain(
    "2 <= p <= 7, p <= m <= 2p", p=range(2, 8), m="range(1, 2*p + 1)", where="m >= p"
).widened(f"{_SEARCHED_TEXT}; m >= p", p=RANKS, m=searched)
