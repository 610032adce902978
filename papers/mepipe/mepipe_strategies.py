"""MEPipe's Table 2: what the parallel strategies cut, and the order of what they communicate.

Symbols of a case: p stages, m microbatches, s slices, ``x`` devices of tensor or context
parallelism, ``d`` replicas, ``batch`` the global batch size. The table's marks stand for no
numbers. What its columns say of pipelines is measured on schedules; the order of the pluses is
asked of bytes that a device sends in a step for Llama 13B (``mepipe_model``: 38 layers, hidden
size 5120, 4096 tokens; 16-bit numbers):

    TP   16 (x-1)/x S h per layer and microbatch: four all-reduces of S h numbers
    CP   12 (x-1)/x S k per layer and microbatch: keys and values (width k) round the ring, again
         in the backward, and their gradients
    DP   4 (d-1)/d per parameter of the stage and step: gradients reduced, parameters gathered
    PP   4 S h per microbatch: activations one way and gradients the other; SPP the same in s parts

Source: Sun et al., "MEPipe" (EuroSys 2025) section 2.2, Table 2.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.model_costs import model_costs
from bubbleproof.papers.claims.claim import PaperClaim, missing, stated
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.papers.claims.measured_pipelines import made, messages, peak_of_a
from bubbleproof.papers.mepipe.mepipe_model import LLAMAS, SEQUENCE, VOCABULARY, linear

MODEL = LLAMAS[1]
STRATEGIES = ("TP", "CP", "DP", "PP")  # by falling number of pluses
MANY = domain(
    "2 <= p <= 6, n in p 2p 3p, equal ticks",
    p=range(2, 7),
    m="(p, 2*p, 3*p)",
    tF=(1,),
    tB=(1,),
)
SLICED = domain(
    "2 <= p <= 5, n in p 2p, s in 2 3 4, v = 1, equal ticks",
    p=range(2, 6),
    m="(p, 2*p)",
    v=(1,),
    s=(2, 3, 4),
    tF=(1,),
    tB=(1,),
)
NEIGHBOURS = domain(
    "TP over CP, CP over DP, DP over PP; 8 stages, x = 2, d = 4, global batches of Table 5",
    more=(0, 1, 2),
    batch=(32, 64, 128),
    p=(8,),
    x=(2,),
    d=(4,),
)
# (strategy, kind, mark): TP, CP, DP by parameters, activations, optimizer states.
MARKS = domain(
    "the marks of TP, CP and DP; two devices, Llama 2 13B",
    strategy_kind_mark=(
        (0, 0, 1),
        (0, 1, 1),
        (0, 2, 1),
        (1, 0, 0),
        (1, 1, 1),
        (1, 2, 1),
        (2, 0, 0),
        (2, 1, 0),
        (2, 2, 1),
    ),
)
DEGREES = domain("x in 2 4 8 16", x=(2, 4, 8, 16), p=(8,), d=(4,), batch=(64,))


def sent(strategy: str, at: Params) -> Fraction:
    """Bytes that a device in the middle of the pipeline sends in a step."""
    hidden, microbatches = SEQUENCE * MODEL["h"], Fraction(at["batch"], at["d"])
    layers = Fraction(MODEL["L"], at["p"])
    ring = Fraction(at["x"] - 1, at["x"])
    if strategy == "TP":
        return 16 * ring * hidden * layers * microbatches
    if strategy == "CP":
        return 12 * ring * SEQUENCE * MODEL["kv"] * layers * microbatches
    if strategy == "DP":
        weights = Fraction(linear(MODEL), 6) + VOCABULARY * MODEL["h"]
        return 4 * Fraction(at["d"] - 1, at["d"]) * weights / at["p"]
    return 4 * hidden * microbatches


def handed_on(name: str, at: Params) -> Fraction:
    """Messages between ranks of one step, each of 1/s of a sample's width."""
    return Fraction(messages(made(name, at).problem), at["s"] if name == "svpp" else 1)


def is_cut(at: Params) -> int:
    """1 where a device of two that share a sample, or two, keeps less of a kind than one alone.

    By the cost model, of Llama 2 13B; ZeRO cuts the optimizer states of CP and DP (level 1).
    """
    name, zero = (("tensor", 0), ("context", 1), ("data", 1))[at["strategy"]]
    alone = Deployment(sequence=SEQUENCE)
    shared = alone.with_changes(**{name: 2, "zero": zero})
    model = known_model("llama-2-13b").model
    one, two = (model_costs(model, each).stages[0] for each in (alone, shared))
    kept = ("parameters", "saved_bytes", "state_bytes")[at["kind"]]
    return int(getattr(two, kept) < getattr(one, kept))


CLAIMS: tuple[PaperClaim, ...] = (
    stated("mepipe.table2.pp.activations", "Table 2",
           "PP does not partition activations: with n >= p the first rank keeps A (DAPPLE's "
           "order).", "peak activations over A", peak_of_a("1f1b"), "==", 1, MANY),
    stated("mepipe.table2.spp.activations", "Table 2",
           "SPP partitions activations: with two slices or more no rank keeps A (SVPP's order).",
           "peak activations over A", peak_of_a("svpp"), "<=", "1 - 1/(p*s)", SLICED),
    stated("mepipe.table2.spp.messages", "Table 2 and section 3",
           "SPP communicates what PP does: s messages of 1/s the size.",
           "messages between ranks, in samples", lambda at: handed_on("svpp", at), "==",
           lambda at: handed_on("1f1b", at), SLICED),
    stated("mepipe.table2.order", "Table 2",
           "TP communicates most, then CP, then DP, then PP, for Llama 13B.",
           "bytes that a device sends in a step", lambda at: sent(STRATEGIES[at["more"]], at), ">=",
           lambda at: sent(STRATEGIES[at["more"] + 1], at), NEIGHBOURS,
           slack="the table orders the strategies and gives no ratio"),
    stated("mepipe.section-2.2.context", "section 2.2",
           "CP communicates less than TP over as many devices: 3/4 of it where keys and values are "
           "as wide as the hidden size.", "bytes over bytes",
           lambda at: sent("CP", at) / sent("TP", at), "==", "3/4", DEGREES),
    missing("mepipe.table2.pluses", "Table 2",
            "TP has five pluses of communication, CP three, DP two, PP and SPP one.",
            "what a plus stands for: the model, the sizes and the measure behind the marks",
            estimated="their order, in bytes (mepipe.table2.order)"),
    stated("mepipe.table2.marks", "Table 2",
           "TP partitions parameters, activations and optimizer states, CP (ZeRO) the last two, DP "
           "(ZeRO) the last.", "1 where a device of two keeps less than one alone", is_cut, "==",
           "mark", MARKS),
)  # fmt: skip
