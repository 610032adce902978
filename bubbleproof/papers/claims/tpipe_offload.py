"""T-Offload's claims: Appendix D, and the model state and model sizes of section 6.

Symbols as in ``tpipe``: x = ceil((p-3)/6), y = ceil((2p-3)/6). Windows are in units of T_fwd / 2p,
so a chunk's backward is 2 of them. A parameter in mixed precision with Adam weighs 2 bytes and its
gradient 4; its copy, momentum and variance in 32 bits are what off-load removes (the paper does not
list them; these are the usual ones).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims import tpipe_schedules as on
from bubbleproof.papers.claims.claim import Claim, Params, grid
from bubbleproof.papers.claims.tpipe_domains import ALL, ANY, LAST, WINDOWS
from bubbleproof.papers.claims.tpipe_schedules import TPIPE
from bubbleproof.papers.claims.tpipe_statement import missing, printed, stated

KEPT = {"parameter": 2, "gradient": 4}
STATES = {"copy of the parameter": 4, "momentum": 4, "variance": 4}


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def offload_window(at: Params) -> int:
    """Eq. 5: (p - y - 1) T_bwd / 2p."""
    return 2 * (at["p"] - ceil_div(2 * at["p"] - 3, 6) - 1)


def upload_window(at: Params) -> int:
    """Eq. 7: (p - x - 1) T_fwd / 2p."""
    return at["p"] - ceil_div(at["p"] - 3, 6) - 1


def _plain(at: Params) -> int:
    return on.makespan(TPIPE, at)


def state_saved(at: Params) -> Fraction:
    """Per cent of the model state that goes when all chunks but the first are off-loaded."""
    state = sum(STATES.values())
    return 100 * Fraction(at["v"] - 1, at["v"]) * Fraction(state, state + sum(KEPT.values()))


_WINDOWS = (
    stated("tpipe.appD.eq5", "Appendix D, Eq. 5", "In the cool-down (p - y - 1) T_bwd / 2p are "
           "idle between chunk 2 and chunk 1, on every rank.", "idle units", offload_window, "==",
           on.cool_down_window, WINDOWS),
    stated("tpipe.appD.eq5-any", "Appendix D, Eq. 5", "With fewer microbatches no less is idle.",
           "idle units", offload_window, ">=", on.cool_down_window, ANY),
    stated("tpipe.appD.eq7", "Appendix D, Eq. 7", "In the warm-up (p - x - 1) T_fwd / 2p are idle "
           "between chunk 1 and chunk 2, on every rank.", "idle units", upload_window, "==",
           on.warm_up_window, WINDOWS),
    stated("tpipe.appD.eq7-any", "Appendix D, Eq. 7", "With fewer microbatches no less is idle.",
           "idle units", upload_window, ">=", on.warm_up_window, ANY),
    stated("tpipe.appD.eq6", "Appendix D, Eq. 6", "An off-load and host step as long as Eq. 6 "
           "allows cost no time.", "end of everything", _plain, "==",
           lambda at: on.offloaded_end(at, step=offload_window(at)), ALL),
    stated("tpipe.appD.eq8", "Appendix D, Eq. 8", "An upload as long as Eq. 8 allows costs no "
           "time.", "end of everything", _plain, "==",
           lambda at: on.offloaded_end(at, reload=upload_window(at)), ALL),
    stated("tpipe.appD.eq6-large", "Appendix D, Eq. 6", "For large p the window is 2p/3 backwards "
           "of a chunk (read as: at least).", "backwards of a chunk",
           lambda at: Fraction(2 * at["p"], 3), ">=",
           lambda at: Fraction(on.cool_down_window(at), 2), LAST, "appD.eq6-bound"),
    stated("tpipe.appD.eq6-bound", "Appendix D, corrected: the limit is from below",
           "The window is at least 2p/3 - 4/3 backwards of a chunk.", "backwards of a chunk",
           lambda at: Fraction(2 * at["p"] - 4, 3), ">=",
           lambda at: Fraction(on.cool_down_window(at), 2), LAST),
    stated("tpipe.appD.eq8-large", "Appendix D, Eq. 8", "For large p the window is 5p/6 forwards "
           "of a chunk (read as: at least).", "forwards of a chunk",
           lambda at: Fraction(5 * at["p"], 6), ">=", on.warm_up_window, LAST, "appD.eq8-bound"),
    stated("tpipe.appD.eq8-bound", "Appendix D, corrected: the limit is from below",
           "The window is at least 5p/6 - 4/3 forwards of a chunk.", "forwards of a chunk",
           lambda at: Fraction(5 * at["p"] - 8, 6), ">=", on.warm_up_window, LAST),
)  # fmt: skip
_NUMBERS = (
    stated("tpipe.sec6.4.two", "§6.4, Figure 15(b)", "With two chunks 33.33 % of the model state "
           "is saved.", "per cent", printed("33.33"), "~2", state_saved, grid("v = 2", v=(2,))),
    stated("tpipe.sec6.4.three", "§6.4, Figure 15(b)", "With three chunks 44 % of the model state "
           "is saved.", "per cent", printed("44"), "~0", state_saved, grid("v = 3", v=(3,))),
    stated("tpipe.sec6.4.four", "§6.4, Figure 15(b)", "With four chunks the 49.09 % that are saved "
           "are near the most there is.", "per cent at most", printed("49.09"), ">=", state_saved,
           grid("v = 4", v=(4,)), slack="with four chunks the most is 50 %"),
    stated("tpipe.sec6.2.models", "§6.2, Figure 8(b)", "96 layers are 2.4 times 1F1B's 40.",
           "ratio of the layers", printed("2.4"), "==",
           lambda at: Fraction(at["ours"], at["plain"]),
           grid("96 and 40 layers", ours=(96,), plain=(40,))),
    stated("tpipe.sec6.2.models-half", "§6.2, Figure 8(b)", "96 layers are 1.5 times the 64 of "
           "1F1B with half recomputed.", "ratio of the layers", printed("1.5"), "==",
           lambda at: Fraction(at["ours"], at["plain"]),
           grid("96 and 64 layers", ours=(96,), plain=(64,))),
)  # fmt: skip
_MISSING = (
    missing("tpipe.sec5.states", "§5", "At 16M tokens Llama3-405B's model state is three orders of "
            "magnitude smaller than its activations.",
            "which activations count: with attention scores the ratio is in the thousands, "
            "without them in the hundreds"),
    missing("tpipe.sec6.2.throughput", "§6.2", "TPipe keeps 97.58 % of the throughput of 1F1B with "
            "half recomputed and 63.35 % of its memory.", "the times of every kernel and message, "
            "and the model state per rank"),
    missing("tpipe.sec6.4.overlap", "§6.4, Figure 15(a)", "T-Offload overlaps to 45.45 % on 4 "
            "ranks and to 94.55 % on 8.", "T_step and T_bwd of the cluster; Eq. 6 alone turns "
            "45.45 % into 90.90 %: its window grows from 2 to 4 backwards of half the length"),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*_WINDOWS, *_NUMBERS, *_MISSING)
