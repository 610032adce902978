"""DualPipe and DualPipeV at tF = tI = tW, for all sizes: the left-shifted starts in closed form.

Half of DualPipe's ranks, and all of DualPipeV's, are told by their depth D = 1 to h, the number of
ranks to their end of the pipeline, themselves included (p = 2h, and p = h). Each runs n
microbatches of direction 0 on stage D-1 and n of direction 1 on stage 2h-D (n = m/2, and n = m):
forwards go down F0 of depth 1 to h, and on as F1 of depth h to 1; backwards B1 of depth 1 to h,
then B0 of depth h to 1. Where DualPipe's directions meet in the middle, the other half is a mirror
image at the same ticks, so F1 of depth h follows F0 of depth h here as well.

With q = h - D the eight steps (``theory.families.dualpipe``) are, in ticks of tF = 1, tB = 2 and
F&B = 3 and with u counted in each step,

    1, 2  F0(j)                D-1 + j,  from j = 2q on 2 ticks apart
          F1(j)                2h - D + 2j                                         j < D
    3     I1(j), W1(j)         2h + D-1 + 3j, and a tick later                     j < q
          F1(D+j)              2h + D+1 + 3j                                       j < q
    4     F0&B1, the first     5h - 2D - 1
          F0&B1, u-th          6h - 3D - 1 + 6u                                    u >= 1
          F1(h+u)&B0(u)        6h - 3D + 2 + 6u                                    u < n - h
    5     B1 where F0 is over  6h - 3D - 1 + 6u
    6     B1(n-D+u)            6n - 3D - 1 + 5u             whole, as long as 2u < D
                               6n - 3D - 1 + 5e + 4o + 3(u - e - o)    D = 2e + o, o = 0 or 1
          B0(n-h+u)            right behind it; whole, as long as 2u + 1 < D       u < D
    7     W, I0(n-q+u)         6n + D - 2 + 2u, and a tick later                   u < q
    8     W                    without a gap until 6n + 2h - 2

At D = h the first F0&B1 are two tasks. So the makespan is 6n + 2h - 2 on every rank: 3m + p - 2 for
DualPipe and 6m + 2(p-1) for DualPipeV; either holds 2h + 1 activations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubbleproof.papers.theorems.closed_form import HalvedIndex, M, P
from bubbleproof.papers.theorems.terms import LogicFormula, Term, choose


@dataclass(frozen=True, slots=True)
class Depth(HalvedIndex):
    """A rank by its depth; P of the obligations is h, M is n."""

    @property
    def inside(self) -> Term:
        """q, the ranks between this one and the middle."""
        return P - self.number

    @property
    def third(self) -> Term:
        """When step 3 begins."""
        return 2 * P + self.number - 1

    @property
    def main(self) -> Term:
        """When F1(h)&B0(0) starts."""
        return 6 * P - 3 * self.number + 2

    @property
    def sixth(self) -> Term:
        """When step 6 begins."""
        return 6 * M - 1 - 3 * self.number

    @property
    def seventh(self) -> Term:
        """When step 7 begins."""
        return 6 * M + self.number - 2

    def is_whole(self, turn: Term) -> LogicFormula:
        """Whether backward ``turn`` of step 6 is whole: the first D of its 2D are."""
        return turn <= self.number - 1


StepMoment = Callable[[Depth, Term], Term]


def _forward(at: Depth, j: Term, *, ends: bool) -> Term:
    """F0(j): its start, or its end with the backward beside it where there is one."""
    q, d = at.inside, at.number
    joint = j - 2 * q - d
    warm = choose(j <= 2 * q - 1, d - 1 + j, d - 1 + 2 * j - 2 * q) + int(ends)
    main = at.main + 6 * joint
    begun = 5 * P - 2 * d - 1
    first = choose(q <= 0, begun + 1, begun + 3) if ends else begun
    return choose(joint <= -1, warm, choose(joint <= 0, first, main if ends else main - 3))


def f0_start(at: Depth, j: Term) -> Term:
    """Start of F0(j)."""
    return _forward(at, j, ends=False)


def f0_end(at: Depth, j: Term) -> Term:
    """End of F0(j), with the backward beside it where there is one."""
    return _forward(at, j, ends=True)


def _returning(at: Depth, j: Term, *, ends: bool) -> Term:
    """F1(j), likewise."""
    third = at.third + 3 * (j - at.number) + 2 + int(ends)
    late = choose(j <= P - 1, third, at.main + 6 * (j - P) + 3 * ends)
    return choose(j <= at.number - 1, 2 * P - at.number + 2 * j + int(ends), late)


def f1_start(at: Depth, j: Term) -> Term:
    """Start of F1(j)."""
    return _returning(at, j, ends=False)


def f1_end(at: Depth, j: Term) -> Term:
    """End of F1(j), with the backward beside it where there is one."""
    return _returning(at, j, ends=True)


def _part(at: Depth, turn: Term) -> Term:
    """Start of I1(n-D+turn) in step 6."""
    return at.sixth + 5 * at.half + 4 * at.odd + 3 * (turn - at.half - at.odd)


def _turn_end(at: Depth, turn: Term) -> Term:
    """End of I1 or B1 in step 6, which B0 or I0 follows."""
    return choose(at.is_whole(2 * turn), at.sixth + 5 * turn + 2, _part(at, turn) + 1)


def b1_start(at: Depth, j: Term) -> Term:
    """Start of I1(j) or B1(j)."""
    joint, turn = j - at.inside, j - M + at.number
    begun = 5 * P - 2 * at.number - 1
    first = choose(at.inside <= 0, begun + 1, begun)
    steady = choose(joint <= 0, first, at.main - 3 + 6 * joint)
    drain = choose(at.is_whole(2 * turn), at.sixth + 5 * turn, _part(at, turn))
    return choose(joint <= -1, at.third + 3 * j, choose(turn <= -1, steady, drain))


def b1_end(at: Depth, j: Term) -> Term:
    """End of I1(j) or B1(j), with the forward beside it where there is one."""
    joint, turn = j - at.inside, j - M + at.number
    begun, pairs = 5 * P - 2 * at.number - 1, M - 2 * P + at.number
    main = at.main + 6 * joint
    steady = choose(joint <= 0, begun + 3, choose(joint <= pairs - 1, main, main - 1))
    late = choose(turn <= -1, steady, _turn_end(at, turn))
    return choose(joint <= -1, at.third + 3 * j + 1, late)


def b0_start(at: Depth, j: Term) -> Term:
    """Start of B0(j) or I0(j)."""
    turn = j - M + P
    last = at.seventh + 1 + 2 * (turn - at.number)
    late = choose(turn <= at.number - 1, _turn_end(at, turn), last)
    return choose(turn <= -1, at.main + 6 * j, late)


def b0_end(at: Depth, j: Term) -> Term:
    """End of B0(j) or I0(j), with the forward beside it where there is one."""
    turn = j - M + P
    part = choose(at.is_whole(2 * turn), at.sixth + 5 * turn + 3, _part(at, turn) + 2)
    drain = choose(at.is_whole(2 * turn + 1), at.sixth + 5 * turn + 4, part)
    last = at.seventh + 2 + 2 * (turn - at.number)
    late = choose(turn <= at.number - 1, drain, last)
    return choose(turn <= -1, at.main + 6 * j + 3, late)


def early_weight(at: Depth, k: Term) -> Term:
    """Start of W1(k) in step 3."""
    return at.third + 3 * k + 1


def late_weight(at: Depth, w: Term) -> Term:
    """Start of the w-th W of steps 7 and 8."""
    q = at.inside
    return at.seventh + w + choose(w <= q - 1, w, q)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepForm:
    """Starts and ends of both directions' tasks, the late W, the peak and the makespan."""

    f0: tuple[StepMoment, StepMoment] = (f0_start, f0_end)
    f1: tuple[StepMoment, StepMoment] = (f1_start, f1_end)
    b1: tuple[StepMoment, StepMoment] = (b1_start, b1_end)
    b0: tuple[StepMoment, StepMoment] = (b0_start, b0_end)
    weight: StepMoment = late_weight
    peak: Term = 2 * P + 1
    makespan: Term = 6 * M + 2 * P - 2
