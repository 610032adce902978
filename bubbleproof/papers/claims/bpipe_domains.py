"""The domains of BPipe's claims: finite ranges of ranks, microbatches, stages, chunks and ticks.

The paper writes m >> p and leaves p open. Every day p goes up to 12 and m up to 3p; an audit takes
every p up to 16 and every m up to 4p, where a schedule or a list of slots is looked at. Where each
case is several schedules (ticks of transfers), m is thinned beyond 2p (``domain.counts``). Where it
is an exhaustive search the domain ends where the search does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from bubbleproof.papers.claims.domain import (
    COUNTS_TEXT,
    RANKS,
    Choice,
    Condition,
    Domain,
    Params,
    counts,
    domain,
    is_any,
    is_filled,
)

TICKS_UP_TO_4 = tuple(product(range(1, 5), repeat=2))
Counted = Callable[[int], Iterable[int]]  # p -> the m looked at


def is_evictor(at: Params) -> bool:
    """A stage that transfers by section 3.3."""
    return at["p"] >= 4 and at["s"] <= (at["p"] - 4) // 2


def is_steady(at: Params) -> bool:
    """An evictor with enough microbatches."""
    return is_evictor(at) and at["m"] >= 2 * at["p"]


def is_upper(at: Params) -> bool:
    """The stage of a pair that saves more."""
    return is_filled(at) and 2 * at["s"] < at["p"] - 1


def every_stage(at: Params) -> range:
    return range(at["p"])


def evictors(at: Params) -> range:
    return range((at["p"] - 4) // 2 + 1)


def up_to(rounds: int) -> Counted:
    """Every m up to so many times p."""
    return lambda p: range(1, rounds * p + 1)


def cases(
    text: str,
    ranks: Iterable[int],
    of: Counted,
    where: Condition = is_any,
    wide: Domain | None = None,
    **others: Choice,
) -> Domain:
    """The m looked at on each p, with the other parameters."""
    columns: dict[str, Choice] = {"p": ranks, "m": lambda at: of(at["p"])}
    return domain(text, {**columns, **others}, where=where, wide=wide)


def _scope(
    text: str, where: Condition, *, ranks: int = 12, rounds: int = 3, **others: Choice
) -> Domain:
    """``{p}`` and ``{m}`` in the text stand for the most ranks and the most microbatches."""

    def of(p: int, n: int, wide: Domain | None) -> Domain:
        told = text.format(p=p, m=f"{n}p")
        return cases(told, range(2, p + 1), up_to(n), where, wide, **others)

    return of(ranks, rounds, of(16, 4, None))


ALL = _scope("2 <= p <= {p}, m <= {m}, all stages", is_any, s=every_stage)
FILLED = _scope("2 <= p <= {p}, p <= m <= {m}, all stages", is_filled, s=every_stage)
PAIRS = _scope("2 <= p <= {p}, p <= m <= {m}, s < (p-1)/2", is_upper, s=every_stage)
EVICTORS = _scope("4 <= p <= {p}, m <= {m}, s <= floor((p-4)/2)", is_evictor, s=every_stage)
STEADY = _scope("4 <= p <= {p}, 2p <= m <= {m}, s <= floor((p-4)/2)", is_steady, s=every_stage)
SHAPES = _scope("2 <= p <= {p}, m <= {m}", is_any)
FILLED_SHAPES = _scope("2 <= p <= {p}, p <= m <= {m}", is_filled)
MEMORIES = _scope(
    "2 <= p <= {p}, p <= m <= {m}, W in {{0, 7}}, A in {{1, 5}}, all stages",
    is_filled, ranks=6, s=every_stage, W=(0, 7), A=(1, 5),
)  # fmt: skip
COUNTED = cases(
    "4 <= p <= 8, m <= 4p, s <= floor((p-4)/2)",
    range(4, 9),
    up_to(4),
    s=evictors,
    wide=cases(
        "4 <= p <= 16, m <= 4p (from p = 9 on all up to 2p, then 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p), "
        "s <= floor((p-4)/2)",
        range(4, 17),
        lambda p: range(1, 4 * p + 1) if p <= 8 else counts(p),
        s=evictors,
    ),
)


def _timed(text: str, ranks: Iterable[int], of: Counted, wide: Domain | None = None) -> Domain:
    """The m on each p with tF and tB each 1 to 4."""
    return cases(f"{text}, tF and tB up to 4", ranks, of, wide=wide, tF_tB=TICKS_UP_TO_4)


def _relaxed(text: str, ranks: Iterable[int], of: Counted, wide: Domain | None = None) -> Domain:
    return cases(f"{text}, tF = 2, tB = 4", ranks, of, wide=wide, tF_tB=((2, 4),))


TICKS = _timed(
    "2 <= p <= 8, m in {p, 2p, 2p+1}",
    range(2, 9),
    lambda p: (p, 2 * p, 2 * p + 1),
    wide=_timed(COUNTS_TEXT, RANKS, counts),
)
LONG_TICKS = _timed(
    "4 <= p <= 8, m in {2p, 2p+1}",
    range(4, 9),
    lambda p: (2 * p, 2 * p + 1),
    wide=_timed(
        "4 <= p <= 16, m in 2p, 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p",
        range(4, 17),
        lambda p: (m for m in counts(p) if m >= 2 * p),
    ),
)
RELAXED = _relaxed(
    "2 <= p <= 8, m in {p, 2p, 2p+1}",
    range(2, 9),
    lambda p: (p, 2 * p, 2 * p + 1),
    wide=_relaxed("2 <= p <= 16, m <= 4p", RANKS, up_to(4)),
)


def _chunked(
    most: int, rounds: tuple[int, ...], others: str, wide: Domain | None = None, **stage: Choice
) -> Domain:
    """2 <= p <= most, m a multiple of p, 2 to 4 chunks."""
    counted = ", ".join("p" if n == 1 else f"{n}p" for n in rounds)
    text = f"2 <= p <= {most}, 2 <= v <= 4, m in {{{counted}}}{others}"
    columns: dict[str, Choice] = {
        "p": range(2, most + 1),
        "m": lambda at: (n * at["p"] for n in rounds),
        "v": (2, 3, 4),
    }
    return domain(text, {**columns, **stage}, wide=wide)


CHUNKED = _chunked(
    6, (2, 3), ", all stages", s=every_stage,
    wide=_chunked(16, (2, 3, 4), ", all stages", s=every_stage),
)  # fmt: skip
CHUNKED_SHAPES = _chunked(
    6, (1, 2, 3), "", wide=_chunked(16, (1, 2, 3, 4), " (the schedule needs p | m)")
)


def searched_counts(p: int) -> tuple[int, ...]:
    """The m that an exhaustive search looks at: as elsewhere up to 12 ranks, then seven."""
    if p <= 12:
        return counts(p)
    return (p - 1, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 1, 4 * p)


_SEARCHED_TEXT = (
    f"{COUNTS_TEXT}; from p = 13 on only p-1, p, p+1, 2p, 2p+1, 3p+1, 4p: every case is a search"
)
SEARCHED = cases(
    "4 <= p <= 7, m <= 2p, s <= floor((p-4)/2)",
    range(4, 8),
    up_to(2),
    s=evictors,
    wide=cases(
        f"{_SEARCHED_TEXT}; 4 <= p; s <= floor((p-4)/2)",
        range(4, 17),
        searched_counts,
        s=evictors,
    ),
)
SEARCHED_PAIRS = cases(
    "2 <= p <= 7, p <= m <= 2p",
    range(2, 8),
    up_to(2),
    is_filled,
    cases(f"{_SEARCHED_TEXT}; m >= p", RANKS, searched_counts, is_filled),
)
