"""Mutated twins of theorems for all sizes: zero bubble, waves, units, slices, rounds, blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bubbleproof.papers.field import (
    chimera_theorem,
    eight_steps_theorem,
    hanayo_theorem,
    interleaved_starts,
    v_blocks_theorem,
    zb_h2,
    zb_v_theorem,
)
from bubbleproof.papers.field import eight_steps_starts as steps
from bubbleproof.papers.field.zb_h2 import T
from bubbleproof.papers.mepipe import svpp_frontier, svpp_theorem
from bubbleproof.papers.pipemesh import pipemesh_starts
from bubbleproof.papers.theorems.closed_form import PAIR, TB, TF, M, P
from bubbleproof.papers.theorems.rank_rows import TaskRow
from bubbleproof.papers.theorems.terms import Term, choose
from bubbleproof.papers.tpipe import tpipe_theorem, trecomp_theorem
from proofs_tests.papers.theorems.twin import LATE, PEAK, Twin, TwinMaker, make_twin


def row_twins() -> Iterator[Twin]:
    """Two or more of each."""
    yield from _zb_h2()
    yield from _zb_v()
    yield from _waves()
    yield from _units()
    yield from _slices()
    yield from _slice_frontier()
    yield from _rounds()
    yield from _steps()
    yield from _starts()
    yield from _blocks()
    yield from _recomputed()


def _zb_h2() -> Iterator[Twin]:
    right, twin = zb_h2.FORM, TwinMaker(zb_h2.theorem)

    def early(i: Term, j: Term) -> Term:
        return zb_h2.input_backward(i, j) - T

    yield twin("makespan one tick less", replace(right, makespan=right.makespan - T), *LATE)
    yield twin("peak one less", replace(right, peak=right.peak - 1), *PEAK)
    yield twin("I one tick early", replace(right, input_backward=early), "I after its own F")
    shorter = replace(right, warmup=lambda i: 2 * (P - i) - 2)
    yield twin("warm-up one forward shorter", shorter, "F after I in the order")


def _zb_v() -> Iterator[Twin]:
    right, twin = zb_v_theorem.VForm(), TwinMaker(zb_v_theorem.theorem)

    def early(i: Term, j: Term) -> Term:
        return zb_v_theorem.input_down(i, j) - 1

    yield twin("makespan one tick less", replace(right, makespan=right.makespan - 1), *LATE)
    most = "F1: live activations never exceed the peak"
    yield twin("peak one less", replace(right, peak=right.peak - 1), most, PEAK[1])
    wrong = replace(right, i0=TaskRow(name="I0", start=early))
    yield twin("I0 one tick early", wrong, "F0 and I0 one at a time")


def _waves() -> Iterator[Twin]:
    right, twin = hanayo_theorem.WaveForm(), TwinMaker(hanayo_theorem.theorem)
    dense = replace(right, apart=1)
    closer = replace(right, slot=lambda a, b, y: right.slot(a, b, y) - y)
    yield twin("makespan one tick less", replace(right, makespan=right.makespan - 1), *LATE)
    yield twin("slots a tick apart", dense, "a rank works on one slot at a time")
    yield twin(
        "rounds p - 1 slots apart",
        closer,
        "the next round of a microbatch begins when this one has ended",
        "slots: the next round begins one slot further",
    )


def _units() -> Iterator[Twin]:
    right, twin = chimera_theorem.UnitForm(), TwinMaker(chimera_theorem.theorem)
    starts = dict(right.starts)
    up = starts["F up"]
    late = {**starts, "F up": lambda at, rank: up(at, rank) + 1}
    yield twin("makespan one tick less", replace(right, makespan=right.makespan - 1), *LATE)
    most = "F up: live activations never exceed the peak"
    yield twin("peak one less", replace(right, peak=right.peak - 1), most, PEAK[1])
    yield twin(
        "F upward one tick later",
        replace(right, starts=tuple(late.items())),
        "F down and F up one at a time",
    )


def _slices() -> Iterator[Twin]:
    right, twin = svpp_theorem.FORM, TwinMaker(svpp_theorem.theorem)
    few = TwinMaker(svpp_theorem.few_slices)
    sooner = replace(right, makespan=right.makespan - PAIR)
    longer = replace(right, warmup=lambda rank: svpp_theorem.warmup(rank) + 1)
    lower = replace(right, peak=lambda rank: svpp_theorem.peak(rank) - 1)

    def hasty(rank: Term, y: Term) -> Term:
        return svpp_theorem.backward(rank, y) - choose(y <= 0, 0 * TB, TF)

    own = replace(right, backward=hasty)
    yield twin("makespan one pair less", sooner, *LATE)
    yield twin("warm-up one forward longer", longer, "F before B in the order")
    yield twin("peak one less", lower, PEAK[0])
    yield few("makespan one pair less", sooner, *LATE)
    yield few("backwards one tF earlier", own, "B of the last stage after its own F")
    ring = svpp_theorem.SlicePlaces(of=lambda a, c, b, k: svpp_theorem.PLACES.of(a, c, b, k) - c)
    yield make_twin(
        "chunks one place closer",
        svpp_theorem.few_slices(places=ring),
        "list: the next chunk begins one place further",
        "list: one chunk stands a ring behind the other",
    )


def _slice_frontier() -> Iterator[Twin]:
    right, twin = svpp_frontier.SliceFrontier(), TwinMaker(svpp_frontier.theorem)
    rests = "no more slices than stated: F starts after the backward as many places before ends"

    def hasty(rank: Term, at: svpp_frontier.SlicePlace) -> Term:
        return svpp_frontier.forward(rank, at) - choose(at.sample <= 1, 0 * TF, PAIR)

    sooner, slower = (replace(right, makespan=right.makespan + by * PAIR) for by in (-1, 1))
    yield twin("makespan one pair less", sooner, *LATE)
    last = "after the last come its round trip and s-1 backwards"
    yield twin("bound one pair more", slower, last, LATE[1])
    yield twin("one slice less", replace(right, most=right.most - 1), rests)
    yield twin("forwards one pair early", replace(right, forward=hasty), rests)


def _rounds() -> Iterator[Twin]:
    right, twin = tpipe_theorem.RoundForm(), TwinMaker(tpipe_theorem.theorem)
    ends, reached = LATE
    lower = replace(right, peak=right.peak - 1)
    odd = "FS: the peak is reached where p-1-r is odd"
    yield twin("makespan one unit less", replace(right, makespan=right.makespan - 1), ends, reached)
    yield twin("peak one less", lower, "FS: live activations never exceed the peak", odd)
    paper = replace(right, peak=right.peak + tpipe_theorem.ODD)
    yield twin("the sum of both peaks for odd p too", paper, odd)
    early = TaskRow(name="BD", start=lambda i, j: tpipe_theorem.deep_backward(i, j) - 1, ticks=2)
    yield twin("BD one unit early", replace(right, bd=early), "BD after its own FD")
    keys = tpipe_theorem.KEYS
    swapped = (keys[0], replace(keys[1], start=lambda i, j: keys[1].start(i, j) - 3), *keys[2:])
    clash = "published starts: FS and FD one at a time"
    yield twin("FD half a round earlier", replace(right, keys=swapped), clash)
    reload, idle = right.windows
    wider = replace(right, windows=(reload, idle + 2))
    last = "the last BS leaves 2(p - y - 1) units idle after the last BD"
    yield twin("an off-load window one backward wider", wider, last)
    offload = TwinMaker(tpipe_theorem.offload)
    yield offload("makespan one unit less", replace(right, makespan=right.makespan - 1), ends)
    slow = tpipe_theorem.EngineTicks(reload=3)
    late = "a rank's state is back before its first FD"
    yield make_twin("reloads of 3 units", tpipe_theorem.offload(ticks=slow), late)
    long = tpipe_theorem.EngineTicks(step=M)
    too_long = "OFFLOAD and STEP end within T-Pipe's makespan"
    yield make_twin("steps of m units", tpipe_theorem.offload(ticks=long), too_long)


def _steps() -> Iterator[Twin]:
    right, most = steps.StepForm(), "F1: live activations never exceed the peak"

    def earlier(at: steps.Depth, w: Term) -> Term:
        return steps.late_weight(at, w) - 1

    def hasty(at: steps.Depth, j: Term) -> Term:
        return steps.b1_start(at, j) - choose(j <= M - 1 - at.number, 0, 1)

    sooner, lower = replace(right, makespan=right.makespan - 1), replace(right, peak=right.peak - 1)
    for theorem in (eight_steps_theorem.theorem, eight_steps_theorem.v_theorem):
        twin = TwinMaker(theorem)
        yield twin("makespan one tick less", sooner, *LATE)
        yield twin("peak one less", lower, most, PEAK[1])
        last = "a last W after its own I0"
        yield twin("late W one tick early", replace(right, weight=earlier), last)
        drained = replace(right, b1=(hasty, right.b1[1]))
        yield twin("step 6 one tick early", drained, "B1 after B1 of the rank before")


def _starts() -> Iterator[Twin]:
    """Of left-shifted starts that other theorems have as some starts."""
    mesh = TwinMaker(pipemesh_starts.theorem)
    right, group = pipemesh_starts.FORM, pipemesh_starts.GROUP
    sooner = replace(right, makespan=right.makespan - PAIR)
    yield mesh("makespan one pair less", sooner, *LATE)
    eager = interleaved_starts.starts(lambda rank: 0 * rank * TF, pipemesh_starts.LATER)
    waits = "F of rank 0 after F of the last rank, one chunk before"
    yield mesh("rank 0 never waits for the last rank", eager, waits)
    few = pipemesh_starts.theorem(shortest=group >= P - 1)
    yield make_twin("operations of p - 1 microbatches", few, waits)


def _blocks() -> Iterator[Twin]:
    for theorem, right in (
        (v_blocks_theorem.half, v_blocks_theorem.HALF),
        (v_blocks_theorem.least, v_blocks_theorem.MIN),
    ):
        twin, (first, second, last) = TwinMaker(theorem), right.turns
        lower = replace(right, most=right.most - 1)
        yield twin("limit one less", lower, "F1: live activations never exceed the peak")
        early = replace(right, turns=(first, second - 1, last))
        yield twin("I turns one tick earlier", early, "I1 after its own F1")
        late = replace(right, turns=(first, second, last + 1))
        yield twin("I0 one tick later", late, "I1 and I0 one at a time")


def _recomputed() -> Iterator[Twin]:
    trecomp = trecomp_theorem
    lower = trecomp.theorem(peak=trecomp.PEAK - 1)
    reached = "the peak is reached by every R from p to m-p-1"
    yield make_twin("peak one less", lower, "R: live activations never exceed the peak", reached)
    sooner = trecomp.theorem(makespan=trecomp.MAKESPAN - 1)
    yield make_twin("bound one unit less", sooner, "no task ends after the bound")
    straight = replace(trecomp.PUBLISHED, fd=lambda at, j: 7 * j - 1 - at.number)
    clash = "published starts: FS and FD one at a time"
    yield make_twin("FD without gaps", trecomp.theorem(published=straight), clash)
