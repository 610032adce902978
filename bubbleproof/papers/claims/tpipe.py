"""T-Pipe's claims: sections 2.1 to 4.1 and Appendix A; the rest is in the modules joined below.

Symbols: p ranks, m microbatches, v chunks per rank, x = ceil((p-3)/6) and y = ceil((2p-3)/6) the
rounds between the chunks; one unit is T_fwd / 2p (a forward of one chunk) and m_a / 2p. The
appendices assume T_bwd = 2 T_fwd; ``tpipe_domains`` says where that and a steady state matter.

Source: Lin et al., "Enhancing Memory Efficiency in Large Language Model Training Through
Chronos-aware Pipeline Parallelism" (T-Pipe).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims import tpipe_domains as cases
from bubbleproof.papers.claims import tpipe_offload, tpipe_recompute
from bubbleproof.papers.claims import tpipe_schedules as on
from bubbleproof.papers.claims.claim import Claim, stated
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.tpipe_schedules import INTERLEAVED, PLAIN, TPIPE
from bubbleproof.theory.model.actions import Kind

_RATIO = "tpipe_idle_ratio(p, m)"


def _idle_1f1b(at: Params) -> Fraction:
    """1F1B's idle ticks per rank; its stages are v chunks long."""
    ticks = {"tF": at["v"] * at["tF"], "tB": at["v"] * at["tB"]}
    return Fraction(on.idle_per_rank(PLAIN, {"p": at["p"], "m": at["m"], **ticks}), at["v"])


def _half_of_interleaved(at: Params) -> Fraction:
    return Fraction(on.peak(INTERLEAVED, at), 2)


_BACKGROUND = (
    stated("tpipe.sec2.1.first", "§2.1", "1F1B's first stage reaches m_a.", "share of m_a",
           lambda at: on.share(PLAIN, at), "==", 1, cases.TIMED_FILLED),
    stated("tpipe.sec2.1.last", "§2.1", "1F1B's last stage holds m_a / p.", "share of m_a",
           lambda at: Fraction(on.run(PLAIN, at).measures.peak_activations[-1], at["p"]), "==",
           "1/p", cases.TIMED_FILLED),
    stated("tpipe.sec2.1.bubble", "§2.1", "Interleaved 1F1B has 1/v of 1F1B's bubble.",
           "idle ticks per rank", lambda at: on.idle_per_rank(INTERLEAVED, at), "==", _idle_1f1b,
           cases.CHUNKS),
    stated("tpipe.sec2.1.peak", "§2.1", "Interleaved 1F1B holds m_a (1 + (p-1)/(pv)).",
           "share of m_a", lambda at: on.share(INTERLEAVED, at), "==", "1 + (p-1)/(p*v)",
           cases.DEEP),
    stated("tpipe.sec2.3.skew", "§2.3",
           "With two chunks, interleaved 1F1B's shallow and deep activations are as 2p-1 to p "
           "(read as: when rank 0 first holds most).", "shallow over deep activations",
           lambda at: Fraction(on.at_total_peak(INTERLEAVED, at, 1), on.at_total_peak(INTERLEAVED,
           at, 2)), "==", "(2*p-1)/p", cases.PAIRS),
    stated("tpipe.sec2.3.skew-peaks", "§2.3",
           "With two chunks, interleaved 1F1B's shallow and deep activations are as 2p-1 to p "
           "(read as: each at its own peak).", "shallow over deep peak",
           lambda at: Fraction(on.chunk_peak(INTERLEAVED, at, 1), on.chunk_peak(INTERLEAVED, at,
           2)), "==", "(2*p-1)/p", cases.TIMED_PAIRS, "sec2.3.skew-exact"),
    stated("tpipe.sec2.3.skew-exact", "§2.3, corrected: each chunk at its own peak",
           "The peaks of the shallow and the deep chunk are as 2p to p.", "shallow over deep peak",
           lambda at: Fraction(on.chunk_peak(INTERLEAVED, at, 1), on.chunk_peak(INTERLEAVED, at,
           2)), "==", 2, cases.TIMED_PAIRS),
)  # fmt: skip
_OVERVIEW = (
    stated("tpipe.sec4.1.peak", "§4.1", "T-Pipe holds 75 % of m_a (read as: at most).",
           "share of m_a", lambda at: on.share(TPIPE, at), "<=", "3/4", cases.TIMED,
           "sec4.1.peak-bound"),
    stated("tpipe.sec4.1.peak-bound", "§4.1, corrected: 75 % is the limit for large p, from above",
           "T-Pipe holds at most (3/4 + 3/(4p)) m_a.", "share of m_a",
           lambda at: on.share(TPIPE, at), "<=", "3/4 + 3/(4*p)", cases.TIMED),
    stated("tpipe.sec4.1.half", "§4.1", "T-Pipe halves interleaved 1F1B's activations.",
           "peak activations", lambda at: on.peak(TPIPE, at), "<=", _half_of_interleaved,
           cases.TIMED_PAIRS, "sec4.1.half-bound"),
    stated("tpipe.sec4.1.half-bound", "§4.1, corrected: half is the limit for large p, from above",
           "T-Pipe holds at most half of interleaved 1F1B's activations and 2 more.",
           "peak activations", lambda at: on.peak(TPIPE, at), "<=",
           lambda at: _half_of_interleaved(at) + 2, cases.TIMED_PAIRS),
    stated("tpipe.sec4.1.double", "§4.1",
           "T-Pipe's bubble ratio (Appendix A: of the total time) is twice that of interleaved "
           "1F1B.", "idle ratio", lambda at: on.run(TPIPE, at).measures.idle_ratio, "==",
           lambda at: 2 * on.run(INTERLEAVED, at).measures.idle_ratio, cases.GROUPS,
           "sec4.1.double-work"),
    stated("tpipe.sec4.1.double-work", "§4.1, corrected: the bubble over the work",
           "T-Pipe's bubble over the work is twice that of interleaved 1F1B.", "idle over work",
           lambda at: on.run(TPIPE, at).measures.idle_over_work, "==",
           lambda at: 2 * on.run(INTERLEAVED, at).measures.idle_over_work, cases.GROUPS),
    stated("tpipe.sec4.1.shallow", "§4.1",
           "Shallow activations account for 50 % of m_a (read as: within 1/p of it).",
           "distance to 1/2 as a share of m_a",
           lambda at: abs(Fraction(on.chunk_peak(TPIPE, at, 1), 2 * at["p"]) - Fraction(1, 2)),
           "<=", "1/p", cases.TIMED_STEADY),
    stated("tpipe.sec4.1.deep", "§4.1",
           "Deep activations account for 25 % of m_a (read as: within 1/(4p) of it).",
           "distance to 1/4 as a share of m_a",
           lambda at: abs(Fraction(on.chunk_peak(TPIPE, at, 2), 2 * at["p"]) - Fraction(1, 4)),
           "<=", "1/(4*p)", cases.TIMED_STEADY),
)  # fmt: skip
_INTERVALS = (
    stated("tpipe.appA.period", "Appendix A", "Tasks of a stage repeat every 6 units.",
           "units between rounds", lambda at: on.period(TPIPE, at), "==", 6, cases.STEADY),
    stated("tpipe.appA.forward-interval", "Appendix A",
           "3 + 6x - p units lie between the forwards of the two chunks.", "units",
           lambda at: on.forward_interval(TPIPE, at), "==", "forward_interval(p)", cases.STEADY),
    stated("tpipe.appA.backward-interval", "Appendix A",
           "3 + 6y - 2p units lie between the backwards of the two chunks.", "units",
           lambda at: on.backward_interval(TPIPE, at), "==", "backward_interval(p)", cases.STEADY),
    stated("tpipe.appA.eq1-defined", "Appendix A, Eq. 1",
           "From the end of chunk 2's forward on stage 0 to the start of its backward there 3p - 2 "
           "units pass.", "units", lambda at: on.life(TPIPE, at, 2, from_end=True), "==",
           "deep_life(p)", cases.STEADY, "appA.eq1"),
    stated("tpipe.appA.eq1", "Appendix A, Eq. 1, corrected: from the start of the forward",
           "From the start of chunk 2's forward on stage 0 to the start of its backward there 3p - "
           "2 units pass.", "units", lambda at: on.life(TPIPE, at, 2), "==", "deep_life(p)",
           cases.STEADY),
    stated("tpipe.appA.eq2", "Appendix A, Eq. 2",
           "Chunk 1's life is that of chunk 2, both intervals, p forwards and p backwards (from "
           "the start of the forward, as Eq. 1).", "units", lambda at: on.life(TPIPE, at, 1), "==",
           "shallow_life(p)", cases.STEADY),
)  # fmt: skip
_PEAKS = (
    stated("tpipe.appA.chunk1", "Appendix A", "Chunk 1 needs ceil(2/3 + x + y + p/2) activations.",
           "peak activations of chunk 1 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 1), "==",
           "shallow_peak(p)", cases.TIMED_STEADY),
    stated("tpipe.appA.chunk1-any", "Appendix A, with fewer microbatches",
           "Chunk 1 needs min(m, ceil(2/3 + x + y + p/2)) activations.",
           "peak activations of chunk 1 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 1), "==",
           "min(m, shallow_peak(p))", cases.TIMED),
    stated("tpipe.appA.chunk2", "Appendix A", "Chunk 2 needs ceil((3p-2)/6) activations.",
           "peak activations of chunk 2 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 2), "==",
           "deep_peak(p)", cases.TIMED_STEADY),
    stated("tpipe.appA.chunk2-any", "Appendix A, with fewer microbatches",
           "Chunk 2 needs min(m, ceil((3p-2)/6)) activations.",
           "peak activations of chunk 2 on rank 0", lambda at: on.chunk_peak(TPIPE, at, 2), "==",
           "min(m, deep_peak(p))", cases.TIMED),
    stated("tpipe.appA.joint", "Appendix A", "The total peak is the sum of both peaks.",
           "peak activations", lambda at: on.peak(TPIPE, at), "==",
           "shallow_peak(p) + deep_peak(p)", cases.TIMED_EXCEEDING, "appA.joint-exact"),
    stated("tpipe.appA.joint-exact", "Appendix A, corrected: for odd p the two peaks never meet",
           "From p + 1 microbatches on the total peak is the sum of both peaks less p mod 2.",
           "peak activations", lambda at: on.peak(TPIPE, at), "==", "joint_peak(p)",
           cases.TIMED_EXCEEDING),
    stated("tpipe.appA.joint-any", "Appendix A, with fewer microbatches",
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
           lambda at: on.makespan(TPIPE, at), "==", "tF * tpipe_makespan(p, m)", cases.TICKS),
    stated("tpipe.appA.bubble", "Appendix A", "The bubble takes 6(p-1) units.", "idle units",
           lambda at: on.idle_per_rank(TPIPE, at), "==", "6*(p-1)", cases.ALL),
    stated("tpipe.appA.ratio", "Appendix A", "The bubble ratio is (p-1)/(m+p-1).", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, "==", _RATIO, cases.TICKS),
    stated("tpipe.appA.ratio-durations", "Appendix A, without its T_bwd = 2 T_fwd",
           "The bubble ratio is (p-1)/(m+p-1) at any durations.", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, "==", _RATIO, cases.TIMED,
           "appA.ratio-least"),
    stated("tpipe.appA.ratio-least", "Appendix A, corrected: 1F1B's is reached at T_bwd = 2 T_fwd",
           "At other durations the bubble ratio is at least (p-1)/(m+p-1).", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, ">=", _RATIO, cases.TIMED),
    stated("tpipe.appA.ratio-1f1b", "Appendix A", "The bubble ratio is that of 1F1B.", "idle ratio",
           lambda at: on.run(TPIPE, at).measures.idle_ratio, "==",
           lambda at: on.run(PLAIN, at).measures.idle_ratio, cases.TICKS),
    stated("tpipe.appA.rounds", "Appendix A", "Two chunks need twice 1F1B's messages.", "messages",
           lambda at: on.messages(TPIPE, at), "==", lambda at: 2 * on.messages(PLAIN, at),
           cases.PAIRS, "appA.rounds-exact"),
    stated("tpipe.appA.rounds-exact", "Appendix A, corrected: chunk 1's end meets chunk 2's begin",
           "Two chunks need twice 1F1B's messages and 2m more between the last rank and the first.",
           "messages", lambda at: on.messages(TPIPE, at), "==",
           lambda at: 2 * on.messages(PLAIN, at) + 2 * at["m"], cases.ALL),
    stated("tpipe.appD.aligned", "Appendix D",
           "Chunk 1's first backward follows chunk 2's (1+y)-th.",
           "backwards of chunk 2 before the first of chunk 1 on rank 0",
           lambda at: on.before_first(TPIPE, at, (Kind.B, 2), (Kind.B, 1)), "==",
           "1 + backward_rounds(p)", cases.STEADY),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (
    *_BACKGROUND,
    *_OVERVIEW,
    *_INTERVALS,
    *_PEAKS,
    *_TIMES,
    *tpipe_recompute.CLAIMS,
    *tpipe_offload.CLAIMS,
)
