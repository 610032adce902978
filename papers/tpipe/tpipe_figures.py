"""T-Pipe's claims of sections 5 and 6: gigabytes, depths, and comparisons with other schedules.

Bytes are those of ``tpipe_memory``, peaks those of built schedules. "More memory efficient" is read
as: so much less of activations and model state on the fullest GPU.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.papers.claims.claim import PaperClaim, missing, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.measured_pipelines import measures
from bubbleproof.papers.claims.reading import ABOUT, Exact, Premise
from bubbleproof.papers.tpipe import tpipe_memory as held
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_recompute import half_recomputed_makespan, half_recomputed_peak
from bubbleproof.papers.tpipe.tpipe_schedules import (
    INTERLEAVED,
    PLAIN,
    TPIPE,
    TRECOMP,
    TRECOMP_INTERLEAVED,
)

EIGHT = case(
    "48 layers on (PP, TP) = (8, 8), 64 microbatches of 2 (Figure 8)", p=8, m=64, layers=48
)
FOUR = case("p = 4, m = 32", p=4, m=32)
TENTHS = range(292, 317)
ROOM = Premise(
    text="0.4 to 2.8 of a GPU's 32 GiB hold what nothing here counts", cases="292 <= tenths <= 316"
)
ROOMS = domain("29.2 to 31.6 of 32 GiB for activations and state, in tenths", tenths=TENTHS)
DEPTHS = domain(
    "the five systems of Figure 8(b); 29.2 to 31.6 of 32 GiB for activations and state, in tenths",
    system_layers=((0, 40), (1, 64), (2, 48), (3, 80), (4, 96)),
    tenths=TENTHS,
)
BATCH_32 = case("p = 8, m = 32 (Figure 10's global batch 32, microbatches of 1)", p=8, m=32)
MODELS = ("llama-2-70b", "gpt3-175b")
FIGURE_10 = domain(
    "Llama 2 70B and GPT-3 175B on (PP, TP) = (8, 8), 32 microbatches of 1 sample of 16384 tokens",
    p_m=((8, 32),),
    model=(0, 1),
)
# MFU at 64K tokens in hundredths of a per cent, as section 6.3 prints them.
MFUS = {"1F1B-I+T-Recomp": 5408, "V-Half": 4794, "T-Pipe+T-Recomp": 4613, "V-Min": 3983}
LONG = case("64K tokens", tokens=64)
BATCH_TOKENS = 16 * 10**6
_LLAMA_3 = "Llama 3.1 405B, 16M tokens in sequences of"
SHORT, LONGEST = (case(f"{_LLAMA_3} {n}", tokens=n) for n in (8192, 131072))
_STATES = "the bytes of weights, gradients, optimizer states and workspace per device"
_TIMES = "the times of every operator and collective in the authors' simulator"


def most_layers(at: Params) -> int:
    """The deepest model that fits the case's gigabytes; ``system`` counts Figure 8(b)'s."""
    name = [*held.SYSTEMS][at["system"]]
    return held.most_layers(name, at["tenths"] * held.GIB // 10)


def deeper(at: Params, system: int) -> Fraction:
    """TPipe ALL's depth over another's."""
    return Fraction(
        most_layers({**at, "system": len(held.SYSTEMS) - 1}), most_layers({**at, "system": system})
    )


def gigabytes(system: str) -> Exact:
    """Activations on the fullest GPU."""
    return lambda at: held.activation_gib(system, at["layers"])


def half_recomputed_gigabytes(at: Params) -> Fraction:
    """1F1B's with half recomputed, by the 6.39 GB that T-Recomp's peak is; a layer's buffer."""
    halves = half_recomputed_peak(at) + Fraction(2 * at["p"], at["layers"])
    return halves * Fraction("6.39") / on.peak(TRECOMP, at)


def orders_of_magnitude(ratio: Fraction) -> int:
    """The nearest power of ten: the n with 10^(n - 1/2) <= ratio < 10^(n + 1/2)."""
    n = 0
    while ratio * ratio >= 10 ** (2 * n + 1):
        n += 1
    return n


def activations_over_state(at: Params, accounting: str) -> int:
    """Orders of magnitude of all activations of a batch over the model's state."""
    model = known_model("llama-3-405b").model
    whole = Deployment(sequence=at["tokens"], accounting=accounting)
    kept = Fraction(layer_saved(model, whole, "none")) * model.layers / at["tokens"] * BATCH_TOKENS
    weights = stage_weights(model, whole, layers=model.layers, is_first=True, is_last=True)
    return orders_of_magnitude(kept / state_bytes(weights, whole))


def less_than(at: Params, halves: Fraction) -> Fraction:
    """Per cent less that T-Recomp holds than what keeps so many halves of a rank's layers."""
    model = known_model(MODELS[at["model"]]).model
    where = Deployment(tensor=8, pipeline=at["p"], sequence=16384, accounting="tpipe")
    half = Fraction(model.layers, 2 * at["p"]) * held.layer_bytes(model, where)
    state = held.rank_state(model, where)
    return 100 * (1 - (on.peak(TRECOMP, at) * half + state) / (halves * half + state))


def less_than_v_min(at: Params) -> Fraction:
    units = {"p": at["p"], "m": at["m"], "tF": 1, "tI": 1, "tW": 1}
    return less_than(at, Fraction(max(measures("v-min", units).peak_activations)))


def less_than_half_recomputed(at: Params) -> Fraction:
    """No buffer for the layers that 1F1B makes again."""
    return less_than(at, Fraction(half_recomputed_peak(at)))


def outside(value: Fraction, low: str, high: str) -> Fraction:
    """How far a value lies outside a printed range."""
    return max(Fraction(low) - value, value - Fraction(high), Fraction(0))


def difference(one: str, other: str) -> Fraction:
    """Points of MFU."""
    return Fraction(MFUS[one] - MFUS[other], 100)


def saved(at: Params) -> Fraction:
    """Per cent of the activations of interleaved 1F1B, half of each recomputed, that go away."""
    half = Fraction(on.peak(INTERLEAVED, at), 2)
    return 100 * (1 - on.peak(TRECOMP_INTERLEAVED, at) / half)


def window_of_eq_6(p: int) -> int:
    return on.cool_down_window({"p": p, "m": p, "r": 0})


_MEMORY = (
    stated("tpipe.sec6.2.trecomp", "§6.2, Figure 8(a)", "T-Recomp takes 6.39 GB of activations.",
           "GiB", gigabytes("T-Recomp"), "~2", "6.39", EIGHT),
    stated("tpipe.sec6.2.tpipe", "§6.2, Figure 8(a)", "T-Pipe takes 16.61 GB of activations.",
           "GiB", gigabytes("T-Pipe"), "~2", "16.61", EIGHT),
    read_as("tpipe.sec6.2.1f1b", "§6.2, Figure 8(a)",
            "1F1B with half recomputed takes 10.65 GB of activations, a buffer of one of a stage's "
            "6 layers included.", "GiB", [
                reading("by the same layer", "§6.2: 10.65 GB", gigabytes("1F1B+R=50%"), "~2",
                        "10.65", EIGHT),
                reading("by T-Recomp's rounded 6.39 GB", "§6.2: 6.39 GB",
                        half_recomputed_gigabytes, "~2", "10.65", EIGHT),
            ]),
    stated("tpipe.sec6.2.memory", "§6.2, Figure 8(a)",
           "TPipe ALL takes 63.35 % of the activations and model state of 1F1B with half "
           "recomputed.", "per cent", lambda at: held.memory_share(at["layers"]), "~2", "63.35",
           EIGHT),
    missing("tpipe.sec6.2.throughput", "§6.2, Figure 8(a)",
            "TPipe ALL keeps 97.58 % of the throughput of 1F1B with half recomputed.",
            "the times of every kernel and message, and of the host's step",
            estimated="the ratio of the schedules' ticks, tpipe.sec6.2.ticks"),
    stated("tpipe.sec6.2.ticks", "ours, for T-Pipe §6.2",
           "The schedules' ticks alone leave TPipe ALL at least 97.58 % of the throughput of 1F1B "
           "with half recomputed.", "per cent",
           lambda at: Fraction(100 * half_recomputed_makespan(at), on.makespan(TRECOMP, at)), ">=",
           "97.58", EIGHT, slack="messages, slower kernels and the host take the rest"),
    stated("tpipe.sec6.2.depths", "§6.2, Figure 8(b)",
           "In 32 GB 1F1B trains 40 layers, 64 with half recomputed, T-Pipe 48, T-Recomp 80 and "
           "TPipe ALL 96.", "layers of the deepest LLAMA that fits", most_layers, "==", "layers",
           DEPTHS, premises=[ROOM]),
    stated("tpipe.sec6.2.models", "Abstract and §6.2, Figure 8(b)",
           "TPipe ALL trains 2.4 times the layers of 1F1B.", "ratio of the deepest that fit",
           lambda at: deeper(at, 0), "==", "2.4", ROOMS, premises=[ROOM]),
    stated("tpipe.sec6.2.models-half", "Abstract and §6.2, Figure 8(b)",
           "TPipe ALL trains 1.5 times the layers of 1F1B with half recomputed.",
           "ratio of the deepest that fit", lambda at: deeper(at, 1), "==", "1.5", ROOMS,
           premises=[ROOM]),
    stated("tpipe.sec6.2.four", "§6.2", "On 4 ranks T-Pipe saves 12.5 % of 1F1B's activations.",
           "per cent", lambda at: 100 * (on.share(PLAIN, at) - on.share(TPIPE, at)), "==", "12.5",
           FOUR),
    stated("tpipe.sec6.2.four-recomputed", "§6.2",
           "On 4 ranks T-Recomp saves 25 % of the activations of 1F1B with half recomputed.",
           "per cent",
           lambda at: 100 * (1 - Fraction(on.peak(TRECOMP, at), half_recomputed_peak(at))), "==",
           "25", FOUR),
    read_as("tpipe.sec5.states", "§5",
            "At 16M tokens Llama3-405B's model state is about three orders of magnitude smaller "
            "than its activations.", "orders of magnitude", [
                reading("attention scores kept, 8192 tokens", "§5: by the technical report, whose "
                        "16M tokens are in sequences of 8192",
                        lambda at: activations_over_state(at, "megatron"), "==", 3, SHORT),
                reading("no scores kept", "§6.1: FlashAttention is on by default",
                        lambda at: activations_over_state(at, "fused"), "==", 3, SHORT),
                reading("attention scores kept, 131072 tokens", "§5: the report's longest",
                        lambda at: activations_over_state(at, "megatron"), "==", 3, LONGEST),
            ]),
)  # fmt: skip
_OFFLOAD = (
    missing(
        "tpipe.sec6.4.overlap",
        "§6.4, Figure 15(a)",
        "T-Offload overlaps to 45.45 % on 4 ranks and to 94.55 % on 8.",
        "T_step and T_bwd of the cluster",
        estimated="what Eq. 6 makes of 45.45 %, tpipe.sec6.4.overlap-eq6",
    ),
    stated(
        "tpipe.sec6.4.overlap-eq6",
        "ours, for T-Pipe §6.4 by Eq. 6",
        "From 4 to 8 ranks the window grows from 2 to 4 backwards of half the length, so 45.45 "
        "% of a model's off-load become 90.90 %.",
        "per cent",
        lambda _: Fraction("45.45") * window_of_eq_6(8) / window_of_eq_6(4),
        "==",
        "90.90",
        case("p = 4 and p = 8", p=8),
    ),
)
_COMPARISONS = (
    missing("tpipe.sec6.3.v-min", "§6.3, Figure 10",
            "T-Recomp is 19.27 % to 25.14 % more memory efficient than V-Min.",
            f"{_STATES}, and which points of Figure 10 are compared",
            estimated="by the layers of Figure 8, tpipe.sec6.3.v-min-estimated"),
    stated("tpipe.sec6.3.v-min-estimated", "ours, for T-Pipe §6.3, with Figure 8's layers",
           "T-Recomp takes less than V-Min by a share that lies in the printed range, 19.27 % to "
           "25.14 %.", "points outside",
           lambda at: outside(less_than_v_min(at), "19.27", "25.14"), "==", 0, FIGURE_10),
    missing("tpipe.sec6.3.half", "§6.3, Figure 10",
            "T-Recomp is 12.23 % to 16 % more memory efficient than 1F1B with half recomputed.",
            f"{_STATES}, and which points of Figure 10 are compared",
            estimated="by the layers of Figure 8, tpipe.sec6.3.half-estimated"),
    stated("tpipe.sec6.3.half-estimated", "ours, for T-Pipe §6.3, with Figure 8's layers",
           "T-Recomp takes less than 1F1B with half recomputed by 12.23 % at least.", "per cent",
           less_than_half_recomputed, ">=", "12.23", FIGURE_10,
           slack="it is more than the printed range: the layers of Figure 10 keep less"),
    missing("tpipe.sec6.3.adapipe-mfu", "§6.3, Figure 10",
            "At equal memory T-Recomp's MFU is 2.59 to 2.82 % below AdaPipe's.",
            f"what AdaPipe recomputed, and {_TIMES}",
            estimated="by ticks, with AdaPipe's plan for whole layers, tpipe.sec6.3.adapipe-ticks"),
    missing("tpipe.sec6.3.adapipe-memory", "§6.3, Figure 10",
            "TPipe ALL is 26.98 % to 32.92 % more memory efficient than AdaPipe.",
            f"{_STATES}, and which points of Figure 10 are compared"),
    stated("tpipe.sec6.3.quarter", "§6.3",
           "Interleaved 1F1B with T-Recomp saves about 25 % of the activations of interleaved 1F1B "
           "with half recomputed (one more block for the recomputed activations counted, no "
           "layer's buffer for the other).", "points off 25 %", lambda at: abs(saved(at) - 25),
           "<=", "5", BATCH_32, premises=[ABOUT],
           slack="five points are our reading of about: 9 blocks in place of 11.5 save 21.7 %"),
    missing("tpipe.sec6.3.long-memory", "§6.3, Figure 12",
            "Interleaved 1F1B with T-Recomp is 24.58 % to 38.41 % more memory efficient than 1F1B "
            "on long sequences.", f"{_STATES}, at each length",
            estimated="its limit, where activations are all, tpipe.sec6.3.long-memory-limit"),
    stated("tpipe.sec6.3.long-memory-limit", "ours, for T-Pipe §6.3, Figure 12",
           "Of activations alone interleaved 1F1B with T-Recomp takes at least 38.41 % less than "
           "1F1B.", "per cent",
           lambda at: 100 * (1 - on.share(TRECOMP_INTERLEAVED, at) / on.share(PLAIN, at)), ">=",
           "38.41", BATCH_32, slack="43.75 %: 9 halves of a stage in place of 16"),
    missing("tpipe.sec6.3.long-mfu", "§6.3, Figure 11", "Its MFU is 2.75 % to 4.94 % higher.",
            f"{_TIMES}, at each length",
            estimated="of the same figure, V-Min's MFU over T-Recomp's at 64K tokens: 0.791 by the "
            "cost model calibrated on A100 (0.847 with V-Min's order shortened), printed "
            "39.83/46.13 = 0.863"),
    stated("tpipe.sec6.3.gap", "§6.3, Figure 11",
           "At 64K tokens V-Half's 47.94 % MFU is 6.14 % below 54.08 %.", "points of MFU",
           lambda _: difference("1F1B-I+T-Recomp", "V-Half"), "==", "6.14", LONG),
    stated("tpipe.sec6.3.gap-min", "§6.3, Figure 11",
           "At 64K tokens V-Min's 39.83 % MFU is 6.30 % below 46.13 %.", "points of MFU",
           lambda _: difference("T-Pipe+T-Recomp", "V-Min"), "==", "6.30", LONG),
    missing("tpipe.sec6.3.gap-adapipe", "§6.3, Figure 11",
            "From 16K to 128K tokens AdaPipe's lead over T-Recomp narrows from 0.94 % to 0.48 % "
            "MFU.", f"what AdaPipe recomputed, and {_TIMES}",
            estimated="by ticks, with AdaPipe's plan for whole layers, tpipe.sec6.3.adapipe-ticks"),
    missing("tpipe.sec6.3.tensor", "§6.3, Figure 13",
            "From TP 8 to TP 32 V-Half and V-Min turn from 7.67 % and 1.72 % faster to 4.78 % and "
            "10.31 % slower.",
            "the times of GPT-3 175B's products and collectives at each TP size"),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_MEMORY, *_OFFLOAD, *_COMPARISONS)
