"""T-Pipe's claims: sections 2.1 to 4.1 and Appendix A; the rest is in the modules joined below.

Symbols: p ranks, m microbatches, v chunks per rank, x = ceil((p-3)/6) and y = ceil((2p-3)/6) the
rounds between the chunks; one unit is T_fwd / 2p (a forward of one chunk) and m_a / 2p. The
appendices assume T_bwd = 2 T_fwd; ``tpipe_domains`` says where that and a steady state matter.

Source: Lin et al., "Enhancing Memory Efficiency in Large Language Model Training Through
Chronos-aware Pipeline Parallelism" (T-Pipe).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import PaperClaim, contradicting, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import ABOUT, LARGE, TWICE, UP_TO, Exact
from bubbleproof.papers.tpipe import tpipe_chunks, tpipe_figures, tpipe_offload, tpipe_recompute
from bubbleproof.papers.tpipe import tpipe_domains as cases
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_schedules import INTERLEAVED, PLAIN, TPIPE
from bubbleproof.theory.model.actions import Kind

_STEADY = [cases.STEADY_STATE]
_RATIO = "tpipe_idle_ratio(p, m)"


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


_BACKGROUND = (
    stated("tpipe.sec2.1.first", "§2.1", "1F1B's first stage reaches m_a.", "share of m_a",
           lambda at: on.share(PLAIN, at), "==", 1, cases.TIMED_FILLED,
           premises=[cases.FILLED_PIPE]),
    stated("tpipe.sec2.1.last", "§2.1", "1F1B's last stage holds m_a / p.", "share of m_a",
           lambda at: Fraction(on.run(PLAIN, at).measures.peak_activations[-1], at["p"]), "==",
           "1/p", cases.TIMED_FILLED, premises=[cases.FILLED_PIPE]),
    stated("tpipe.sec2.1.bubble", "§2.1", "Interleaved 1F1B has 1/v of 1F1B's bubble.",
           "idle ticks per rank", lambda at: on.idle_per_rank(INTERLEAVED, at), "==", _idle_1f1b,
           cases.CHUNKS, premises=[cases.GROUPED]),
    stated("tpipe.sec2.1.peak", "§2.1", "Interleaved 1F1B holds m_a (1 + (p-1)/(pv)).",
           "share of m_a", lambda at: on.share(INTERLEAVED, at), "==", "1 + (p-1)/(p*v)",
           cases.DEEP, premises=[cases.SEVERAL_GROUPS]),
    read_as("tpipe.sec2.3.skew", "§2.3",
            "With two chunks, interleaved 1F1B's shallow and deep activations are as 2p-1 to p at "
            "the peak.", "shallow over deep activations", [
                reading("when rank 0 first holds most", "§2.3: at the peak of stage 0",
                        lambda at: Fraction(on.at_total_peak(INTERLEAVED, at, 1),
                        on.at_total_peak(INTERLEAVED, at, 2)), "==", "(2*p-1)/p", cases.PAIRS,
                        [cases.SEVERAL_GROUPS]),
                reading("each at its own peak", "§2.3: the peak of either",
                        _skew_of_peaks, "==", "(2*p-1)/p", cases.TIMED_PAIRS,
                        [cases.SEVERAL_GROUPS]),
            ]),
    stated("tpipe.sec2.3.skew-exact", "ours, for T-Pipe §2.3: each chunk at its own peak",
           "The peaks of the shallow and the deep chunk are as 2p to p.", "shallow over deep peak",
           _skew_of_peaks, "==", 2, cases.TIMED_PAIRS, premises=[cases.SEVERAL_GROUPS]),
)  # fmt: skip
_OVERVIEW = (
    read_as("tpipe.sec4.1.peak", "§4.1", "T-Pipe's activations peak at 75 % of m_a.",
            "share of m_a", [
                reading("its limit: within 3/(4p)", "Appendix A: about 75 %, approached as p grows",
                        lambda at: abs(on.share(TPIPE, at) - Fraction(3, 4)), "<=", "3/(4*p)",
                        cases.TIMED_EXCEEDING, [LARGE, cases.EXCEEDING]),
                reading("at most, on any number of ranks", "§4.1: just 75 %",
                        lambda at: on.share(TPIPE, at), "<=", "3/4", cases.TIMED),
            ]),
    stated("tpipe.sec4.1.peak-bound", "ours, for T-Pipe §4.1: from above, whatever m",
           "T-Pipe holds at most (3/4 + 3/(4p)) m_a.", "share of m_a",
           lambda at: on.share(TPIPE, at), "<=", "3/4 + 3/(4*p)", cases.TIMED, premises=[UP_TO]),
    read_as("tpipe.sec4.1.half", "§4.1", "T-Pipe halves interleaved 1F1B's activations.",
            "peak activations", [
                reading("its limit: within m_a/p", "§4.1 with Appendix A: 75 % of 150 % for large "
                        "p", lambda at: abs(on.peak(TPIPE, at) - _half_of_interleaved(at)), "<=",
                        "2", cases.TIMED_PAIRS, [LARGE, cases.SEVERAL_GROUPS]),
                reading("at most half, on any number of ranks", "§4.1: halving",
                        lambda at: on.peak(TPIPE, at), "<=", _half_of_interleaved,
                        cases.TIMED_PAIRS, [cases.SEVERAL_GROUPS]),
            ]),
    read_as("tpipe.sec4.1.double", "§4.1",
            "T-Pipe's bubble ratio is twice that of interleaved 1F1B.", "bubble ratio", [
                reading("of the work", "§2.1: 1/v of 1F1B's bubble, at equal work",
                        lambda at: on.run(TPIPE, at).measures.idle_over_work, "==",
                        _twice_interleaved("idle_over_work"), cases.GROUPS, [cases.GROUPED]),
                reading("of the total time", "Appendix A: (p-1)/(m+p-1)",
                        lambda at: on.run(TPIPE, at).measures.idle_ratio, "==",
                        _twice_interleaved("idle_ratio"), cases.GROUPS, [cases.GROUPED]),
            ]),
    stated("tpipe.sec4.1.shallow", "§4.1 and Appendix A",
           "Shallow activations approach 50 % of m_a, within 1/p of it.",
           "distance to 1/2 as a share of m_a",
           lambda at: abs(Fraction(on.chunk_peak(TPIPE, at, 1), 2 * at["p"]) - Fraction(1, 2)),
           "<=", "1/p", cases.TIMED_STEADY, premises=[LARGE, *_STEADY]),
    stated("tpipe.sec4.1.deep", "§4.1 and Appendix A",
           "Deep activations approach 25 % of m_a, within 1/(4p) of it.",
           "distance to 1/4 as a share of m_a",
           lambda at: abs(Fraction(on.chunk_peak(TPIPE, at, 2), 2 * at["p"]) - Fraction(1, 4)),
           "<=", "1/(4*p)", cases.TIMED_STEADY, premises=[LARGE, *_STEADY]),
)  # fmt: skip
_INTERVALS = (
    stated("tpipe.appA.period", "Appendix A", "Tasks of a stage repeat every 6 units.",
           "units between rounds", lambda at: on.period(TPIPE, at), "==", 6, cases.STEADY,
           premises=_STEADY),
    stated("tpipe.appA.forward-interval", "Appendix A",
           "3 + 6x - p units lie between the forwards of the two chunks.", "units",
           lambda at: on.forward_interval(TPIPE, at), "==", "forward_interval(p)", cases.STEADY,
           premises=_STEADY),
    stated("tpipe.appA.backward-interval", "Appendix A",
           "3 + 6y - 2p units lie between the backwards of the two chunks.", "units",
           lambda at: on.backward_interval(TPIPE, at), "==", "backward_interval(p)", cases.STEADY,
           premises=_STEADY),
    contradicting("tpipe.appA.eq1-defined", "Appendix A, Eq. 1", "deep_life(p)",
                  "Appendix A: a life is from the completion of the forward to the begin of the "
                  "backward", lambda at: on.life(TPIPE, at, 2, from_end=True),
                  "The life of chunk 2's activations on stage 0, measured as it is defined, is "
                  "that of Eq. 1.", "units", cases.STEADY, premises=_STEADY),
    stated("tpipe.appA.eq1", "Appendix A, Eq. 1, as it counts: from the start of the forward",
           "From the start of chunk 2's forward on stage 0 to the start of its backward there 3p - "
           "2 units pass.", "units", lambda at: on.life(TPIPE, at, 2), "==", "deep_life(p)",
           cases.STEADY, premises=_STEADY),
    stated("tpipe.appA.eq2", "Appendix A, Eq. 2",
           "Chunk 1's life is that of chunk 2, both intervals, p forwards and p backwards (from "
           "the start of the forward, as Eq. 1).", "units", lambda at: on.life(TPIPE, at, 1), "==",
           "shallow_life(p)", cases.STEADY, premises=_STEADY),
)  # fmt: skip
_PEAKS = (
    stated("tpipe.appA.chunk1", "Appendix A", "Chunk 1 needs ceil(2/3 + x + y + p/2) activations.",
           "peak activations of chunk 1 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 1), "==",
           "shallow_peak(p)", cases.TIMED_STEADY, premises=_STEADY),
    stated("tpipe.appA.chunk1-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
           "Chunk 1 needs min(m, ceil(2/3 + x + y + p/2)) activations.",
           "peak activations of chunk 1 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 1), "==",
           "min(m, shallow_peak(p))", cases.TIMED),
    stated("tpipe.appA.chunk2", "Appendix A", "Chunk 2 needs ceil((3p-2)/6) activations.",
           "peak activations of chunk 2 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 2), "==",
           "deep_peak(p)", cases.TIMED_STEADY, premises=_STEADY),
    stated("tpipe.appA.chunk2-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
           "Chunk 2 needs min(m, ceil((3p-2)/6)) activations.",
           "peak activations of chunk 2 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 2), "==",
           "min(m, deep_peak(p))", cases.TIMED),
    read_as("tpipe.appA.joint", "Appendix A",
            "The total peak is the sum of both chunks' peaks, which makes about 75 % of m_a.",
            "peak activations", [
                reading("at most the sum", "Appendix A: about 75 %", lambda at: on.peak(TPIPE, at),
                        "<=", "shallow_peak(p) + deep_peak(p)", cases.TIMED_EXCEEDING,
                        [ABOUT, cases.EXCEEDING]),
                reading("the sum itself", "Appendix A: the total of the two",
                        lambda at: on.peak(TPIPE, at), "==", "shallow_peak(p) + deep_peak(p)",
                        cases.TIMED_EXCEEDING, [cases.EXCEEDING]),
            ]),
    stated("tpipe.appA.joint-exact", "ours, for T-Pipe Appendix A: for odd p the two never meet",
           "From p + 1 microbatches on the total peak is the sum of both peaks less p mod 2.",
           "peak activations", lambda at: on.peak(TPIPE, at), "==", "joint_peak(p)",
           cases.TIMED_EXCEEDING, premises=[cases.EXCEEDING]),
    stated("tpipe.appA.joint-any", "ours, for T-Pipe Appendix A, with fewer microbatches",
           "The total peak is at most the sum of both peaks less p mod 2.", "peak activations",
           lambda at: on.peak(TPIPE, at), "<=", "joint_peak(p)", cases.TIMED),
)  # fmt: skip
_TIMES = (
    stated("tpipe.appA.warm-up", "Appendix A", "The warm-up takes 2p units.", "units",
           lambda at: on.warm_up(TPIPE, at), "==", "2*p", cases.ALL),
    stated("tpipe.appA.steady", "Appendix A", "The steady phase takes 6(m-1) units.", "units",
           lambda at: on.steady(TPIPE, at), "==", "6*(m-1)", cases.ALL),
    stated("tpipe.appA.cool-down", "Appendix A", "The cool-down takes 4p units.", "units",
           lambda at: on.cool_down(TPIPE, at), "==", "4*p", cases.ALL),
    stated("tpipe.appA.total", "Appendix A", "The total time is 6(m+p-1) T_unit.", "makespan",
           lambda at: on.makespan(TPIPE, at), "==", "tF * tpipe_makespan(p, m)", cases.TICKS,
           premises=[TWICE]),
    stated("tpipe.appA.bubble", "Appendix A", "The bubble takes 6(p-1) units.", "idle units",
           lambda at: on.idle_per_rank(TPIPE, at), "==", "6*(p-1)", cases.ALL),
    read_as("tpipe.appA.ratio", "Appendix A", "The bubble ratio is (p-1)/(m+p-1).", "idle ratio", [
        reading("at its durations", "Appendix A: for simplicity, T_bwd = 2 T_fwd",
                lambda at: on.run(TPIPE, at).measures.idle_ratio, "==", _RATIO, cases.TICKS,
                [TWICE]),
        reading("at any durations", "Appendix A without its premise",
                lambda at: on.run(TPIPE, at).measures.idle_ratio, "==", _RATIO, cases.TIMED,
                is_contrast=True),
    ]),
    stated("tpipe.appA.ratio-least", "ours, for T-Pipe Appendix A: 1F1B's is reached at T_bwd = 2 "
           "T_fwd", "At other durations the bubble ratio is at least (p-1)/(m+p-1).", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, ">=", _RATIO, cases.TIMED),
    stated("tpipe.appA.ratio-1f1b", "Appendix A", "The bubble ratio is that of 1F1B.", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, "==",
           lambda at: on.run(PLAIN, at).measures.idle_ratio, cases.TICKS, premises=[TWICE]),
    read_as("tpipe.appA.rounds", "Appendix A",
            "Two chunks need twice 1F1B's rounds of messages.", "messages", [
                reading("between two ranks", "Appendix A: each chunk goes through all ranks",
                        lambda at: on.messages_on_link(TPIPE, at), "==",
                        lambda at: 2 * on.messages_on_link(PLAIN, at), cases.LINKS),
                reading("all of a step", "Appendix A: twice the rounds",
                        lambda at: on.messages(TPIPE, at), "==",
                        lambda at: 2 * on.messages(PLAIN, at), cases.PAIRS),
            ]),
    stated("tpipe.appA.rounds-exact", "ours, for T-Pipe Appendix A: chunk 1's end meets chunk 2's "
           "begin", "Two chunks need twice 1F1B's messages and 2m more between the last rank and "
           "the first.", "messages", lambda at: on.messages(TPIPE, at), "==",
           lambda at: 2 * on.messages(PLAIN, at) + 2 * at["m"], cases.ALL),
    stated("tpipe.appD.aligned", "Appendix D",
           "Chunk 1's first backward follows chunk 2's (1+y)-th.",
           "backwards of chunk 2 before the first of chunk 1 on rank 0",
           lambda at: on.before_first(TPIPE, at, (Kind.B, 2), (Kind.B, 1)), "==",
           "1 + backward_rounds(p)", cases.STEADY, premises=_STEADY),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (
    *_BACKGROUND,
    *_OVERVIEW,
    *_INTERVALS,
    *_PEAKS,
    *_TIMES,
    *tpipe_recompute.CLAIMS,
    *tpipe_offload.CLAIMS,
    *tpipe_figures.CLAIMS,
    *tpipe_chunks.CLAIMS,
)
