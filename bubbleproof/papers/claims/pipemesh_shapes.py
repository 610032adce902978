"""The shapes at which PipeMesh is looked at; parameters as in ``pipemesh_schedules``.

A case has p ranks (P), m microbatches (B), v chunks (M), the first element of each sequence, e and
d, and the numbers of operations R and S. A small domain takes every first element of sequences of
one or two operations on few ranks. A wide one adds P up to 16 and B up to 4P, M up to 4, and
sequences of up to four operations whose first element is P, P+1, an equal share or what leaves the
others P each (``far_sequences``); of their pairs those that are equal, mirrored in that list, or
have one operation at one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from bubbleproof.papers.claims.claim import Domain, Params, listed
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import counts
from bubbleproof.papers.claims.scope import Scope

Condition = Callable[[Params], bool]
Shape = tuple[int, int, int, int, int, int, int]  # p, m, v, e, d, R, S
Choice = Callable[[Params], Iterable[Row]]  # what else a case names, at each shape

SHAPE = ("p", "m", "v", "e", "d", "R", "S")
WIDE_TEXT = (
    "2 <= P <= 16, M <= 4, B <= 4P, 1 to 4 operations each (B in P 2P 2P+1 3P-1 4P; first "
    "elements P, P+1, an equal share, what leaves P to each other, or B)"
)
FEWER_RANKS = (2, 3, 4, 5, 7, 8, 11, 16)
FEWER_TEXT = (
    "P in 2 3 4 5 7 8 11 16, M in 1 2 4, B in P 2P 3P-1 4P, 1, 2 or 4 operations each (first "
    "elements P, an equal share, what leaves P to each other, or B)"
)


def near(ranks: Iterable[int], chunks: Iterable[int], most: int) -> Iterator[Shape]:
    """Every pair of sequences of one or two operations with up to ``most`` microbatches."""
    for p, v, m in product(ranks, chunks, range(1, most + 1)):
        for e, d in product(range(1, m + 1), repeat=2):
            yield p, m, v, e, d, 1 + (e < m), 1 + (d < m)


def far_sequences(p: int, m: int, *, few: bool = False) -> list[tuple[int, int]]:
    """(first element, operations) with elements of p or more, the one operation of m last.

    >>> far_sequences(4, 12)
    [(4, 2), (5, 2), (6, 2), (8, 2), (4, 3), (12, 1)]
    """
    found = []
    for count in (2, 4) if few else (2, 3, 4):
        ends = {p, m // count, m - (count - 1) * p} | (set() if few else {p + 1})
        found += [(e, count) for e in sorted(ends) if p <= e <= m - (count - 1) * p]
    return [*found, (m, 1)]


def far(*, few: bool = False) -> Iterator[Shape]:
    """The shapes of the wide domains, ``few`` for what is slow to measure."""
    for p in FEWER_RANKS if few else range(2, 17):
        chosen = {p, 2 * p, 3 * p - 1, 4 * p}
        for m in chosen if few else chosen | {2 * p + 1} & set(counts(p)):
            if m < p:
                continue
            listing = far_sequences(p, m, few=few)
            mirrored = zip(listing, reversed(listing), strict=True)
            whole = [(each, listing[-1]) for each in listing]
            pairs = {*zip(listing, listing, strict=True), *mirrored, *whole}
            pairs |= {pair[::-1] for pair in whole}
            for (e, R), (d, S) in pairs:  # noqa: N806 - the paper's letters
                yield from ((p, m, v, e, d, R, S) for v in ((1, 2, 4) if few else (1, 2, 3, 4)))


def shaped(
    text: str,
    shapes: Callable[[], Iterable[Shape]],
    where: Condition,
    names: Sequence[str] = (),
    choices: Choice = lambda _: [()],
) -> Domain:
    def rows() -> Iterator[Row]:
        for shape in sorted(set(shapes())):
            at = dict(zip(SHAPE, shape, strict=True))
            if where(at):
                yield from ((*shape, *chosen) for chosen in choices(at))

    return listed(text, (*SHAPE, *names), rows)


def mesh_scope(
    text: str,
    where: Condition,
    *,
    ranks: Sequence[int] = (2, 3),
    chunks: Sequence[int] = (1, 2, 3),
    most: int = 6,
    few: bool = False,
    names: Sequence[str] = (),
    choices: Choice = lambda _: [()],
) -> Scope:
    """Small: every pair on few ranks; wide: these and the far ones. ``names`` of ``choices``."""
    near_text = (
        f"{ranks[0]} <= P <= {ranks[-1]}, M <= {chunks[-1]}, B <= {most}, 1 or 2 operations each"
    )

    def both() -> Iterator[Shape]:
        yield from near(ranks, chunks, most)
        yield from (shape for shape in far(few=few) if shape[0] >= ranks[0])

    return Scope(
        small=shaped(
            f"{near_text}; {text}", lambda: near(ranks, chunks, most), where, names, choices
        ),
        wide=shaped(
            f"{FEWER_TEXT if few else WIDE_TEXT} and all of {near_text}; {text}",
            both, where, names, choices,
        ),
    )  # fmt: skip
