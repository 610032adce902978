"""PipeMesh's claims on Tables III, V and VI: model sizes, GPUs, and what longer batches cost.

A dense layer of hidden size h has 12 h^2 parameters (GPT-3), and 41/4 h^2 with grouped queries
(Llama2, Falcon): half of the FLOPs per token of its linear operations. Embeddings are left out.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params
from bubbleproof.papers.claims.pipemesh_memory import FALCON, GPT3, LLAMA2, flops
from bubbleproof.papers.claims.tpipe_statement import stated

# Table V: batch size (0: 36 with the one-step delay), tokens in hundredths of 10^9, tenths of
# TFLOPS on A100 and on V100, and the printed ratios to batch size 36 in hundredths.
_BATCHES = (
    {"batch": 72, "tokens": 290, "a100": 1149, "v100": 421, "more": 117, "a": 114, "v": 128},
    {"batch": 144, "tokens": 356, "a100": 1239, "v100": 490, "more": 144, "a": 123, "v": 149},
    {"batch": 0, "tokens": 417, "a100": 1213, "v100": 466, "more": 169, "a": 121, "v": 142},
)
BATCHES = Domain(text="the columns of Table V (batch 0: 36 with the delay)", points=_BATCHES)
LONGER = Domain(
    text="the columns of Table V, with the printed per cent in tenths",
    points=tuple({**at, "time": time} for at, time in zip(_BATCHES, (26, 168, 397), strict=True)),
)
# Table VI: GPUs, billions of parameters, layers, hidden size, TP, PP, DP, chunks.
_SCALES = (
    {"gpus": 48, "size": 15, "l": 24, "h": 7168, "T": 4, "P": 6, "D": 2, "M": 4},
    {"gpus": 96, "size": 26, "l": 32, "h": 8192, "T": 4, "P": 8, "D": 3, "M": 4},
    {"gpus": 192, "size": 49, "l": 48, "h": 9216, "T": 4, "P": 12, "D": 4, "M": 4},
)
SCALES = Domain(text="the rows of Table VI", points=_SCALES)
MODELS = Domain(
    text="the rows of Table III: GPT-3, Llama2 and Falcon",
    points=(
        {"size": 58, "l": 72, "h": 8192, "model": 0},
        {"size": 55, "l": 80, "h": 8192, "model": 1},
        {"size": 66, "l": 96, "h": 8192, "model": 2},
    ),
)
_NAMES = (GPT3, LLAMA2, FALCON)


def billions(at: Params) -> Fraction:
    """Parameters of the layers; GPT-3 where no model is named (Table VI)."""
    return at["l"] * at["h"] ** 2 * flops(_NAMES[at.get("model", 0)]) / 2 / 10**9


def _more_tokens(at: Params) -> Fraction:
    return Fraction(at["tokens"], 247)


CLAIMS: tuple[Claim, ...] = (
    stated("pipemesh.tab3.sizes", "Table III", "The layers have 58, 55 and 66 billion parameters.",
           "10^9 parameters", lambda at: at["size"], "~0", billions, MODELS),
    stated("pipemesh.tab6.sizes", "Table VI", "The layers have 15, 26 and 49 billion parameters.",
           "10^9 parameters", lambda at: at["size"], "~0", billions, SCALES),
    stated("pipemesh.tab6.gpus", "Table VI", "TP PP DP is the number of GPUs.", "GPUs",
           lambda at: at["gpus"], "==", lambda at: at["T"] * at["P"] * at["D"], SCALES),
    stated("pipemesh.tab6.chunks", "Table VI", "The layers divide evenly into chunks.",
           "layers left over", lambda _: 0, "==", lambda at: at["l"] % (at["P"] * at["M"]), SCALES),
    stated("pipemesh.tab5.tokens", "Table V", "Tokens over those of batch size 36.", "ratio",
           lambda at: Fraction(at["more"], 100), "~2", _more_tokens, BATCHES),
    stated("pipemesh.tab5.a100", "Table V", "Throughput on A100 over that of batch size 36.",
           "ratio", lambda at: Fraction(at["a"], 100), "~2",
           lambda at: Fraction(at["a100"], 1004), BATCHES),
    stated("pipemesh.tab5.v100", "Table V", "Throughput on V100 over that of batch size 36.",
           "ratio", lambda at: Fraction(at["v"], 100), "~2",
           lambda at: Fraction(at["v100"], 328), BATCHES),
    stated("pipemesh.sec6B.longer", "§VI-B", "Training on A100 takes 2.6 %, 16.8 % and 39.7 % "
           "longer.", "per cent", lambda at: Fraction(at["time"], 10), "~1",
           lambda at: 100 * (_more_tokens(at) * Fraction(1004, at["a100"]) - 1), LONGER),
)  # fmt: skip
