"""T-Pipe's claims: peaks, times, recomputation, off-loads, more chunks, and Figure 8's bytes.

Symbols: p ranks, m microbatches, v chunks per rank, x = ceil((p-3)/6) and y = ceil((2p-3)/6) the
rounds between the chunks; one unit is T_fwd / 2p (a forward of one chunk) and m_a / 2p. The
appendices assume T_bwd = 2 T_fwd; ``tpipe_domains`` says where that and a steady state matter.
Bytes are those of ``tpipe_memory``, peaks those of built schedules.

Source: Lin et al., "Enhancing Memory Efficiency in Large Language Model Training Through
Chronos-aware Pipeline Parallelism" (T-Pipe).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import ABOUT, LARGE, TWICE, Exact, NumberOf
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

_SUM = "shallow_peak(p) + deep_peak(p)"
_timed_steady = partial(stated, cases=cases.TIMED_STEADY, premises=[cases.STEADY_STATE])
_windows = partial(stated, cases=cases.WINDOWS, premises=[cases.FILLED_PIPE])
_several = partial(reading, cases=cases.TIMED_PAIRS)
_grouped = partial(reading, cases=cases.GROUPS, premises=[cases.GROUPED])


def _half_of_interleaved(at: Params) -> Fraction:
    return Fraction(on.peak(INTERLEAVED, at), 2)


def _twice_interleaved(measure: str) -> Exact:
    """Twice interleaved 1F1B's."""
    return lambda at: 2 * Fraction(getattr(on.run(INTERLEAVED, at).measures, measure))


def _from(limit: str, value: Exact) -> Exact:
    """The distance to a limit."""
    return lambda at: abs(value(at) - Fraction(limit))


def _chunk(family: Family, chunk: int) -> NumberOf:
    """The most activations of one chunk on rank 0."""
    return lambda at: on.chunk_peak(family, at, chunk)


def _idle_ratio(at: Params) -> Fraction:
    return on.run(TPIPE, at).measures.idle_ratio


def _later(time: NumberOf) -> NumberOf:
    """What a microbatch more takes."""
    return lambda at: time({**at, "m": at["m"] + 1}) - time(at)


def _most_layers(at: Params) -> int:
    """The deepest model that fits the case's gigabytes; ``system`` counts Figure 8(b)'s."""
    return held.most_layers([*held.SYSTEMS][at["system"]], at["tenths"] * held.GIB // 10)


def _gigabytes(system: str) -> Exact:
    """Activations on the fullest GPU."""
    return lambda at: held.activation_gib(system, at["layers"])


def _half_recomputed_gigabytes(at: Params) -> Fraction:
    """1F1B's with half recomputed, by the 6.39 GB that T-Recomp's peak is; a layer's buffer."""
    halves = on.half_recomputed_peak(at) + Fraction(2 * at["p"], at["layers"])
    return halves * Fraction("6.39") / on.peak(TRECOMP, at)


_OVERVIEW = (
    read_as("tpipe.sec4.1.peak", "§4.1", "T-Pipe's activations peak at 75 % of m_a.",
        "share of m_a", [
            reading("its limit: within 3/(4p)", "Appendix A: about 75 %, approached as p grows",
                _from("3/4", partial(on.share, TPIPE)), "<=", "3/(4*p)", cases.TIMED_EXCEEDING,
                [LARGE, cases.EXCEEDING]),
            reading("at most, on any number of ranks", "§4.1: just 75 %", partial(on.share, TPIPE),
                "<=", "3/4", cases.TIMED),
        ]),
    read_as("tpipe.sec4.1.half", "§4.1", "T-Pipe halves interleaved 1F1B's activations.",
        "peak activations", [
            _several("its limit: within m_a/p", "§4.1 with Appendix A: 75 % of 150 % for large p",
                lambda at: abs(on.peak(TPIPE, at) - _half_of_interleaved(at)), "<=", "2",
                premises=[LARGE, cases.SEVERAL_GROUPS]),
            _several("at most half, on any number of ranks", "§4.1: halving",
                partial(on.peak, TPIPE), "<=", _half_of_interleaved,
                premises=[cases.SEVERAL_GROUPS]),
        ]),
    read_as("tpipe.sec4.1.double", "§4.1",
        "T-Pipe's bubble ratio is twice that of interleaved 1F1B.", "bubble ratio", [
            _grouped("of the work", "§2.1: 1/v of 1F1B's bubble, at equal work",
                lambda at: on.run(TPIPE, at).measures.idle_over_work, "==",
                _twice_interleaved("idle_over_work")),
            _grouped("of the total time", "Appendix A: (p-1)/(m+p-1)", _idle_ratio, "==",
                _twice_interleaved("idle_ratio")),
        ]),
)  # fmt: skip
_PEAKS = (
    _timed_steady("tpipe.appA.chunk1", "Appendix A",
        "Chunk 1 needs ceil(2/3 + x + y + p/2) activations.",
        "peak activations of chunk 1 on rank 0", _chunk(TPIPE, 1), "==", "shallow_peak(p)"),
    _timed_steady("tpipe.appA.chunk2", "Appendix A", "Chunk 2 needs ceil((3p-2)/6) activations.",
        "peak activations of chunk 2 on rank 0", _chunk(TPIPE, 2), "==", "deep_peak(p)"),
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
)  # fmt: skip
_TIMES = (
    stated("tpipe.appA.total", "Appendix A", "The total time is 6(m+p-1) T_unit.", "makespan",
        partial(on.makespan, TPIPE), "==", "tF * tpipe_makespan(p, m)", cases.TICKS,
        premises=[TWICE]),
    stated("tpipe.appA.ratio", "Appendix A", "The bubble ratio is (p-1)/(m+p-1).", "idle ratio",
        _idle_ratio, "==", "tpipe_idle_ratio(p, m)", cases.TICKS, premises=[TWICE]),
    stated("tpipe.appA.rounds", "Appendix A",
        "Two chunks need twice 1F1B's rounds of messages between two ranks.", "messages",
        partial(on.messages_on_link, TPIPE), "==",
        lambda at: 2 * on.messages_on_link(PLAIN, at), cases.LINKS),
)  # fmt: skip
_RECOMPUTING = (
    stated("tpipe.appC.total", "Appendix C",
        "With the recomputed block T-Recomp needs floor(p/2) + 1 activations.", "peak activations",
        partial(on.peak, TRECOMP), "==", "trecomp_peak(p)", cases.TIMED_FILLED,
        premises=[cases.FILLED_PIPE]),
    read_as("tpipe.appC.quarter", "§4.2 and Appendix C",
        "T-Recomp needs 25 % of m_a, the recomputed block included.", "share of m_a", [
            reading("its limit: within 1/(2p)", "§4.2: approximately 25 %",
                _from("1/4", partial(on.share, TRECOMP)), "<=", "1/(2*p)", cases.TIMED_STEADY,
                [LARGE, cases.STEADY_STATE]),
            reading("at most, on any number of ranks", "Appendix C: only 25 %",
                partial(on.share, TRECOMP), "<=", "1/4", cases.TIMED_STEADY, [cases.STEADY_STATE]),
        ]),
    stated("tpipe.appC.standard", "Appendix C",
        "1F1B with half recomputed needs 50 % of m_a (its buffer left out).", "share of m_a",
        lambda at: Fraction(on.half_recomputed_peak(at), 2 * at["p"]), "==", "1/2", cases.STEADY,
        premises=[cases.STEADY_STATE]),
    read_as("tpipe.appC.time", "Appendix C", "T-Recomp takes 6p + 7(m-1) units.", "makespan", [
            reading("some order takes no more",
                "Appendix C: warm-up, 7 units a microbatch, cool-down",
                partial(on.makespan, TRECOMP), "<=", "printed_trecomp_makespan(p, m)", cases.ALL),
            reading("a microbatch more, in the steady state", "Appendix C: a period of 7 units",
                _later(partial(on.makespan, TRECOMP)), "==",
                _later(lambda at: forms.printed_trecomp_makespan(at["p"], at["m"])), cases.STEADY,
                [cases.STEADY_STATE]),
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
)  # fmt: skip
_OFFLOADS = (
    _windows("tpipe.appD.eq5", "Appendix D, Eq. 5", "In the cool-down (p - y - 1) T_bwd / 2p are "
        "idle between chunk 2 and chunk 1, on every rank.", "idle units", on.cool_down_window, "==",
        "offload_window(p)"),
    _windows("tpipe.appD.eq7", "Appendix D, Eq. 7", "In the warm-up (p - x - 1) T_fwd / 2p are "
        "idle between chunk 1 and chunk 2, on every rank.", "idle units", on.warm_up_window, "==",
        "reload_window(p)"),
    stated("tpipe.appD.eq6", "Appendix D, Eq. 6",
        "An off-load and host step as long as Eq. 6 allows cost no time.", "end of everything",
        lambda at: on.offloaded_end(at, step=forms.offload_window(at["p"])), "==",
        partial(on.makespan, TPIPE), cases.ALL),
    stated("tpipe.appD.eq8", "Appendix D, Eq. 8",
        "An upload as long as Eq. 8 allows costs no time.", "end of everything",
        lambda at: on.offloaded_end(at, reload=forms.reload_window(at["p"])), "==",
        partial(on.makespan, TPIPE), cases.ALL),
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
    stated("tpipe.sec6.2.depths", "§6.2, Figure 8(b)", "In 32 GB 1F1B trains 40 layers, 64 with "
        "half recomputed, T-Pipe 48, T-Recomp 80 and TPipe ALL 96.",
        "layers of the deepest LLAMA that fits", _most_layers, "==", "layers", cases.DEPTHS,
        premises=[cases.ROOM]),
)  # fmt: skip
_FIGURE_14 = (
    stated("tpipe.sec6.4.below", "§6.4, Figure 14",
        "T-Pipe holds less than 1F1B without recomputation, at two, three and four chunks.",
        "share of m_a", partial(on.share, TPIPE), "<=", "1 - 1/(v*p)", cases.PLAIN),
    stated("tpipe.sec6.4.ratios", "§6.4, Figure 14",
        "With T-Recomp it keeps less than 1F1B with as much recomputed, at every ratio.",
        "kept activations", partial(on.kept, TRECOMP), "<=",
        lambda at: on.kept(RECOMPUTED_1F1B, at) - 1, cases.RATIOS),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (
    *_OVERVIEW,
    *_PEAKS,
    *_TIMES,
    *_RECOMPUTING,
    *_OFFLOADS,
    *_FIGURE_8,
    *_FIGURE_14,
)
