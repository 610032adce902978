"""T-Pipe's claims: peaks, times, recomputation, off-loads, more chunks, and Figure 8's bytes.

Symbols: p ranks, m microbatches, v chunks per rank, x = ceil((p-3)/6) and y = ceil((2p-3)/6) the
rounds between the chunks, z = ceil((p-1)/2); one unit is T_fwd / 2p (a forward of one chunk) and
m_a / 2p. The appendices assume T_bwd = 2 T_fwd; ``tpipe_domains`` says where that and a steady
state matter. T-Recomp's round is 7 units because chunk 1 is recomputed. Bytes are those of
``tpipe_memory``, peaks those of built schedules.

Source: Lin et al., "Enhancing Memory Efficiency in Large Language Model Training Through
Chronos-aware Pipeline Parallelism" (T-Pipe).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from bubbleproof.papers.claims.claim import (
    PaperClaim,
    contradicting,
    read_as,
    reading,
    stated,
)
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import ABOUT, LARGE, TWICE, UP_TO, Exact, NumberOf
from bubbleproof.papers.tpipe import tpipe_domains as cases
from bubbleproof.papers.tpipe import tpipe_formulas as forms
from bubbleproof.papers.tpipe import tpipe_memory as held
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_schedules import (
    INTERLEAVED,
    PLAIN,
    RECOMPUTED_1F1B,
    TPIPE,
    TRECOMP,
    TRECOMP_INTERLEAVED,
)
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.model.actions import Kind

_RATIO, _SUM = "tpipe_idle_ratio(p, m)", "shallow_peak(p) + deep_peak(p)"
_steady = partial(stated, cases=cases.STEADY, premises=[cases.STEADY_STATE])
_timed_steady = partial(stated, cases=cases.TIMED_STEADY, premises=[cases.STEADY_STATE])
_timed_filled = partial(stated, cases=cases.TIMED_FILLED, premises=[cases.FILLED_PIPE])
_windows = partial(stated, cases=cases.WINDOWS, premises=[cases.FILLED_PIPE])
_rooms = partial(stated, cases=cases.ROOMS, premises=[cases.ROOM])
_several = partial(reading, cases=cases.TIMED_PAIRS, premises=[cases.SEVERAL_GROUPS])
_grouped = partial(reading, cases=cases.GROUPS, premises=[cases.GROUPED])


def _idle_1f1b(at: Params) -> Fraction:
    """1F1B's idle ticks per rank; its stages are v chunks long."""
    ticks = {"tF": at["v"] * at["tF"], "tB": at["v"] * at["tB"]}
    return Fraction(on.idle_per_rank(PLAIN, {"p": at["p"], "m": at["m"], **ticks}), at["v"])


def _half_of_interleaved(at: Params) -> Fraction:
    return Fraction(on.peak(INTERLEAVED, at), 2)


def _twice_interleaved(measure: str) -> Exact:
    """Twice interleaved 1F1B's."""
    return lambda at: 2 * Fraction(getattr(on.run(INTERLEAVED, at).measures, measure))


def _skew_of_peaks(at: Params) -> Fraction:
    """The peak of the shallow chunk over that of the deep one."""
    return Fraction(on.chunk_peak(INTERLEAVED, at, 1), on.chunk_peak(INTERLEAVED, at, 2))


def _from(limit: str, value: Exact) -> Exact:
    """The distance to a limit."""
    return lambda at: abs(value(at) - Fraction(limit))


def _chunk(family: Family, chunk: int) -> NumberOf:
    """The most activations of one chunk on rank 0."""
    return lambda at: on.chunk_peak(family, at, chunk)


def _chunk_share(chunk: int) -> Exact:
    return lambda at: Fraction(on.chunk_peak(TPIPE, at, chunk), 2 * at["p"])


def _idle_ratio(at: Params) -> Fraction:
    return on.run(TPIPE, at).measures.idle_ratio


def _later(time: NumberOf) -> NumberOf:
    """What a microbatch more takes."""
    return lambda at: time({**at, "m": at["m"] + 1}) - time(at)


def _down(at: Params) -> Fraction:
    return Fraction(on.cool_down_window(at), 2)


def _less_chunks(at: Params, less: int) -> Fraction:
    """T-Pipe's peak at so many chunks less, of m_a."""
    return on.share(TPIPE, {**at, "v": at["v"] - less})


def _most_layers(at: Params, system: int | None = None) -> int:
    """The deepest model that fits the case's gigabytes; ``system`` counts Figure 8(b)'s."""
    name = [*held.SYSTEMS][at["system"] if system is None else system]
    return held.most_layers(name, at["tenths"] * held.GIB // 10)


def _deeper(at: Params, system: int) -> Fraction:
    """TPipe ALL's depth over another's."""
    return Fraction(_most_layers(at, -1), _most_layers(at, system))


def _gigabytes(system: str) -> Exact:
    """Activations on the fullest GPU."""
    return lambda at: held.activation_gib(system, at["layers"])


def _half_recomputed_gigabytes(at: Params) -> Fraction:
    """1F1B's with half recomputed, by the 6.39 GB that T-Recomp's peak is; a layer's buffer."""
    halves = on.half_recomputed_peak(at) + Fraction(2 * at["p"], at["layers"])
    return halves * Fraction("6.39") / on.peak(TRECOMP, at)


def saved(at: Params) -> Fraction:
    """Per cent of the activations of interleaved 1F1B, half of each recomputed, that go away."""
    return 100 * (1 - on.peak(TRECOMP_INTERLEAVED, at) / _half_of_interleaved(at))


_BACKGROUND = (
    _timed_filled("tpipe.sec2.1.first", "§2.1", "1F1B's first stage reaches m_a.", "share of m_a",
        partial(on.share, PLAIN), "==", 1),
    _timed_filled("tpipe.sec2.1.last", "§2.1", "1F1B's last stage holds m_a / p.", "share of m_a",
        lambda at: Fraction(on.run(PLAIN, at).measures.peak_activations[-1], at["p"]), "==", "1/p"),
    stated("tpipe.sec2.1.bubble", "§2.1", "Interleaved 1F1B has 1/v of 1F1B's bubble.",
        "idle ticks per rank", partial(on.idle_per_rank, INTERLEAVED), "==", _idle_1f1b,
        cases.CHUNKS, premises=[cases.GROUPED]),
    stated("tpipe.sec2.1.peak", "§2.1", "Interleaved 1F1B holds m_a (1 + (p-1)/(pv)).",
        "share of m_a", partial(on.share, INTERLEAVED), "==", "1 + (p-1)/(p*v)", cases.DEEP,
        premises=[cases.SEVERAL_GROUPS]),
    read_as("tpipe.sec2.3.skew", "§2.3", "With two chunks, interleaved 1F1B's shallow and deep "
        "activations are as 2p-1 to p at the peak.", "shallow over deep activations", [
            reading("when rank 0 first holds most", "§2.3: at the peak of stage 0",
                lambda at: Fraction(on.at_total_peak(INTERLEAVED, at, 1),
                    on.at_total_peak(INTERLEAVED, at, 2)), "==", "(2*p-1)/p", cases.PAIRS,
                [cases.SEVERAL_GROUPS]),
            _several("each at its own peak", "§2.3: the peak of either", _skew_of_peaks, "==",
                "(2*p-1)/p"),
        ]),
    stated("tpipe.sec2.3.skew-exact", "ours, for T-Pipe §2.3: each chunk at its own peak",
        "The peaks of the shallow and the deep chunk are as 2p to p.", "shallow over deep peak",
        _skew_of_peaks, "==", 2, cases.TIMED_PAIRS, premises=[cases.SEVERAL_GROUPS]),
)  # fmt: skip
_OVERVIEW = (
    read_as("tpipe.sec4.1.peak", "§4.1", "T-Pipe's activations peak at 75 % of m_a.",
        "share of m_a", [
            reading("its limit: within 3/(4p)", "Appendix A: about 75 %, approached as p grows",
                _from("3/4", partial(on.share, TPIPE)), "<=", "3/(4*p)", cases.TIMED_EXCEEDING,
                [LARGE, cases.EXCEEDING]),
            reading("at most, on any number of ranks", "§4.1: just 75 %", partial(on.share, TPIPE),
                "<=", "3/4", cases.TIMED),
        ]),
    stated("tpipe.sec4.1.peak-bound", "ours, for T-Pipe §4.1: from above, whatever m",
        "T-Pipe holds at most (3/4 + 3/(4p)) m_a.", "share of m_a", partial(on.share, TPIPE), "<=",
        "3/4 + 3/(4*p)", cases.TIMED, premises=[UP_TO]),
    read_as("tpipe.sec4.1.half", "§4.1", "T-Pipe halves interleaved 1F1B's activations.",
        "peak activations", [
            reading("its limit: within m_a/p", "§4.1 with Appendix A: 75 % of 150 % for large p",
                lambda at: abs(on.peak(TPIPE, at) - _half_of_interleaved(at)), "<=", "2",
                cases.TIMED_PAIRS, [LARGE, cases.SEVERAL_GROUPS]),
            _several("at most half, on any number of ranks", "§4.1: halving",
                partial(on.peak, TPIPE), "<=", _half_of_interleaved),
        ]),
    read_as("tpipe.sec4.1.double", "§4.1",
        "T-Pipe's bubble ratio is twice that of interleaved 1F1B.", "bubble ratio", [
            _grouped("of the work", "§2.1: 1/v of 1F1B's bubble, at equal work",
                lambda at: on.run(TPIPE, at).measures.idle_over_work, "==",
                _twice_interleaved("idle_over_work")),
            _grouped("of the total time", "Appendix A: (p-1)/(m+p-1)", _idle_ratio, "==",
                _twice_interleaved("idle_ratio")),
        ]),
    stated("tpipe.sec4.1.shallow", "§4.1 and Appendix A",
        "Shallow activations approach 50 % of m_a, within 1/p of it.",
        "distance to 1/2 as a share of m_a", _from("1/2", _chunk_share(1)), "<=", "1/p",
        cases.TIMED_STEADY, premises=[LARGE, cases.STEADY_STATE]),
    stated("tpipe.sec4.1.deep", "§4.1 and Appendix A",
        "Deep activations approach 25 % of m_a, within 1/(4p) of it.",
        "distance to 1/4 as a share of m_a", _from("1/4", _chunk_share(2)), "<=", "1/(4*p)",
        cases.TIMED_STEADY, premises=[LARGE, cases.STEADY_STATE]),
)  # fmt: skip
_INTERVALS = (
    _steady("tpipe.appA.period", "Appendix A", "Tasks of a stage repeat every 6 units.",
        "units between rounds", partial(on.period, TPIPE), "==", 6),
    _steady("tpipe.appA.forward-interval", "Appendix A",
        "3 + 6x - p units lie between the forwards of the two chunks.", "units",
        partial(on.forward_interval, TPIPE), "==", "forward_interval(p)"),
    _steady("tpipe.appA.backward-interval", "Appendix A",
        "3 + 6y - 2p units lie between the backwards of the two chunks.", "units",
        partial(on.backward_interval, TPIPE), "==", "backward_interval(p)"),
    contradicting("tpipe.appA.eq1-defined", "Appendix A, Eq. 1", "deep_life(p)",
        "Appendix A: a life is from the completion of the forward to the begin of the backward",
        lambda at: on.life(TPIPE, at, 2, from_end=True), "The life of chunk 2's activations on "
        "stage 0, measured as it is defined, is that of Eq. 1.", "units", cases.STEADY,
        premises=[cases.STEADY_STATE]),
    _steady("tpipe.appA.eq1", "Appendix A, Eq. 1, as it counts: from the start of the forward",
        "From the start of chunk 2's forward on stage 0 to the start of its backward there 3p - 2 "
        "units pass.", "units", lambda at: on.life(TPIPE, at, 2), "==", "deep_life(p)"),
    _steady("tpipe.appA.eq2", "Appendix A, Eq. 2", "Chunk 1's life is that of chunk 2, both "
        "intervals, p forwards and p backwards (from the start of the forward, as Eq. 1).", "units",
        lambda at: on.life(TPIPE, at, 1), "==", "shallow_life(p)"),
)  # fmt: skip
_PEAKS = (
    _timed_steady("tpipe.appA.chunk1", "Appendix A",
        "Chunk 1 needs ceil(2/3 + x + y + p/2) activations.",
        "peak activations of chunk 1 on rank 0", _chunk(TPIPE, 1), "==", "shallow_peak(p)"),
    stated("tpipe.appA.chunk1-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
        "Chunk 1 needs min(m, ceil(2/3 + x + y + p/2)) activations.",
        "peak activations of chunk 1 on rank 0", _chunk(TPIPE, 1), "==", "min(m, shallow_peak(p))",
        cases.TIMED),
    _timed_steady("tpipe.appA.chunk2", "Appendix A", "Chunk 2 needs ceil((3p-2)/6) activations.",
        "peak activations of chunk 2 on rank 0", _chunk(TPIPE, 2), "==", "deep_peak(p)"),
    stated("tpipe.appA.chunk2-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
        "Chunk 2 needs min(m, ceil((3p-2)/6)) activations.",
        "peak activations of chunk 2 on rank 0", _chunk(TPIPE, 2), "==", "min(m, deep_peak(p))",
        cases.TIMED),
    read_as("tpipe.appA.joint", "Appendix A",
        "The total peak is the sum of both chunks' peaks, which makes about 75 % of m_a.",
        "peak activations", [
            reading("at most the sum", "Appendix A: about 75 %", partial(on.peak, TPIPE), "<=",
                _SUM, cases.TIMED_EXCEEDING, [ABOUT, cases.EXCEEDING]),
            reading("the sum itself", "Appendix A: the total of the two", partial(on.peak, TPIPE),
                "==", _SUM, cases.TIMED_EXCEEDING, [cases.EXCEEDING]),
        ]),
    stated("tpipe.appA.joint-exact", "ours, for T-Pipe Appendix A: for odd p the two never meet",
        "From p + 1 microbatches on the total peak is the sum of both peaks less p mod 2.",
        "peak activations", partial(on.peak, TPIPE), "==", "joint_peak(p)", cases.TIMED_EXCEEDING,
        premises=[cases.EXCEEDING]),
    stated("tpipe.appA.joint-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
        "The total peak is at most the sum of both peaks less p mod 2.", "peak activations",
        partial(on.peak, TPIPE), "<=", "joint_peak(p)", cases.TIMED),
)  # fmt: skip
_TIMES = (
    stated("tpipe.appA.warm-up", "Appendix A", "The warm-up takes 2p units.", "units",
        partial(on.warm_up, TPIPE), "==", "2*p", cases.ALL),
    stated("tpipe.appA.steady", "Appendix A", "The steady phase takes 6(m-1) units.", "units",
        partial(on.steady, TPIPE), "==", "6*(m-1)", cases.ALL),
    stated("tpipe.appA.cool-down", "Appendix A", "The cool-down takes 4p units.", "units",
        partial(on.cool_down, TPIPE), "==", "4*p", cases.ALL),
    stated("tpipe.appA.total", "Appendix A", "The total time is 6(m+p-1) T_unit.", "makespan",
        partial(on.makespan, TPIPE), "==", "tF * tpipe_makespan(p, m)", cases.TICKS,
        premises=[TWICE]),
    stated("tpipe.appA.bubble", "Appendix A", "The bubble takes 6(p-1) units.", "idle units",
        partial(on.idle_per_rank, TPIPE), "==", "6*(p-1)", cases.ALL),
    read_as("tpipe.appA.ratio", "Appendix A", "The bubble ratio is (p-1)/(m+p-1).", "idle ratio", [
            reading("at its durations", "Appendix A: for simplicity, T_bwd = 2 T_fwd", _idle_ratio,
                "==", _RATIO, cases.TICKS, [TWICE]),
            reading("at any durations", "Appendix A without its premise", _idle_ratio, "==", _RATIO,
                cases.TIMED, is_contrast=True),
        ]),
    stated("tpipe.appA.ratio-least",
        "ours, for T-Pipe Appendix A: 1F1B's is reached at T_bwd = 2 T_fwd",
        "At other durations the bubble ratio is at least (p-1)/(m+p-1).", "idle ratio", _idle_ratio,
        ">=", _RATIO, cases.TIMED),
    stated("tpipe.appA.ratio-1f1b", "Appendix A", "The bubble ratio is that of 1F1B.", "idle ratio",
        _idle_ratio, "==", lambda at: on.run(PLAIN, at).measures.idle_ratio, cases.TICKS,
        premises=[TWICE]),
    read_as("tpipe.appA.rounds", "Appendix A", "Two chunks need twice 1F1B's rounds of messages.",
        "messages", [
            reading("between two ranks", "Appendix A: each chunk goes through all ranks",
                partial(on.messages_on_link, TPIPE), "==",
                lambda at: 2 * on.messages_on_link(PLAIN, at), cases.LINKS),
            reading("all of a step", "Appendix A: twice the rounds", partial(on.messages, TPIPE),
                "==", lambda at: 2 * on.messages(PLAIN, at), cases.PAIRS),
        ]),
    stated("tpipe.appA.rounds-exact",
        "ours, for T-Pipe Appendix A: chunk 1's end meets chunk 2's begin",
        "Two chunks need twice 1F1B's messages and 2m more between the last rank and the first.",
        "messages", partial(on.messages, TPIPE), "==",
        lambda at: 2 * on.messages(PLAIN, at) + 2 * at["m"], cases.ALL),
    _steady("tpipe.appD.aligned", "Appendix D",
        "Chunk 1's first backward follows chunk 2's (1+y)-th.",
        "backwards of chunk 2 before the first of chunk 1 on rank 0",
        lambda at: on.before_first(TPIPE, at, (Kind.B, 2), (Kind.B, 1)), "==",
        "1 + backward_rounds(p)"),
)  # fmt: skip
_DELAY = (
    _steady("tpipe.appB.interval", "Appendix B", "With T-Recomp the interval between the forwards "
        "of the chunks is T-Pipe's, less z - x - 1, and 7 for each round of delay.", "units",
        partial(on.forward_interval, TRECOMP), "==",
        lambda at: forms.recomputing_interval(at["p"], on.delay_rounds(at))),
    stated("tpipe.appB.least", "Appendix B, Eq. 3: k is 0, 1 or 2, by p",
        "The schedule delays chunk 2 by the least k of Eq. 3.",
        "rounds by which rank 0 launches chunk 2 later than in T-Pipe", on.delay_rounds, "==",
        "least_delay(p)", cases.delays(3, 40)),
    stated("tpipe.sec4.2.small", "§4.2", "Below 8 ranks no delay is needed.", "rounds",
        on.delay_rounds, "==", 0, cases.delays(3, 7)),
)  # fmt: skip
_LIVES = (
    _steady("tpipe.appC.period", "Appendix C", "Tasks repeat every 7 units.", "units",
        partial(on.period, TRECOMP), "==", 7),
    _steady("tpipe.appC.gaps", "Appendix C", "Chunk 2's forwards wait z units in all.", "units",
        on.forward_gaps, "==", "forward_gaps(p)"),
    _steady("tpipe.appC.eq4", "Appendix C, Eq. 4",
        "Chunk 2's activations live 3p + z - 2 units (from the start of the forward, as Eq. 1).",
        "units", lambda at: on.life(TRECOMP, at, 2), "==", "recomputing_life(p)"),
    _timed_steady("tpipe.appC.blocks-exact", "Appendix C, as Eq. 4 has it",
        "Chunk 2 needs ceil(T_life / 7) = ceil(p/2) activations.",
        "peak activations of chunk 2 on rank 0", _chunk(TRECOMP, 2), "==", "deep_blocks(p)"),
    _timed_filled("tpipe.appC.total", "Appendix C",
        "With the recomputed block T-Recomp needs floor(p/2) + 1 activations.", "peak activations",
        partial(on.peak, TRECOMP), "==", "trecomp_peak(p)"),
    stated("tpipe.appC.total-any", "ours, for T-Pipe Appendix C, with fewer microbatches",
        "T-Recomp needs at most floor(p/2) + 1 activations.", "peak activations",
        partial(on.peak, TRECOMP), "<=", "trecomp_peak(p)", cases.TIMED),
    read_as("tpipe.appC.quarter", "§4.2 and Appendix C",
        "T-Recomp needs 25 % of m_a, the recomputed block included.", "share of m_a", [
            reading("its limit: within 1/(2p)", "§4.2: approximately 25 %",
                _from("1/4", partial(on.share, TRECOMP)), "<=", "1/(2*p)", cases.TIMED_STEADY,
                [LARGE, cases.STEADY_STATE]),
            reading("at most, on any number of ranks", "Appendix C: only 25 %",
                partial(on.share, TRECOMP), "<=", "1/4", cases.TIMED_STEADY, [cases.STEADY_STATE]),
        ]),
    _steady("tpipe.appC.standard", "Appendix C",
        "1F1B with half recomputed needs 50 % of m_a (its buffer left out).", "share of m_a",
        lambda at: Fraction(on.half_recomputed_peak(at), 2 * at["p"]), "==", "1/2"),
    stated("tpipe.sec4.2.reduction", "§4.2",
        "1F1B with half recomputed needs 2 times what T-Recomp needs, within 4/p.",
        "distance of the ratio of the peaks to 2", _from("2", on.half_recomputed_ratio), "<=",
        "4/(p + 2)", cases.STEADY, premises=[LARGE, cases.STEADY_STATE]),
    _steady("tpipe.appC.efficiency-exact",
        "ours, for T-Pipe §4.2 and Appendix C: it is 1.5 at p = 6 alone and grows to 2",
        "1F1B with half recomputed needs p over floor(p/2) + 1 times as much.",
        "ratio of the peaks", on.half_recomputed_ratio, "==", "p/(p//2 + 1)"),
)  # fmt: skip
_RECOMPUTING_TIMES = (
    stated("tpipe.appC.warm-up", "Appendix C", "The warm-up takes 2p units.", "units",
        partial(on.warm_up, TRECOMP), "==", "2*p", cases.ALL),
    stated("tpipe.appC.cool-down", "Appendix C", "The cool-down takes 4p units.", "units",
        partial(on.cool_down, TRECOMP), "==", "4*p", cases.ALL),
    read_as("tpipe.appC.time", "Appendix C", "T-Recomp takes 6p + 7(m-1) units.", "makespan", [
            reading("some order takes no more",
                "Appendix C: warm-up, 7 units a microbatch, cool-down",
                partial(on.makespan, TRECOMP), "<=", "printed_trecomp_makespan(p, m)", cases.ALL),
            reading("a microbatch more, in the steady state", "Appendix C: a period of 7 units",
                _later(partial(on.makespan, TRECOMP)), "==",
                _later(lambda at: forms.printed_trecomp_makespan(at["p"], at["m"])), cases.STEADY,
                [cases.STEADY_STATE]),
            reading("our order, in which a recomputation may fill a bubble",
                "not the order of Figure 6(d)", partial(on.makespan, TRECOMP), "==",
                "printed_trecomp_makespan(p, m)", cases.ALL, is_contrast=True),
        ]),
    stated("tpipe.appC.1f1b", "Appendix C", "1F1B with half recomputed takes 7(m-1+p) units.",
        "makespan", on.half_recomputed_makespan, "==", "recomputing_1f1b_makespan(p, m)",
        cases.ALL),
    stated("tpipe.sec4.2.interleaved-peak", "§4.2, Figure 6(e)", "T-Recomp on interleaved 1F1B "
        "retains about 50 % of m_a, within 1/(2p): the recomputed block.",
        "distance to 1/2 as a share of m_a", _from("1/2", partial(on.share, TRECOMP_INTERLEAVED)),
        "<=", "1/(2*p)", cases.GROUPS, premises=[ABOUT, LARGE, cases.GROUPED]),
    stated("tpipe.sec4.2.interleaved-bubble", "§4.2, Figure 6(e)", "Some order of T-Recomp on "
        "interleaved 1F1B, within those activations, has at most half the bubble of 1F1B with half "
        "recomputed.", "least idle units per rank of any order", on.least_interleaved_idle, "<=",
        lambda at: Fraction(on.half_recomputed_makespan(at) - 7 * at["m"], 2), cases.ORDERS,
        slack="the least is 3(p-1), the half of 7(p-1) is more"),
    stated("tpipe.sec4.2.interleaved-bubble-least", "ours, for T-Pipe §4.2, exactly",
        "The least bubble of any order within those activations is 3(p-1) units.",
        "least idle units per rank of any order", on.least_interleaved_idle, "==", "3*(p-1)",
        cases.ORDERS),
    stated("tpipe.sec4.2.interleaved-bubble-6", "ours, for T-Pipe §4.2, of our order",
        "Up to six ranks our order's bubble is 3(p-1) units.", "idle units per rank",
        partial(on.idle_per_rank, TRECOMP_INTERLEAVED), "==", "3*(p-1)", cases.TO_6),
)  # fmt: skip
_WINDOWS = (
    _windows("tpipe.appD.eq5", "Appendix D, Eq. 5", "In the cool-down (p - y - 1) T_bwd / 2p are "
        "idle between chunk 2 and chunk 1, on every rank.", "idle units", on.cool_down_window, "==",
        "offload_window(p)"),
    stated("tpipe.appD.eq5-any", "ours, for T-Pipe Appendix D, Eq. 5",
        "With fewer microbatches no less is idle.", "idle units", on.cool_down_window, ">=",
        "offload_window(p)", cases.ANY),
    _windows("tpipe.appD.eq7", "Appendix D, Eq. 7", "In the warm-up (p - x - 1) T_fwd / 2p are "
        "idle between chunk 1 and chunk 2, on every rank.", "idle units", on.warm_up_window, "==",
        "reload_window(p)"),
    stated("tpipe.appD.eq7-any", "ours, for T-Pipe Appendix D, Eq. 7",
        "With fewer microbatches no less is idle.", "idle units", on.warm_up_window, ">=",
        "reload_window(p)", cases.ANY),
    stated("tpipe.appD.eq6", "Appendix D, Eq. 6",
        "An off-load and host step as long as Eq. 6 allows cost no time.", "end of everything",
        lambda at: on.offloaded_end(at, step=forms.offload_window(at["p"])), "==",
        partial(on.makespan, TPIPE), cases.ALL),
    stated("tpipe.appD.eq8", "Appendix D, Eq. 8",
        "An upload as long as Eq. 8 allows costs no time.", "end of everything",
        lambda at: on.offloaded_end(at, reload=forms.reload_window(at["p"])), "==",
        partial(on.makespan, TPIPE), cases.ALL),
    read_as("tpipe.appD.eq6-large", "Appendix D, Eq. 6",
        "For large p the window is 2p/3 backwards of a chunk.", "backwards of a chunk", [
            reading("its limit: within 4/3", "Appendix D: the constant terms lose weight",
                lambda at: abs(_down(at) - Fraction(2 * at["p"], 3)), "<=", "4/3", cases.LAST,
                [LARGE]),
            reading("at least, on any number of ranks", "Appendix D without its premise", _down,
                ">=", "2*p/3", cases.LAST, is_contrast=True),
        ]),
    read_as("tpipe.appD.eq8-large", "Appendix D, Eq. 8",
        "For large p the window is 5p/6 forwards of a chunk.", "forwards of a chunk", [
            reading("its limit: within 4/3", "Appendix D: as p grows",
                lambda at: abs(on.warm_up_window(at) - Fraction(5 * at["p"], 6)), "<=", "4/3",
                cases.LAST, [LARGE]),
            reading("at least, on any number of ranks", "Appendix D without its premise",
                on.warm_up_window, ">=", "5*p/6", cases.LAST, is_contrast=True),
        ]),
)  # fmt: skip
_FIGURE_8 = (
    stated("tpipe.sec6.2.trecomp", "§6.2, Figure 8(a)", "T-Recomp takes 6.39 GB of activations.",
        "GiB", _gigabytes("T-Recomp"), "~2", "6.39", cases.EIGHT),
    stated("tpipe.sec6.2.tpipe", "§6.2, Figure 8(a)", "T-Pipe takes 16.61 GB of activations.",
        "GiB", _gigabytes("T-Pipe"), "~2", "16.61", cases.EIGHT),
    read_as("tpipe.sec6.2.1f1b", "§6.2, Figure 8(a)", "1F1B with half recomputed takes 10.65 GB of "
        "activations, a buffer of one of a stage's 6 layers included.", "GiB", [
            reading("by the same layer", "§6.2: 10.65 GB", _gigabytes("1F1B+R=50%"), "~2", "10.65",
                cases.EIGHT),
            reading("by T-Recomp's rounded 6.39 GB", "§6.2: 6.39 GB", _half_recomputed_gigabytes,
                "~2", "10.65", cases.EIGHT),
        ]),
    stated("tpipe.sec6.2.memory", "§6.2, Figure 8(a)",
        "TPipe ALL takes 63.35 % of the activations and model state of 1F1B with half recomputed.",
        "per cent", lambda at: held.memory_share(at["layers"]), "~2", "63.35", cases.EIGHT),
    stated("tpipe.sec6.2.ticks", "ours, for T-Pipe §6.2", "The schedules' ticks alone leave TPipe "
        "ALL at least 97.58 % of the throughput of 1F1B with half recomputed.", "per cent",
        lambda at: Fraction(100 * on.half_recomputed_makespan(at), on.makespan(TRECOMP, at)), ">=",
        "97.58", cases.EIGHT, slack="messages, slower kernels and the host take the rest"),
    stated("tpipe.sec6.2.depths", "§6.2, Figure 8(b)", "In 32 GB 1F1B trains 40 layers, 64 with "
        "half recomputed, T-Pipe 48, T-Recomp 80 and TPipe ALL 96.",
        "layers of the deepest LLAMA that fits", _most_layers, "==", "layers", cases.DEPTHS,
        premises=[cases.ROOM]),
    _rooms("tpipe.sec6.2.models", "Abstract and §6.2, Figure 8(b)",
        "TPipe ALL trains 2.4 times the layers of 1F1B.", "ratio of the deepest that fit",
        lambda at: _deeper(at, 0), "==", "2.4"),
    _rooms("tpipe.sec6.2.models-half", "Abstract and §6.2, Figure 8(b)",
        "TPipe ALL trains 1.5 times the layers of 1F1B with half recomputed.",
        "ratio of the deepest that fit", lambda at: _deeper(at, 1), "==", "1.5"),
    stated("tpipe.sec6.2.four", "§6.2", "On 4 ranks T-Pipe saves 12.5 % of 1F1B's activations.",
        "per cent", lambda at: 100 * (on.share(PLAIN, at) - on.share(TPIPE, at)), "==", "12.5",
        cases.FOUR),
    stated("tpipe.sec6.2.four-recomputed", "§6.2",
        "On 4 ranks T-Recomp saves 25 % of the activations of 1F1B with half recomputed.",
        "per cent", lambda at: 100 * (1 - 1 / on.half_recomputed_ratio(at)), "==", "25",
        cases.FOUR),
    stated("tpipe.sec6.3.quarter", "§6.3", "Interleaved 1F1B with T-Recomp saves about 25 % of the "
        "activations of interleaved 1F1B with half recomputed (one more block for the recomputed "
        "activations counted, no layer's buffer for the other).", "points off 25 %",
        _from("25", saved), "<=", "5", cases.BATCH_32, premises=[ABOUT],
        slack="five points are our reading of about: 9 blocks in place of 11.5 save 21.7 %"),
)  # fmt: skip
_FIGURE_14 = (
    stated("tpipe.sec6.4.below", "§6.4, Figure 14",
        "T-Pipe holds less than 1F1B without recomputation, at two, three and four chunks.",
        "share of m_a", partial(on.share, TPIPE), "<=", "1 - 1/(v*p)", cases.PLAIN),
    stated("tpipe.sec6.4.ratios", "§6.4, Figure 14",
        "With T-Recomp it keeps less than 1F1B with as much recomputed, at every ratio.",
        "kept activations", partial(on.kept, TRECOMP), "<=",
        lambda at: on.kept(RECOMPUTED_1F1B, at) - 1, cases.RATIOS),
    read_as("tpipe.sec6.4.finer", "§6.4, Figure 14", "Finer chunks are better: of three and four, "
        "T-Pipe holds a smaller share of m_a than of one chunk less.", "share of m_a", [
            reading("on 8 ranks, as section 6.3 evaluates", "§6.3: PP8", partial(on.share, TPIPE),
                "<=", lambda at: _less_chunks(at, 1), cases.EIGHT_FINER,
                slack="19/24 and 11/16 for 13/16 and 19/24: each is smaller, none equal"),
            reading("on any number of ranks", "§6.4 without the number of ranks of its figure",
                partial(on.share, TPIPE), "<=", lambda at: _less_chunks(at, 1), cases.MANY_FINER,
                is_contrast=True),
        ]),
    stated("tpipe.sec6.4.interleaved-above", "§6.4, Figure 14",
        "Interleaved 1F1B holds more than 1F1B; recomputed at one ratio, both keep that share.",
        "share of m_a", partial(on.share, INTERLEAVED), ">=", "1 + 1/(v*p)", cases.PLAIN,
        slack="it is (p-1)/(v p) more (section 2.1)"),
    stated("tpipe.sec6.4.interleaved-matches", "§6.4, Figure 14",
        "With T-Recomp interleaved 1F1B keeps what 1F1B keeps with as much recomputed.",
        "kept activations", partial(on.kept, TRECOMP_INTERLEAVED), "==",
        partial(on.kept, RECOMPUTED_1F1B), cases.RATIOS),
    stated("tpipe.sec6.3.adapipe-ticks",
        "ours, for T-Pipe §6.3, with AdaPipe's plan for whole layers and messages of 0 ticks",
        "By ticks alone AdaPipe, at T-Recomp's activations, takes no less than T-Recomp.",
        "ratio of the steps", on.adapipe_over_trecomp, ">=", 1, cases.PARTS,
        slack="6.0 % more of 48 layers and 3.0 % of 96; of ever smaller parts it comes to about as "
        "long"),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (
    *_BACKGROUND,
    *_OVERVIEW,
    *_INTERVALS,
    *_PEAKS,
    *_TIMES,
    *_DELAY,
    *_LIVES,
    *_RECOMPUTING_TIMES,
    *_WINDOWS,
    *_FIGURE_8,
    *_FIGURE_14,
)
