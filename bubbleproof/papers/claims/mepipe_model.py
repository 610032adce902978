"""MEPipe's numbers about models and machines, counted from the tensors and products of a Llama.

Symbols of a case: ``h`` hidden size, ``L`` layers (Table 4, two removed), ``ffn`` width of the
feed-forward, ``kv`` width of keys and values, all in elements; ``gpus`` devices, ``ms`` the
iteration time in milliseconds, ``tenths`` the printed TFLOPS times ten. Sequences have 4096 tokens,
the vocabulary 32000 words. ffn, kv and the vocabulary are those of the published Llama 2 7B and 13B
and Code Llama 34B; MEPipe prints h and L alone.

A product of an a x b weight costs 2ab operations per token forward and 4ab backward. Attention
scores and their use cost 2 * 2 * h per pair of tokens forward; a token has 4096 such pairs when the
whole square is computed, and half as many when the mask is used.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.4, 5, 7.6 and 9, Table 9.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation
from bubbleproof.papers.claims.field_schedules import constant, stated

SEQUENCE, VOCABULARY, BATCH = 4096, 32000, 128
LLAMAS = (
    {"h": 4096, "L": 30, "ffn": 11008, "kv": 4096},
    {"h": 5120, "L": 38, "ffn": 13824, "kv": 5120},
    {"h": 8192, "L": 46, "ffn": 22016, "kv": 1024},
)
# Table 9: devices, iteration times in ms and TFLOPS times ten, by model.
_RUNS = (
    (32, (3216, 6131, 16167), (2204, 2214, 2139)),
    (64, (3171, 5852, 17043), (1117, 1160, 1015)),
)
TABLE_9 = Domain(
    text="Llama 7B, 13B and 34B on 32 A100 and on 64 RTX 4090, global batch size 128",
    points=tuple(
        {**model, "gpus": gpus, "ms": ms, "tenths": tenths}
        for gpus, times, rates in _RUNS
        for model, ms, tenths in zip(LLAMAS, times, rates, strict=True)
    ),
)
PAIRS = Domain(
    text="Llama 7B, 13B and 34B, iteration times of Table 9 in ms",
    points=tuple(
        {"A100": slow, "RTX": fast} for slow, fast in zip(_RUNS[0][1], _RUNS[1][1], strict=True)
    ),
)
BEST = Domain(text="Llama 13B on 64 RTX 4090", points=(TABLE_9.points[4],))
SMALLEST = Domain(text="Llama 7B", points=LLAMAS[:1])
LARGER = Domain(text="Llama 13B and 34B", points=LLAMAS[1:])
PEAK_4090 = 330  # TFLOPS, Table 9
SERVER_PRICES = {"A100": 150_000, "RTX": 30_000}  # dollars, Table 9
SERVERS = {"A100": 4, "RTX": 8}


def linear(at: Params) -> int:
    """Operations per token and step in the weights' products; the input embedding has none."""
    attention = 2 * at["h"] * at["h"] + 2 * at["h"] * at["kv"]
    weights = at["L"] * (attention + 3 * at["h"] * at["ffn"]) + VOCABULARY * at["h"]
    return 6 * weights


def scores(at: Params, *, is_masked: bool) -> int:
    """Operations per token and step in the attention scores and their product with the values."""
    pairs = SEQUENCE // 2 if is_masked else SEQUENCE
    return 3 * at["L"] * 4 * at["h"] * pairs


def teraflops(at: Params) -> Fraction:
    """TFLOPS per device, the whole square of the scores counted."""
    tokens = BATCH * SEQUENCE
    done = tokens * (linear(at) + scores(at, is_masked=False))
    return Fraction(done * 1000, at["gpus"] * at["ms"] * 10**12)


def share(at: Params, *, is_masked: bool) -> Fraction:
    """The scores' share of all operations."""
    part = scores(at, is_masked=is_masked)
    return Fraction(part, part + linear(at))


def cost_ratio(at: Params) -> Fraction:
    """Dollars times seconds of the A100 cluster over those of the RTX 4090 cluster."""
    spent = {name: SERVERS[name] * SERVER_PRICES[name] * at[name] for name in SERVERS}
    return Fraction(spent["A100"], spent["RTX"])


def years_to_parity(at: Params) -> Fraction:
    """When the power of ``cards`` RTX 4090 per A100 has cost what the A100 cost more.

    Watts, cents per kilowatt-hour, dollars per server of eight; a year has 8760 hours.
    """
    price = Fraction(SERVER_PRICES["A100"] - at["cards"] * SERVER_PRICES["RTX"], 8)
    dollars_per_hour = Fraction((at["cards"] * at["RTX"] - at["A100"]) * at["cents"], 100 * 1000)
    return price / dollars_per_hour / 8760


POWER = Domain(
    text="2 RTX 4090 of 450 W for an A100 of 400 W, 10 cents per kilowatt-hour, Table 9's prices",
    points=({"cards": 2, "RTX": 450, "A100": 400, "cents": 10},),
)

_FLOPS: tuple[Claim, ...] = (
    stated(
        "mepipe.table9.tflops",
        "MEPipe Table 9",
        "The six TFLOPS figures follow from the models and the iteration times.",
        "TFLOPS per device, to one decimal",
        TABLE_9,
        lambda at: Fraction(at["tenths"], 10),
        teraflops,
        relation=Relation.ABOUT,
        places=1,
    ),
    stated(
        "mepipe.section-1.mfu",
        "MEPipe section 1",
        "Llama 13B reaches 35% of an RTX 4090's peak.",
        "share of the peak, to two decimals",
        BEST,
        constant(Fraction(35, 100)),
        lambda at: teraflops(at) / PEAK_4090,
        relation=Relation.ABOUT,
        places=2,
    ),
    stated(
        "mepipe.section-4.4.scores",
        "MEPipe sections 4.4 and 5",
        "Attention scores are less than 10% of a 7B model's computation at 4096 tokens, counted as "
        "Table 9 counts them.",
        "share of all operations",
        SMALLEST,
        constant(Fraction(1, 10)),
        lambda at: share(at, is_masked=False),
        relation=Relation.AT_MOST,
        corrected="mepipe.section-4.4.scores-masked",
    ),
    stated(
        "mepipe.section-4.4.scores-masked",
        "MEPipe sections 4.4 and 5",
        "They are less than 10% when only the pairs under the causal mask are computed.",
        "share of all operations",
        SMALLEST,
        constant(Fraction(1, 10)),
        lambda at: share(at, is_masked=True),
        relation=Relation.AT_MOST,
        slack="a round number; it is 7.5%",
    ),
    stated(
        "mepipe.section-4.4.scores-larger",
        "MEPipe section 4.4",
        "The share is smaller for larger models.",
        "share of all operations",
        LARGER,
        constant(share(LLAMAS[0], is_masked=True)),
        lambda at: share(at, is_masked=True),
        relation=Relation.AT_MOST,
        slack="each is smaller",
    ),
)

_COSTS: tuple[Claim, ...] = (
    stated(
        "mepipe.section-7.6.cost",
        "MEPipe abstract and section 7.6",
        "For each model the RTX 4090 cluster is 2.5 times as cost-effective.",
        "price times time over price times time",
        PAIRS,
        constant(Fraction(5, 2)),
        cost_ratio,
        relation=Relation.AT_LEAST,
        corrected="mepipe.section-7.6.cost-corrected",
    ),
    stated(
        "mepipe.section-7.6.cost-corrected",
        "ours, for MEPipe Table 9",
        "It is at least 2.37 times as cost-effective, the least for 34B.",
        "price times time over price times time",
        PAIRS,
        constant(Fraction(237, 100)),
        cost_ratio,
        relation=Relation.AT_LEAST,
        slack="rounded down",
    ),
    stated(
        "mepipe.section-9.years",
        "MEPipe section 9",
        "After about 24 years the power bill has made up for the A100's price.",
        "years, to the whole year",
        POWER,
        constant(Fraction(24)),
        years_to_parity,
        relation=Relation.ABOUT,
        corrected="mepipe.section-9.years-corrected",
    ),
    stated(
        "mepipe.section-9.years-corrected",
        "ours, for MEPipe section 9",
        "By the section's own prices and watts it takes 26 years.",
        "years, to the whole year",
        POWER,
        constant(Fraction(26)),
        years_to_parity,
        relation=Relation.ABOUT,
    ),
)

CLAIMS: tuple[Claim, ...] = (*_FLOPS, *_COSTS)
