"""T-Offload's claims, Appendix D, and those of section 6: model state, model sizes, comparisons.

Symbols as in ``tpipe``: x = ceil((p-3)/6), y = ceil((2p-3)/6). Windows are in units of T_fwd / 2p,
so a chunk's backward is 2 of them. A parameter in mixed precision with Adam weighs 2 bytes and its
gradient 4; its copy, momentum and variance in 32 bits are what off-load removes (the paper does not
list them; these are the usual ones).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.costs import tpipe_formulas as forms
from bubbleproof.papers.claims import tpipe_schedules as on
from bubbleproof.papers.claims.claim import Claim, missing, stated
from bubbleproof.papers.claims.domain import Params, case
from bubbleproof.papers.claims.tpipe_domains import ALL, ANY, LAST, WINDOWS
from bubbleproof.papers.claims.tpipe_schedules import INTERLEAVED, TPIPE, TRECOMP_INTERLEAVED

KEPT = {"parameter": 2, "gradient": 4}
STATES = {"copy of the parameter": 4, "momentum": 4, "variance": 4}


def _plain(at: Params) -> int:
    return on.makespan(TPIPE, at)


def state_saved(at: Params) -> Fraction:
    """Per cent of the model state that goes when all chunks but the first are off-loaded."""
    state = sum(STATES.values())
    return 100 * Fraction(at["v"] - 1, at["v"]) * Fraction(state, state + sum(KEPT.values()))


EIGHT = case("p = 8, m = 32 (Figure 10's global batch 32, microbatches of 1)", p=8, m=32)
# MFU at 64K tokens in hundredths of a per cent, as section 6.3 prints them.
MFUS = {"1F1B-I+T-Recomp": 5408, "V-Half": 4794, "T-Pipe+T-Recomp": 4613, "V-Min": 3983}
LONG = case("64K tokens", tokens=64)

_STATES = "the bytes of weights, gradients, optimizer states and workspace per device"
_TIMES = "the times of every operator and collective in the authors' simulator"


def difference(one: str, other: str) -> Fraction:
    """Points of MFU."""
    return Fraction(MFUS[one] - MFUS[other], 100)


def saved(at: Params) -> Fraction:
    """Per cent of the activations of interleaved 1F1B, half of each recomputed, that go away."""
    half = Fraction(on.peak(INTERLEAVED, at), 2)
    return 100 * (1 - on.peak(TRECOMP_INTERLEAVED, at) / half)


_WINDOWS = (
    stated("tpipe.appD.eq5", "Appendix D, Eq. 5",
           "In the cool-down (p - y - 1) T_bwd / 2p are idle between chunk 2 and chunk 1, on every "
           "rank.", "idle units", on.cool_down_window, "==", "offload_window(p)", WINDOWS),
    stated("tpipe.appD.eq5-any", "Appendix D, Eq. 5", "With fewer microbatches no less is idle.",
           "idle units", on.cool_down_window, ">=", "offload_window(p)", ANY),
    stated("tpipe.appD.eq7", "Appendix D, Eq. 7",
           "In the warm-up (p - x - 1) T_fwd / 2p are idle between chunk 1 and chunk 2, on every "
           "rank.", "idle units", on.warm_up_window, "==", "reload_window(p)", WINDOWS),
    stated("tpipe.appD.eq7-any", "Appendix D, Eq. 7", "With fewer microbatches no less is idle.",
           "idle units", on.warm_up_window, ">=", "reload_window(p)", ANY),
    stated("tpipe.appD.eq6", "Appendix D, Eq. 6",
           "An off-load and host step as long as Eq. 6 allows cost no time.", "end of everything",
           lambda at: on.offloaded_end(at, step=forms.offload_window(at["p"])), "==", _plain, ALL),
    stated("tpipe.appD.eq8", "Appendix D, Eq. 8",
           "An upload as long as Eq. 8 allows costs no time.", "end of everything",
           lambda at: on.offloaded_end(at, reload=forms.reload_window(at["p"])), "==", _plain, ALL),
    stated("tpipe.appD.eq6-large", "Appendix D, Eq. 6",
           "For large p the window is 2p/3 backwards of a chunk (read as: at least).",
           "backwards of a chunk", lambda at: Fraction(on.cool_down_window(at), 2), ">=", "2*p/3",
           LAST, "appD.eq6-bound"),
    stated("tpipe.appD.eq6-bound", "Appendix D, corrected: the limit is from below",
           "The window is at least 2p/3 - 4/3 backwards of a chunk.", "backwards of a chunk",
           lambda at: Fraction(on.cool_down_window(at), 2), ">=", "2*p/3 - 4/3", LAST),
    stated("tpipe.appD.eq8-large", "Appendix D, Eq. 8",
           "For large p the window is 5p/6 forwards of a chunk (read as: at least).",
           "forwards of a chunk", on.warm_up_window, ">=", "5*p/6", LAST, "appD.eq8-bound"),
    stated("tpipe.appD.eq8-bound", "Appendix D, corrected: the limit is from below",
           "The window is at least 5p/6 - 4/3 forwards of a chunk.", "forwards of a chunk",
           on.warm_up_window, ">=", "5*p/6 - 4/3", LAST),
)  # fmt: skip
_NUMBERS = (
    stated("tpipe.sec6.4.two", "§6.4, Figure 15(b)",
           "With two chunks 33.33 % of the model state is saved.", "per cent", state_saved, "~2",
           "33.33", case("v = 2", v=2)),
    stated("tpipe.sec6.4.three", "§6.4, Figure 15(b)",
           "With three chunks 44 % of the model state is saved.", "per cent", state_saved, "~0",
           "44", case("v = 3", v=3)),
    stated("tpipe.sec6.4.four", "§6.4, Figure 15(b)",
           "With four chunks the 49.09 % that are saved are near the most there is.",
           "per cent at most", state_saved, ">=", "49.09", case("v = 4", v=4),
           slack="with four chunks the most is 50 %"),
    stated("tpipe.sec6.2.models", "§6.2, Figure 8(b)", "96 layers are 2.4 times 1F1B's 40.",
           "ratio of the layers", "ours/plain", "==", "2.4",
           case("96 and 40 layers", ours=96, plain=40)),
    stated("tpipe.sec6.2.models-half", "§6.2, Figure 8(b)",
           "96 layers are 1.5 times the 64 of 1F1B with half recomputed.", "ratio of the layers",
           "ours/plain", "==", "1.5", case("96 and 64 layers", ours=96, plain=64)),
)  # fmt: skip
_MISSING = (
    missing("tpipe.sec5.states", "§5",
            "At 16M tokens Llama3-405B's model state is three orders of magnitude smaller than its "
            "activations.",
            "which activations count: with attention scores the ratio is in the thousands, without "
            "them in the hundreds"),
    missing("tpipe.sec6.2.throughput", "§6.2",
            "TPipe keeps 97.58 % of the throughput of 1F1B with half recomputed and 63.35 % of its "
            "memory.", "the times of every kernel and message, and the model state per rank"),
    missing("tpipe.sec6.4.overlap", "§6.4, Figure 15(a)",
            "T-Offload overlaps to 45.45 % on 4 ranks and to 94.55 % on 8.",
            "T_step and T_bwd of the cluster; Eq. 6 alone turns 45.45 % into 90.90 %: its window "
            "grows from 2 to 4 backwards of half the length"),
)  # fmt: skip
COMPARISONS = (
    missing("tpipe.sec6.3.v-min", "§6.3, Figure 10",
            "T-Recomp is 19.27 % to 25.14 % more memory efficient than V-Min.",
            f"{_STATES}, and which points of Figure 10 are compared"),
    missing("tpipe.sec6.3.half", "§6.3, Figure 10",
            "T-Recomp is 12.23 % to 16 % more memory efficient than 1F1B with half recomputed.",
            f"{_STATES}, and which points of Figure 10 are compared"),
    missing("tpipe.sec6.3.adapipe-mfu", "§6.3, Figure 10",
            "At equal memory T-Recomp's MFU is 2.59 to 2.82 % below AdaPipe's.",
            f"AdaPipe's plans, and {_TIMES}"),
    missing("tpipe.sec6.3.adapipe-memory", "§6.3, Figure 10",
            "TPipe ALL is 26.98 % to 32.92 % more memory efficient than AdaPipe.",
            f"AdaPipe's plans, and {_STATES}"),
    stated("tpipe.sec6.3.quarter", "§6.3",
           "Interleaved 1F1B with T-Recomp saves about 25 % of the activations of interleaved 1F1B "
           "with half recomputed (one more block for the recomputed activations counted, no "
           "layer's buffer for the other).", "points off 25 %", lambda at: abs(saved(at) - 25),
           "<=", "5", EIGHT,
           slack="five points are our reading of about: 9 blocks in place of 11.5 save 21.7 %"),
    missing("tpipe.sec6.3.long-memory", "§6.3, Figure 12",
            "Interleaved 1F1B with T-Recomp is 24.58 % to 38.41 % more memory efficient than 1F1B "
            "on long sequences.", f"{_STATES}, at each length"),
    missing("tpipe.sec6.3.long-mfu", "§6.3, Figure 11", "Its MFU is 2.75 % to 4.94 % higher.",
            f"{_TIMES}, at each length"),
    stated("tpipe.sec6.3.gap", "§6.3, Figure 11",
           "At 64K tokens V-Half's 47.94 % MFU is 6.14 % below 54.08 %.", "points of MFU",
           lambda _: difference("1F1B-I+T-Recomp", "V-Half"), "==", "6.14", LONG),
    stated("tpipe.sec6.3.gap-min", "§6.3, Figure 11",
           "At 64K tokens V-Min's 39.83 % MFU is 6.30 % below 46.13 %.", "points of MFU",
           lambda _: difference("T-Pipe+T-Recomp", "V-Min"), "==", "6.30", LONG),
    missing("tpipe.sec6.3.gap-adapipe", "§6.3, Figure 11",
            "From 16K to 128K tokens AdaPipe's lead over T-Recomp narrows from 0.94 % to 0.48 % "
            "MFU.", f"AdaPipe's plans, and {_TIMES}"),
    missing("tpipe.sec6.3.tensor", "§6.3, Figure 13",
            "From TP 8 to TP 32 V-Half and V-Min turn from 7.67 % and 1.72 % faster to 4.78 % and "
            "10.31 % slower.",
            "the times of GPT-3 175B's products and collectives at each TP size"),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*_WINDOWS, *_NUMBERS, *_MISSING, *COMPARISONS)
