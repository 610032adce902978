"""The published families whose schedules repeat, with the shapes at which they are proved.

T-Pipe, the zero-bubble families and SVPP repeat with every microbatch, interleaved ones with every
group of p. Ticks are those of the family's source; where a formula for makespan and peak is known
(``theory.families`` tells whose), it is proved along with the closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bubbleproof.papers.theorems.periodic_families import Periodic, Shape
from bubbleproof.papers.tpipe_formulas import joint_peak

FULL = "tF = 1, tB = 2"
SPLIT = "tF = tI = tW = 1"


def listed() -> tuple[Periodic, ...]:
    """Every theorem on a family that repeats."""
    return (*_chronos(), *_zero_bubble(), *_overlapped(), *_waves(), *_slices(), *_groups())


def _shape(
    family: str, size: int, repeats: int = 1, operations: int | None = None, **params: int
) -> Shape:
    given = tuple(params.items())
    return Shape(family=family, params=given, size=size, repeats=repeats, operations=operations)


def _every_microbatch(
    family: str, ranks: Iterable[int], size: Callable[[int], int], **params: int
) -> tuple[Shape, ...]:
    """One shape per number of ranks, read off at m = size(p)."""
    return tuple(_shape(family, size(p), p=p, **params) for p in ranks)


def _remainders(
    family: str, ranks: Iterable[int], group: Callable[[int], int], **params: int
) -> tuple[Shape, ...]:
    """Groups of group(p) microbatches of a direction, and every remainder of m by p."""
    return tuple(
        _shape(family, 12 * p + rest, group(p), p=p, **params) for p in ranks for rest in range(p)
    )


def _chronos() -> Iterator[Periodic]:
    yield Periodic(
        id="tpipe",
        heading="T-Pipe",
        ticks=FULL,
        shapes=_every_microbatch("tpipe", range(2, 17), lambda p: 6 * p + 4),
        formula=(
            "makespan 6(m+p-1) and peak s + d - (1 for odd p) - r chunk activations on rank r, "
            "s and d those of T-Pipe's Appendix A"
        ),
        makespan=lambda at: (6, 6 * (at["p"] - 1)),
        peak=lambda at, rank: joint_peak(at["p"]) - rank,
    )
    yield Periodic(
        id="trecomp",
        heading="T-Pipe with T-Recomp",
        ticks=f"{FULL}, a recomputation 1",
        shapes=_every_microbatch("trecomp", range(2, 9), lambda p: 7 * p + 4),
    )
    yield Periodic(
        id="toffload",
        heading="T-Pipe with T-Offload, its makespan that of T-Pipe",
        ticks=f"{FULL}, an off-load, a step and a reload 1 each",
        shapes=_every_microbatch("toffload", range(2, 7), lambda p: 6 * p + 4),
        formula="makespan 6(m+p-1), all off-loads and steps done by then",
        makespan=lambda at: (6, 6 * (at["p"] - 1)),
    )
    yield Periodic(
        id="trecomp-interleaved",
        heading="Interleaved 1F1B with T-Recomp, p | m",
        ticks=f"{FULL}, a recomputation 1",
        shapes=tuple(_shape("trecomp-interleaved", 8 * p, p, p=p) for p in (2, 3, 4)),
    )


def _overlapped() -> Iterator[Periodic]:
    overlap = f"{SPLIT}, a forward and a backward together 3"
    yield Periodic(
        id="dualpipe",
        heading="DualPipe, m counting both directions",
        ticks=overlap,
        shapes=_every_microbatch("dualpipe", (2, 4, 6), lambda p: 20 * p),
        formula="makespan 3m+p-2 and peak p+1 activations on every rank",
        makespan=lambda at: (3, at["p"] - 2),
        peak=lambda at, _: at["p"] + 1,
    )
    yield Periodic(
        id="dualpipev",
        heading="DualPipeV",
        ticks=overlap,
        shapes=_every_microbatch("dualpipev", range(2, 6), lambda p: 12 * p),
        formula="makespan 6m+2(p-1) and peak 2p+1 chunk activations on every rank",
        makespan=lambda at: (6, 2 * (at["p"] - 1)),
        peak=lambda at, _: 2 * at["p"] + 1,
    )


def _zero_bubble() -> Iterator[Periodic]:
    yield Periodic(
        id="zb-h2",
        heading="ZB-H2",
        ticks=SPLIT,
        shapes=_every_microbatch("zb-h2", range(2, 9), lambda p: 8 * p + 2),
        formula="makespan 3m+p-1 and peak 2p-1 activations on every rank",
        makespan=lambda at: (3, at["p"] - 1),
        peak=lambda at, _: 2 * at["p"] - 1,
    )
    yield Periodic(
        id="zb-h1-starts",
        heading="ZB-H1",
        ticks="tF = 1, tI = 2, tW = 1",
        shapes=_every_microbatch("zb-h1", range(2, 9), lambda p: 6 * p + 2, tF=1, tI=2, tW=1),
        formula="makespan 4m+2(p-1), theorem zb-h1-durations', and peak p activations",
        makespan=lambda at: (4, 2 * (at["p"] - 1)),
        peak=lambda at, _: at["p"],
    )
    yield Periodic(
        id="zb-v",
        heading="ZB-V",
        ticks=SPLIT,
        shapes=_every_microbatch("zb-v", range(2, 7), lambda p: 9 * p + 2),
        formula="makespan 6m+p-1 and peak 2p chunk activations on every rank",
        makespan=lambda at: (6, at["p"] - 1),
        peak=lambda at, _: 2 * at["p"],
    )
    yield Periodic(
        id="v-half",
        heading="V-Half",
        ticks=SPLIT,
        shapes=_every_microbatch("v-half", range(3, 8), lambda p: 7 * p + 2),
        formula="makespan 6m+3p-4, 6m+3p-7 for even p, and peak 2((p+2) div 2) on every rank",
        makespan=lambda at: (6, 3 * at["p"] - (4 if at["p"] % 2 else 7)),
        peak=lambda at, _: (at["p"] + 2) // 2 * 2,
    )
    yield Periodic(
        id="v-min",
        heading="V-Min",
        ticks=SPLIT,
        shapes=_every_microbatch("v-min", range(2, 8), lambda p: 7 * p + 2),
        formula="makespan 6m+4p-5-d with d = 2, 0, 4 for p mod 3 = 0, 1, 2, and 6m+1 for p = 2",
        makespan=lambda at: (6, max(1, 4 * at["p"] - 5 - (2, 0, 4)[at["p"] % 3])),
    )


def _waves() -> Iterator[Periodic]:
    yield Periodic(
        id="hanayo",
        heading="Hanayo",
        ticks=FULL,
        shapes=_remainders("hanayo", (2, 3, 4), lambda p: p, v=2),
        formula="makespan 6m+4(p-1) and peak 2p chunk activations on every rank",
        makespan=lambda at: (6, 4 * (at["p"] - 1)),
        peak=lambda at, _: 2 * at["p"],
    )
    yield Periodic(
        id="chimera",
        heading="Chimera, m counting both directions",
        ticks=FULL,
        shapes=_remainders("chimera", (2, 4), lambda p: p // 2),
    )


def _slices() -> Iterator[Periodic]:
    yield Periodic(
        id="svpp",
        heading="SVPP with one chunk and every f below the largest",
        ticks=FULL,
        shapes=tuple(
            _svpp(p, s, f=f, repeats=1 + ((p, s, f) == (4, 2, 4)))
            for p, s in ((2, 2), (3, 2), (3, 3), (4, 2), (4, 4))
            for f in range(s, p + s - 1)
        ),
    )
    yield Periodic(
        id="svpp-largest",
        heading="SVPP with s >= p and the largest f",
        ticks=FULL,
        shapes=tuple(_svpp(p, s, v=v) for p in (2, 3, 4) for v in (1, 2) for s in (p, p + 1)),
        formula=(
            "makespan (m*s*v+p-1)(tF+tB), theorem makespan-bound's least (n = msv), and "
            "v*s + min(p-1, 2(p-1-r)) slices at most on rank r"
        ),
        makespan=lambda at: (3 * at["s"] * at["v"], 3 * (at["p"] - 1)),
        peak=lambda at, rank: at["s"] * at["v"] + min(at["p"] - 1, 2 * (at["p"] - 1 - rank)),
    )
    yield Periodic(
        id="svpp-few-slices",
        heading="SVPP with s < p, two chunks and the largest f",
        ticks=FULL,
        shapes=tuple(_svpp(p, s, v=2, repeats=p // s) for p, s in ((2, 1), (3, 1), (4, 1), (4, 2))),
    )
    yield Periodic(
        id="svpp-w",
        heading="SVPP with weight gradients apart, one chunk and the largest f",
        ticks=SPLIT,
        shapes=tuple(
            _shape("svpp-w", 24, p=p, s=s)
            for p, s in ((2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (2, 4))
        ),
    )


def _svpp(p: int, s: int, *, repeats: int = 1, **params: int) -> Shape:
    return _shape("svpp", 14 * repeats, repeats, p=p, s=s, **params)


def _groups() -> Iterator[Periodic]:
    yield Periodic(
        id="interleaved-uneven",
        heading="Interleaved 1F1B where p does not divide m",
        ticks=FULL,
        shapes=tuple(
            _shape("interleaved", 10 * p + rest, p, p=p, v=2)
            for p, rest in ((2, 1), (3, 1), (3, 2))
        ),
    )
    yield Periodic(
        id="pipemesh-starts",
        heading="PipeMesh with operations of q microbatches, q | m",
        ticks=FULL,
        shapes=tuple(
            _shape("pipemesh", 10 * q, q, q, p=p, v=2) for p, q in ((2, 2), (2, 3), (3, 3), (3, 4))
        ),
    )
