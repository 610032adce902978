"""T-Offload's claims: Appendix D, and the model state of section 6.4.

Symbols as in ``tpipe``: x = ceil((p-3)/6), y = ceil((2p-3)/6). Windows are in units of T_fwd / 2p,
so a chunk's backward is 2 of them. A parameter in mixed precision with Adam weighs 2 bytes and its
gradient 4; its copy, momentum and variance in 32 bits are what off-load removes (the paper does not
list them; these are the usual ones).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case
from bubbleproof.papers.claims.reading import LARGE
from bubbleproof.papers.tpipe import tpipe_formulas as forms
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_domains import ALL, ANY, FILLED_PIPE, LAST, WINDOWS
from bubbleproof.papers.tpipe.tpipe_schedules import TPIPE

KEPT = {"parameter": 2, "gradient": 4}
STATES = {"copy of the parameter": 4, "momentum": 4, "variance": 4}


def _plain(at: Params) -> int:
    return on.makespan(TPIPE, at)


def state_saved(at: Params) -> Fraction:
    """Per cent of the model state that goes when all chunks but the first are off-loaded."""
    state = sum(STATES.values())
    return 100 * Fraction(at["v"] - 1, at["v"]) * Fraction(state, state + sum(KEPT.values()))


_WINDOWS = (
    stated("tpipe.appD.eq5", "Appendix D, Eq. 5",
           "In the cool-down (p - y - 1) T_bwd / 2p are idle between chunk 2 and chunk 1, on every "
           "rank.", "idle units", on.cool_down_window, "==", "offload_window(p)", WINDOWS,
           premises=[FILLED_PIPE]),
    stated("tpipe.appD.eq5-any", "ours, for T-Pipe Appendix D, Eq. 5",
           "With fewer microbatches no less is idle.",
           "idle units", on.cool_down_window, ">=", "offload_window(p)", ANY),
    stated("tpipe.appD.eq7", "Appendix D, Eq. 7",
           "In the warm-up (p - x - 1) T_fwd / 2p are idle between chunk 1 and chunk 2, on every "
           "rank.", "idle units", on.warm_up_window, "==", "reload_window(p)", WINDOWS,
           premises=[FILLED_PIPE]),
    stated("tpipe.appD.eq7-any", "ours, for T-Pipe Appendix D, Eq. 7",
           "With fewer microbatches no less is idle.",
           "idle units", on.warm_up_window, ">=", "reload_window(p)", ANY),
    stated("tpipe.appD.eq6", "Appendix D, Eq. 6",
           "An off-load and host step as long as Eq. 6 allows cost no time.", "end of everything",
           lambda at: on.offloaded_end(at, step=forms.offload_window(at["p"])), "==", _plain, ALL),
    stated("tpipe.appD.eq8", "Appendix D, Eq. 8",
           "An upload as long as Eq. 8 allows costs no time.", "end of everything",
           lambda at: on.offloaded_end(at, reload=forms.reload_window(at["p"])), "==", _plain, ALL),
    read_as("tpipe.appD.eq6-large", "Appendix D, Eq. 6",
            "For large p the window is 2p/3 backwards of a chunk.", "backwards of a chunk", [
                reading("its limit: within 4/3", "Appendix D: the constant terms lose weight",
                        lambda at: abs(Fraction(on.cool_down_window(at), 2)
                        - Fraction(2 * at["p"], 3)), "<=", "4/3", LAST, [LARGE]),
                reading("at least, on any number of ranks", "Appendix D without its premise",
                        lambda at: Fraction(on.cool_down_window(at), 2), ">=", "2*p/3", LAST,
                        is_contrast=True),
            ]),
    read_as("tpipe.appD.eq8-large", "Appendix D, Eq. 8",
            "For large p the window is 5p/6 forwards of a chunk.", "forwards of a chunk", [
                reading("its limit: within 4/3", "Appendix D: as p grows",
                        lambda at: abs(on.warm_up_window(at) - Fraction(5 * at["p"], 6)), "<=",
                        "4/3", LAST, [LARGE]),
                reading("at least, on any number of ranks", "Appendix D without its premise",
                        on.warm_up_window, ">=", "5*p/6", LAST, is_contrast=True),
            ]),
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
)  # fmt: skip
CLAIMS: tuple[PaperClaim, ...] = (*_WINDOWS, *_NUMBERS)
