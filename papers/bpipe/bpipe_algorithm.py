"""BPipe's claims on Algorithm 1 and Figure 4: the transfers of an evictor, slot by slot.

Symbols as in ``claims.bpipe``. How C is drawn the paper shows by Figure 4 alone, so claims that
depend on it are read both ways (``bpipe_literal``). Where the schedule of the
family is asked it is the plan that ships, whose victims do not depend on the drawing.

Source: Kim et al., "BPipe" (ICML 2023) section 3.4, Algorithm 1 and Figure 4.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.papers.bpipe import bpipe_domains as cases
from bubbleproof.papers.bpipe import bpipe_printed as printed
from bubbleproof.papers.bpipe import bpipe_schedules as on
from bubbleproof.papers.bpipe.bpipe_search import least_evictions
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case
from bubbleproof.papers.claims.reading import NumberOf
from bubbleproof.theory.families.evicting.bpipe_plan import Slots, computation_slots
from bubbleproof.theory.model.actions import Action

MU_OPT = "ceil((p+2)/2)"  # section 3.3
IN_PAIRS, EAGER = "C drawn in pairs", "C drawn with every forward as early as it can"
MEGATRON = (
    "§3.4 and Figure 4: 3 is evicted for 1, so C_6 is F3; Megatron-LM, on which BPipe is built, "
    "runs p-s-1 forwards and then a forward and a backward in turn"
)
BUBBLES = "§3.4: C has bubbles, between the warm-up and the first backward too"
FIGURE_4 = case("p = 4, m = 8", p=4, m=8)


def mu_opt(p: int) -> int:
    return -(-(p + 2) // 2)


def _fewest_evictions(at: Params) -> int:
    slots = computation_slots(on.BPIPE.base, at["p"], at["m"])
    found = least_evictions(slots[at["s"]], slots[at["p"] - 1 - at["s"]], mu_opt(at["p"]))
    if found is None:
        raise ValueError(f"no plan of stage {at['s']} of {at['p']} keeps both ranks within mu_opt")
    return found


def _drawn(
    name: str, statement: str, quantity: str, value: Callable[[Slots], int], said: int
) -> PaperClaim:
    """A claim on stage 0's C of Figure 4, by either drawing."""

    def of(drawing: Callable[[int, int], tuple[Slots, ...]]) -> NumberOf:
        return lambda at: value(drawing(at["p"], at["m"])[0])

    return read_as(
        f"bpipe.fig4.{name}",
        "§3.4, Figure 4",
        statement,
        quantity,
        (
            reading(IN_PAIRS, MEGATRON, of(printed.pairs), "==", said, FIGURE_4),
            reading(EAGER, BUBBLES, of(printed.eager), "==", said, FIGURE_4),
        ),
    )


CLAIMS: tuple[PaperClaim, ...] = (
    stated("bpipe.alg1.warm-up", "§3.4 Algorithm 1 line 4",
           "The warm-up evicts n_evict = min(p-s, m) - mu_opt microbatches, where that is "
           "positive.", "evictions of stage s before its first backward",
           lambda at: on.warm_up_evictions(on.BPIPE, at), "==", f"max(0, min(p-s, m) - {MU_OPT})",
           cases.EVICTORS),
    read_as("bpipe.alg1.printed", "§3.4 Algorithm 1",
            "The transfers of Algorithm 1 as printed keep mu(s) <= mu_opt on both ranks of a pair.",
            "peak activations of the fuller rank", (
                reading(IN_PAIRS, MEGATRON, printed.pair_peak, "<=", MU_OPT, cases.EVICTORS),
                reading(EAGER, BUBBLES, on.peak_printed, "<=", MU_OPT, cases.EVICTORS),
                reading("C without bubbles", "§3.4 counts bubbles among the 22 decisions of Figure "
                        "4's C", lambda at: on.peak_printed(at, is_dense=True), "<=", MU_OPT,
                        cases.EVICTORS, is_contrast=True),
            )),
    stated("bpipe.alg1.printed-runs", "§3.4 Algorithm 1, C drawn in pairs",
           "What Algorithm 1 names is there: its schedule breaks no rule.",
           "violations that the checker finds", printed.violations, "==", 0, cases.SHAPES),
    stated("bpipe.alg1.minimum", "§3.4", "No plan of transfers evicts fewer microbatches.",
           "evictions of stage s", on.evictions, "==", _fewest_evictions, cases.SEARCHED),
    read_as("bpipe.alg1.cooldown", "§3.4",
            "In the cooldown of an evictor a bubble precedes every backward (but the one right "
            "after the last forward), so a load there does not add to a forward.",
            "backwards without one at tF = tB = 1", (
                reading(IN_PAIRS, MEGATRON, lambda at: printed.cooldown_without_bubble(
                    printed.pairs(at["p"], at["m"])[at["s"]]), "==", 0, cases.EVICTORS),
                reading(EAGER, BUBBLES, lambda at: printed.cooldown_without_bubble(
                    printed.eager(at["p"], at["m"])[at["s"]]), "==", 0, cases.EVICTORS),
            )),
    stated("bpipe.fig4.decisions", "§3.4, Figure 4",
           "C of stage 0 has 22 decisions, bubbles included.", "slots at tF = tB = 1",
           lambda at: on.makespan_1f1b({**at, "tF": 1, "tB": 1}), "==", 22, FIGURE_4),
    _drawn("c9", "C_9 of stage 0 is the backward of microbatch 1.", "slot of B1 on stage 0",
           lambda slots: slots.index(Action.parse("0B1")), 9),
    _drawn("c18", "C_18 of stage 0 is a bubble.", "actions in slot 18 of stage 0",
           lambda slots: int(slots[18] is not None), 0),
    _drawn("indices", "Stage 0 evicts 1 in the warm-up, then 3 and 5 (§3.2).",
           "the microbatches that Algorithm 1 evicts, as digits, 0 for a bubble",
           lambda slots: printed.evicted(slots, p=4, m=8), 135),
)  # fmt: skip
