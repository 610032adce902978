"""What MEPipe says of SVPP outside Table 3: Figures 1, 5 and 6, f, and Table 2's messages.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample; one unit is the activation of one slice on one chunk,
A/(vsp). The figures draw equal ticks, and so do we.

Section 4.2 says that fewer forwards before the first backward save memory and cost time; for one
chunk theorem ``svpp-frontier`` has the least time within f = s to s + min(s, p) - 1 units.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 1, 3 and 4.1 to 4.4.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bubbleproof.papers.claims.any_order import (
    least_over_ties,
    peak_over_ties,
)
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    Domain,
    Params,
    case,
    domain,
    scope,
)
from bubbleproof.papers.claims.measured_pipelines import (
    idle_ratio,
    made,
    measures,
    messages,
    peak,
    peak_of_a,
)
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.papers.mepipe.mepipe_table3 import EQUAL, FEW
from bubbleproof.theory.model.actions import Kind

FIGURE_5 = case("p=4, n=2, s=2, v=2", p=4, m=2, v=2, s=2, tF=1, tB=1)
SLICED = domain(
    "2 <= p <= 5, n in p 2p, s in 2 3 4, v = 1, equal ticks",
    p=range(2, 6), m="(p, 2*p)", v=(1,), s=(2, 3, 4), tF=(1,), tB=(1,),
)  # fmt: skip


def _thin(condition: str, where: str = "True") -> Domain:
    """A scope of SVPP's schedules at equal ticks, with few v and s between the ends."""
    chunks, slices = ((1, 2), (1, 2, 4)), ((1, 2), (1, 2, 8))
    return scope(condition, where, looked_at=FEW, ratios=EQUAL, v=chunks, s=slices)


ALL, FEWER = _thin("every n"), _thin("n < p", "m < p")


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


def handed_on(name: str, at: Params) -> Fraction:
    """Messages between ranks of one step, each of 1/s of a sample's width."""
    return Fraction(messages(made(name, at).problem), at["s"] if name == "svpp" else 1)


CLAIMS: tuple[PaperClaim, ...] = (
    stated("mepipe.figure-6.memory", "Figure 6",
           "The rescheduled form of Figure 5(a) peaks at A/2, by every tie-break.",
           "largest peak activations over A of any tie-break", peak_over_ties, "==", "1/2",
           FIGURE_5),
    stated("mepipe.figure-6.bubble", "section 4.3, Figure 6, and Table 3",
           "Rescheduling gives Figure 5(a), by some tie-break, the bubble ratio of Table 3, 3/11.",
           "idle_ratio", least_over_ties, "==", "3/11", FIGURE_5),
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
            )),
    *(
        stated(f"mepipe.figure-1.memory-{s}", "section 1, Figure 1",
               f"With {s} slices the peak falls by more than {percent}% against the other "
               "schedules.", "reduction of the peak", reduction, ">=", f"{percent}/100",
               case(f"p=8, v=2, n=8, s={s}", p=8, m=8, v=2, s=s, tF=1, tB=1),
               slack="a round number")
        for s, percent in ((4, 70), (8, 80))
    ),
    stated("mepipe.section-4.1.peak", "section 4.1",
           "The peak of rank 0 is the number of its forwards before its first backward.",
           "peak activations of rank 0 (units)", first_rank("svpp"), "==", forwards_before_backward,
           ALL),
    stated("mepipe.section-4.1.first-rank", "section 4.1", "No rank needs more than rank 0.",
           "peak activations of the fullest rank (units)", peak("svpp"), "<=", first_rank("svpp"),
           ALL),
    stated("mepipe.section-4.2.least-f-runs", "section 4.2",
           "The variant with f = v*s exists and needs v*s units.",
           "peak activations of the fullest rank (units)", least_peak, "==", "v*s", ALL),
    stated("mepipe.section-4.4.bubble-many", "section 4.4",
           "With n >= p, where VPP takes n, some order of SVPP (ours) has no higher a bubble ratio "
           "than any other.", "idle_ratio", idle_ratio("svpp"), "<=",
           least_bubble("1f1b", "interleaved", "hanayo", "terapipe"),
           _thin("p divides n", "m % p == 0")),
    stated("mepipe.section-4.4.bubble-few", "section 4.4",
           "With n < p some order of SVPP (ours) has no higher a bubble ratio than any other.",
           "idle_ratio", idle_ratio("svpp"), "<=", least_bubble("1f1b", "hanayo", "terapipe"),
           FEWER),
    stated("mepipe.section-4.4.memory-few", "section 4.4",
           "With n < p SVPP's memory is no more than that of the others.",
           "peak activations over A", peak_of_a("svpp"), "<=",
           lambda at: min(peak_of_a(name)(at) for name in ("1f1b", "hanayo", "terapipe")), FEWER),
    stated("mepipe.table2.spp.messages", "Table 2 and section 3",
           "SPP communicates what PP does: s messages of 1/s the size.",
           "messages between ranks, in samples", lambda at: handed_on("svpp", at), "==",
           lambda at: handed_on("1f1b", at), SLICED),
)  # fmt: skip
