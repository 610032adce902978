"""The cases of PipeMesh's claims; parameters as in ``pipemesh_schedules``, letters as printed.

A case has p ranks (P), m microbatches (B), v chunks (M), the first element of each sequence, e and
d, and the numbers of operations R and S; where the planner makes the sequences, a queue of q and
C_DP, C, in their place. A small domain takes every first element of sequences of
one or two operations on few ranks. A wide one adds P up to 16 and B up to 4P, M up to 4, and
sequences of up to four operations whose first element is P, P+1, an equal share or what leaves the
others P each (``far_sequences``); of their pairs those that are equal, mirrored in that list, or
have one operation at one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from bubbleproof.papers.claims.domain import (
    RATIOS,
    Choice,
    Condition,
    Domain,
    Params,
    counts,
    domain,
    ratios_text,
)
from bubbleproof.papers.claims.reading import Premise
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue
from bubbleproof.papers.pipemesh.pipemesh_schedules import (
    ends_as_printed,
    is_filled,
    queue_of,
    sequences,
)

ShapeNumbers = tuple[int, int, int, int, int, int, int]
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


def near(ranks: Iterable[int], chunks: Iterable[int], most: int) -> Iterator[ShapeNumbers]:
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


def far(*, few: bool = False) -> Iterator[ShapeNumbers]:
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
    shapes: Callable[[], Iterable[ShapeNumbers]],
    where: Condition,
    others: Mapping[str, Choice] | None = None,
    wide: Domain | None = None,
) -> Domain:
    """The shapes that ``where`` accepts, with what else a case names."""

    def chosen(_: Params) -> Iterator[ShapeNumbers]:
        known = ((dict(zip(SHAPE, shape, strict=True)), shape) for shape in set(shapes()))
        return (shape for at, shape in known if where(at))

    return domain(text, {"_".join(SHAPE): chosen, **(others or {})}, wide=wide)


def mesh_scope(
    text: str,
    where: Condition,
    *,
    ranks: Sequence[int] = (2, 3),
    chunks: Sequence[int] = (1, 2, 3),
    most: int = 6,
    few: bool = False,
    **others: Choice,
) -> Domain:
    """Small: every pair of sequences on few ranks; wide: these and the far ones."""
    near_text = (
        f"{ranks[0]} <= P <= {ranks[-1]}, M <= {chunks[-1]}, B <= {most}, 1 or 2 operations each"
    )
    far_text = f"{FEWER_TEXT if few else WIDE_TEXT} and all of {near_text}"

    def small() -> Iterator[ShapeNumbers]:
        return near(ranks, chunks, most)

    def both() -> Iterator[ShapeNumbers]:
        yield from small()
        yield from (shape for shape in far(few=few) if shape[0] >= ranks[0])

    wide = shaped(f"{far_text}; {text}", both, where, others)
    return shaped(f"{near_text}; {text}", small, where, others, wide)


def _ranks(at: Params) -> set[int]:
    p = at["p"]
    return {r for r in (0, 1, p // 2, p - 2, p - 1) if 0 <= r < p}


def _shared(at: Params) -> set[int]:
    """C_DP of which three fit every operation: 1, 2, 3 and the largest."""
    e, d = sequences(at)
    most = min(min(e), 2 * min(d)) // 3
    return {ticks for ticks in (1, 2, 3, most) if 1 <= ticks <= most}


def _spared(at: Params) -> list[tuple[int, int, int]]:
    """Ticks (tF, tB, c) of which the passes beyond P hide the messages of P."""
    rows = product(((2, 4), (3, 5), (4, 4), (5, 3)), (1, 2, 3))
    e, d = (min(each) - at["p"] for each in sequences(at))
    return [(f, b, c) for (f, b), c in rows if c < f and min(e * f, d * b) >= at["p"] * c]


def _has_chunks(at: Params) -> bool:
    return is_filled(at) and at["v"] >= 2


def _is_printed(at: Params) -> bool:
    return is_filled(at) and ends_as_printed(at)


_ALL_RANKS = "ranks 0, 1, P div 2, P-2, P-1"
_PRINTED = "filled, and Algorithm 1 as printed ends: q = e_1 or M = 1, n_fwd <= M B"
_TIMED = ratios_text(RATIOS)
FILLED = mesh_scope("filled", is_filled)
MANY = Premise(text="B >> P, here B >= 2P", cases="m >= 2*p")
SEVERAL = Premise(text="several chunks on a stage, M >= 2", cases="v >= 2")
CHUNKED = Premise(text="M >= 2", cases="v >= 2")
SHORTER = Premise(text="C_PP < C_fwd", cases="c < tF")
MANY_FILLED = mesh_scope(
    "filled, M >= 2, B >= 2P", lambda at: _has_chunks(at) and at["m"] >= 2 * at["p"]
)
STAGES = mesh_scope(f"filled, {_ALL_RANKS}", is_filled, r=_ranks)
PRINTED = mesh_scope(f"{_PRINTED}; {_ALL_RANKS}", _is_printed, r=_ranks)
VISITS = mesh_scope("filled, M >= 2", _has_chunks)
TIMED = mesh_scope(f"filled, {_TIMED}", is_filled, chunks=(1, 2), most=5, few=True, tF_tB=RATIOS)
SPARED = mesh_scope(
    "(min e - P) C_fwd and (min d - P) C_bwd at least P C_PP, tF:tB in 2:4 3:5 4:4 5:3, C_PP of 1, "
    "2 and 3",
    is_filled,
    chunks=(1, 2),
    tF_tB_c=_spared,
)
# Collectives that operations of P microbatches hide, and one that they do not.
COLLECTIVES = mesh_scope(
    "filled, C_DP in 1 4 2P+3", is_filled, chunks=(1, 2), most=4, few=True, C="{1, 4, 2*p + 3}"
)
SHARED = mesh_scope(
    "filled, 3 C_DP <= tF min(e) and tB min(d), of 1, 2, 3 and the largest",
    is_filled,
    few=True,
    C=_shared,
)


def _short(text: str, where: Condition) -> Domain:
    """Elements below P: all on few ranks, and at the ends of sequences on up to 16."""

    def small() -> Iterator[ShapeNumbers]:
        return near((2, 3, 4), (2, 3), 7)

    def wide() -> Iterator[ShapeNumbers]:
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
    return shaped(f"{few}; {text}", small, where, wide=shaped(f"{many}; {text}", wide, where))


SHORT = _short("an element below P", lambda at: not is_filled(at))
SHORT_ENDS = _short("e_1 or d_S below P", lambda at: min(at["e"], sequences(at)[1][-1]) < at["p"])


# Of the planner.
MOST_TICKS = 16


def _has_other_case(found: Queue) -> bool:
    """Whether B C_bwd < S C_DP: the last dequeue is as long as it takes to hide C_DP."""
    mesh = found.mesh
    return mesh.num_microbatches * mesh.backward < len(found.enqueue) * mesh.communication


def _queues(at: Params, listed: Iterable[int]) -> Iterator[tuple[int, int, Queue]]:
    """(q, C_DP, the planner's queue) where every element is at least P."""
    for q, ticks in product(range(at["p"], at["m"] + 1), listed):
        found = queue_of(at["p"], at["v"], at["m"], q, ticks)
        if min(*found.enqueue, *found.dequeue) >= at["p"]:
            yield q, ticks, found


def _plans(at: Params) -> Iterator[tuple[int, int]]:
    """(q, the least C_DP) of each pair of filled sequences."""
    seen = set()
    for q, ticks, found in _queues(at, range(1, MOST_TICKS + 1)):
        if (pair := (found.enqueue, found.dequeue)) not in seen:
            seen.add(pair)
            yield q, ticks


def _even(at: Params) -> Iterator[tuple[int, int]]:
    """(q, C_DP) of filled sequences; in the first case S divides B, as B/S of each needs."""
    for q, ticks, found in _queues(at, (1, 2, 3, 4, 5, 7, 10, 16)):
        if len({*found.dequeue}) == 1 or _has_other_case(found):
            yield q, ticks


REDUCED = domain(
    "P in 2 3, M in 2 3, B <= 6, e, d and shares of the planner for every q >= P and C_DP in "
    "1 2 3 4 5 7 10 16, filled, B/S whole where all dequeues have it",
    p=(2, 3),
    m=range(2, 7),
    v=(2, 3),
    q_C=_even,
)


def _planned(text: str = "", condition: str = "True") -> Domain:
    return domain(
        "P in 2 3, M <= 3, B <= 9, e and d of the planner for every queue size q >= P and every "
        f"C_DP up to {MOST_TICKS} C_fwd, filled{text}",
        p=(2, 3),
        m=range(2, 10),
        v=(1, 2, 3),
        q_C=_plans,
        where=condition,
    )


PLANNED, PLANNED_MANY = _planned(), _planned("; B >= 2P", "m >= 2*p")
QUEUES = domain(
    "PipeMesh's rows of Table IV with their buffer queue sizes",
    p_v_m_q=((3, 6, 12, 6), (4, 5, 16, 8), (4, 6, 24, 12), (4, 8, 24, 12)),
)
