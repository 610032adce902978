"""What MEPipe says of SVPP outside Table 3: Figures 1, 4, 5 and 6, the least f, comparisons.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample; one unit is the activation of one slice on one chunk,
A/(vsp). The figures draw equal ticks, and so do we.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 1 and 4.1 to 4.4.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.any_order import (
    least_idle_ratio,
    least_over_ties,
    most_over_ties,
    peak_over_ties,
)
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, measures, peak, peak_of_a
from bubbleproof.papers.claims.reading import ABOUT, NumberOf
from bubbleproof.papers.mepipe.mepipe_domains import CHILDREN, GRAPHS, thin_scope
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.svpp import SVPP
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts

FIGURE_4A = case("p=4, n=4, s=2", p=4, m=4, v=1, s=2, tF=1, tB=1)
FIGURE_4B = case("p=4, n=4, s=2, v=2", p=4, m=4, v=2, s=2, tF=1, tB=1)
FIGURE_5 = case("p=4, n=2, s=2, v=2", p=4, m=2, v=2, s=2, tF=1, tB=1)


def reduction(at: Params) -> Fraction:
    """By how much SVPP's peak over A is below the least of DAPPLE, VPP and Hanayo."""
    others = min(peak_of_a(name)(at) for name in ("1f1b", "interleaved", "hanayo"))
    return 1 - peak_of_a("svpp")(at) / others


def memory_drop(at: Params) -> Fraction:
    """Peak at the least f over the peak at the largest f, in the printed generator."""
    least, most = ({**at, "f": at["v"] * at["s"]}, at)
    return Fraction(
        *(max(measures("svpp-printed", each).peak_activations) for each in (least, most))
    )


def bubble_rise(name: str) -> NumberOf:
    """Idle ratio at the least f over that at the largest f, in a printed generator."""
    idle = idle_ratio(name)
    return lambda at: idle({**at, "f": at["v"] * at["s"]}) / idle(at)


ALL = thin_scope("every n")
MANY = thin_scope("n >= p", "m >= p")
FEW = thin_scope("n < p", "m < p")
DIVIDED = thin_scope("p divides n", "m % p == 0")
INVERSE_MIN = "1/min(s, p)"


def least_peak(at: Params) -> int:
    """The fullest rank's units at f = vs."""
    return max(measures("svpp", {**at, "f": at["v"] * at["s"]}).peak_activations)


def least_bubble(*names: str) -> NumberOf:
    """The least idle ratio of the families."""
    return lambda at: min(idle_ratio(name)(at) for name in names)


def first_rank(name: str) -> NumberOf:
    """The most units that rank 0 holds."""
    return lambda at: measures(name, at).peak_activations[0]


def forwards_before_backward(at: Params) -> int:
    """How many forwards rank 0 of ``svpp`` runs before its first backward, counted in its order."""
    program = made("svpp", at).schedule.program
    return int(np.argmax(program.actions.kind[program.resource == 0] == Kind.B))


def _ancestors(problem: Problem, counted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    """Which counted tasks must end before each task may start, by the precedences alone.

    Bit i stands for the i-th counted task; of a counted task its own bit is set, too.
    """
    edges = problem.edges
    start = acyclic_starts(problem.duration, edges.before, edges.after, edges.lag)
    bit = np.full(problem.num_tasks, NONE)
    bit[counted] = np.arange(int(counted.sum()))
    masks = [1 << place if place >= 0 else 0 for place in bit.tolist()]
    by_start = np.argsort(start[edges.after], kind="stable")
    columns = edges.before[by_start].tolist(), edges.after[by_start].tolist()
    for before, after in zip(*columns, strict=True):
        masks[after] |= masks[before]
    return masks


def _problem(at: Params) -> Problem:
    return SVPP().pipeline(make_parameters({n: at[n] for n in "pmvs"})).problem()


def least_forwards(at: Params) -> int:
    """The fewest forwards of rank 0 that any of its backwards depends on: a bound for any order."""
    problem = _problem(at)
    actions, mine = problem.actions, problem.rank_of_task == 0
    before = _ancestors(problem, mine & actions.is_kind(Kind.F))
    backwards = np.flatnonzero(mine & actions.is_kind(Kind.B)).tolist()
    return min(before[task].bit_count() for task in backwards)


def children(at: Params) -> int:
    """How many backwards of a sample on rank 0 wait for that of slice ``k`` on chunk ``c``."""
    return _children(at["p"], at["m"], at["v"], at["s"])[at["c"], at["k"]]


@lru_cache(maxsize=16)
def _children(p: int, m: int, v: int, s: int) -> Counter[tuple[int, int]]:
    """The children of each backward of microbatch 0 on rank 0, by (chunk, slice)."""
    problem = _problem({"p": p, "m": m, "v": v, "s": s})
    actions = problem.actions
    mine = (problem.rank_of_task == 0) & actions.is_kind(Kind.B) & (actions.microbatch == 0)
    chunk, slice_ = (actions.stage[mine] // p).tolist(), actions.slice[mine].tolist()
    places = list(zip(chunk, slice_, strict=True))
    before = _ancestors(problem, mine)
    found: Counter[tuple[int, int]] = Counter()
    for task in np.flatnonzero(mine).tolist():
        found.update(place for i, place in enumerate(places) if before[task] >> i & 1)
    return Counter({place: count - 1 for place, count in found.items()})


_FIGURES = (
    *(
        stated(f"mepipe.figure-4{letter}.memory", f"section 4.1, Figure 4({letter})",
               f"The peak is {value} A.", "peak activations over A", peak_of_a("svpp"), "==", value,
               domain)
        for letter, value, domain in (
            ("a", "5/8", FIGURE_4A),
            ("b", "9/16", FIGURE_4B),
        )
    ),
    stated("mepipe.figure-6.memory", "Figure 6",
           "The rescheduled form of Figure 5(a) peaks at A/2, by every tie-break.",
           "largest peak activations over A of any tie-break", peak_over_ties, "==", "1/2",
           FIGURE_5),
    read_as("mepipe.figure-6.bubble", "section 4.3, Figure 6, and Table 3",
            "Rescheduling gives Figure 5(a) the bubble ratio of Table 3, 3/11.", "idle_ratio", (
                reading("some tie-break does", "section 4.3: of equal numbers of children it says "
                        "nothing", least_over_ties, "==", "3/11", FIGURE_5),
                reading("every tie-break does", "of no sentence", most_over_ties, "==", "3/11",
                        FIGURE_5, is_contrast=True),
            )),
    stated("mepipe.figure-5.memory", "section 4.2",
           "Figure 5(c), with the least f, needs half the memory of 5(a).", "peak over peak",
           memory_drop, "==", "1/2", FIGURE_5),
    read_as("mepipe.figure-5.bubble", "section 4.2",
            "Figure 5(c) has a bubble ratio 50% above that of 5(a).",
            "idle_ratio over idle_ratio", (
                reading("bubbles between the backwards of a sample", 'section 4.3: "between two '
                        'consecutive backward passes of different slices"',
                        bubble_rise("svpp-of-samples"), "==", "3/2", FIGURE_5),
                reading("bubbles between two samples, too", "section 4.3: the bubbles are inserted "
                        "again for later samples", bubble_rise("svpp-filled"), "==", "3/2",
                        FIGURE_5),
                reading("a bubble ratio of 50%", 'section 4.2: "by 50%" taken for "to 50%"; no '
                        "order within its memory has less", lambda at: 1 + least_idle_ratio(
                            "svpp", room=lambda at: at["v"] * at["s"])(at), "==", "3/2", FIGURE_5),
            )),
    *(
        stated(f"mepipe.figure-1.memory-{s}", "section 1, Figure 1",
               f"With {s} slices the peak falls by more than {percent}% against the other "
               "schedules.", "reduction of the peak", reduction, ">=", f"{percent}/100",
               case(f"p=8, v=2, n=8, s={s}", p=8, m=8, v=2, s=s, tF=1, tB=1),
               slack="a round number")
        for s, percent in ((4, 70), (8, 80))
    ),
)  # fmt: skip


_TEXT = (
    stated("mepipe.section-4.1.peak", "section 4.1",
           "The peak of rank 0 is the number of its forwards before its first backward.",
           "peak activations of rank 0 (units)", first_rank("svpp"), "==", forwards_before_backward,
           ALL),
    stated("mepipe.section-4.1.first-rank", "section 4.1", "No rank needs more than rank 0.",
           "peak activations of the fullest rank (units)", peak("svpp"), "<=", first_rank("svpp"),
           ALL),
    stated("mepipe.section-4.2.least-f", "section 4.2",
           "No order may start a backward on rank 0 before v*s of its forwards.",
           "forwards of rank 0 that its first possible backward depends on", least_forwards, "==",
           "v*s", GRAPHS),
    stated("mepipe.section-4.2.least-f-runs", "section 4.2",
           "The variant with f = v*s exists and needs v*s units.",
           "peak activations of the fullest rank (units)", least_peak, "==", "v*s", ALL),
    stated("mepipe.section-4.3.children", "section 4.3; the example gives 3 for slice 1 of chunk 1",
           "The backward of slice k on chunk c has (k+1)(c+1) - 1 children in its sample.",
           "backwards of the sample on rank 0 that depend on it", children, "==", "(k+1)*(c+1) - 1",
           CHILDREN),
    read_as("mepipe.section-4.4.around", "section 4.4",
            "SVPP's memory remains around A/min(s,p).", "peak activations over A", (
                reading("below twice that", 'section 4.4: "around", beside the exact formula; at '
                        "most 1 + (min(s,p)-1)/(v max(s,p)) times", peak_of_a("svpp"), "<=",
                        f"{INVERSE_MIN} * (1 + (min(s, p) - 1)/(v*max(s, p)))", MANY, [ABOUT]),
                reading("exactly that", "of no sentence", peak_of_a("svpp"), "==", INVERSE_MIN,
                        MANY, is_contrast=True),
            )),
    stated("mepipe.section-4.4.bubble-many", "section 4.4",
           "With n >= p, where VPP takes n, some order of SVPP (ours) has no higher a bubble ratio "
           "than any other.", "idle_ratio", idle_ratio("svpp"), "<=",
           least_bubble("1f1b", "interleaved", "hanayo", "terapipe"), DIVIDED),
    stated("mepipe.section-4.4.bubble-few", "section 4.4",
           "With n < p some order of SVPP (ours) has no higher a bubble ratio than any other.",
           "idle_ratio", idle_ratio("svpp"), "<=", least_bubble("1f1b", "hanayo", "terapipe"), FEW),
    stated("mepipe.section-4.4.memory-few", "section 4.4",
           "With n < p SVPP's memory is no more than that of the others.",
           "peak activations over A", peak_of_a("svpp"), "<=",
           lambda at: min(peak_of_a(name)(at) for name in ("1f1b", "hanayo", "terapipe")), FEW),
)  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (*_FIGURES, *_TEXT)
