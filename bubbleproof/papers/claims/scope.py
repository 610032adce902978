"""Where a claim is decided: a small domain for every day and a wide one for an audit.

``scope`` builds both from one condition: the small domain has few ranks, the wide one every p from
2 to 16: one rank is no pipeline, and a claim that means it too says so itself. ``Counts`` says
which m are looked at for a p; ``SOME`` and ``EVERY`` reach m = 4p and have m below p and m that p
does not divide. Further parameters (v, s, ...) are given with their small and their wide range, and
durations as ratios tF:tB, of which the small domain takes the first three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from bubbleproof.papers.claims.claim import Domain, Params, listed
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import COUNTS_TEXT, RANKS, RATIOS, counts

Condition = Callable[[Params], bool]
Ratios = Sequence[tuple[int, int]]
Ranges = tuple[Iterable[int], Iterable[int]]  # the values of the small and of the wide domain

SMALL_RANKS = (2, 3, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """The cases of a claim: ``small`` is decided in seconds, ``wide`` holds them and more."""

    small: Domain
    wide: Domain


Cases = Domain | Scope


def small(cases: Cases) -> Domain:
    """The cases of every day."""
    return cases.small if isinstance(cases, Scope) else cases


def wide(cases: Cases) -> Domain | None:
    """The cases of an audit, where they are others."""
    return cases.wide if isinstance(cases, Scope) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """The m that are looked at on p ranks, in words and in numbers."""

    text: str
    of: Callable[[int], Iterable[int]]


SOME = Counts(text=COUNTS_TEXT.partition(", ")[2], of=counts)
EVERY = Counts(text="m <= 4p", of=lambda p: range(1, 4 * p + 1))


def scope(
    condition: str,
    where: Condition,
    *,
    ranks: Ranges = (SMALL_RANKS, RANKS),
    looked_at: Counts = SOME,
    ratios: Ratios = RATIOS,
    **others: Ranges,
) -> Scope:
    """The cases that meet the condition, which ``condition`` says in words."""
    few, all_ = ({name: pair[i] for name, pair in others.items()} for i in range(2))
    return Scope(
        small=_cases(condition, where, ranks[0], looked_at, ratios[:3], few),
        wide=_cases(condition, where, ranks[1], looked_at, ratios, all_),
    )


def _cases(
    condition: str,
    where: Condition,
    ranks: Iterable[int],
    looked_at: Counts,
    ratios: Ratios,
    others: dict[str, Iterable[int]],
) -> Domain:
    ranks, ranges = tuple(ranks), {name: tuple(values) for name, values in others.items()}
    names = ("p", "m", *ranges, *(("tF", "tB") if ratios else ()))

    def rows() -> Iterator[Row]:
        durations: Sequence[Row] = ratios or [()]
        for p in ranks:
            for own in product(looked_at.of(p), *ranges.values()):
                for ticks in durations:
                    row = (p, *own, *ticks)
                    if where(dict(zip(names, row, strict=True))):
                        yield row

    parts = [
        f"p in {spelled(ranks)}",
        looked_at.text,
        *(f"{name} in {spelled(values)}" for name, values in ranges.items()),
        *([f"tF:tB in {' '.join(f'{f}:{b}' for f, b in ratios)}"] if ratios else []),
        condition,
    ]
    return listed("; ".join(parts), names, rows)


def spelled(values: Iterable[int]) -> str:
    """The values in a row; ``1..16`` where they are many neighbours.

    >>> spelled((1, 2, 5)), spelled(range(1, 17))
    ('1 2 5', '1..16')
    """
    values = tuple(values)
    if len(values) > 3 and values == tuple(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return " ".join(map(str, values))
