"""MEPipe's numbers about models and machines: static memory, FLOPS, costs.

Symbols of a case: ``params`` parameters of the model (in any unit), p stages, ``d`` replicas; ``h``
hidden size, ``L`` layers (Table 4, two removed), ``ffn`` width of the feed-forward, ``kv`` width of
keys and values, all in elements; ``gpus`` devices, ``ms`` the iteration time in milliseconds,
``tenths`` the printed TFLOPS times ten. Sequences have 4096 tokens, the vocabulary 32000 words.
ffn, kv and the vocabulary are those of the published Llama 2 7B and 13B and Code Llama 34B; MEPipe
prints h and L alone.

A product of an a x b weight costs 2ab operations per token forward and 4ab backward. Attention
scores and their use cost 2 * 2 * h per pair of tokens forward; a token has 4096 such pairs when the
whole square is computed, and half as many when the mask is used.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.4, 4.5, 5, 7.4, 7.6 and 9, Table 9.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.reading import ABOUT


def static_bytes(at: Params, *, master: int = 0) -> Fraction:
    """Bytes of a device: weights and gradients of its stage, Adam's moments (and master weights).

    ``params`` of the model are cut over p stages; the optimizer is also cut over d replicas.
    """
    stage = Fraction(at["params"], at["p"])
    return stage * (2 + 2) + stage / at["d"] * (4 + 4 + master)


def optimizer_bytes(at: Params, *, master: int) -> Fraction:
    """The optimizer's part of ``static_bytes``."""
    return static_bytes(at, master=master) - Fraction(at["params"], at["p"]) * 4


MEMORY = domain(
    "7, 13 and 34 units of parameters, 2 <= p <= 16, d <= 8",
    params=(7, 13, 34),
    p=range(2, 17),
    d=range(1, 9),
)
ON_64 = case("34 G parameters, p d = 64", params=34, p=16, d=4)
ON_8 = case("34 G parameters, p = 8, d = 8", params=34, p=8, d=8)


# GB that section 7.4 counts as taken besides: about 5 are left of 24 - 34*4/16 - 6.375.
TEMPORARY = 24 - Fraction(34 * 4, 16) - Fraction("6.375") - 5

SEQUENCE, VOCABULARY, BATCH = 4096, 32000, 128
# h, L, ffn, kv of Llama 7B, 13B and 34B.
ROWS = ((4096, 30, 11008, 4096), (5120, 38, 13824, 5120), (8192, 46, 22016, 1024))
LLAMAS = tuple(dict(zip(("h", "L", "ffn", "kv"), row, strict=True)) for row in ROWS)
# Table 9: devices, iteration times in ms and TFLOPS times ten, by model.
_RUNS = (
    (32, (3216, 6131, 16167), (2204, 2214, 2139)),
    (64, (3171, 5852, 17043), (1117, 1160, 1015)),
)
_CELLS = [
    (*row, gpus, ms, tenths)
    for gpus, times, rates in _RUNS
    for row, ms, tenths in zip(ROWS, times, rates, strict=True)
]
TABLE_9 = domain(
    "Llama 7B, 13B and 34B on 32 A100 and on 64 RTX 4090, global batch size 128",
    h_L_ffn_kv_gpus_ms_tenths=_CELLS,
)
PAIRS = domain(
    "Llama 7B, 13B and 34B, iteration times of Table 9 in ms",
    A100_RTX=zip(_RUNS[0][1], _RUNS[1][1], strict=True),
)
PAIR_13B = domain("Llama 13B, iteration times of Table 9 in ms", A100_RTX=((6131, 5852),))
THREE = case("Llama 7B, 13B and 34B together, iteration times of Table 9", models=3)
BEST = domain("Llama 13B on 64 RTX 4090", h_L_ffn_kv_gpus_ms_tenths=_CELLS[4:5])
SMALLEST = domain("Llama 7B", h_L_ffn_kv=ROWS[:1])
LARGER = domain("Llama 13B and 34B", h_L_ffn_kv=ROWS[1:])
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


def mean_cost_ratio(_: Params) -> Fraction:
    """The mean of the models' cost ratios."""
    return sum(map(cost_ratio, PAIRS.points), Fraction(0)) / len(PAIRS.points)


def years_to_parity(at: Params) -> Fraction:
    """When the power of ``cards`` RTX 4090 per A100 has cost what the A100 cost more.

    Watts, cents per kilowatt-hour, dollars per server of eight; a year has 8760 hours.
    """
    price = Fraction(SERVER_PRICES["A100"] - at["cards"] * SERVER_PRICES["RTX"], 8)
    dollars_per_hour = Fraction((at["cards"] * at["RTX"] - at["A100"]) * at["cents"], 100 * 1000)
    return price / dollars_per_hour / 8760


POWER = case(
    "2 RTX 4090 of 450 W for an A100 of 400 W, 10 cents per kilowatt-hour, Table 9's prices",
    cards=2,
    RTX=450,
    A100=400,
    cents=10,
)

_FLOPS: tuple[PaperClaim, ...] = (
    stated("mepipe.table9.tflops", "Table 9",
           "The six TFLOPS figures follow from the models and the iteration times.",
           "TFLOPS per device, to one decimal", teraflops, "~1", "tenths/10", TABLE_9),
    stated("mepipe.section-1.mfu", "section 1", "Llama 13B reaches 35% of an RTX 4090's peak.",
           "share of the peak, to two decimals", lambda at: teraflops(at) / PEAK_4090, "~2", "0.35",
           BEST),
    read_as("mepipe.section-4.4.scores", "sections 4.4 and 5",
            "Attention scores are less than 10% of a 7B model's computation at 4096 tokens.",
            "share of all operations", (
                reading("the pairs under the causal mask", "section 2.1: tokens depend on their "
                        "preceding ones alone", lambda at: share(at, is_masked=True), "<=", "0.1",
                        SMALLEST, slack="a round number; it is 7.5%"),
                reading("the whole square", "Table 9: its TFLOPS count it so",
                        lambda at: share(at, is_masked=False), "<=", "0.1", SMALLEST),
            )),
    stated("mepipe.section-4.4.scores-larger", "section 4.4",
           "The share is smaller for larger models.", "share of all operations",
           lambda at: share(at, is_masked=True), "<=", share(LLAMAS[0], is_masked=True), LARGER,
           slack="each is smaller"),
)  # fmt: skip

_COSTS: tuple[PaperClaim, ...] = (
    read_as("mepipe.section-7.6.cost", "abstract and section 7.6",
            "The RTX 4090 cluster is 2.5 times as cost-effective as the A100 cluster.",
            "price times time over price times time", (
                reading("on average over the three models", "section 7.6 and Table 9: one figure "
                        "for all of them", mean_cost_ratio, "~1", "2.5", THREE),
                reading("for Llama 13B", "abstract: told of training it",
                        cost_ratio, ">=", "2.5", PAIR_13B,
                        slack="a round number; it is 2.62"),
                reading("for each model", "of no sentence", cost_ratio, ">=", "2.5", PAIRS,
                        is_contrast=True),
            )),
    read_as("mepipe.section-9.years", "section 9",
            "After approximately 24 years the power bill has made up for the A100's price.",
            "years", (
                reading("within a tenth", 'section 9: "approximately"',
                        lambda at: abs(years_to_parity(at) / 24 - 1), "<=", "0.1", POWER, [ABOUT],
                        slack="it is 25.7 years, 7% more"),
                reading("to the whole year", "section 9: the number by itself", years_to_parity,
                        "~0", 24, POWER),
            )),
    stated("mepipe.section-9.years-exact", "ours, for MEPipe section 9",
           "By the section's own prices and watts it takes 25.7 years.", "years, to a tenth",
           years_to_parity, "~1", "25.7", POWER),
)  # fmt: skip


_MEMORY = (
    stated("mepipe.section-4.5.static", "section 4.5",
           "Static memory is 4m/p + 8m/(dp): weights and gradients in 16 bits, two moments in 32.",
           "bytes per device, in units of parameters", static_bytes, "==",
           "4*params/p + 8*params/(d*p)", MEMORY),
    read_as("mepipe.section-7.4.optimizer", "sections 4.5 and 7.4",
            "The mixed-precision optimizer takes about 6.375 GB of each of 64 devices for Llama "
            "34B.", "GB", (
                reading("with a 32-bit copy of the weights", "section 4.5: copies in FP32 that "
                        "Megatron keeps are static, too",
                        lambda at: optimizer_bytes(at, master=4), "==", "6.375", ON_64),
                reading("Adam's moments alone", "section 4.5: 8m/(dp)",
                        lambda at: optimizer_bytes(at, master=0), "==", "6.375", ON_64),
            )),
    read_as("mepipe.section-7.4.exceeds", "section 7.4",
            "With 8 stages the static memory of Llama 34B exceeds 24 GB.", "GB", (
                reading("temporary memory counted", "section 4.5: its size is regarded as static; "
                        "section 7.4 leaves about 5 of 9.125 GB at 16 stages",
                        lambda at: static_bytes(at, master=4) + TEMPORARY, ">=", 24, ON_8,
                        slack="it is 27.5 GB"),
                reading("weights, gradients and optimizer", "section 7.4: the terms it names",
                        lambda at: static_bytes(at, master=4), ">=", 24, ON_8),
            )),
)  # fmt: skip


CLAIMS: tuple[PaperClaim, ...] = (*_MEMORY, *_FLOPS, *_COSTS)
