"""The published families whose schedules repeat, with the shapes at which they are proved.

T-Recomp, zero-bubble families and SVPP repeat with every microbatch, interleaved ones with every
group of p. What is proved for all p and m is not here. Ticks are those of the family's source;
where a formula for makespan and peak is known (``theory.families`` tells whose), it is proved along
with the closed form.
"""

from __future__ import annotations

from collections.abc import Iterable

from bubbleproof.papers.theorems.periodic_families import PeriodicShape, PeriodicTheorem

FULL = "tF = 1, tB = 2"
SPLIT = "tF = tI = tW = 1"
RECOMPUTED = f"{FULL}, a recomputation 1"


def listed() -> tuple[PeriodicTheorem, ...]:
    """Every theorem on a family that repeats."""
    return (*_CHRONOS, *_ZERO_BUBBLE, *_WAVES, *_SLICES, *_GROUPS)


def _shape(family: str, size: int, repeats: int = 1, **params: int) -> PeriodicShape:
    return PeriodicShape(family=family, params=tuple(params.items()), size=size, repeats=repeats)


def _remainders(
    family: str, ranks: Iterable[int], directions: int, **params: int
) -> tuple[PeriodicShape, ...]:
    """Groups of p microbatches over the directions, and every remainder of m by p."""
    return tuple(
        _shape(family, 12 * p + rest, p // directions, p=p, **params)
        for p in ranks
        for rest in range(p)
    )


_CHRONOS = (
    PeriodicTheorem(
        "trecomp",
        "T-Pipe with T-Recomp",
        RECOMPUTED,
        tuple(_shape("trecomp", 7 * p + 4, p=p) for p in range(2, 9)),
    ),
    PeriodicTheorem(
        "trecomp-interleaved",
        "Interleaved 1F1B with T-Recomp, p | m",
        RECOMPUTED,
        tuple(_shape("trecomp-interleaved", 8 * p, p, p=p) for p in (2, 3, 4)),
    ),
)
_ZERO_BUBBLE = (
    PeriodicTheorem(
        "v-half",
        "V-Half",
        SPLIT,
        tuple(_shape("v-half", 7 * p + 2, p=p) for p in range(3, 8)),
        "makespan 6m+3p-4, 6m+3p-7 for even p, and peak 2((p+2) div 2) on every rank",
        "6*m + 3*p - (4 if p % 2 else 7)",
        "(p+2)//2 * 2",
    ),
    PeriodicTheorem(
        "v-min",
        "V-Min",
        SPLIT,
        tuple(_shape("v-min", 7 * p + 2, p=p) for p in range(2, 8)),
        "makespan 6m+4p-5, 2 less where 3 divides p",
        "6*m + 4*p - 5 - (0 if p % 3 else 2)",
    ),
)
_WAVES = (
    PeriodicTheorem(
        "hanayo",
        "Hanayo",
        FULL,
        # With a remainder of p-1 the last groups move against each other: no fit.
        tuple(
            shape
            for shape in _remainders("hanayo", (2, 3, 4), 1, v=2)
            if shape.size % dict(shape.params)["p"] < max(2, dict(shape.params)["p"] - 1)
        ),
        "makespan 6m + 2(p-1)(m div p + 1) + 2(m mod p)",
        "6*m + 2*(p-1)*(m//p + 1) + 2*(m % p)",
    ),
    PeriodicTheorem(
        "chimera", "Chimera, m counting both directions", FULL, _remainders("chimera", (2, 4), 2)
    ),
)
_SLICES = (
    PeriodicTheorem(
        "svpp",
        "SVPP with one chunk and every f below the largest",
        FULL,
        tuple(
            _shape("svpp", 14 * repeats, repeats, p=p, s=s, f=f)
            for p, s in ((2, 2), (3, 2), (3, 3), (4, 2), (4, 4))
            for f in range(s, p + s - 1)
            for repeats in [1 + ((p, s, f) == (4, 2, 4))]
        ),
    ),
    PeriodicTheorem(
        "svpp-w",
        "SVPP with weight gradients apart, one chunk and the largest f",
        SPLIT,
        tuple(
            _shape("svpp-w", 24, p=p, s=s)
            for p, s in ((2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (2, 4))
        ),
    ),
)
_GROUPS = (
    PeriodicTheorem(
        "interleaved-uneven",
        "Interleaved 1F1B where p does not divide m",
        FULL,
        tuple(
            _shape("interleaved", 10 * p + rest, p, p=p, v=2)
            for p, rest in ((2, 1), (3, 1), (3, 2))
        ),
    ),
)
