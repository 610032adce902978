"""MEPipe's evaluation: the bubble ratios of Tables 6 and 7, stage limits, speedups, recomputation.

Symbols of a case: p stages, ``d`` data-parallel replicas, ``c`` context-parallel size, ``batch``
the global batch size, ``mille`` the printed bubble ratio in thousandths. A replica runs batch/d
microbatches. Iteration times were measured on machines; claims on them name what is missing.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.theory.claims.claim import Claim, Domain, Params, Relation, Value
from bubbleproof.theory.claims.field_schedules import constant, idle_ratio, stated
from bubbleproof.theory.claims.mepipe_schedules import recomputed_work

_COLUMNS = ("p", "d", "c", "batch", "mille")


def _rows(text: str, *rows: tuple[int, ...]) -> Domain:
    return Domain(text=text, points=tuple(dict(zip(_COLUMNS, row, strict=True)) for row in rows))


TABLE_6 = _rows("the rows of Table 6", (2, 4, 8, 64, 111), (4, 4, 4, 64, 150), (8, 4, 2, 64, 180))
TABLE_6_ENDS = _rows(
    "the first and the last row of Table 6", *(tuple(row.values()) for row in TABLE_6.points[::2])
)
TABLE_7 = _rows("the rows of Table 7", (8, 8, 1, 32, 636), (8, 4, 2, 32, 467), (8, 2, 4, 32, 304))
STEP = Domain(text="p from 4 to 8 at n = 64/4", points=({"p": 8, "m": 16},))
STEPS = Domain(
    text="p of 4, 8, 16 at n = 64/4", points=tuple({"p": p, "m": 16} for p in (4, 8, 16))
)
LLAMA_13B = Domain(text="40 layers on 64 devices", points=({"layers": 40, "gpus": 64},))
LLAMA_34B = Domain(text="48 layers on 64 devices", points=({"layers": 48, "gpus": 64},))
SPEEDUPS = Domain(
    text="section 7.2's speedups in hundredths, by global batch size",
    points=(
        {"batch": 128, "speedup": 136},
        {"batch": 64, "speedup": 149},
        {"batch": 32, "speedup": 186},
    ),
)
RECOMPUTED = Domain(
    text="p of 1, 2, 4, 8, n of 1, 4, 8, tB = 2tF",
    points=tuple({"p": p, "m": m, "tF": 1, "tB": 2} for p in (1, 2, 4, 8) for m in (1, 4, 8)),
)
MEASURED = Domain(text="one measurement", points=())


def printed(at: Params) -> Fraction:
    """The table's ratio."""
    return Fraction(at["mille"], 1000)


def dapple(divisor: str) -> Value:
    """DAPPLE's idle ratio with as many microbatches as the batch holds multiples of ``divisor``."""
    return lambda at: idle_ratio("1f1b")({"p": at["p"], "m": at["batch"] // at[divisor]})


def increment(at: Params) -> Fraction:
    """What doubling the stages to p adds to DAPPLE's idle ratio."""
    return idle_ratio("1f1b")(at) - idle_ratio("1f1b")({**at, "p": at["p"] // 2})


def _even_cuts(at: Params) -> list[tuple[int, int]]:
    """(stages, 2 or more chunks per stage) that cut the layers evenly; the stages divide gpus."""
    layers, gpus = at["layers"], at["gpus"]
    return [
        (p, v)
        for p in range(1, gpus + 1)
        for v in range(2, layers + 1)
        if gpus % p == 0 and layers % (p * v) == 0
    ]


def most_stages(at: Params) -> Fraction:
    """The most stages of an even cut with two or more chunks each."""
    return Fraction(max(p for p, _ in _even_cuts(at)))


def most_stages_in_pairs(at: Params) -> Fraction:
    """The most stages of an even cut with two chunks each."""
    return Fraction(max(p for p, v in _even_cuts(at) if v == 2))


def most_chunks(at: Params) -> Fraction:
    """The most chunks of an even cut."""
    return Fraction(max(p * v for p, v in _even_cuts(at)))


def _missing(name: str, source: str, statement: str, missing: str) -> Claim:
    return Claim(
        id=f"mepipe.{name}",
        paper="mepipe",
        source=f"MEPipe {source}",
        statement=statement,
        quantity="measured on machines",
        relation=Relation.ABOUT,
        domain=MEASURED,
        missing=missing,
    )


_BUBBLES: tuple[Claim, ...] = (
    stated(
        "mepipe.table6.bubble",
        "MEPipe Table 6",
        "DAPPLE's bubble ratios at batch size 64 are 11.1%, 15% and 18%.",
        "idle_ratio, to two decimals",
        TABLE_6,
        printed,
        dapple("d"),
        relation=Relation.ABOUT,
        corrected="mepipe.table6.bubble-corrected",
        places=2,
    ),
    stated(
        "mepipe.table6.bubble-corrected",
        "ours, for MEPipe Table 6",
        "With n = 64/4 in every row they are 1/17, 3/19 and 7/23: 5.9%, 15.8% and 30.4%.",
        "idle_ratio",
        TABLE_6,
        lambda at: Fraction(at["p"] - 1, at["p"] - 1 + 16),
        dapple("d"),
    ),
    stated(
        "mepipe.table6.context-parallel",
        "ours, for MEPipe Table 6",
        "The printed 11.1% and 18% are those of n = 64/CP, the batch divided by the wrong column "
        "(the middle row, 15.8%, is printed as 15%).",
        "idle_ratio, to two decimals",
        TABLE_6_ENDS,
        printed,
        dapple("c"),
        relation=Relation.ABOUT,
        places=2,
    ),
    stated(
        "mepipe.table7.bubble",
        "MEPipe Table 7",
        "DAPPLE's bubble ratios at batch size 32 are 63.6%, 46.7% and 30.4%.",
        "idle_ratio, to three decimals",
        TABLE_7,
        printed,
        dapple("d"),
        relation=Relation.ABOUT,
        places=3,
    ),
    stated(
        "mepipe.section-7.3.increment",
        "MEPipe section 7.3, on Table 6",
        "Each doubling of the stages adds less to the bubble ratio than the one before.",
        "difference of idle ratios",
        STEP,
        lambda at: increment({**at, "p": at["p"] // 2}),
        increment,
        relation=Relation.AT_MOST,
        corrected="mepipe.section-7.3.increment-corrected",
    ),
    stated(
        "mepipe.section-7.3.increment-corrected",
        "ours, for MEPipe section 7.3",
        "With n = 16 each doubling up to 16 stages adds more than the one before.",
        "difference of idle ratios",
        STEPS,
        lambda at: increment({**at, "p": at["p"] // 2}),
        increment,
        relation=Relation.AT_LEAST,
    ),
    stated(
        "mepipe.section-7.3.recomputation",
        "MEPipe section 7.3",
        "Full recomputation costs 33% more computation.",
        "extra work over work, to two decimals",
        RECOMPUTED,
        constant(Fraction(33, 100)),
        recomputed_work,
        relation=Relation.ABOUT,
        places=2,
    ),
)

_CUTS: tuple[Claim, ...] = tuple(
    claim
    for where, model, domain, stages in (
        ("7.2", "Llama 13B with 40 layers", LLAMA_13B, 4),
        ("7.4", "Llama 34B with 48 layers", LLAMA_34B, 8),
    )
    for claim in (
        stated(
            f"mepipe.section-{where}.vpp-stages",
            f"MEPipe section {where}",
            f"VPP cuts {model} evenly into at most {stages} stages.",
            "stages",
            domain,
            constant(Fraction(stages)),
            most_stages,
            corrected=f"mepipe.section-{where}.two-chunks",
        ),
        stated(
            f"mepipe.section-{where}.two-chunks",
            f"ours, for MEPipe section {where}",
            f"With two chunks per stage, as ZBV has, {model} allows at most {stages} stages; "
            "VPP may have more chunks and more stages.",
            "stages",
            domain,
            constant(Fraction(stages)),
            most_stages_in_pairs,
        ),
    )
)

CLAIMS: tuple[Claim, ...] = (
    *_BUBBLES,
    *_CUTS,
    stated(
        "mepipe.section-7.3.chunks",
        "MEPipe section 7.3",
        "Llama 13B with 40 layers has at most 8 chunks.",
        "chunks",
        LLAMA_13B,
        constant(Fraction(8)),
        most_chunks,
        corrected="mepipe.section-7.3.chunks-corrected",
    ),
    stated(
        "mepipe.section-7.3.chunks-corrected",
        "ours, for MEPipe section 7.3",
        "8 stages of 5 chunks cut it into 40 of one layer each.",
        "chunks",
        LLAMA_13B,
        constant(Fraction(40)),
        most_chunks,
    ),
    stated(
        "mepipe.abstract.speedup",
        "MEPipe abstract and section 10",
        "The speedups go up to 1.68, here held against those that section 7.2 reports.",
        "speedup",
        SPEEDUPS,
        constant(Fraction(168, 100)),
        lambda at: Fraction(at["speedup"], 100),
        relation=Relation.AT_MOST,
        corrected="mepipe.section-1.speedup",
    ),
    stated(
        "mepipe.section-1.speedup",
        "MEPipe section 1",
        "The speedups go up to 1.86.",
        "speedup",
        SPEEDUPS,
        constant(Fraction(186, 100)),
        lambda at: Fraction(at["speedup"], 100),
        relation=Relation.AT_MOST,
    ),
    _missing(
        "table6.time",
        "Tables 6 and 7",
        "The iteration times of DAPPLE by pipeline and context-parallel size.",
        "the durations of a forward and a backward on one device, and of its communication",
    ),
    _missing(
        "section-7.5.gain",
        "section 7.5, Figures 11 and 12",
        "Fine-grained weight gradients make a step 9.4% faster.",
        "the durations of F, I and of each GEMM of W by slice; the figures have no axis values",
    ),
    _missing(
        "section-7.3.slices",
        "section 7.3, Figure 9",
        "Eight slices slow a Llama 13B layer by 12.6%.",
        "the kernel times of Figure 9",
    ),
    _missing(
        "section-7.4.left",
        "section 7.4",
        "About 5 GB are left for activations with 16 stages of Llama 34B.",
        "the temporary memory and what the framework reserves: 24 - 34*4/16 - 6.375 is 9.125 GB",
    ),
)
