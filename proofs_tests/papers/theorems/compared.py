"""Theorems for all p and m against families: parameters, symbols, starts, makespan and peaks.

``CASES`` has by theorem what ``test_all_ranks`` compares. Sizes reach p = 16 and m = 64; ``sizes``
are the few that are compared by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bubbleproof.papers.field import (
    chimera_theorem,
    eight_steps_starts,
    hanayo_theorem,
    interleaved_theorem,
    zb_h2,
    zb_v_theorem,
)
from bubbleproof.papers.field import eight_steps_theorem as steps
from bubbleproof.papers.mepipe import svpp_theorem
from bubbleproof.papers.theorems.closed_form import I, J
from bubbleproof.papers.theorems.terms import Term
from bubbleproof.papers.tpipe import tpipe_theorem, trecomp_theorem
from bubbleproof.papers.tpipe.tpipe_formulas import deep_peak, shallow_peak
from bubbleproof.theory.model.actions import Action, Kind

Numbers = dict[str, int]
StartOf = Callable[[Action, int, Numbers], int]  # of an action on a rank, at a theorem's symbols
Size = tuple[int, ...]


def value(term: Term, numbers: Numbers) -> int:
    return int(term.value(numbers))


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A theorem against a family: parameters and symbols of a size, starts, makespan and peaks."""

    family: str
    params: Callable[[Size], Numbers]
    symbols: Callable[[Size], Numbers]
    start: StartOf
    makespan: Term
    peak: Callable[[int, Numbers], int] | None
    sizes: tuple[Size, ...]
    more: tuple[Size, ...] = ()
    is_left_shifted: bool = False
    is_bound: bool = False  # the makespan is one
    ticks: Numbers = field(default_factory=dict)


def rows(terms: dict[tuple[Kind, int], Term]) -> StartOf:
    """Starts by kind and chunk, of rank i and microbatch j."""

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        chunk = int(action.stage >= numbers["p"])
        return value(terms[action.kind, chunk], {**numbers, "i": rank, "j": action.microbatch})

    return start


def of_zb_h2() -> Compared:
    form = zb_h2.FORM
    terms = {
        (Kind.F, 0): form.forward(I, J),
        (Kind.I, 0): form.input_backward(I, J),
        (Kind.W, 0): form.weight_backward(I, J),
    }
    return Compared(
        family="zb-h2",
        params=lambda size: {"p": size[0], "m": size[1], "tF": 3, "tI": 3, "tW": 3},
        symbols=lambda size: {"p": size[0], "m": size[1], "t": 3},
        start=rows(terms),
        makespan=form.makespan,
        peak=lambda _, numbers: value(form.peak, numbers),
        sizes=((1, 1), (1, 4), (2, 3), (3, 5), (4, 7), (4, 11), (5, 9), (8, 20), (16, 31)),
        more=tuple((p, m) for p in range(1, 17) for m in range(2 * p - 1, 65, 3)),
        is_left_shifted=True,
    )


def of_zb_v() -> Compared:
    form = zb_v_theorem.VForm()
    by_row = {
        (Kind.F, 0): form.f0,
        (Kind.F, 1): form.f1,
        (Kind.I, 0): form.i0,
        (Kind.I, 1): form.i1,
        (Kind.W, 0): form.w0,
        (Kind.W, 1): form.w1,
    }
    return Compared(
        family="zb-v",
        params=lambda size: {"p": size[0], "m": size[1]},
        symbols=lambda size: {"p": size[0], "m": size[1]},
        start=rows({key: row.start(I, J) for key, row in by_row.items()}),
        makespan=form.makespan,
        peak=lambda _, numbers: value(form.peak, numbers),
        sizes=((1, 1), (2, 3), (2, 4), (3, 5), (3, 9), (4, 7), (5, 12), (9, 17)),
        more=tuple((p, m) for p in range(1, 17) for m in range(2 * p - 1, 65, 5)),
        is_left_shifted=True,
    )


def of_hanayo() -> Compared:
    form = hanayo_theorem.WaveForm()
    slot = form.slot(hanayo_theorem.GROUP, hanayo_theorem.PLACE, hanayo_theorem.ROUND)
    tick = form.tick(slot, hanayo_theorem.X)

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        del rank
        p, v = numbers["p"], numbers["v"]
        step = action.stage if action.kind is Kind.F else 2 * p * v - 1 - action.stage
        group, place = divmod(action.microbatch, p)
        turn, task = divmod(step, 2 * p)
        return value(tick, {**numbers, "a": group, "b": place, "y": turn, "x": task})

    return Compared(
        family="hanayo",
        params=lambda size: dict(zip("pmv", size, strict=True), tF=1, tB=1),
        symbols=lambda size: {"p": size[0], "v": size[2], "groups": size[1] // size[0]},
        start=start,
        makespan=form.makespan,
        peak=None,
        sizes=((1, 3, 2), (2, 4, 1), (2, 6, 3), (3, 6, 2), (4, 8, 2), (5, 10, 4), (8, 16, 2)),
        more=tuple(
            (p, m, v) for p in range(1, 17) for m in range(p, 65, 2 * p) for v in (1, 2, 3, 4)
        ),
    )


def of_chimera() -> Compared:
    form, here = chimera_theorem.UnitForm(), chimera_theorem.HERE
    names = {
        (kind, way): f"{kind.name} {way}" for kind in (Kind.F, Kind.B) for way in ("down", "up")
    }
    terms = {key: form.start(name, here) for key, name in names.items()}

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        half = numbers["h"]
        is_up = action.microbatch >= half * numbers["units"]
        unit, within = divmod(action.microbatch - is_up * half * numbers["units"], half)
        assert rank == (2 * half - 1 - action.stage if is_up else action.stage)
        key = (action.kind, "up" if is_up else "down")
        return value(terms[key], {**numbers, "r": rank, "n": unit, "x": within})

    def peak(rank: int, numbers: Numbers) -> int:
        return value(form.peak, {**numbers, "r": min(rank, 2 * numbers["h"] - 1 - rank)})

    return Compared(
        family="chimera",
        params=lambda size: {"p": size[0], "m": size[1], "tF": 1, "tB": 1},
        symbols=lambda size: {"h": size[0] // 2, "units": size[1] // size[0]},
        start=start,
        makespan=form.makespan,
        peak=peak,
        sizes=((2, 2), (2, 6), (4, 4), (4, 12), (6, 12), (8, 24), (16, 32)),
        more=tuple((p, m) for p in range(2, 17, 2) for m in range(p, 65, p)),
    )


def of_svpp(sizes: tuple[Size, ...], more: tuple[Size, ...], ticks: tuple[int, int]) -> Compared:
    """Sizes (p, m, v, s); the ring is s where one microbatch is a group, and p otherwise."""
    form, on = svpp_theorem.FORM, interleaved_theorem.R
    term = {
        Kind.F: form.forward(on, interleaved_theorem.X),
        Kind.B: form.backward(on, interleaved_theorem.X),
    }
    listed = {
        Kind.F: svpp_theorem.PLACES.forward(),
        Kind.B: svpp_theorem.PLACES.backward(),
    }
    peak = form.peak(on)

    def symbols(size: Size) -> Numbers:
        p, m, v, s = size
        group = 1 if s >= p or v == 1 else p // s
        lead = (v - 1) * group * s + s - 1
        counts = {"p": p, "v": v, "s": s, "q": group, "Q": lead, "N": m * v * s}
        return {**counts, "tF": ticks[0], "tB": ticks[1]}

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        group, within = divmod(action.microbatch, numbers["q"])
        at = {"a": group, "c": action.stage // numbers["p"], "b": within, "k": action.slice}
        place = value(listed[action.kind], {**numbers, **at})
        return value(term[action.kind], {**numbers, "r": rank, "x": place})

    return Compared(
        family="svpp",
        params=lambda size: dict(zip("pmvs", size, strict=True), tF=ticks[0], tB=ticks[1]),
        symbols=symbols,
        start=start,
        makespan=form.makespan,
        peak=lambda rank, numbers: value(peak, {**numbers, "r": rank}),
        sizes=sizes,
        more=more,
    )


_MANY = tuple((p, m, v, s) for p in range(1, 17) for m in (1, 2, 5, 12) for v in (1, 2, 3)
              for s in (1, 2, 3, p, p + 1) if (s >= p or v == 1) and m * v * s <= 128)  # fmt: skip
_FEW = tuple((p, groups * (p // s), v, s) for p in range(2, 17) for s in range(1, p) if p % s == 0
             for groups in (1, 2, 3) for v in (2, 3) if groups * p * v <= 128)  # fmt: skip


def of_tpipe(family: str) -> Compared:
    form = tpipe_theorem.RoundForm()
    by_row = {
        (Kind.F, 0): form.fs,
        (Kind.F, 1): form.fd,
        (Kind.B, 1): form.bd,
        (Kind.B, 0): form.bs,
    }
    starts = rows({key: row.start(I, J) for key, row in by_row.items()})

    def symbols(size: Size) -> Numbers:
        p, m = size
        rounds = {"x": max(0, -(-(p - 3) // 6)), "y": -(-(2 * p - 3) // 6)}
        return {"p": p, "m": m, "S": shallow_peak(p), "T": deep_peak(p), "o": p % 2, **rounds}

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        if action.kind in (Kind.F, Kind.B):
            return starts(action, rank, numbers)
        hops = numbers["p"] - 1 - action.stage % numbers["p"]
        last = 6 * (numbers["m"] - 1) + 2 * numbers["p"] + 2 * hops
        return {Kind.RELOAD: 0, Kind.OFFLOAD: last + 2, Kind.STEP: last + 3}[action.kind]

    return Compared(
        family=family,
        params=lambda size: {"p": size[0], "m": size[1]},
        symbols=symbols,
        start=start,
        makespan=form.makespan,
        peak=lambda rank, numbers: value(form.peak, {**numbers, "i": rank}),
        sizes=((2, 6), (3, 7), (4, 9), (5, 12), (6, 12), (7, 13), (8, 14), (16, 22)),
        more=tuple((p, m) for p in range(2, 17) for m in range(p + 4, 65, 7)),
    )


def of_eight_steps(family: str) -> Compared:
    """DualPipe, whose ranks have two of its stages, and DualPipeV."""
    form, here, is_v = eight_steps_starts.StepForm(), steps.HERE, family == "dualpipev"
    terms = {
        (Kind.F, 0): form.f0[0](here, J),
        (Kind.F, 1): form.f1[0](here, J),
        (Kind.B, 1): form.b1[0](here, J),
        (Kind.B, 0): form.b0[0](here, J),
    }
    early, late = eight_steps_starts.early_weight(here, J), form.weight(here, J)

    def symbols(size: Size) -> Numbers:
        p, m = size
        return {"p": p if is_v else p // 2, "m": m if is_v else m // 2}

    def weight(direction: int, number: int, numbers: Numbers) -> int:
        h, n, depth = numbers["p"], numbers["m"], numbers["i"] + 1
        if direction and number < h - depth:
            return value(early, {**numbers, "j": number})
        turn = 2 * (number - n + depth) if direction else 2 * (number - n + h) + 1
        is_turn = direction or number < n - h + depth
        which = turn - depth if is_turn else number - n + h
        return value(late, {**numbers, "j": which})

    def start(action: Action, rank: int, numbers: Numbers) -> int:
        h, n = numbers["p"], numbers["m"]
        outer = rank if is_v else min(rank, 2 * h - 1 - rank)
        at = {**numbers, "i": outer, "e": (outer + 1) // 2, "o": (outer + 1) % 2}
        direction, number = int(action.stage >= h), action.microbatch
        if not is_v:
            number %= n
        if action.kind is Kind.W:
            return weight(direction, number, at)
        way = Kind.F if action.kind in (Kind.F, Kind.OVERLAP_F_B) else Kind.B
        return value(terms[way, direction], {**at, "j": number})

    step = 1 if is_v else 2
    return Compared(
        family=family,
        params=lambda size: {"p": size[0], "m": size[1]},
        symbols=symbols,
        start=start,
        makespan=form.makespan,
        peak=lambda _, numbers: value(form.peak, numbers),
        sizes=tuple((step * h, step * n) for h, n in ((1, 2), (2, 5), (3, 6), (4, 9), (5, 12))),
        more=tuple((step * h, step * n) for h in range(1, 17) for n in range(2 * h, 65 // step, 5)),
        is_left_shifted=True,
    )


def of_trecomp() -> Compared:
    form, here = trecomp_theorem.STARTS, trecomp_theorem.HERE
    starts = rows(
        {
            (Kind.F, 0): form.fs(here, J),
            (Kind.F, 1): form.fd(here, J),
            (Kind.B, 1): form.bd(here, J),
            (Kind.R, 0): form.r(here, J),
            (Kind.B, 0): form.bs(here, J),
        }
    )

    def symbols(size: Size) -> Numbers:
        p, m = size
        gaps = p // 2  # ceil((p-1)/2)
        rounds = {"x": max(0, -(-(p + gaps - 4) // 7)), "y": max(0, -(-(2 * p - 4) // 7))}
        return {"p": p, "m": m, "z": gaps, **rounds}

    def of_rank(rank: int, numbers: Numbers) -> Numbers:
        half, odd = divmod(numbers["p"] - 1 - rank, 2)
        return {**numbers, "h": half, "o": odd}

    return Compared(
        family="trecomp",
        params=lambda size: {"p": size[0], "m": size[1]},
        symbols=symbols,
        start=lambda action, rank, numbers: starts(action, rank, of_rank(rank, numbers)),
        makespan=trecomp_theorem.MAKESPAN,
        is_bound=True,
        peak=lambda rank, numbers: value(trecomp_theorem.PEAK, of_rank(rank, numbers)),
        sizes=((2, 5), (3, 7), (4, 9), (5, 11), (6, 13), (7, 15), (9, 19)),
        more=tuple((p, m) for p in range(2, 17) for m in range(2 * p + 1, 65, 7)),
    )


CASES = {
    "zb-h2": of_zb_h2(),
    "zb-v": of_zb_v(),
    "hanayo-equal": of_hanayo(),
    "chimera-equal": of_chimera(),
    "svpp-largest": of_svpp(
        ((1, 3, 1, 1), (2, 2, 2, 3), (3, 4, 1, 2), (4, 3, 2, 4), (5, 2, 3, 5), (16, 8, 1, 3)),
        _MANY,
        (2, 3),
    ),
    "svpp-few-slices": of_svpp(
        ((2, 4, 2, 1), (3, 3, 3, 1), (4, 4, 2, 2), (6, 4, 2, 3), (8, 8, 2, 2)), _FEW, (1, 1)
    ),
    "tpipe": of_tpipe("tpipe"),
    "toffload": of_tpipe("toffload"),
    "trecomp-rounds": of_trecomp(),
    "dualpipe": of_eight_steps("dualpipe"),
    "dualpipev": of_eight_steps("dualpipev"),
}
