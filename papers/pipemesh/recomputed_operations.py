"""PipeMesh's choice of what to recompute, with the buffer queue's size (section IV-B, Eq. 6 to 9).

A chunk has K operations; operation k stores o_k bytes from its forward to its backward unless it is
recomputed, which takes u_k ticks in each backward. The same set is recomputed in every chunk. With
j = M B + P - 1, as printed,

    L[0][0] = T_DP_crit(B)                                                             (7)
    L[k][o] = min(L[k-1][o] + j u_k, L[k-1][o - o_k] + I(o - o_k, o))                   (8)
    I(o', o) = T_DP_crit(F(o)) - T_DP_crit(F(o'))                                       (9)

where F(o) is the largest q whose M_sum(q) is below the budget when a pass stores o bytes. ``o*`` is
the argument of the least L[K][o]; q is F(o*), and the set follows by tracing back. The differences
of Eq. 9 add up to T_DP_crit(F(o)) - T_DP_crit(F(0)), so L[K][o] is the least recomputation for o,
j u, plus T_DP_crit(F(o)), plus a constant: the dynamic program is exact for its model. Where F(o)
does not exist nothing runs with o. Of equals the least o is taken.

``least_ticks`` is the same table without Eq. 9: what is to be recomputed at least to store o bytes.
A rank has ``count`` copies of an operation, M chunks share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedOperation:
    """One operation: ``size`` is o_k in memory units, ``ticks`` u_k of one microbatch."""

    name: str
    size: int
    ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is recomputed: a flag for each operation; what a pass stores then, and L[K][o]."""

    recomputed: tuple[bool, ...]
    stored: int
    cost: int

    def ticks(self, operations: Sequence[RecomputedOperation]) -> int:
        """Ticks that a backward recomputes."""
        return sum(o.ticks for o, again in zip(operations, self.recomputed, strict=True) if again)


Exposed = Callable[[int], int | None]  # T_DP_crit(F(o)) by o; None where F(o) does not exist


def printed_selection(
    operations: Sequence[RecomputedOperation],
    *,
    passes: int,
    base: int,
    start: int,
    exposed: Exposed,
) -> Selection | None:
    """The paper's dynamic program; None where nothing fits.

    ``base`` are bytes that a pass stores whatever is recomputed, ``start`` is T_DP_crit(B).
    """
    known = lru_cache(maxsize=None)(exposed)
    if known(base) is None:
        return None
    row, again = _rows(operations, passes, base, start, known)
    stored = min(row, key=lambda one: (row[one], one))
    return _traced_rows(operations, {stored: row[stored]}, again)[0]


def least_ticks(operations: Sequence[RecomputedOperation], base: int) -> list[Selection]:
    """What can be stored, and the fewest recomputed ticks (``cost``) for it, by bytes.

    What stores as much and recomputes no less than another is left out, row after row.
    """
    return _traced_rows(operations, *_rows(operations, 1, base, 0, lambda _: 0, is_front=True))


def _rows(
    operations: Sequence[RecomputedOperation],
    passes: int,
    base: int,
    start: int,
    exposed: Exposed,
    *,
    is_front: bool = False,
) -> tuple[dict[int, int], list[dict[int, bool]]]:
    """Row K of the table, and of every row which entries recompute its operation."""
    row: dict[int, int] = {base: start}
    again: list[dict[int, bool]] = []
    for operation in operations:
        row, flags = _next_row(row, operation, passes, exposed)
        again.append(flags)
        if is_front:
            row = _front(row)
    return row, again


def _front(row: dict[int, int]) -> dict[int, int]:
    """The entries that no other beats in bytes and ticks, by bytes."""
    found: dict[int, int] = {}
    least: int | None = None
    for stored in sorted(row):
        if least is None or row[stored] < least:
            found[stored] = least = row[stored]
    return found


def _traced_rows(
    operations: Sequence[RecomputedOperation], row: dict[int, int], again: Sequence[dict[int, bool]]
) -> list[Selection]:
    """The entries of row K with the set behind each."""
    return [
        Selection(recomputed=_traced(operations, again, stored), stored=stored, cost=cost)
        for stored, cost in row.items()
    ]


def _next_row(
    row: dict[int, int], operation: RecomputedOperation, passes: int, exposed: Exposed
) -> tuple[dict[int, int], dict[int, bool]]:
    """Eq. 8 for one operation, and whether each entry recomputes it."""
    found, again = {}, {}
    for stored, cost in row.items():
        found[stored], again[stored] = cost + passes * operation.ticks, True
    for stored, cost in row.items():
        more = stored + operation.size
        before, after = exposed(stored), exposed(more)
        if before is None or after is None:
            continue
        kept = cost + after - before
        if more not in found or kept <= found[more]:
            found[more], again[more] = kept, False
    return found, again


def _traced(
    operations: Sequence[RecomputedOperation], traced: Sequence[dict[int, bool]], stored: int
) -> tuple[bool, ...]:
    """The set behind the last row's entry."""
    flags = []
    for operation, again in zip(reversed(operations), reversed(traced), strict=True):
        flags.append(again[stored])
        if not again[stored]:
            stored -= operation.size
    return tuple(reversed(flags))
