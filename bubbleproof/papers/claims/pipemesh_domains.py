"""The cases of PipeMesh's claims; parameters as in ``pipemesh_schedules``, letters as printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from bubbleproof.papers.claims.claim import Domain, Params, listed
from bubbleproof.papers.claims.pipemesh_schedules import (
    ends_as_printed,
    is_filled,
    runs_literally,
    sequences,
)
from bubbleproof.papers.claims.pipemesh_shapes import (
    FEWER_RANKS,
    SHAPE,
    Choice,
    Condition,
    Shape,
    mesh_scope,
    near,
    shaped,
)
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import RATIOS
from bubbleproof.papers.claims.scope import Scope


def _ranks(at: Params) -> list[Row]:
    p = at["p"]
    return [(r,) for r in sorted({0, 1, p // 2, p - 2, p - 1}) if 0 <= r < p]


def _collective_ticks(at: Params) -> list[Row]:
    """Collectives that operations of P microbatches hide, and one that they do not."""
    return [(ticks,) for ticks in sorted({1, 4, 2 * at["p"] + 3})]


def _hidden(share: int) -> Choice:
    """C_DP of which ``share`` fit every operation: 1, 2, 3 and the largest."""

    def choices(at: Params) -> list[Row]:
        e, d = sequences(at)
        most = min(min(e), 2 * min(d)) // share
        return [(ticks,) for ticks in sorted({1, 2, 3, most}) if 1 <= ticks <= most]

    return choices


def _is_wide(at: Params) -> bool:
    return min(map(min, sequences(at))) >= 2 * at["p"]


def _has_chunks(at: Params) -> bool:
    return is_filled(at) and at["v"] >= 2


def _is_printed(at: Params) -> bool:
    return is_filled(at) and ends_as_printed(at)


_TICKS = ("tF", "tB")


def _ratios(at: Params) -> Sequence[Row]:
    del at
    return RATIOS


FILLED = mesh_scope("filled", is_filled)
TIMED = mesh_scope(
    f"filled, tF:tB in {' '.join(f'{f}:{b}' for f, b in RATIOS)}",
    is_filled,
    chunks=(1, 2),
    most=5,
    few=True,
    names=_TICKS,
    choices=_ratios,
)
STAGES = mesh_scope(
    "filled, ranks 0, 1, P div 2, P-2, P-1", is_filled, names=("r",), choices=_ranks
)
PRINTED_TEXT = "filled, and Algorithm 1 as printed ends: q = e_1 or M = 1, n_fwd <= M B"
PRINTED = mesh_scope(
    f"{PRINTED_TEXT}; ranks 0, 1, P div 2, P-2, P-1", _is_printed, names=("r",), choices=_ranks
)
PRINTED_TIMED = mesh_scope(
    f"{PRINTED_TEXT}; tF:tB in {' '.join(f'{f}:{b}' for f, b in RATIOS)}",
    _is_printed,
    chunks=(1, 2),
    most=5,
    few=True,
    names=_TICKS,
    choices=_ratios,
)
VISITS = mesh_scope("filled, M >= 2", _has_chunks)
LINKS = mesh_scope(
    "filled, C_PP = 1, tF = 2, tB = 4",
    is_filled,
    names=("tF", "tB", "c"),
    choices=lambda _: [(2, 4, 1)],
)
WIDE = mesh_scope(
    "every element at least 2P, C_PP of 1 and 2, tF:tB in 3:5 4:4 5:3",
    _is_wide,
    chunks=(1, 2),
    names=("tF", "tB", "c"),
    choices=lambda _: [(*ticks, c) for ticks in ((3, 5), (4, 4), (5, 3)) for c in (1, 2)],
)
COLLECTIVES = mesh_scope(
    "filled, C_DP in 1 4 2P+3",
    is_filled,
    chunks=(1, 2),
    most=4,
    few=True,
    names=("C",),
    choices=_collective_ticks,
)
LATE = mesh_scope(
    "filled, C_DP = 4, C_PP = 2",
    is_filled,
    chunks=(1, 2),
    most=4,
    few=True,
    names=("C", "c"),
    choices=lambda _: [(4, 2)],
)
HIDDEN = mesh_scope(
    "filled, C_DP <= tF min(e) and tB min(d), of 1, 2, 3 and the largest",
    is_filled,
    chunks=(1, 2),
    few=True,
    names=("C",),
    choices=_hidden(1),
)
SHARED = mesh_scope(
    "filled, 3 C_DP <= tF min(e) and tB min(d), of 1, 2, 3 and the largest",
    is_filled,
    few=True,
    names=("C",),
    choices=_hidden(3),
)


def _halves(ranks: range, chunks: Sequence[int]) -> Domain:
    def rows() -> Iterator[Row]:
        for p, v, n, ticks in product(ranks, chunks, (1, 2), RATIOS):
            yield p, 2 * n * p, v, n * p, n * p, 2, 2, *ticks

    ratios = " ".join(f"{forward}:{backward}" for forward, backward in RATIOS)
    text = f"2 <= P <= {ranks[-1]}, M <= {chunks[-1]}, B in 2P 4P, two halves, tF:tB in {ratios}"
    return listed(text, (*SHAPE, *_TICKS), rows)


HALVES = Scope(small=_halves(range(2, 5), (1, 2, 3)), wide=_halves(range(2, 17), (1, 2, 3, 4)))


def _depth_first(most: int) -> Domain:
    def rows() -> Iterator[Row]:
        for p, v, n in product(range(2, most + 1), range(1, 5), (2, 3, 4)):
            yield p, n * p, v, 0

    return listed(f"2 <= P <= {most}, M <= 4, B in 2P 3P 4P, rank 0", ("p", "m", "v", "r"), rows)


DEPTH_FIRST = Scope(small=_depth_first(6), wide=_depth_first(16))


def _short(text: str, where: Condition) -> Scope:
    """Elements below P: all on few ranks, and at the ends of sequences on up to 16."""

    def small() -> Iterator[Shape]:
        return near((2, 3, 4), (2, 3), 7)

    def wide() -> Iterator[Shape]:
        yield from small()
        for p, v in product(FEWER_RANKS, (2, 4)):
            for m in {1, 2, p - 1, p, p + 1, 2 * p - 1, 2 * p, 3 * p + 1, 4 * p}:
                firsts = {x for x in (1, p - 1, p, m - p, m - p + 1, m - 1, m) if 1 <= x <= m}
                for e, d in product(firsts, repeat=2):
                    yield p, m, v, e, d, 1 + (e < m), 1 + (d < m)

    few = "2 <= P <= 4, M in 2 3, B <= 7, 1 or 2 operations each"
    many = (
        "P in 2 3 4 5 7 8 11 16, M in 2 4, B in 1 2 P-1 P P+1 2P-1 2P 3P+1 4P, first elements 1, "
        f"P-1, P, B-P, B-P+1, B-1, B, and all of {few}"
    )
    return Scope(
        small=shaped(f"{few}; {text}", small, where), wide=shaped(f"{many}; {text}", wide, where)
    )


SHORT = _short("an element below P", lambda at: not is_filled(at))
SHORT_ENDS = _short("e_1 or d_S below P", lambda at: min(at["e"], sequences(at)[1][-1]) < at["p"])


def _chunk_cases(ranks: range) -> Domain:
    def rows() -> Iterator[Row]:
        for p, v in product(ranks, (2, 3, 4)):
            yield from ((p, 2 * p, v, p, p, 2, 2, k) for k in range(1, v + 1))

    text = f"2 <= P <= {ranks[-1]}, 2 <= M <= 4, B = 2P, two halves, every chunk k"
    return listed(text, (*SHAPE, "k"), rows)


SHORT_PRINTED = shaped(
    "2 <= P <= 3, M in 2 3, B <= 6, 1 or 2 operations each; an element below P, and Algorithm 1 as "
    "printed ends",
    lambda: near((2, 3), (2, 3), 6),
    lambda at: not is_filled(at) and runs_literally(at) == 1,
)
CHUNKS = Scope(small=_chunk_cases(range(2, 4)), wide=_chunk_cases(range(2, 17)))
