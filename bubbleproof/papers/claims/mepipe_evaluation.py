"""MEPipe's evaluation beside its tables of bubbles: stage limits, speedups, measured numbers.

Iteration times were measured on machines; claims on them name what is missing.

Source: Sun et al., "MEPipe" (EuroSys 2025) section 7.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation
from bubbleproof.papers.claims.field_schedules import constant, stated

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
MEASURED = Domain(text="one measurement", points=())


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
