"""The cases of the field's claims: p ranks, m microbatches, v chunks, ticks of one action each.

Up to ``EVERY_M`` ranks every m <= 4p is looked at, beyond it those around the multiples of p; an
audit looks at every m on every p up to 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from bubbleproof.papers.claims.domain import (
    EVERY,
    RANKS,
    RATIOS,
    Condition,
    Counts,
    Domain,
    Row,
    Words,
    domain,
    is_any,
    worded,
)

SOME_RANKS = (2, 3, 4, 5, 6, 7, 8, 11, 16)
FEWER_RANKS = (2, 3, 4, 5, 6, 7, 8, 16)
EVERY_M = 5
FULL = ("tF", "tB")
FULL_TICKS = ((1, 1), (1, 2), (2, 1), (3, 5))


def is_looked_at(p: int, m: int) -> bool:
    """m <= 4p; beyond ``EVERY_M`` ranks only m within 1 of a multiple of p, and m <= 2."""
    return m <= 4 * p and (p <= EVERY_M or m <= 2 or m % p in (0, 1, p - 1))


NEAR = Counts(
    text="m <= 4p (from p = 6 on only m <= 2 and m within 1 of a multiple of p)",
    of=lambda p: (m for m in range(1, 4 * p + 1) if is_looked_at(p, m)),
)


def shapes(
    condition: str = "any durations",
    where: Condition = is_any,
    *,
    ranks: Sequence[int] = SOME_RANKS,
    names: Sequence[str] = FULL,
    ticks: Sequence[Row] = FULL_TICKS,
    wide_ticks: Sequence[Row] = RATIOS,
    **others: Sequence[int],
) -> Domain:
    """The m looked at on the given ranks, and every m on up to 16, where ``where`` holds.

    Both with all durations and other parameters. The text names all of it and ends with
    ``condition``, which says in words what ``where`` does.
    """

    def cases(ranks: Words, looked_at: Counts, ticks: Sequence[Row], wide: Domain | None) -> Domain:
        parts: dict[str, Words] = {
            "p": ranks,
            "m": (looked_at.text, lambda at: looked_at.of(at["p"])),
            **{name: (f"{name} in {_spelled(values)}", values) for name, values in others.items()},
            "_".join(names): (_spelled_ticks(names, ticks), ticks),
        }
        return worded(parts, condition, where, wide)

    wide = cases(("2 <= p <= 16", RANKS), EVERY, wide_ticks, None)
    return cases((f"p in {_spelled(ranks)}", ranks), NEAR, ticks, wide)


def _spelled_ticks(names: Sequence[str], ticks: Sequence[Row]) -> str:
    """Each row of ticks, or that each of them runs through the same range."""
    most = max(map(max, ticks))
    if len(ticks) > 1 and list(ticks) == list(product(range(1, most + 1), repeat=len(names))):
        return f"{' '.join(names)} each in 1 to {most}"
    return f"{' '.join(names)} in {', '.join(map(_spelled, ticks))}"


def _spelled(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


ANY = shapes()
OF_RANKS = domain(
    "p in 2 3 4 5 6 7 8 11 16; m <= 4p (from p = 6 on only m <= 2 and m within 1 of a multiple of "
    "p); every rank r",
    p=SOME_RANKS,
    m=lambda at: NEAR.of(at["p"]),
    r=lambda at: range(at["p"]),
    wide=domain(
        "2 <= p <= 16; m <= 4p; every rank r",
        p=RANKS,
        m=lambda at: EVERY.of(at["p"]),
        r=lambda at: range(at["p"]),
    ),
)
