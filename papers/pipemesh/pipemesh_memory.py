"""PipeMesh's claims on bytes: Tables I and II summed, M_o, M_g, M_p and what M > 4 is worth.

Symbols: h hidden size, s sequence length, b microbatch size (1), M chunks per rank, D replicas, psi
parameters of a rank. Outputs are 16-bit numbers; sizes are in units of s b h bytes per layer. The
second route is an inventory of a layer's tensors: the width of each in units of h, times its bytes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from bubbleproof.papers.claims.claim import PaperClaim, contradicting, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.reading import UP_TO, Exact
from bubbleproof.papers.pipemesh.pipemesh_schedules import sharded_peak

HALF, MASK = 2, 1  # bytes of a 16-bit number and of a dropout mask's entry
GPT3, LLAMA2, FALCON = "GPT-3", "Llama2", "Falcon"
GROUPED = Fraction(1, 8)  # Table III: 8 key/value heads of 64
LAYER = case("one layer", layers=1)
# Widths in h of what a layer stores: attention, MLP, norms; masks of dropout.
_MULTI = [Fraction(1)] * 5  # query, key, value, self-attention, linear
_GROUPED = [Fraction(1), GROUPED, GROUPED, Fraction(1), Fraction(1)]
_GELU = [Fraction(4), Fraction(4)]  # up, GeLU
_INNER = Fraction(8, 3)  # Llama2's, in h
_ROUNDED = Fraction(22016, 8192)  # the same in multiples of 256, as Llama has it at h = 8192
_NORMS = [Fraction(1), Fraction(1)]
DOWN = Fraction(1)  # the last linear layer's output has width h


def _sum(attention: list[Fraction], mlp: list[Fraction]) -> Fraction:
    return sum([*attention, *mlp, DOWN, *_NORMS], Fraction(0))


def _swiglu(inner: Fraction) -> list[Fraction]:
    """Up, gate, SiLU and product."""
    return [inner] * 4


BYTES: dict[str, Fraction] = {
    GPT3: HALF * _sum(_MULTI, _GELU) + 2 * MASK,
    LLAMA2: HALF * _sum(_GROUPED, _swiglu(_INNER)),
    FALCON: HALF * _sum(_GROUPED, _GELU) - HALF,  # one output for both blocks
}
LLAMA2_BYTES = HALF * _sum(_GROUPED, _swiglu(_ROUNDED))  # 8/3 h is no width: 21845.3
_AS_PRINTED = {GPT3: Fraction(8), LLAMA2: Fraction(16, 3), FALCON: Fraction(8)}

SHARES = domain(
    "2 <= D <= 8, M <= 12, psi_p of 12, 24 or 36 thirty-sixths of psi",
    D=range(2, 9),
    M=range(1, 13),
    share=(12, 24, 36),
)
FEW = domain("2 <= D <= 8, M <= 4, psi_p = psi", D=range(2, 9), M=range(1, 5))
MORE = domain("2 <= D <= 8, 5 <= M <= 12, psi_p = psi", D=range(2, 9), M=range(5, 13))
REPLICAS = domain("D <= 16", D=range(1, 17))


def per_layer(model: str) -> Exact:
    return lambda _: BYTES[model]


def per_layer_as_printed(model: str) -> Exact:
    """With Table II's size of the last linear layer's output in place of its own."""
    return lambda _: BYTES[model] - HALF * DOWN + _AS_PRINTED[model]


def _matmul(tokens: int, inner: Fraction, outer: Fraction) -> Fraction:
    """FLOPs of a product in units of s b h^2: a multiplication and an addition each."""
    return tokens * inner * outer * 2


def flops(model: str) -> Fraction:
    """FLOPs of a layer's linear operations per s b h^2, one product after the other."""
    one = Fraction(1)
    heads = one if model == GPT3 else GROUPED
    wide = Fraction(8, 3) if model == LLAMA2 else Fraction(4)
    ups = 2 if model == LLAMA2 else 1
    attention = 2 * _matmul(1, one, one) + 2 * _matmul(1, one, heads)
    return attention + ups * _matmul(1, one, wide) + _matmul(1, wide, one)


def gradients(at: Params, share: Fraction) -> Fraction:
    """M_g / psi: whole, a shard, and the full gradients that a schedule holds, two bytes each."""
    return _held(at, share, zero=2)


def parameters(at: Params, share: Fraction) -> Fraction:
    """M_p / psi: whole, a shard, and the full parameters that a schedule holds, two bytes each."""
    return _held(at, share, zero=3)


def _held(at: Params, share: Fraction, zero: int) -> Fraction:
    chunks = _most_chunks(at["M"], zero)
    return HALF * (1 - share + share * (Fraction(1, at["D"]) + Fraction(chunks, at["M"])))


@lru_cache
def _most_chunks(num_chunks: int, zero: int) -> int:
    """Chunks' worth held at once on two ranks with four operations each way.

    A collective takes as long as an operation's backwards of a chunk, so that the next one waits.
    """
    at = {"p": 2, "m": 8, "v": num_chunks, "e": 2, "d": 2, "R": 4, "S": 4, "C": 4}
    return sharded_peak(at, zero)


def _share(at: Params) -> Fraction:
    return Fraction(at["share"], 36)


def _saves(at: Params) -> int:
    return int(parameters(at, Fraction(1)) < HALF)


def _sum_claims(name: str, model: str, total: str) -> tuple[PaperClaim, PaperClaim]:
    return (
        stated(
            f"pipemesh.sec2B.{name}",
            "§II-B",
            f"A layer of {model} stores {total} sbh bytes.",
            "bytes per sbh",
            per_layer(model),
            "==",
            total,
            LAYER,
        ),
        contradicting(
            f"pipemesh.tab2.{name}",
            f"§II-B: {total} sbh",
            total,
            "Tables I and II, norms and dropout added: the last linear layer's output is "
            "as wide as its input",
            per_layer_as_printed(model),
            f"The outputs of {model} in the tables sum to what the text says.",
            "bytes per sbh",
            LAYER,
        ),
    )


_TABLES = (
    *_sum_claims("gpt3", GPT3, "34"),
    *_sum_claims("llama2", LLAMA2, "203/6"),
    *_sum_claims("falcon", FALCON, "53/2"),
    stated("pipemesh.tab1.gpt3", "Tables I and II",
           "GPT-3's linear operations of a layer sum to 24 sbh^2 FLOPs.", "FLOPs per sbh^2",
           lambda _: flops(GPT3), "==", "4*2 + 8 + 8", LAYER),
    stated("pipemesh.tab1.llama2", "Tables I and II",
           "Llama2's linear operations of a layer sum to 41/2 sbh^2 FLOPs.", "FLOPs per sbh^2",
           lambda _: flops(LLAMA2), "==", "2*2 + 2/4 + 3*16/3", LAYER),
    stated("pipemesh.tab1.falcon", "Tables I and II",
           "Falcon's linear operations of a layer sum to 41/2 sbh^2 FLOPs.", "FLOPs per sbh^2",
           lambda _: flops(FALCON), "==", "2*2 + 2/4 + 8 + 8", LAYER),
)  # fmt: skip
_STATES = (
    stated("pipemesh.sec4A.optimizer", "§IV-A", "M_o is 12/D psi bytes.", "bytes per parameter",
           "4/D + 4/D + 4/D", "==", "optimizer_bytes(D)", REPLICAS),
    stated("pipemesh.sec4A.gradients", "§IV-A",
           "M_g is up to 2(psi - psi_g) + (2/D + 4/M) psi_g bytes.", "bytes per parameter",
           lambda at: gradients(at, _share(at)), "<=", "gradient_bytes(M, D, share/36)", SHARES,
           premises=[UP_TO]),
    stated("pipemesh.sec4A.parameters", "§IV-A",
           "M_p is up to 2(psi - psi_p) + (2/D + 8/M) psi_p bytes.", "bytes per parameter",
           lambda at: parameters(at, _share(at)), "<=", "parameter_bytes(M, D, share/36)", SHARES,
           premises=[UP_TO]),
    read_as("pipemesh.sec4A.few-chunks", "§IV-A",
            "M_p is no smaller than 2 psi up to M = 4, so ZeRO-3 begins above it.",
            "1 where ZeRO-3 saves parameter memory", [
                reading("up to M = 4 it saves nothing", "§IV-A: no smaller than 2 psi", _saves,
                        "==", 0, FEW),
                reading("above M = 4 it always saves", "§IV-A says only where it is not enabled",
                        _saves, "==", 1, MORE, is_contrast=True),
            ]),
    stated("pipemesh.sec4A.enough-chunks", "ours, for PipeMesh §IV-A: M > 4 D/(D-1)",
           "ZeRO-3 saves parameter memory exactly where 1/D + 4/M < 1.", "1 where it saves", _saves,
           "==", "1 if M*(D-1) > 4*D else 0", MORE),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_TABLES, *_STATES)
