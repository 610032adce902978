"""BPipe's claims: peaks of 1F1B, section 3.3's objective, Algorithm 1, transfers, places.

Symbols: p ranks (= stages), m microbatches, v chunks per rank, s a stage, mu(s) the most
activations it saves, mu_opt = ceil((p+2)/2), tF tB t the ticks of a forward, a backward and a
transfer; of places t tensor parallelism, d replicas, g GPUs of a node. Transfers in flight count on
both ranks (docs/guide/design.md §2). How C of Algorithm 1 is drawn the paper shows by Figure 4
alone, where 3 is evicted for 1, so that C_6 is F3: a forward and a backward in turn
(``bpipe_literal``). Where the family's schedule is asked it is the plan that ships.

The paper writes m >> p and leaves p open; where a formula needs enough microbatches the domain says
how many. Every day p goes up to 12 and m up to 3p; an audit takes every p up to 16 and every m up
to 4p. Where each case is several schedules m is thinned beyond 2p (``domain.counts``), and where it
is an exhaustive search the domain ends where the search does.

Source: Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for Training Large Language Models"
(ICML 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

from bubbleproof.papers.bpipe import bpipe_schedules as on
from bubbleproof.papers.bpipe.bpipe_search import least_capacity, least_evictions
from bubbleproof.papers.bpipe.node_places import (
    DeviceMesh,
    Group,
    in_order,
    pair_adjacent,
)
from bubbleproof.papers.bpipe.pair_placement import pair_placement
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    COUNTS_TEXT,
    RANKS,
    CaseValues,
    Choice,
    Domain,
    Params,
    counts,
    domain,
)
from bubbleproof.papers.claims.measured_pipelines import peak
from bubbleproof.papers.claims.reading import TWICE, Exact
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots
from bubbleproof.theory.model.actions import Kind

MU_OPT = "ceil((p+2)/2)"  # section 3.3
MOST_AWAY = f"p - s - {MU_OPT} + 1"
EVICTOR = "4 <= p and s <= (p-4)//2"  # a stage that transfers by section 3.3
EVICTORS_OF = "range((p-4)//2 + 1)"
TICKS_UP_TO_4 = tuple(product(range(1, 5), repeat=2))


def looked_at(at: Params) -> tuple[int, ...]:
    """The m of ``domain.counts``."""
    return counts(at["p"])


def searched(at: Params) -> tuple[int, ...]:
    """The m that an exhaustive search looks at: as elsewhere up to 12 ranks, then seven."""
    p = at["p"]
    return counts(p) if p <= 12 else (p - 1, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 1, 4 * p)


def _scope(text: str, where: str = "True", *, ranks: int = 12, **others: Choice) -> Domain:
    """``{p}`` and ``{m}`` in the text stand for the most ranks and the most microbatches."""
    columns: dict[str, Choice] = {"p": range(2, ranks + 1), "m": "range(1, 3*p + 1)", **others}
    few = domain(text.format(p=ranks, m="3p"), columns, where=where)
    return few.widened(text.format(p=16, m="4p"), p=RANKS, m="range(1, 4*p + 1)")


def _timed(text: str, ticks: tuple[CaseValues, ...]) -> Domain:
    """Ticks on up to 8 ranks, and on 16."""
    few = domain(
        f"2 <= p <= 8, m in {{p, 2p, 2p+1}}, {text}",
        p=range(2, 9), m="(p, 2*p, 2*p + 1)", tF_tB=ticks,
    )  # fmt: skip
    return few.widened(f"{COUNTS_TEXT}, {text}", p=RANKS, m=looked_at)


ALL = _scope("2 <= p <= {p}, m <= {m}, all stages", s="range(p)")
EVICTORS = _scope("4 <= p <= {p}, m <= {m}, s <= floor((p-4)/2)", EVICTOR, s="range(p)")
STEADY = _scope(
    "4 <= p <= {p}, 2p <= m <= {m}, s <= floor((p-4)/2)", f"{EVICTOR} and m >= 2*p", s="range(p)"
)
SHAPES = _scope("2 <= p <= {p}, m <= {m}")
FILLED_SHAPES = _scope("2 <= p <= {p}, p <= m <= {m}", "m >= p")
MEMORIES = _scope(
    "2 <= p <= {p}, p <= m <= {m}, W in {{0, 7}}, A in {{1, 5}}, all stages",
    "m >= p", ranks=6, s="range(p)", W=(0, 7), A=(1, 5),
)  # fmt: skip
TICKS = _timed("tF and tB up to 4", TICKS_UP_TO_4)
TWICE_TICKS = _timed("tF:tB in 1:2 2:4", ((1, 2), (2, 4)))
LONG_TICKS = domain(
    "4 <= p <= 8, m in {2p, 2p+1}, tF and tB up to 4",
    p=range(4, 9), m="(2*p, 2*p + 1)", tF_tB=TICKS_UP_TO_4,
).widened(
    "4 <= p <= 16, m in 2p, 2p+1, 3p-1, 3p, 3p+1, 4p-1, 4p, tF and tB up to 4",
    p=range(4, 17), m=lambda at: (m for m in looked_at(at) if m >= 2 * at["p"]),
)  # fmt: skip
CHUNKED = domain(
    "2 <= p <= 6, 2 <= v <= 4, m in {2p, 3p}, all stages",
    p=range(2, 7), m="(2*p, 3*p)", v=(2, 3, 4), s="range(p)",
).widened(
    "2 <= p <= 16, 2 <= v <= 4, m in {2p, 3p, 4p}, all stages", p=RANKS, m="(2*p, 3*p, 4*p)"
)  # fmt: skip
CHUNKED_SHAPES = domain(
    "2 <= p <= 6, 2 <= v <= 4, m in {p, 2p, 3p}", p=range(2, 7), m="(p, 2*p, 3*p)", v=(2, 3, 4)
).widened(
    "2 <= p <= 16, 2 <= v <= 4, m in {p, 2p, 3p, 4p} (the schedule needs p | m)",
    p=RANKS, m="(p, 2*p, 3*p, 4*p)",
)  # fmt: skip
_SEARCHED_TEXT = (
    f"{COUNTS_TEXT}; from p = 13 on only p-1, p, p+1, 2p, 2p+1, 3p+1, 4p: every case is a search"
)
SEARCHED = domain(
    "4 <= p <= 7, m <= 2p, s <= floor((p-4)/2)", p=range(4, 8), m="range(1, 2*p + 1)", s=EVICTORS_OF
).widened(f"{_SEARCHED_TEXT}; 4 <= p; s <= floor((p-4)/2)", p=range(4, 17), m=searched)
SEARCHED_PAIRS = domain(
    "2 <= p <= 7, p <= m <= 2p", p=range(2, 8), m="range(1, 2*p + 1)", where="m >= p"
).widened(f"{_SEARCHED_TEXT}; m >= p", p=RANKS, m=searched)
WITHIN = domain(
    "4 <= p <= 16, d <= 3, g in 4 8; t in 1 2 4, t < g",
    p=range(4, 17), t=(1, 2, 4), d=(1, 2, 3), g=(4, 8), where="t < g",
)  # fmt: skip


def mu_opt(p: int) -> int:
    return -(-(p + 2) // 2)


def count(at: Params) -> int:
    """How many microbatches an evictor s evicts; the count is ours.

    It keeps mu = mu_opt, which n = p - s - mu of its p - s in the warm-up are too many for: mu-1 to
    mu+n-2. Whenever one of them is loaded beside a forward another must go (Algorithm 1, lines 19
    to 23), and it is the one last made; so the n places away from home are filled anew, one
    microbatch after the other, every T = p - s - 2 microbatches, while there are forwards left:

        min(max(m-mu, 0), n) + n floor(x/T) + min(x mod T, n),   x = max(m-mu+1-T, 0)
    """
    kept = mu_opt(at["p"])
    away, every = at["p"] - at["s"] - kept, at["p"] - at["s"] - 2
    later = max(at["m"] - kept + 1 - every, 0)
    first = min(max(at["m"] - kept, 0), away)
    return first + away * (later // every) + min(later % every, away)


def _least_capacity(at: Params) -> int:
    return least_capacity(computation_slots(on.BPIPE.base, at["p"], at["m"]))


def _fewest_evictions(at: Params) -> int:
    slots = computation_slots(on.BPIPE.base, at["p"], at["m"])
    found = least_evictions(slots[at["s"]], slots[at["p"] - 1 - at["s"]], mu_opt(at["p"]))
    if found is None:
        raise ValueError(f"no plan of stage {at['s']} of {at['p']} keeps both ranks within mu_opt")
    return found


def share_crossing(placed: Callable[[DeviceMesh], Mapping[Group, int]]) -> Exact:
    """The share of the pairs of BPipe's schedule (its evictions at m = 2p) on two nodes."""

    def value(at: Params) -> Fraction:
        mesh = DeviceMesh(stages=at["p"], tensor=at["t"], replicas=at["d"], node=at["g"])
        node, last = placed(mesh), at["p"] - 1
        moved = [s for s, n in enumerate(on.moves(at["p"], 2 * at["p"], Kind.EVICT)) if n]
        every = [(node[r, s], node[r, last - s]) for r in range(at["d"]) for s in moved]
        return Fraction(sum(here != there for here, there in every), len(every))

    return value


_SHARE = "share of the links that BPipe transfers over that join two nodes"
CLAIMS: tuple[PaperClaim, ...] = (
    stated("bpipe.eq1", "§3.1 Eq. 1", "A stage's memory is its weights and mu(s) activations.",
           "peak memory of stage s", on.memory_1f1b, "==", "W + A*min(p-s, m)", MEMORIES),
    stated("bpipe.mu", "§3.1", "1F1B saves mu(s) = min(p - s, m) microbatches on stage s.",
           "peak activations of stage s", on.mu("1f1b"), "==", "min(p-s, m)", ALL),
    stated("bpipe.sec3.3.objective", "§3.3", "BPipe keeps mu(s) <= mu_opt on every stage.",
           "largest peak of activations", peak("bpipe"), "<=", MU_OPT, SHAPES),
    stated("bpipe.sec3.3.optimal", "§3.3",
           "mu_opt is the optimal balance: from m = p on, no plan of transfers keeps every stage "
           "below it.", "least mu of any plan", replace(peak("bpipe"), least=_least_capacity), "==",
           MU_OPT, SEARCHED_PAIRS),
    read_as("bpipe.sec3.3.evictions", "§3.3",
            "An evictor reaches the objective by evicting at most (p-s) - mu_opt + 1 microbatches.",
            "evicted microbatches of stage s", (
                reading("away at once, those in flight included",
                        "§3.3: the acceptor saves that many from the evictor, beside its own",
                        on.on_acceptor, "<=", MOST_AWAY, EVICTORS),
                reading("in all", "§3.3: the sentence by itself", on.evictions, "<=", MOST_AWAY,
                        EVICTORS),
            )),
    stated("bpipe.sec3.3.acceptor", "§3.3", "An acceptor's mu(p-s-1) becomes p + 2 - mu_opt.",
           "peak activations of stage p-s-1", lambda at: on.mu("bpipe")(on.of_pair(at)), "==",
           f"p+2 - {MU_OPT}", STEADY),
    stated("bpipe.sec3.3.stages", "§3.3",
           "Stages transfer from p = 4 on, exactly those with s <= floor((p-4)/2).",
           "number of stages that evict",
           lambda at: sum(n > 0 for n in on.moves(at["p"], at["m"], Kind.EVICT)), "==",
           "max(0, (p-4)//2 + 1)", FILLED_SHAPES),
    stated("bpipe.alg1.warm-up", "§3.4 Algorithm 1 line 4",
           "The warm-up evicts n_evict = min(p-s, m) - mu_opt microbatches, where that is "
           "positive.", "evictions of stage s before its first backward",
           on.warm_up_evictions, "==", f"max(0, min(p-s, m) - {MU_OPT})",
           EVICTORS),
    stated("bpipe.alg1.printed", "§3.4 Algorithm 1, C drawn in pairs",
           "The transfers of Algorithm 1 as printed keep mu(s) <= mu_opt on both ranks of a pair.",
           "peak activations of the fuller rank", on.pair_peak, "<=", MU_OPT, EVICTORS),
    stated("bpipe.alg1.printed-runs", "§3.4 Algorithm 1, C drawn in pairs",
           "What Algorithm 1 names is there: its schedule breaks no rule.",
           "violations that the checker finds",
           lambda at: on.printed(at["p"], at["m"]).violations, "==", 0, SHAPES),
    stated("bpipe.alg1.minimum", "§3.4", "No plan of transfers evicts fewer microbatches.",
           "evictions of stage s", on.evictions, "==", _fewest_evictions, SEARCHED),
    stated("bpipe.sec3.5.fits", "§3.5",
           "A transfer that fits a forward and fits a backward costs no time.", "makespan",
           lambda at: on.makespan(at, min(at["tF"], at["tB"])), "==", on.makespan_1f1b, TICKS),
    read_as("bpipe.appB.fits-forward", "Appendix B",
            "A transfer that fits a forward costs no time.", "makespan", (
                reading("backwards twice as long", "Appendix B: a backward generally takes twice "
                        "as long as a forward", lambda at: on.makespan(at, at["tF"]), "==",
                        on.makespan_1f1b, TWICE_TICKS, [TWICE]),
                reading("at any durations", "Appendix B: the sentence by itself",
                        lambda at: on.makespan(at, at["tF"]), "==", on.makespan_1f1b, TICKS),
            )),
    stated("bpipe.appB.longest", "ours, for BPipe Appendix B",
           "At any durations a transfer costs no time exactly where 2t <= tF + tB.",
           "longest transfer that costs no time", on.longest_free_transfer, "==", "(tF+tB)//2",
           LONG_TICKS),
    stated("bpipe.appA.mu", "Appendix A",
           "Interleaved 1F1B saves p(v-1) + 2(p-s-1) + 1 on stage s.",
           "peak activations of stage s", on.mu("interleaved"), "==", "p*(v-1) + 2*(p-s-1) + 1",
           CHUNKED),
    stated("bpipe.appA.objective", "Appendix A", "Balanced, every stage saves at most pv + 1.",
           "largest peak of activations", peak("bpipe-interleaved"), "<=", "p*v + 1",
           CHUNKED_SHAPES),
    stated("bpipe.alg1.count", "ours, for BPipe §3.4 Algorithm 1",
           "Stage s evicts min(max(m-mu, 0), n) + n floor(x/T) + min(x mod T, n) microbatches, "
           "with n = p-s-mu, T = p-s-2, x = max(m-mu+1-T, 0).", "evictions of stage s",
           on.evictions, "==", count, EVICTORS),
    read_as("bpipe.sec3.5.one-node", "§3.5",
            "The pair-adjacent assignment puts each pair on one node where tensor parallelism "
            "leaves room for two stages, t < g.", _SHARE, (
                reading("the pairs of all replicas first",
                        "§3.5: each evictor-acceptor pair is located in one node",
                        share_crossing(lambda mesh: pair_placement(mesh, 2 * mesh.stages).node),
                        "==", 0, WITHIN),
                reading("one replica after the other",
                        "Figure 6, of an even number of stages, drawn on for an odd one",
                        share_crossing(lambda mesh: in_order(mesh, pair_adjacent(mesh.stages))),
                        "==", 0, WITHIN),
            )),
)  # fmt: skip
