"""What MEPipe says of SVPP outside Table 3: Figures 1, 5 and 6, f, Table 2, weight gradients.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, f forwards before the first
backward, A the activations of one sample; one unit is the activation of one slice on one chunk,
A/(vsp). The figures draw equal ticks, and so do we.

Section 4.2 says that fewer forwards before the first backward save memory and cost time. With f_max
= v max(p,s) + min(p,s) - 1 (Table 3) every rank may hold f_max - 1 units here, and the least
makespan of any order is asked for at tF = tB = 1: a checked schedule that meets a checked
certificate (``any_order``), no order of ours. Table 3's time is 2(nvs + p-1) where n >= p. One unit
less costs

    2 floor((n-1) / ceil((p-1)/s))      for v = 1 or s >= p
    2                                   for s = 1, v >= 2

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 1, 2.2, 4.1 to 4.4 and 7.5; these formulas are
ours.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.model_costs import model_costs
from bubbleproof.papers.claims.any_order import (
    least_idle_ratio,
    least_over_ties,
    makespan_of_any_order,
    most_over_ties,
    peak_over_ties,
)
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    CHUNKS,
    RANKS,
    SLICES,
    Domain,
    Params,
    case,
    domain,
    scope,
)
from bubbleproof.papers.claims.measured_pipelines import (
    idle_ratio,
    made,
    makespan,
    measures,
    messages,
    peak,
    peak_of_a,
)
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.papers.mepipe.mepipe_table3 import EQUAL, FEW
from bubbleproof.theory.families import member
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.svpp import SVPP, most_forwards
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.programs.acyclic import acyclic_starts

NAMES = ("p", "m", "v", "s")
FIGURE_5 = case("p=4, n=2, s=2, v=2", p=4, m=2, v=2, s=2, tF=1, tB=1)
STEP = case("p=8, n=8, s=4", p=8, m=8, v=1, s=4)
SLICED = domain(
    "2 <= p <= 5, n in p 2p, s in 2 3 4, v = 1, equal ticks",
    p=range(2, 6), m="(p, 2*p)", v=(1,), s=(2, 3, 4), tF=(1,), tB=(1,),
)  # fmt: skip
# (strategy, kind, mark): TP, CP, DP by parameters, activations, optimizer states.
MARKS = domain(
    "the marks of TP, CP and DP; two devices, Llama 2 13B",
    strategy_kind_mark=(
        (0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 0, 0), (1, 1, 1), (1, 2, 1), (2, 0, 0), (2, 1, 0),
        (2, 2, 1),
    ),
)  # fmt: skip
CHILDREN = domain(
    "p in 2 3; n in 1 2 4p; v in 1 2 3; s in 1 2 4; every slice k and chunk c of rank 0",
    p=(2, 3), m="(1, 2, 4*p)", v=(1, 2, 3), s=(1, 2, 4), k="range(s)", c="range(v)",
).widened(
    "p in 2..16; n in 1 2 4p; v in 1..4; s in 1 2 3 4 8; every slice k and chunk c of rank 0",
    p=RANKS, v=CHUNKS, s=SLICES,
)  # fmt: skip


def _thin(condition: str, where: str = "True") -> Domain:
    """A scope of SVPP's schedules at equal ticks, with few v and s between the ends."""
    chunks, slices = ((1, 2), (1, 2, 4)), ((1, 2), (1, 2, 8))
    return scope(condition, where, looked_at=FEW, ratios=EQUAL, v=chunks, s=slices)


def _looked_at(text: str, *counts: tuple[int, int, int, tuple[int, ...]]) -> Domain:
    """The rows (p, v, s, the n looked at)."""
    return domain(text, p_m_v_s=[(p, m, v, s) for p, v, s, chosen in counts for m in chosen])


ALL, FEWER = _thin("every n"), _thin("n < p", "m < p")
# n from the first of which f_max - 1 units are fewer than all nvs, up to two jumps of the formula.
PLAIN = _looked_at(
    "2 <= p <= 4, v = 1 or s >= p, n up to 7 with nvs >= f_max",
    (2, 1, 1, (2, 3, 4)), (2, 1, 2, (2, 3)), (3, 1, 1, (3, 4, 5)), (3, 1, 2, (2, 3)),
    (4, 1, 1, (4, 6, 7)), (4, 1, 2, (3, 4, 5)), (2, 2, 2, (2, 3)),
)  # fmt: skip
CHUNKED = _looked_at(
    "2 <= p <= 4, p <= n <= 5, v in 2 3, s = 1",
    (2, 2, 1, (2, 3, 5)), (2, 3, 1, (2, 3)), (3, 2, 1, (3, 4)), (4, 2, 1, (4,)),
)  # fmt: skip


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


def table_3(at: Params) -> int:
    """2(nvs + p-1 + (v-1) max(p-sn, 0)): Table 3's time at ticks of 1."""
    p, m, v, s = (at[name] for name in NAMES)
    few = (v - 1) * max(p - s * m, 0) if m < p else 0
    return 2 * (m * v * s + p - 1 + few)


def one_less(at: Params) -> int:
    """Table 3's time and 2 floor((n-1) / ceil((p-1)/s))."""
    rounds = -(-(at["p"] - 1) // at["s"])
    return table_3(at) + 2 * ((at["m"] - 1) // rounds)


@lru_cache(maxsize=256)
def _least(p: int, m: int, v: int, s: int, fewer: int) -> int:
    widest = member("svpp", p=p, m=m, v=v, s=s, tF=1, tB=1)
    forwards = most_forwards(widest.pipeline) - fewer
    within = member("svpp", p=p, m=m, v=v, s=s, f=forwards, tF=1, tB=1)
    begun = [("svpp", within.schedule.program)]
    return makespan_of_any_order(within.problem.with_capacity(forwards), begun)


def least(at: Params, fewer: int) -> int:
    """The least makespan of any order within f_max - ``fewer`` units on every rank."""
    return _least(*(at[name] for name in NAMES), fewer)


def handed_on(name: str, at: Params) -> Fraction:
    """Messages between ranks of one step, each of 1/s of a sample's width."""
    return Fraction(messages(made(name, at).problem), at["s"] if name == "svpp" else 1)


def is_cut(at: Params) -> int:
    """1 where a device of two that share a sample, or two, keeps less of a kind than one alone.

    By the cost model, of Llama 2 13B; ZeRO cuts the optimizer states of CP and DP (level 1).
    """
    name, zero = (("tensor", 0), ("context", 1), ("data", 1))[at["strategy"]]
    alone = Deployment(sequence=4096)
    shared = alone.with_changes(**{name: 2, "zero": zero})
    model = known_model("llama-2-13b").model
    one, two = (model_costs(model, each).stages[0] for each in (alone, shared))
    kept = ("parameters", "saved_bytes", "state_bytes")[at["kind"]]
    return int(getattr(two, kept) < getattr(one, kept))


def gain(at: Params, forwards: int | None = None) -> Fraction:
    """How much longer SVPP takes than with W apart, within SVPP's own f or the f given."""
    own = {} if forwards is None else {"f": forwards}
    apart = makespan("svpp-w")({**at, **own, "tF": 1, "tI": 1, "tW": 1})
    return Fraction(makespan("svpp")({**at, "tF": 1, "tB": 2}), apart) - 1


CLAIMS: tuple[PaperClaim, ...] = (
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
           "v*s", _thin("problems, not schedules")),
    stated("mepipe.section-4.2.least-f-runs", "section 4.2",
           "The variant with f = v*s exists and needs v*s units.",
           "peak activations of the fullest rank (units)", least_peak, "==", "v*s", ALL),
    stated("mepipe.section-4.3.children", "section 4.3; the example gives 3 for slice 1 of chunk 1",
           "The backward of slice k on chunk c has (k+1)(c+1) - 1 children in its sample.",
           "backwards of the sample on rank 0 that depend on it", children, "==", "(k+1)*(c+1) - 1",
           CHILDREN),
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
    stated("mepipe.section-4.2.most", "sections 4.2 and 4.4, Table 3",
           "Within f_max units no order is shorter than Table 3 says, and one is as short.",
           "least makespan of any order (ticks)", lambda at: least(at, 0), "==",
           lambda at: table_3(at), PLAIN),
    stated("mepipe.section-4.2.one-less", "ours, for MEPipe section 4.2",
           "Within f_max - 1 units the best order takes 2 floor((n-1) / ceil((p-1)/s)) ticks more "
           "(v = 1 or s >= p).", "least makespan of any order (ticks)", lambda at: least(at, 1),
           "==", one_less, PLAIN),
    stated("mepipe.section-4.2.one-less-chunks", "ours, for MEPipe section 4.2",
           "With s = 1 and v >= 2 the best order within f_max - 1 units takes 2 ticks more, "
           "however many samples there are.", "least makespan of any order (ticks)",
           lambda at: least(at, 1), "==", lambda at: table_3(at) + 2, CHUNKED),
    stated("mepipe.section-4.2.trade", "section 4.2",
           "Less memory costs time: a unit less makes every order longer, by 2 ticks at least.",
           "least makespan of any order (ticks)", lambda at: least(at, 1), ">=",
           lambda at: least(at, 0) + 2, CHUNKED),
    stated("mepipe.table2.spp.messages", "Table 2 and section 3",
           "SPP communicates what PP does: s messages of 1/s the size.",
           "messages between ranks, in samples", lambda at: handed_on("svpp", at), "==",
           lambda at: handed_on("1f1b", at), SLICED),
    stated("mepipe.table2.marks", "Table 2",
           "TP partitions parameters, activations and optimizer states, CP (ZeRO) the last two, DP "
           "(ZeRO) the last.", "1 where a device of two keeps less than one alone", is_cut, "==",
           "mark", MARKS),
    stated("mepipe.section-7.5.gain-held", "ours, for MEPipe section 7.5",
           "At a batch of 64 (8 samples of 4 slices on 8 stages), tF = tI = tW and SVPP's f, "
           "weight gradients apart make a step 10.4 % faster.", "makespan over makespan, less 1",
           gain, "~3", "0.104", STEP),
    stated("mepipe.section-7.5.gain-ticks", "ours, for MEPipe section 7.5",
           "At tF = tI = tW and with memory for all, weight gradients apart make a step of 8 "
           "samples of 4 slices on 8 stages 13.6 % faster.", "makespan over makespan, less 1",
           lambda at: gain(at, at["m"] * at["v"] * at["s"]), "~3", "0.136", STEP),
)  # fmt: skip
