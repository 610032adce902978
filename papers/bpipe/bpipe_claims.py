"""BPipe's claims: Eq. 1 to 3, section 3.3's objective, Algorithm 1, section 3.5 and Appendix A.

Symbols: p ranks (= stages), m microbatches, v chunks per rank, s a stage, mu(s) the most
activations it saves, mu_opt = ceil((p+2)/2), tF tB t the ticks of a forward, a backward and a
transfer. The paper writes m >> p; where a formula needs enough microbatches the domain says how
many. Transfers in flight count on both ranks (docs/guide/design.md §2). Eq. 4 to 12, the numbers of
Appendix B and what follows from the tables are in ``bpipe_bytes``.

Source: Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for Training Large Language Models"
(ICML 2023).
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.papers.bpipe import (
    bpipe_algorithm,
    bpipe_bytes,
    bpipe_placement,
    bpipe_synchronous,
)
from bubbleproof.papers.bpipe import bpipe_domains as cases
from bubbleproof.papers.bpipe import bpipe_schedules as on
from bubbleproof.papers.bpipe.bpipe_algorithm import MU_OPT, mu_opt
from bubbleproof.papers.bpipe.bpipe_search import least_capacity
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case
from bubbleproof.papers.claims.measured_pipelines import peak
from bubbleproof.papers.claims.reading import TWICE
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots

MOST_AWAY = f"p - s - {MU_OPT} + 1"


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


def half_of_interleaved_pair(at: Params) -> int:
    """ceil((mu(s) + mu(p-1-s) + 1) / 2) with both mu measured."""
    pair = on.mu("interleaved")(at) + on.mu("interleaved")(on.of_pair(at))
    return -(-(int(pair) + 1) // 2)


_IMBALANCE = (
    stated("bpipe.eq1", "§3.1 Eq. 1", "A stage's memory is its weights and mu(s) activations.",
           "peak memory of stage s", on.memory_1f1b, "==", "W + A*min(p-s, m)", cases.MEMORIES),
    stated("bpipe.mu", "§3.1", "1F1B saves mu(s) = min(p - s, m) microbatches on stage s.",
           "peak activations of stage s", on.mu("1f1b"), "==", "min(p-s, m)", cases.ALL),
    stated("bpipe.eq2", "§3.1 Eq. 2", "With enough microbatches mu(s) = p - s.",
           "peak activations of stage s", on.mu("1f1b"), "==", "p-s", cases.FILLED),
    stated("bpipe.eq3", "§3.2 Eq. 3", "The imbalance of a pair is A_0 (p - 2s - 1).",
           "M(s) - M(p-s-1)", lambda at: on.memory_1f1b(at) - on.memory_1f1b(on.of_pair(at)), "==",
           "A*(p - 2*s - 1)", cases.MEMORIES),
    stated("bpipe.sec3.3.pair", "§3.3", "A pair saves mu(s) + mu(p-s-1) = p + 1 microbatches.",
           "sum of both peaks", lambda at: on.mu("1f1b")(at) + on.mu("1f1b")(on.of_pair(at)), "==",
           "p+1", cases.PAIRS),
)  # fmt: skip
_OBJECTIVE = (
    stated("bpipe.sec3.3.objective", "§3.3", "BPipe keeps mu(s) <= mu_opt on every stage.",
           "largest peak of activations", peak("bpipe"), "<=", MU_OPT, cases.SHAPES),
    stated("bpipe.sec3.3.optimal", "§3.3",
           "mu_opt is the optimal balance: from m = p on, no plan of transfers keeps every stage "
           "below it.", "least mu of any plan", replace(peak("bpipe"), least=_least_capacity), "==",
           MU_OPT, cases.SEARCHED_PAIRS),
    read_as("bpipe.sec3.3.evictions", "§3.3",
            "An evictor reaches the objective by evicting at most (p-s) - mu_opt + 1 microbatches.",
            "evicted microbatches of stage s", (
                reading("away at once, those in flight included",
                        "§3.3: the acceptor saves that many from the evictor, beside its own",
                        on.on_acceptor, "<=", MOST_AWAY, cases.EVICTORS),
                reading("in all", "§3.3: the sentence by itself", on.evictions, "<=", MOST_AWAY,
                        cases.EVICTORS),
            )),
    stated("bpipe.sec3.3.parked-exact", "§3.3", "With enough microbatches that many lie there.",
           "activations of stage s on its acceptor", on.on_acceptor, "==", MOST_AWAY, cases.STEADY),
    stated("bpipe.sec3.3.acceptor", "§3.3", "An acceptor's mu(p-s-1) becomes p + 2 - mu_opt.",
           "peak activations of stage p-s-1", lambda at: on.mu("bpipe")(on.of_pair(at)), "==",
           f"p+2 - {MU_OPT}", cases.STEADY),
    stated("bpipe.sec3.3.acceptor-fits", "§3.3",
           "An acceptor never holds more than p + 2 - mu_opt, which mu_opt covers.",
           "peak activations of stage p-s-1", lambda at: on.mu("bpipe")(on.of_pair(at)), "<=",
           f"min(p+2 - {MU_OPT}, {MU_OPT})", cases.EVICTORS),
    stated("bpipe.sec3.3.stages", "§3.3",
           "Stages transfer from p = 4 on, exactly those with s <= floor((p-4)/2).",
           "number of stages that evict", on.evicting_stages, "==", "max(0, (p-4)//2 + 1)",
           cases.FILLED_SHAPES),
)  # fmt: skip
_TRANSFERS = (
    stated("bpipe.sec3.5.fits", "§3.5",
           "A transfer that fits a forward and fits a backward costs no time.", "makespan",
           lambda at: on.makespan(at, min(at["tF"], at["tB"])), "==", on.makespan_1f1b,
           cases.TICKS),
    read_as("bpipe.appB.fits-forward", "Appendix B",
            "A transfer that fits a forward costs no time.", "makespan", (
                reading("backwards twice as long", "Appendix B: a backward generally takes twice "
                        "as long as a forward", lambda at: on.makespan(at, at["tF"]), "==",
                        on.makespan_1f1b, cases.TWICE_TICKS, [TWICE]),
                reading("at any durations", "Appendix B: the sentence by itself",
                        lambda at: on.makespan(at, at["tF"]), "==", on.makespan_1f1b, cases.TICKS),
            )),
    stated("bpipe.appB.relaxed", "Appendix B",
           "At tB = 2 tF an evict and a load may share the time of a backward and a forward: t = "
           "3/2 tF costs no time.", "makespan", lambda at: on.makespan(at, 3 * at["tF"] // 2), "==",
           on.makespan_1f1b, cases.RELAXED),
    stated("bpipe.appB.longest", "ours, for BPipe Appendix B",
           "At any durations a transfer costs no time exactly where 2t <= tF + tB.",
           "longest transfer that costs no time", on.longest_free_transfer, "==", "(tF+tB)//2",
           cases.LONG_TICKS),
)  # fmt: skip
_CHUNKS = (
    stated("bpipe.appA.mu", "Appendix A",
           "Interleaved 1F1B saves p(v-1) + 2(p-s-1) + 1 on stage s.",
           "peak activations of stage s", on.mu("interleaved"), "==", "p*(v-1) + 2*(p-s-1) + 1",
           cases.CHUNKED),
    stated("bpipe.appA.mu-opt", "Appendix A", "ceil((mu(s) + mu(p-s-1) + 1) / 2) = pv + 1.",
           "half of a pair and one", half_of_interleaved_pair, "==", "p*v + 1", cases.CHUNKED),
    stated("bpipe.appA.objective", "Appendix A", "Balanced, every stage saves at most pv + 1.",
           "largest peak of activations", peak("bpipe-interleaved"), "<=", "p*v + 1",
           cases.CHUNKED_SHAPES),
    stated("bpipe.appA.example", "Appendix A, Figure 10",
           "With p = 4, v = 2, m = 8 stage 0 evicts two microbatches before its first backward.",
           "evictions of stage 0 in the warm-up",
           lambda at: on.warm_up_evictions(on.INTERLEAVED, at), "==", 2,
           case("p = 4, m = 8, v = 2, s = 0", p=4, m=8, v=2, s=0)),
)  # fmt: skip
COUNTS = (
    stated(
        "bpipe.alg1.count",
        "ours, for BPipe §3.4 Algorithm 1",
        "Stage s evicts min(max(m-mu, 0), n) + n floor(x/T) + min(x mod T, n) microbatches, "
        "with n = p-s-mu, T = p-s-2, x = max(m-mu+1-T, 0).",
        "evictions of stage s",
        on.evictions,
        "==",
        count,
        cases.COUNTED,
    ),
    stated(
        "bpipe.sec3.4.loads",
        "§3.4",
        "Each eviction requires exactly one load.",
        "loads of stage s",
        on.loads,
        "==",
        on.evictions,
        cases.COUNTED,
    ),
)

CLAIMS: tuple[PaperClaim, ...] = (
    *_IMBALANCE,
    *_OBJECTIVE,
    *bpipe_algorithm.CLAIMS,
    *_TRANSFERS,
    *_CHUNKS,
    *bpipe_bytes.CLAIMS,
    *COUNTS,
    *bpipe_placement.CLAIMS,
    *bpipe_synchronous.CLAIMS,
)
