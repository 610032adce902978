"""What the optimality page knows from elsewhere: authors' own makespans, and named reasons.

Durations are those of the page: 1 (F), 2 (B) or 1, 1, 1 (F, I, W) per action.

A reason says why a family is longer than the optimum under its own memory. Each has a check that
must hold of the schedule at hand; where it does not, the row has no reason and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bubbleproof.papers.tpipe.tpipe_formulas import printed_trecomp_makespan, tpipe_makespan
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.families import member
from bubbleproof.theory.families.svpp import most_forwards
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline

MEPIPE, TPIPE = "MEPipe Table 3", "T-Pipe Appendix A"
# sail-sg/zero-bubble-pipeline-parallelism, zbv_greedy.py at 39f2c18, run at
# unit ticks: makespan by p and m.
GENERATOR = "the authors' zbv_greedy.py"
GENERATED: dict[str, dict[int, dict[int, int]]] = {
    "v-half": {
        2: {1: 10, 2: 15, 3: 19, 4: 25, 5: 31, 6: 37},
        3: {1: 14, 2: 19, 3: 23, 4: 29, 5: 35, 6: 41, 7: 47, 8: 53, 9: 59},
        4: {1: 18, 2: 22, 3: 27, 4: 34, 5: 38, 6: 41, 7: 47, 8: 53, 9: 59, 10: 65, 11: 71, 12: 77},
        6: {1: 26, 5: 47, 6: 48, 7: 56, 12: 83, 18: 119},
        8: {1: 34, 7: 59, 8: 65, 9: 71, 16: 113, 24: 161},
    },
    "v-min": {
        2: {1: 9, 2: 15, 3: 21, 4: 27, 5: 33, 6: 39},
        3: {1: 13, 2: 19, 3: 26, 4: 29, 5: 35, 6: 41, 7: 47, 8: 53, 9: 59},
        4: {1: 17, 2: 23, 3: 29, 4: 35, 5: 41, 6: 47, 7: 53, 8: 59, 9: 65, 10: 71, 11: 77, 12: 83},
        6: {1: 25, 5: 49, 6: 53, 7: 59, 12: 89, 18: 125},
        8: {1: 33, 7: 69, 8: 75, 9: 81, 16: 123, 24: 171},
    },
}


def authors(family: str, p: int, m: int, v: int, s: int) -> tuple[int, str] | None:
    """(makespan, source) as the authors state or generate it, where it is known."""
    if family in GENERATED:
        known = GENERATED[family].get(p, {}).get(m)
        return None if known is None else (known, GENERATOR)
    slots = {
        "gpipe": (m + p - 1, "GPipe section 2.3"),
        "1f1b": (m + p - 1, "Megatron-LM section 2.2"),
        "interleaved": (m * v + p - 1 if m % p == 0 else None, "Megatron-LM section 2.2"),
        "bfs": (m * v + p - 1 if m >= p else None, "Breadth-First section 4"),
        "terapipe": (m * s + p - 1, MEPIPE),
        "seq1f1b": (m * s * v + p - 1, "Seq1F1B Figure 1"),
        "slimpipe": (m * s * v + p - 1, "SlimPipe's code"),
        "hanayo": (m * v + p - 1 if m >= p else v * p + m - 1, MEPIPE),
        "svpp": (m * v * s + p - 1 + (v - 1) * max(p - s * m, 0), MEPIPE),
    }
    ticks = {
        "tpipe": (tpipe_makespan(p, m), TPIPE),
        "toffload": (tpipe_makespan(p, m), TPIPE),
        "trecomp": (printed_trecomp_makespan(p, m), "T-Pipe Appendix C"),
        "dualpipe": (3 * m + p - 2, "DualPipe's README"),
        "dualpipev": (6 * m + 2 * (p - 1), "DualPipe's README"),
    }
    count, source = slots.get(family, (None, ""))
    return (3 * count, source) if count is not None else ticks.get(family)


class Reason(NamedTuple):
    """Why a family is longer than it could be, and what must be true for that to be why."""

    text: str
    holds: Callable[[dict[str, int], int], bool]  # (parameters, makespan)


def _equal_ticks(name: str, at: dict[str, int]) -> tuple[Pipeline, int]:
    """The family's pipeline and makespan at tF = tB = 1."""
    found = member(name, **at, tF=1, tB=1)
    return found.pipeline, measure(found.problem, found.schedule).makespan


def _is_table_3(at: dict[str, int], _: int) -> bool:
    p, m, v = at["p"], at["m"], at["v"]
    return _equal_ticks("hanayo", at)[1] == 2 * (m * v + p - 1 if m >= p else v * p + m - 1)


def _joins_units(at: dict[str, int], _: int) -> bool:
    """At tF = tB no longer than with the last unit full: 2 ticks a microbatch, p-2 in all."""
    units = -(-at["m"] // at["p"])
    return _equal_ticks("chimera", at)[1] <= 2 * units * at["p"] + at["p"] - 2


def _is_least_at_equal_ticks(at: dict[str, int], _: int) -> bool:
    pipeline, ours = _equal_ticks("svpp", at)
    return 100 * ours <= 103 * lower_bounds(pipeline.problem()).best.bound


def _is_the_authors(name: str) -> Callable[[dict[str, int], int], bool]:
    def holds(at: dict[str, int], makespan: int) -> bool:
        known = authors(name, at["p"], at["m"], 2, 1)
        return known is not None and makespan == known[0]

    return holds


def _has_few(at: dict[str, int], _: int) -> bool:
    return at["m"] < 2 * at["p"] - 1


def _is_tpipes(at: dict[str, int], makespan: int) -> bool:
    return makespan == tpipe_makespan(at["p"], at["m"])


def _fills_waits(at: dict[str, int], _: int) -> bool:
    found = member("svpp-w", **at)
    peak = max(measure(found.problem, found.schedule).peak_activations)
    return peak <= most_forwards(found.pipeline)


def _has_interleaveds_order(at: dict[str, int], _: int) -> bool:
    p = at["p"]
    ours = member("trecomp-interleaved", **at).schedule.program.orders(p)
    plain = member("interleaved", p=p, m=at["m"]).schedule.program.orders(p)
    return [[a for a in order if a.kind.name != "R"] for order in ours] == plain


REASONS: dict[str, Reason] = {
    "tpipe": Reason(
        "T-Pipe Appendix A fixes every start by rounds of 6 units: 6(m+p-1) ticks at any m",
        _is_tpipes,
    ),
    "toffload": Reason(
        "the computations are T-Pipe's, whose Appendix A fixes them: 6(m+p-1) ticks at any m",
        _is_tpipes,
    ),
    "trecomp": Reason(
        "T-Pipe Appendix C fixes rounds of 7 units: at most 6p + 7(m-1) ticks",
        lambda at, makespan: makespan <= printed_trecomp_makespan(at["p"], at["m"]),
    ),
    "hanayo": Reason(
        "waves 2 ticks apart, which take Table 3's time at tF = tB; the page has tB = 2 tF",
        _is_table_3,
    ),
    "chimera": Reason(
        "Chimera section 3 joins units of p microbatches directly, without a gap at tF = tB; the "
        "page has tB = 2 tF, and a last unit may be cut short",
        _joins_units,
    ),
    "zb-h2": Reason("the paper's counts are those of m >= 2p-1 microbatches, cut short", _has_few),
    "zb-v": Reason("PyTorch's phases are those of m >= 2p-1 microbatches, cut short", _has_few),
    "v-half": Reason("the authors' generator orders it so", _is_the_authors("v-half")),
    "v-min": Reason("the authors' generator orders it so", _is_the_authors("v-min")),
    "svpp": Reason(
        "MEPipe section 4.3 orders ticks of one length: within 3 % of the least at tF = tB; "
        "the page has tB = 2 tF",
        _is_least_at_equal_ticks,
    ),
    "svpp-w": Reason(
        "MEPipe section 5 keeps the order of F and I and fills waits with W, oldest first, "
        "within Table 3's units",
        _fills_waits,
    ),
    "trecomp-interleaved": Reason(
        "Megatron's order with each R right before its backward (T-Pipe section 4.2)",
        _has_interleaveds_order,
    ),
    "forward": Reason(
        "Megatron-LM's groups of p microbatches, chunk by chunk; the last is not full",
        lambda at, _: at["m"] % at["p"] > 0,
    ),
}
