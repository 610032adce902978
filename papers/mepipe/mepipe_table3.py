"""MEPipe's Table 3, row by row and column by column, and Hanayo's time at other durations.

Symbols: p ranks, m microbatches (the paper's n), v chunks, s slices, A the activations of one
sample through all layers. The table has two columns, n >= p ("many" in the ids) and n < p ("few"),
each with a bubble ratio (our idle_ratio) and the activation memory of the fullest rank, over A.

The figures draw equal ticks, and section 5 assumes them; the table names no durations. Where they
matter a cell is read at equal ticks first and at any durations beside. SVPP's bubble is that of the
version with the lowest, so the best of all orders within f is measured, and beside it what the
generator gives that section 4.3 prints, by any tie-break; then an order of ours with the same f
(``families.svpp``). Where the durations matter, over every order within f. SVPP has p*m*v*s
forwards to place, 32768 at the far end, so its scopes look at fewer m from 6 ranks on.

Hanayo's closed form lets microbatch j start every two ticks, so that in a slot of two forwards and
backwards of different lengths meet; where a wave turns (v >= 2) each such meeting costs |tB - tF|:

    makespan = (nv + p-1)(tF + tB) + (2n/p - 1)(p-1) |tB - tF|     where p divides n
    makespan = (vp + n-1)(tF + tB) + (n-1) |tB - tF|               where n <= p

For one chunk nothing is waited for. Measured is the closed form's order (``families.hanayo``),
which the family runs at these n.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.3 and 4.4, Table 3; Hanayo's time is ours.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from bubbleproof.papers.claims.any_order import least_idle_ratio, least_over_ties
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import (
    CHUNKS,
    RANKS,
    RATIOS,
    SLICES,
    SMALL_RANKS,
    SOME,
    CaseValues,
    Counts,
    Domain,
    Params,
    Ratios,
    counts,
    domain,
    scope,
)
from bubbleproof.papers.claims.measured_pipelines import idle_ratio, made, peak_of_a
from bubbleproof.papers.claims.reading import EQUAL_TICKS, NumberOf
from bubbleproof.theory.families.hanayo import closed_form_order
from bubbleproof.theory.families.svpp import most_forwards
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

EQUAL = RATIOS[:1]
V, S = ((1, 2, 3), CHUNKS), ((1, 2, 4), SLICES)
WAVE_RANKS = ((2, 3, 4), (2, 3, 4, 5, 7, 11, 16))


def few_counts(p: int) -> tuple[int, ...]:
    """Those of ``counts`` that SVPP is looked at with: all up to 5 ranks, beyond it a few.

    >>> few_counts(8)
    (1, 2, 4, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32)
    """
    rests = (0, 1, p // 2, p - 1)
    return tuple(m for m in counts(p) if p <= SMALL_RANKS[-1] or m <= 2 or m % p in rests)


FEW = Counts(
    text=f"{SOME.text}, from p = 6 on of these m <= 2 and m mod p in 0 1 p/2 p-1", of=few_counts
)
# v = 1, s >= p, or the samples that share a bubble, p div s, divide m or are not fewer.
FILLS_GROUPS = "(v == 1 or s >= p or m <= max(1, p//s) or m % max(1, p//s) == 0)"


def _svpps(condition: str, where: str, ratios: Ratios = EQUAL) -> Domain:
    """A scope of SVPP's schedules, with v and s."""
    return scope(condition, where, looked_at=FEW, ratios=ratios, v=V, s=S)


def _small(text: str, where: str, p: CaseValues, m: CaseValues, s: CaseValues) -> Domain:
    """Sizes at which all orders, or all tie-breaks, can be looked at."""
    return domain(text, p=p, m=m, v=(1, 2), s=s, tF=(1,), tB=(1,), where=f"{where} and m*v*s <= 8")


def _orders(text: str, p: int, m: CaseValues) -> Domain:
    return domain(
        f"p = {p}; n in {text}; v in 1 2; tF and tB in 1 2, every order",
        p=(p,), m=m, v=(1, 2), tF=(1, 2), tB=(1, 2),
    )  # fmt: skip


VPP_MANY = scope("p divides n", "m % p == 0", v=V)
WAVES_MANY, WAVES_FEW = scope("n >= p", "m >= p", v=V), scope("n < p", "m < p", v=V)
WAVES_DIVIDED = scope("p divides n", "m % p == 0", ranks=WAVE_RANKS, v=V)
WAVES_UP_TO_P = scope("n <= p", "m <= p", ranks=WAVE_RANKS, v=V)
_MANY = "p in 2 3; n <= 4, v in 1 2, s in 1 2 with n v s <= 8; tF:tB = 1:1; n >= p, "
_FEW = "p in 2 3 4; n <= 3, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB = 1:1; n < p, "
TIES_MANY, EVERY_MANY = (
    _small(_MANY + over, "m >= p", (2, 3), (1, 2, 3, 4), (1, 2))
    for over in ("all tie-breaks", "every order")
)
TIES_FEW, EVERY_FEW = (
    _small(_FEW + over, "m < p", (2, 3, 4), (1, 2, 3), (1, 2, 4))
    for over in ("all tie-breaks", "every order")
)
ORDERS = domain(
    "p in 2 3; n <= 4, v in 1 2, s in 1 2 4 with n v s <= 8; tF:tB in 1:1 1:2 2:1 2:3 3:2 3:5; "
    "v = 1, s >= p, n <= p div s, or p div s divides n; every order",
    p=(2, 3), m=range(1, 5), v=(1, 2), s=(1, 2, 4), tF_tB=RATIOS,
    where=f"m*v*s <= 8 and {FILLS_GROUPS}",
)  # fmt: skip

HANAYO_FEW = "(v*p + m-1 - m*v)/(v*p + m-1)"
VPP_BUBBLE, VPP_MEMORY = "(p-1)/(p-1 + m*v)", "1 + (p-1)/(p*v)"
SVPP_MANY = "(p-1)/(m*s*v + p-1)"
_IDLE = "(p-1 + (v-1)*max(p - s*m, 0))"
SVPP_FEW = f"{_IDLE}/({_IDLE} + m*v*s)"
SVPP_BUBBLE = f"{SVPP_MANY} if m >= p else {SVPP_FEW}"  # the column that n belongs to
SVPP_MEMORY = "(v*max(p, s) + min(p, s) - 1)/(v*s*p)"
LEAST_WITHIN_F = least_idle_ratio("svpp", room=lambda at: most_forwards(made("svpp", at).pipeline))


def better_of_both(at: Params) -> Fraction:
    """The idle ratio of section 4.3's generator, rescheduled by its best tie-break or not."""
    return min(least_over_ties(at), idle_ratio("svpp-filled")(at))


@lru_cache(maxsize=4096)  # numbers only
def _measured(p: int, m: int, v: int, forward: int, backward: int) -> Measures:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, num_chunks=v, placement="wave", forward=forward,
        backward=backward,
    )  # fmt: skip
    problem = pipeline.problem()
    return measure(problem, left_shift(problem, closed_form_order(pipeline)))


def measured(at: Params) -> Measures:
    """The measures of Hanayo's closed form."""
    return _measured(at["p"], at["m"], at["v"], at["tF"], at["tB"])


def makespan(at: Params) -> int:
    """The module's formula of Hanayo's time, for n <= p or p dividing n."""
    p, m, v, each = at["p"], at["m"], at["v"], at["tF"] + at["tB"]
    slots, turns = v * p + m - 1, m - 1
    if m > p:
        slots, turns = m * v + p - 1, (2 * m // p - 1) * (p - 1)
    return slots * each + (turns * abs(at["tB"] - at["tF"]) if v > 1 else 0)


def _row(
    name: str,
    statement: str,
    measured: NumberOf,
    predicted: NumberOf | str | int,
    cases: Domain,
    *,
    relation: str = "==",
    corrected: str | None = None,
    is_ours: bool = False,
) -> PaperClaim:
    """A cell of the table: a bubble ratio, or the activations of the fullest rank over A."""
    is_memory = ".memory" in name
    quantity = "peak activations of the fullest rank over A" if is_memory else "idle_ratio"
    source = "ours, for MEPipe Table 3" if is_ours else "Table 3"
    name = f"mepipe.table3.{name}"
    return stated(
        name, source, statement, quantity, measured, relation, predicted, cases, corrected
    )


def _plain(title: str, name: str, ratio: str, formula: str, cases: tuple[Domain, Domain],
           few: str = "n/p A") -> tuple[PaperClaim, ...]:  # fmt: skip
    """A row without chunks: one bubble ratio in both columns, and A or n/p A of memory."""
    family = "1f1b" if name == "dapple" else name
    many = few if name == "terapipe" else "A"
    return (
        *(_row(f"{name}.bubble-{column}", f"{title}'s bubble ratio is {ratio}.",
               idle_ratio(family), formula, each)
          for column, each in zip(("many", "few"), cases, strict=True)),
        *(_row(f"{name}.memory-{column}", f"{title} keeps {kept}.", peak_of_a(family),
               "1" if kept == "A" else "m/p", each)
          for column, kept, each in zip(("many", "few"), (many, few), cases, strict=True)),
    )  # fmt: skip


def _hanayo(column: str, text: str, formula: str, equal: Domain, every: Domain) -> PaperClaim:
    """Hanayo's bubble ratio: of its order at equal ticks, and of every order at any durations."""
    return read_as(
        f"mepipe.table3.hanayo.bubble-{column}", "Table 3", f"Hanayo's bubble ratio is {text}.",
        "idle_ratio", (
            reading("at equal ticks", "Table 3's figures draw them; section 5 assumes them, too",
                    idle_ratio("hanayo"), "==", formula, equal, [EQUAL_TICKS]),
            reading("some order on its placement, at any durations", "Table 3 by itself",
                    least_idle_ratio("hanayo"), "==", formula, every),
        ))  # fmt: skip


def _svpp(
    column: str, text: str, formula: str, every: Domain, ties: Domain, groups: Domain
) -> tuple[PaperClaim, PaperClaim]:
    """SVPP's bubble ratio: of the best order within f, of section 4.3's generator, and of ours."""
    return (
        read_as(
            f"mepipe.table3.svpp.bubble-{column}", "Table 3, section 4.3",
            f"SVPP has the bubble ratio {text}.", "idle_ratio", (
                reading("some order within f", "section 4.4: the version of the lowest bubble "
                        "ratio", LEAST_WITHIN_F, "==", formula, every, [EQUAL_TICKS]),
                reading("section 4.3's generator, rescheduled or not", "section 4.3: the schedule "
                        "can be further optimized by rescheduling", better_of_both, "==", formula,
                        ties, [EQUAL_TICKS]),
                reading("section 4.3's generator, always rescheduled", "section 4.3 by its last "
                        "step", least_over_ties, "==", formula, ties, [EQUAL_TICKS]),
            )),
        _row(f"svpp.bubble-{column}-reached", f"An order of the same f has the bubble ratio {text} "
             "where the samples that share a bubble come in full groups.", idle_ratio("svpp"),
             formula, groups, is_ours=True),
    )  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (
    *_plain("DAPPLE", "dapple", "(p-1)/(p-1+n)", "(p-1)/(p-1+m)",
            (scope("n >= p", "m >= p"), scope("n < p", "m < p"))),
    _row("vpp.bubble-many", "VPP's bubble ratio is (p-1)/(p-1+nv); VPP needs p to divide n.",
         idle_ratio("interleaved"), VPP_BUBBLE, VPP_MANY),
    _row("vpp.memory-many", "VPP keeps min(1 + (p-1)/(pv), n/(vp)) A.", peak_of_a("interleaved"),
         f"min({VPP_MEMORY}, m/(v*p))", VPP_MANY, corrected="table3.vpp.memory-corrected"),
    _row("vpp.memory-corrected",
         "VPP keeps min(1 + (p-1)/(pv), n/p) A: n samples on v of vp chunks are n/p A.",
         peak_of_a("interleaved"), f"min({VPP_MEMORY}, m/p)", VPP_MANY, is_ours=True),
    _hanayo("many", "(p-1)/(p-1+nv)", VPP_BUBBLE,
            scope("n >= p", "m >= p", ranks=((2, 3, 4), RANKS), v=V, ratios=EQUAL),
            _orders("2 3", 2, (2, 3))),
    _row("hanayo.memory-many", "Hanayo keeps A.", peak_of_a("hanayo"), 1, WAVES_MANY),
    _hanayo("few", "(vp+n-1-nv)/(vp+n-1)", HANAYO_FEW, scope("n < p", "m < p", v=V, ratios=EQUAL),
            _orders("1 2", 3, (1, 2))),
    _row("hanayo.memory-few", "Hanayo keeps n/p A.", peak_of_a("hanayo"), "m/p", WAVES_FEW),
    *_plain("TeraPipe", "terapipe", "(p-1)/(ns+p-1)", "(p-1)/(m*s + p-1)",
            (scope("n >= p", "m >= p", s=S), scope("n < p", "m < p", s=S))),
    *_svpp("many", "(p-1)/(nsv+p-1)", SVPP_MANY, EVERY_MANY, TIES_MANY,
           _svpps("n >= p; v = 1, s >= p, or p div s divides n", f"m >= p and {FILLS_GROUPS}")),
    *_svpp("few", "x/(x+nvs), x = p-1+(v-1)max(p-sn,0)", SVPP_FEW, EVERY_FEW, TIES_FEW,
           _svpps("n < p; v = 1, s >= p, n <= p div s, or p div s divides n",
                  f"m < p and {FILLS_GROUPS}")),
    _row("svpp.memory-many", "SVPP keeps (v max(p,s) + min(p,s) - 1)/(vsp) A.", peak_of_a("svpp"),
         SVPP_MEMORY, _svpps("n >= p", "m >= p", RATIOS)),
    _row("svpp.memory-few", "SVPP keeps min((v max(p,s) + min(p,s) - 1)/(vsp), n/p) A.",
         peak_of_a("svpp"), f"min({SVPP_MEMORY}, m/p)", _svpps("n < p", "m < p", RATIOS)),
    _row("svpp.bubble-least", "No order of ours with the same f idles less than Table 3 says, at "
         "any size and durations.", idle_ratio("svpp"), SVPP_BUBBLE,
         _svpps("every n", "True", RATIOS), relation=">=", is_ours=True),
    stated("mepipe.table3.svpp.bubble-durations", "Table 3",
           "At any durations some order within f has Table 3's bubble ratio, and none has less, "
           "where the samples that share a bubble come in full groups.",
           "least idle_ratio of any order", LEAST_WITHIN_F, "==", SVPP_BUBBLE, ORDERS),
    stated("mepipe.table3.hanayo.durations-divided", "ours, for MEPipe Table 3",
           "Where p divides n Hanayo takes (nv + p-1)(tF + tB) + (2n/p - 1)(p-1)|tB - tF| ticks, "
           "the last term for v >= 2.", "makespan (ticks)", lambda at: measured(at).makespan, "==",
           makespan, WAVES_DIVIDED),
    stated("mepipe.table3.hanayo.durations-few", "ours, for MEPipe Table 3",
           "With n <= p Hanayo takes (vp + n-1)(tF + tB) + (n-1)|tB - tF| ticks, the last term for "
           "v >= 2.", "makespan (ticks)", lambda at: measured(at).makespan, "==", makespan,
           WAVES_UP_TO_P),
)  # fmt: skip
