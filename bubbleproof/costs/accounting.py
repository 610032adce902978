"""How bytes are counted: what a layer keeps, and what a parameter takes. The papers' as variants.

An *accounting* says what of a layer's inventory (``operations``) is kept for the backward:

- ``fused_attention``: the attention kernel keeps no scores (FlashAttention), and computes them
  again in its backward;
- ``fused_activation``: a gated activation keeps what goes into it, and its product, no more;
- ``statistics``: what norms and a fused attention keep per token in 32 bits is counted;
- ``split_inputs``: what goes into the linears that tensor parallelism splits by columns (a norm's
  output) is kept as a share of the sequence; else whole on each of the group;
- ``split_checkpoint``: so is what a layer keeps that is recomputed as a whole;
- ``exchanged_output``: under context parallelism what the attention puts out is kept twice, by its
  heads for its own backward and by tokens for the linear that follows the all-to-all;
- ``weighed_inside``: experts' outputs are weighed before their last linear, in the activation:
  what they put out is not kept.

``dropout`` overrides the model's. A *precision* says the bytes of a weight, of its gradient, and of
what the optimizer keeps (32-bit weights, Adam's two moments).

The default is Korthikanti et al. (MLSys 2023), section 4, with sequence parallelism:
s b h (34 + 5 a s / h) bytes of a GPT layer over the tensor-parallel ranks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes of one parameter, by what ZeRO shards from which level on: 3, 2 and 1."""

    weight: int
    gradient: int
    optimizer: int

    @property
    def total(self) -> int:
        """Bytes of a parameter that nothing shards."""
        return self.weight + self.gradient + self.optimizer


PRECISIONS = {
    # Megatron-LM, 32-bit gradients.
    "bf16": Precision(weight=2, gradient=4, optimizer=12),
    # PipeMesh §II-B and IV-A; MEPipe §7.4's 6.375 GB.
    "bf16-gradients": Precision(weight=2, gradient=2, optimizer=12),
    # MEPipe §4.5: 4m/p + 8m/(dp).
    "no-main-weights": Precision(weight=2, gradient=2, optimizer=8),
    # Adam in 32 bits.
    "fp32": Precision(weight=4, gradient=4, optimizer=8),
    # BPipe §1: 20 bytes.
    "bpipe": Precision(weight=4, gradient=4, optimizer=12),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """What counts as kept; see the module's text."""

    fused_attention: bool = False
    fused_activation: bool = False
    statistics: bool = False
    split_inputs: bool = True
    split_checkpoint: bool = True
    exchanged_output: bool = False
    weighed_inside: bool = False
    dropout: bool | None = None
    element: int = 2  # bytes of a kept activation
    precision: str = "bf16"


ACCOUNTINGS = {
    # Korthikanti et al., MLSys 2023, §4; scores kept.
    "megatron": Accounting(),
    # The same with a fused attention kernel and its statistics.
    "fused": Accounting(fused_attention=True, statistics=True),
    # Transformer Engine under Megatron-LM: as fused, and the activation fused as well.
    "engine": Accounting(
        fused_attention=True,
        fused_activation=True,
        statistics=True,
        exchanged_output=True,
        weighed_inside=True,
        dropout=False,
    ),
    # BPipe Eq. 4 to 6: a recomputed layer keeps its input whole.
    "bpipe": Accounting(split_checkpoint=False, precision="bpipe"),
    # PipeMesh Tables I and II: what operations put out, no scores.
    "pipemesh": Accounting(fused_attention=True, precision="bf16-gradients"),
    # MEPipe §4.5 (its 8m/(dp); §7.4 counts 12m/(dp), the precision bf16-gradients).
    "mepipe": Accounting(fused_attention=True, precision="no-main-weights"),
    # T-Pipe Figure 8: inputs of column-split linears are kept whole.
    "tpipe": Accounting(fused_attention=True, split_inputs=False),
}
