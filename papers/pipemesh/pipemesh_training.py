"""PipeMesh's claims on Tables III, V and VI: model sizes, GPUs, and what longer batches cost.

A dense layer of hidden size h has 12 h^2 parameters (GPT-3), and 41/4 h^2 with grouped queries
(Llama2, Falcon): half of the FLOPs per token of its linear operations. Embeddings are left out.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.papers.pipemesh.pipemesh_memory import FALCON, GPT3, LLAMA2, flops

# Table V: batch size (0: 36 with the one-step delay), tokens in hundredths of 10^9, tenths of
# TFLOPS on A100 and on V100, and the printed ratios to batch size 36 in hundredths.
_BATCHES = (
    (72, 290, 1149, 421, 117, 114, 128),
    (144, 356, 1239, 490, 144, 123, 149),
    (0, 417, 1213, 466, 169, 121, 142),
)
BATCHES = domain(
    "the columns of Table V (batch 0: 36 with the delay)", batch_tokens_a100_v100_more_a_v=_BATCHES
)
LONGER = domain(
    "the columns of Table V, with the printed per cent in tenths",
    batch_tokens_a100_v100_more_a_v_time=[
        (*row, time) for row, time in zip(_BATCHES, (26, 168, 397), strict=True)
    ],
)
SCALES = domain(
    "the rows of Table VI",  # GPUs, billions of parameters, layers, hidden size, TP, PP, DP, chunks
    gpus_size_l_h_T_P_D_M=(
        (48, 15, 24, 7168, 4, 6, 2, 4),
        (96, 26, 32, 8192, 4, 8, 3, 4),
        (192, 49, 48, 9216, 4, 12, 4, 4),
    ),
)
MODELS = domain(
    "the rows of Table III: GPT-3, Llama2 and Falcon",
    size_l_h_model=((58, 72, 8192, 0), (55, 80, 8192, 1), (66, 96, 8192, 2)),
)
_NAMES = (GPT3, LLAMA2, FALCON)


def billions(at: Params) -> Fraction:
    """Parameters of the layers; GPT-3 where no model is named (Table VI)."""
    return at["l"] * at["h"] ** 2 * flops(_NAMES[at.get("model", 0)]) / 2 / 10**9


CLAIMS: tuple[PaperClaim, ...] = (
    stated("pipemesh.tab3.sizes", "Table III", "The layers have 58, 55 and 66 billion parameters.",
           "10^9 parameters", billions, "~0", "size", MODELS),
    stated("pipemesh.tab6.sizes", "Table VI", "The layers have 15, 26 and 49 billion parameters.",
           "10^9 parameters", billions, "~0", "size", SCALES),
    stated("pipemesh.tab6.gpus", "Table VI", "TP PP DP is the number of GPUs.", "GPUs", "T*P*D",
           "==", "gpus", SCALES),
    stated("pipemesh.tab6.chunks", "Table VI", "The layers divide evenly into chunks.",
           "layers left over", "l % (P*M)", "==", 0, SCALES),
    stated("pipemesh.tab5.tokens", "Table V", "Tokens over those of batch size 36.", "ratio",
           "tokens/247", "~2", "more/100", BATCHES),
    stated("pipemesh.tab5.a100", "Table V", "Throughput on A100 over that of batch size 36.",
           "ratio", "a100/1004", "~2", "a/100", BATCHES),
    stated("pipemesh.tab5.v100", "Table V", "Throughput on V100 over that of batch size 36.",
           "ratio", "v100/328", "~2", "v/100", BATCHES),
    stated("pipemesh.sec6B.longer", "§VI-B",
           "Training on A100 takes 2.6 %, 16.8 % and 39.7 % longer.", "per cent",
           "100*(tokens/247 * 1004/a100 - 1)", "~1", "time/10", LONGER),
)  # fmt: skip
