"""The domains of BPipe's claims: finite ranges of ranks, microbatches, stages, chunks and ticks.

The paper writes m >> p and leaves p open. Every day p goes up to 12 and m up to 3p; an audit takes
every p up to 16 and every m up to 4p, where a schedule or a list of slots is looked at. Where each
case is several schedules (ticks of transfers), m is thinned beyond 2p (``ranges.counts``). Where it
is an exhaustive search the domain ends where the search does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from bubbleproof.papers.claims.claim import Domain, Params, grid, listed
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import COUNTS_TEXT, counts, shapes
from bubbleproof.papers.claims.scope import Scope

Condition = Callable[[Params], bool]
MOST_RANKS, MOST_ROUNDS = 16, 4  # p <= 16, m <= 4p
TICKS_UP_TO_4 = tuple(product(range(1, 5), repeat=2))


def is_filled(at: Params) -> bool:
    """At least one microbatch per rank."""
    return at["m"] >= at["p"]


def is_evictor(at: Params) -> bool:
    """A stage that transfers by section 3.3."""
    return at["p"] >= 4 and at["s"] <= (at["p"] - 4) // 2


def is_steady(at: Params) -> bool:
    """An evictor with enough microbatches."""
    return is_evictor(at) and at["m"] >= 2 * at["p"]


def is_upper(at: Params) -> bool:
    """The stage of a pair that saves more."""
    return is_filled(at) and 2 * at["s"] < at["p"] - 1


def is_any(at: Params) -> bool:
    del at
    return True


def _domain(
    text: str,
    where: Condition,
    most_ranks: int,
    most_rounds: int,
    others: dict[str, Iterable[int]],
    *,
    has_stage: bool,
) -> Domain:
    """Every m <= most_rounds p on every p, with every stage where there is one."""
    names = ("p", "m", *(["s"] if has_stage else []), *others)
    columns = [tuple(values) for values in others.values()]

    def rows() -> Iterator[Row]:
        for p in range(2, most_ranks + 1):
            stages = [range(p)] if has_stage else []
            for row in product((p,), range(1, most_rounds * p + 1), *stages, *columns):
                if where(dict(zip(names, row, strict=True))):
                    yield row

    return listed(text, names, rows)


def _scope(
    text: str,
    where: Condition,
    *,
    has_stage: bool = True,
    ranks: int = 12,
    rounds: int = 3,
    **others: Iterable[int],
) -> Scope:
    """``{p}`` and ``{m}`` in the text stand for the most ranks and the most microbatches."""
    wide = (MOST_RANKS, MOST_ROUNDS)
    small, large = (
        _domain(text.format(p=p, m=f"{n}p"), where, p, n, others, has_stage=has_stage)
        for p, n in ((ranks, rounds), wide)
    )
    return Scope(small=small, wide=large)


ALL = _scope("2 <= p <= {p}, m <= {m}, all stages", is_any)
FILLED = _scope("2 <= p <= {p}, p <= m <= {m}, all stages", is_filled)
PAIRS = _scope("2 <= p <= {p}, p <= m <= {m}, s < (p-1)/2", is_upper)
EVICTORS = _scope("4 <= p <= {p}, m <= {m}, s <= floor((p-4)/2)", is_evictor)
STEADY = _scope("4 <= p <= {p}, 2p <= m <= {m}, s <= floor((p-4)/2)", is_steady)
SHAPES = _scope("2 <= p <= {p}, m <= {m}", is_any, has_stage=False)
FILLED_SHAPES = _scope("2 <= p <= {p}, p <= m <= {m}", is_filled, has_stage=False)
MEMORIES = _scope(
    "2 <= p <= {p}, p <= m <= {m}, W in {{0, 7}}, A in {{1, 5}}, all stages",
    is_filled, ranks=6, W=(0, 7), A=(1, 5),
)  # fmt: skip


def _timed(text: str, pairs: Callable[[], Iterator[tuple[int, int]]]) -> Domain:
    """The pairs (p, m) with tF and tB each 1 to 4."""
    return listed(
        f"{text}, tF and tB up to 4",
        ("p", "m", "tF", "tB"),
        lambda: ((p, m, *ticks) for p, m in pairs() for ticks in TICKS_UP_TO_4),
    )


TICKS = Scope(
    small=_timed(
        "2 <= p <= 8, m in {p, 2p, 2p+1}",
        lambda: ((p, m) for p in range(2, 9) for m in {p, 2 * p, 2 * p + 1}),
    ),
    wide=_timed(COUNTS_TEXT, shapes),
)
LONG_TICKS = Scope(
    small=_timed(
        "4 <= p <= 8, m in {2p, 2p+1}",
        lambda: ((p, m) for p in range(4, 9) for m in (2 * p, 2 * p + 1)),
    ),
    wide=_timed(
        "4 <= p <= 16, m in 2p, 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p",
        lambda: ((p, m) for p, m in shapes() if p >= 4 and m >= 2 * p),
    ),
)
RELAXED = Scope(
    small=listed(
        "2 <= p <= 8, m in {p, 2p, 2p+1}, tF = 2, tB = 4",
        ("p", "m", "tF", "tB"),
        lambda: ((p, m, 2, 4) for p in range(2, 9) for m in {p, 2 * p, 2 * p + 1}),
    ),
    wide=listed(
        "2 <= p <= 16, m <= 4p, tF = 2, tB = 4",
        ("p", "m", "tF", "tB"),
        lambda: ((p, m, 2, 4) for p in range(2, 17) for m in range(1, 4 * p + 1)),
    ),
)


def _chunked(most: int, rounds: Iterable[int], others: str, *, has_stage: bool = False) -> Domain:
    """2 <= p <= most, m a multiple of p, 2 to 4 chunks."""
    chosen = tuple(rounds)

    def rows() -> Iterator[Row]:
        for p in range(2, most + 1):
            stages = [range(p)] if has_stage else []
            yield from product((p,), (n * p for n in chosen), (2, 3, 4), *stages)

    counted = ", ".join("p" if n == 1 else f"{n}p" for n in chosen)
    return listed(
        f"2 <= p <= {most}, 2 <= v <= 4, m in {{{counted}}}{others}",
        ("p", "m", "v", *(["s"] if has_stage else [])),
        rows,
    )


CHUNKED = Scope(
    small=_chunked(6, (2, 3), ", all stages", has_stage=True),
    wide=_chunked(16, (2, 3, 4), ", all stages", has_stage=True),
)
CHUNKED_SHAPES = Scope(
    small=_chunked(6, (1, 2, 3), ""), wide=_chunked(16, (1, 2, 3, 4), " (the schedule needs p | m)")
)


def searched_counts(p: int) -> tuple[int, ...]:
    """The m that an exhaustive search looks at: as elsewhere up to 12 ranks, then seven."""
    if p <= 12:
        return counts(p)
    return (p - 1, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 1, 4 * p)


_SEARCHED_TEXT = (
    f"{COUNTS_TEXT}; from p = 13 on only p-1, p, p+1, 2p, 2p+1, 3p+1, 4p: every case is a search"
)
SEARCHED = Scope(
    small=grid(
        "4 <= p <= 7, m <= 2p, s <= floor((p-4)/2)",
        where=lambda at: is_evictor(at) and at["m"] <= 2 * at["p"],
        p=range(4, 8), m=range(1, 15), s=range(2),
    ),
    wide=listed(
        f"{_SEARCHED_TEXT}; 4 <= p; s <= floor((p-4)/2)",
        ("p", "m", "s"),
        lambda: (
            (p, m, s)
            for p in range(4, MOST_RANKS + 1)
            for m in searched_counts(p)
            for s in range((p - 4) // 2 + 1)
        ),
    ),
)  # fmt: skip
SEARCHED_PAIRS = Scope(
    small=grid(
        "2 <= p <= 7, p <= m <= 2p",
        where=lambda at: at["p"] <= at["m"] <= 2 * at["p"],
        p=range(2, 8), m=range(2, 15),
    ),
    wide=listed(
        f"{_SEARCHED_TEXT}; m >= p",
        ("p", "m"),
        lambda: (
            (p, m) for p in range(2, MOST_RANKS + 1) for m in searched_counts(p) if m >= p
        ),
    ),
)  # fmt: skip
