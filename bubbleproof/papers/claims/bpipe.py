"""BPipe's claims: Eq. 1 to 3, section 3.3's objective, Algorithm 1, section 3.5 and Appendix A.

Symbols: p ranks (= stages), m microbatches, v chunks per rank, s a stage, mu(s) the most
activations it saves, mu_opt = ceil((p+2)/2), tF tB t the ticks of a forward, a backward and a
transfer. The paper writes m >> p; where a formula needs enough microbatches the domain says how
many. Transfers in flight count on both ranks (docs/design.md §2). Eq. 4 to 12 and the numbers of
Appendix B are in ``bpipe_bytes``, what follows from the tables in ``bpipe_tables``.

Source: Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for Training Large Language Models"
(ICML 2023).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims import bpipe_bytes, bpipe_tables
from bubbleproof.papers.claims import bpipe_domains as cases
from bubbleproof.papers.claims import bpipe_schedules as on
from bubbleproof.papers.claims.bpipe_search import least_capacity, least_evictions
from bubbleproof.papers.claims.claim import Claim, Params, Relation, Value, grid
from bubbleproof.papers.claims.scope import Cases, small, wide
from bubbleproof.theory.families.bpipe_plan import computation_slots


def mu_opt(p: int) -> int:
    """ceil((p+2)/2), section 3.3."""
    return -(-(p + 2) // 2)


def _claim(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    relation: str,
    predicted: Value,
    measured: Value,
    where: Cases,
    corrected: str | None = None,
) -> Claim:
    return Claim(
        id=f"bpipe.{name}",
        paper="bpipe",
        source=f"BPipe {source}",
        statement=statement,
        quantity=quantity,
        relation=Relation(relation),
        domain=small(where),
        wide=wide(where),
        predicted=predicted,
        measured=measured,
        corrected=None if corrected is None else f"bpipe.{corrected}",
    )


def _objective(at: Params) -> Fraction:
    return Fraction(mu_opt(at["p"]))


def _least_capacity(at: Params) -> Fraction:
    return Fraction(least_capacity(computation_slots(on.BPIPE.base, at["p"], at["m"])))


def _fewest_evictions(at: Params) -> Fraction:
    slots = computation_slots(on.BPIPE.base, at["p"], at["m"])
    found = least_evictions(slots[at["s"]], slots[at["p"] - 1 - at["s"]], mu_opt(at["p"]))
    assert found is not None, "the objective is within reach"
    return Fraction(found)


_IMBALANCE = (
    _claim("eq1", "§3.1 Eq. 1", "A stage's memory is its weights and mu(s) activations.",
           "peak memory of stage s", "==",
           lambda at: Fraction(at["W"] + at["A"] * min(at["p"] - at["s"], at["m"])),
           on.memory_1f1b, cases.MEMORIES),
    _claim("mu", "§3.1", "1F1B saves mu(s) = min(p - s, m) microbatches on stage s.",
           "peak activations of stage s", "==",
           lambda at: Fraction(min(at["p"] - at["s"], at["m"])), on.mu_1f1b, cases.ALL),
    _claim("eq2", "§3.1 Eq. 2", "With enough microbatches mu(s) = p - s.",
           "peak activations of stage s", "==",
           lambda at: Fraction(at["p"] - at["s"]), on.mu_1f1b, cases.FILLED),
    _claim("eq3", "§3.2 Eq. 3", "The imbalance of a pair is A_0 (p - 2s - 1).",
           "M(s) - M(p-s-1)", "==",
           lambda at: Fraction(at["A"] * (at["p"] - 2 * at["s"] - 1)),
           on.memory_difference, cases.MEMORIES),
    _claim("sec3.3.pair", "§3.3", "A pair saves mu(s) + mu(p-s-1) = p + 1 microbatches.",
           "sum of both peaks", "==", lambda at: Fraction(at["p"] + 1), on.mu_1f1b_pair,
           cases.PAIRS),
)  # fmt: skip
_OBJECTIVE = (
    _claim("sec3.3.objective", "§3.3", "BPipe keeps mu(s) <= mu_opt on every stage.",
           "largest peak of activations", "<=", _objective, on.peak_bpipe, cases.SHAPES),
    _claim("sec3.3.optimal", "§3.3", "mu_opt is the optimal balance: from m = p on, no plan of "
           "transfers keeps every stage below it.",
           "least mu of any plan", "==", _objective, _least_capacity,
           cases.SEARCHED_PAIRS),
    _claim("sec3.3.evictions", "§3.3", "An evictor reaches the objective by evicting at most "
           "(p-s) - mu_opt + 1 microbatches (read as: in all).",
           "evictions of stage s", "<=",
           lambda at: Fraction(at["p"] - at["s"] - mu_opt(at["p"]) + 1), on.evictions,
           cases.EVICTORS, "sec3.3.parked"),
    _claim("sec3.3.parked", "§3.3", "At most (p-s) - mu_opt + 1 microbatches of an evictor lie on "
           "its acceptor at once, those in flight included.",
           "activations of stage s on its acceptor", "<=",
           lambda at: Fraction(at["p"] - at["s"] - mu_opt(at["p"]) + 1), on.parked, cases.EVICTORS),
    _claim("sec3.3.parked-exact", "§3.3", "With enough microbatches that many lie there.",
           "activations of stage s on its acceptor", "==",
           lambda at: Fraction(at["p"] - at["s"] - mu_opt(at["p"]) + 1), on.parked, cases.STEADY),
    _claim("sec3.3.acceptor", "§3.3", "An acceptor's mu(p-s-1) becomes p + 2 - mu_opt.",
           "peak activations of stage p-s-1", "==",
           lambda at: Fraction(at["p"] + 2 - mu_opt(at["p"])), on.mu_bpipe_acceptor, cases.STEADY),
    _claim("sec3.3.acceptor-fits", "§3.3", "An acceptor never holds more than p + 2 - mu_opt, "
           "which mu_opt covers.",
           "peak activations of stage p-s-1", "<=",
           lambda at: Fraction(min(at["p"] + 2 - mu_opt(at["p"]), mu_opt(at["p"]))),
           on.mu_bpipe_acceptor, cases.EVICTORS),
    _claim("sec3.3.stages", "§3.3", "Stages transfer from p = 4 on, exactly those with "
           "s <= floor((p-4)/2).",
           "number of stages that evict", "==",
           lambda at: Fraction(max(0, (at["p"] - 4) // 2 + 1)), on.evicting_stages,
           cases.FILLED_SHAPES),
)  # fmt: skip
_ALGORITHM = (
    _claim("alg1.warm-up", "§3.4 Algorithm 1 line 4", "The warm-up evicts n_evict = min(p-s, m) - "
           "mu_opt microbatches, where that is positive.",
           "evictions of stage s before its first backward", "==",
           lambda at: Fraction(max(0, min(at["p"] - at["s"], at["m"]) - mu_opt(at["p"]))),
           lambda at: on.warm_up_evictions(on.BPIPE, at), cases.EVICTORS),
    _claim("alg1.printed", "§3.4 Algorithm 1", "The transfers of Algorithm 1 as printed keep "
           "mu(s) <= mu_opt (C with its bubbles, T_i beside C_i).",
           "peak activations of stage s", "<=", _objective, on.peak_printed, cases.EVICTORS,
           "alg1.shipped"),
    _claim("alg1.printed-dense", "§3.4 Algorithm 1", "The transfers of Algorithm 1 as printed keep "
           "mu(s) <= mu_opt (C without bubbles).",
           "peak activations of stage s", "<=", _objective,
           lambda at: on.peak_printed(at, is_dense=True), cases.EVICTORS, "alg1.shipped"),
    _claim("alg1.shipped", "§3.4 Algorithm 1, corrected: line 22 evicts the microbatch of the last "
           "forward before C_{i-2}", "The transfers of the algorithm keep mu(s) <= mu_opt.",
           "peak activations of stage s", "<=", _objective, on.mu_bpipe, cases.EVICTORS),
    _claim("alg1.minimum", "§3.4", "No plan of transfers evicts fewer microbatches.",
           "evictions of stage s", "==", _fewest_evictions, on.evictions, cases.SEARCHED),
    _claim("alg1.cooldown", "§3.4", "In the cooldown of an evictor a bubble precedes every "
           "backward but the first, so a load there does not add to a forward.",
           "backwards without one at tF = tB = 1", "==", lambda _: Fraction(0),
           on.cooldown_without_bubble, cases.EVICTORS),
    _claim("fig4.decisions", "§3.4, Figure 4", "C of stage 0 has 22 decisions, bubbles included.",
           "slots at tF = tB = 1", "==", lambda _: Fraction(22),
           lambda at: on.makespan_1f1b({**at, "tF": 1, "tB": 1}),
           grid("p = 4, m = 8", p=(4,), m=(8,))),
)  # fmt: skip
_TRANSFERS = (
    _claim("sec3.5.fits", "§3.5", "A transfer that fits a forward and fits a backward costs no "
           "time.", "makespan", "==", on.makespan_1f1b,
           lambda at: Fraction(on.makespan(at, min(at["tF"], at["tB"]))), cases.TICKS),
    _claim("appB.fits-forward", "Appendix B", "A transfer that fits a forward costs no time.",
           "makespan", "==", on.makespan_1f1b,
           lambda at: Fraction(on.makespan(at, at["tF"])), cases.TICKS, "appB.longest"),
    _claim("appB.relaxed", "Appendix B", "At tB = 2 tF an evict and a load may share the time of a "
           "backward and a forward: t = 3/2 tF costs no time.",
           "makespan", "==", on.makespan_1f1b,
           lambda at: Fraction(on.makespan(at, 3 * at["tF"] // 2)),
           cases.RELAXED),
    _claim("appB.longest", "Appendix B, corrected: two transfers must fit a forward and a backward",
           "A transfer costs no time exactly where 2t <= tF + tB.",
           "longest transfer that costs no time", "==",
           lambda at: Fraction((at["tF"] + at["tB"]) // 2), on.longest_free_transfer,
           cases.LONG_TICKS),
)  # fmt: skip
_CHUNKS = (
    _claim("appA.mu", "Appendix A", "Interleaved 1F1B saves p(v-1) + 2(p-s-1) + 1 on stage s.",
           "peak activations of stage s", "==",
           lambda at: Fraction(at["p"] * (at["v"] - 1) + 2 * (at["p"] - at["s"] - 1) + 1),
           on.mu_interleaved, cases.CHUNKED),
    _claim("appA.mu-opt", "Appendix A", "ceil((mu(s) + mu(p-s-1) + 1) / 2) = pv + 1.",
           "half of a pair and one", "==", lambda at: Fraction(at["p"] * at["v"] + 1),
           on.half_of_interleaved_pair, cases.CHUNKED),
    _claim("appA.objective", "Appendix A", "Balanced, every stage saves at most pv + 1.",
           "largest peak of activations", "<=",
           lambda at: Fraction(at["p"] * at["v"] + 1), on.peak_interleaved, cases.CHUNKED_SHAPES),
    _claim("appA.example", "Appendix A, Figure 10", "With p = 4, v = 2, m = 8 stage 0 evicts two "
           "microbatches before its first backward.",
           "evictions of stage 0 in the warm-up", "==", lambda _: Fraction(2),
           lambda at: on.warm_up_evictions(on.INTERLEAVED, at),
           grid("p = 4, m = 8, v = 2, s = 0", p=(4,), m=(8,), v=(2,), s=(0,))),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (
    *_IMBALANCE,
    *_OBJECTIVE,
    *_ALGORITHM,
    *_TRANSFERS,
    *_CHUNKS,
    *bpipe_bytes.CLAIMS,
    *bpipe_tables.CLAIMS,
)
