"""T-Recomp's claims: section 4.2, Appendices B and C.

Symbols as in ``tpipe``: x = ceil((p-3)/6), z = ceil((p-1)/2); the round is 7 units because chunk 1
is recomputed. 1F1B with half of each stage recomputed has forwards of 2 units, backwards of 4 and 1
more for the recomputation just in time within the backward.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil

from bubbleproof.papers.claims.any_order import makespan_of_any_order
from bubbleproof.papers.claims.claim import PaperClaim, contradicting, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.measured_pipelines import on_pipeline
from bubbleproof.papers.claims.reading import ABOUT, LARGE
from bubbleproof.papers.tpipe import tpipe_domains as cases
from bubbleproof.papers.tpipe import tpipe_formulas as forms
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_schedules import PLAIN, TRECOMP, TRECOMP_INTERLEAVED
from bubbleproof.theory.families.trecomp import with_recomputations
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.timing import left_shift

ORDERS = replace(cases.GROUPS, text=f"{cases.GROUPS.text}; every order", wide=None)
BLOCKS = domain("2 <= p <= 64", p=range(2, 65))


def half_recomputed_makespan(at: Params) -> int:
    """1F1B's that recomputes half of every stage within the backward, in half stages."""
    pipeline = Pipeline(num_ranks=at["p"], num_microbatches=at["m"], forward=2, backward=5)
    return on_pipeline(PLAIN, pipeline).makespan


def half_recomputed_peak(at: Params) -> int:
    """Units of m_a / 2p that 1F1B with half recomputed holds, the recomputed half left out.

    An activation is two units, of which one stays and one is dropped after the forward and made
    again, just before the backward, by a task of its own. What is dropped lies there for one
    forward or backward at a time: the buffer, one unit of the measured peak.
    """
    return _half_recomputed_peak(at["p"], at["m"])


@lru_cache(maxsize=1024)
def _half_recomputed_peak(p: int, m: int) -> int:
    again = Recompute(stages=tuple(range(p)), kept=1, duration=1)
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=2, backward=4, activation=2, recompute=again
    )
    plain = PLAIN.program(Pipeline(num_ranks=p, num_microbatches=m))
    orders = [with_recomputations(order, p) for order in plain.orders(p)]
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(orders))
    return max(measure(problem, schedule).peak_activations) - 1


def least_interleaved_idle(at: Params) -> int:
    """The least idle units of T-Recomp on interleaved 1F1B by any order within (p+1)/2p m_a."""
    member = on.run(TRECOMP_INTERLEAVED, at).member
    within = member.problem.with_capacity(at["p"] + 1)
    return makespan_of_any_order(within, [("ours", member.schedule.program)]) - 7 * at["m"]


def _half_recomputed_ratio(at: Params) -> Fraction:
    """What 1F1B with half recomputed holds over what T-Recomp holds."""
    return Fraction(half_recomputed_peak(at), on.peak(TRECOMP, at))


_STEADY = [cases.STEADY_STATE]
_DELAY = (
    stated("tpipe.appB.interval", "Appendix B",
           "With T-Recomp the interval between the forwards of the chunks is T-Pipe's, less z - x "
           "- 1, and 7 for each round of delay.", "units",
           lambda at: on.forward_interval(TRECOMP, at), "==",
           lambda at: forms.recomputing_interval(at["p"], on.delay_rounds(at)), cases.STEADY,
           premises=_STEADY),
    contradicting("tpipe.appB.one", "Appendix B: k = 1 for 8 <= p <= 40", 1, "Appendix B, Eq. 3",
                  "least_delay(p)", "The least delay of Eq. 3 is k = 1 for 8 <= p <= 40.", "rounds",
                  cases.delays(8, 40)),
    contradicting("tpipe.sec4.2.sufficient", "§4.2: one round is enough for p <= 40", 1,
                  "Appendix B, Eq. 3", "least_delay(p)",
                  "For p <= 40 Eq. 3 needs a delay of one round at most.", "rounds",
                  cases.delays(3, 40), "<="),
    stated("tpipe.appB.two", "ours, for T-Pipe Appendix B: k = 2 at p = 27, 32, 33, 36 to 39",
           "For p <= 40 a delay of two rounds is enough.", "rounds that Eq. 3 needs",
           "least_delay(p)", "<=", 2, cases.delays(3, 40)),
    stated("tpipe.appB.least", "Appendix B, Eq. 3: k is 0, 1 or 2, by p",
           "The schedule delays chunk 2 by the least k of Eq. 3.",
           "rounds by which rank 0 launches chunk 2 later than in T-Pipe", on.delay_rounds, "==",
           "least_delay(p)", cases.delays(3, 40)),
    stated("tpipe.sec4.2.small", "§4.2", "Below 8 ranks no delay is needed.", "rounds",
           on.delay_rounds, "==", 0, cases.delays(3, 7)),
)  # fmt: skip
_LIVES = (
    stated("tpipe.appC.period", "Appendix C", "Tasks repeat every 7 units.", "units",
           lambda at: on.period(TRECOMP, at), "==", 7, cases.STEADY, premises=_STEADY),
    stated("tpipe.appC.gaps", "Appendix C", "Chunk 2's forwards wait z units in all.", "units",
           on.forward_gaps, "==", "forward_gaps(p)", cases.STEADY, premises=_STEADY),
    stated("tpipe.appC.eq4", "Appendix C, Eq. 4",
           "Chunk 2's activations live 3p + z - 2 units (from the start of the forward, as Eq. 1).",
           "units", lambda at: on.life(TRECOMP, at, 2), "==", "recomputing_life(p)", cases.STEADY,
           premises=_STEADY),
    read_as("tpipe.appC.blocks", "Appendix C: ceil(T_life / 7) simplifies to floor(p/2)",
            "ceil(T_life / 7) is floor(p/2).", "activations of chunk 2", [
                reading("a life begins where its forward ends",
                        "Appendix A: from the completion of the forward to the backward's begin",
                        lambda at: ceil(Fraction(forms.recomputing_life(at["p"]) - 1, 7)), "==",
                        "p//2", BLOCKS),
                reading("a life begins with its forward", "Eq. 1 and Eq. 4, which count it",
                        "deep_blocks(p)", "==", "p//2", BLOCKS),
            ]),
    stated("tpipe.appC.blocks-exact", "Appendix C, as Eq. 4 has it",
           "Chunk 2 needs ceil(T_life / 7) = ceil(p/2) activations.",
           "peak activations of chunk 2 on rank 0",
           lambda at: on.chunk_peak(TRECOMP, at, 2), "==", "deep_blocks(p)", cases.TIMED_STEADY,
           premises=_STEADY),
    stated("tpipe.appC.total", "Appendix C",
           "With the recomputed block T-Recomp needs floor(p/2) + 1 activations.",
           "peak activations", lambda at: on.peak(TRECOMP, at), "==", "trecomp_peak(p)",
           cases.TIMED_FILLED, premises=[cases.FILLED_PIPE]),
    stated("tpipe.appC.total-any", "ours, for T-Pipe Appendix C, with fewer microbatches",
           "T-Recomp needs at most floor(p/2) + 1 activations.", "peak activations",
           lambda at: on.peak(TRECOMP, at), "<=", "trecomp_peak(p)", cases.TIMED),
    read_as("tpipe.appC.quarter", "§4.2 and Appendix C",
            "T-Recomp needs 25 % of m_a, the recomputed block included.", "share of m_a", [
                reading("its limit: within 1/(2p)", "§4.2: approximately 25 %",
                        lambda at: abs(on.share(TRECOMP, at) - Fraction(1, 4)), "<=", "1/(2*p)",
                        cases.TIMED_STEADY, [LARGE, *_STEADY]),
                reading("at most, on any number of ranks", "Appendix C: only 25 %",
                        lambda at: on.share(TRECOMP, at), "<=", "1/4", cases.TIMED_STEADY,
                        _STEADY),
            ]),
    stated("tpipe.appC.standard", "Appendix C",
           "1F1B with half recomputed needs 50 % of m_a (its buffer left out).", "share of m_a",
           lambda at: Fraction(half_recomputed_peak(at), 2 * at["p"]), "==", "1/2", cases.STEADY,
           premises=_STEADY),
    contradicting("tpipe.appC.efficiency", "Appendix C: 1.5 times as efficient", "1.5",
                  "§4.2: a 2x reduction", 2,
                  "1F1B with half recomputed needs as many times what T-Recomp needs in both "
                  "places.", "times", case("printed", case=1)),
    stated("tpipe.sec4.2.reduction", "§4.2",
           "1F1B with half recomputed needs 2 times what T-Recomp needs, within 4/p.",
           "distance of the ratio of the peaks to 2",
           lambda at: abs(_half_recomputed_ratio(at) - 2), "<=", "4/(p + 2)", cases.STEADY,
           premises=[LARGE, *_STEADY]),
    stated("tpipe.appC.efficiency-exact", "ours, for T-Pipe §4.2 and Appendix C: it is 1.5 at p = "
           "6 alone and grows to 2",
           "1F1B with half recomputed needs p over floor(p/2) + 1 times as much.",
           "ratio of the peaks", _half_recomputed_ratio, "==", "p/(p//2 + 1)", cases.STEADY,
           premises=_STEADY),
)  # fmt: skip
_TIMES = (
    stated("tpipe.appC.warm-up", "Appendix C", "The warm-up takes 2p units.", "units",
           lambda at: on.warm_up(TRECOMP, at), "==", "2*p", cases.ALL),
    stated("tpipe.appC.cool-down", "Appendix C", "The cool-down takes 4p units.", "units",
           lambda at: on.cool_down(TRECOMP, at), "==", "4*p", cases.ALL),
    read_as("tpipe.appC.time", "Appendix C", "T-Recomp takes 6p + 7(m-1) units.", "makespan", [
        reading("some order takes no more", "Appendix C: warm-up, 7 units a microbatch, cool-down",
                lambda at: on.makespan(TRECOMP, at), "<=", "printed_trecomp_makespan(p, m)",
                cases.ALL),
        reading("a microbatch more, in the steady state", "Appendix C: a period of 7 units",
                lambda at: on.makespan(TRECOMP, {**at, "m": at["m"] + 1})
                - on.makespan(TRECOMP, at), "==",
                lambda at: forms.printed_trecomp_makespan(at["p"], at["m"] + 1)
                - forms.printed_trecomp_makespan(at["p"], at["m"]), cases.STEADY, _STEADY),
        reading("our order, in which a recomputation may fill a bubble", "not the order of Figure "
                "6(d)", lambda at: on.makespan(TRECOMP, at), "==",
                "printed_trecomp_makespan(p, m)", cases.ALL, is_contrast=True),
    ]),
    stated("tpipe.appC.1f1b", "Appendix C", "1F1B with half recomputed takes 7(m-1+p) units.",
           "makespan", half_recomputed_makespan, "==", "recomputing_1f1b_makespan(p, m)",
           cases.ALL),
    stated("tpipe.sec4.2.interleaved-peak", "§4.2, Figure 6(e)",
           "T-Recomp on interleaved 1F1B retains about 50 % of m_a, within 1/(2p): the recomputed "
           "block.", "distance to 1/2 as a share of m_a",
           lambda at: abs(on.share(TRECOMP_INTERLEAVED, at) - Fraction(1, 2)), "<=", "1/(2*p)",
           cases.GROUPS, premises=[ABOUT, LARGE, cases.GROUPED]),
    stated("tpipe.sec4.2.interleaved-bubble", "§4.2, Figure 6(e)",
           "Some order of T-Recomp on interleaved 1F1B, within those activations, has at most half "
           "the bubble of 1F1B with half recomputed.", "least idle units per rank of any order",
           least_interleaved_idle, "<=",
           lambda at: Fraction(half_recomputed_makespan(at) - 7 * at["m"], 2), ORDERS,
           slack="the least is 3(p-1), the half of 7(p-1) is more"),
    stated("tpipe.sec4.2.interleaved-bubble-least", "ours, for T-Pipe §4.2, exactly",
           "The least bubble of any order within those activations is 3(p-1) units.",
           "least idle units per rank of any order", least_interleaved_idle, "==", "3*(p-1)",
           ORDERS),
    stated("tpipe.sec4.2.interleaved-bubble-6", "ours, for T-Pipe §4.2, of our order",
           "Up to six ranks our order's bubble is 3(p-1) units.", "idle units per rank",
           lambda at: on.idle_per_rank(TRECOMP_INTERLEAVED, at), "==", "3*(p-1)", cases.TO_6),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_DELAY, *_LIVES, *_TIMES)
