"""What the training software does: what it keeps, moves and shares, and how the rows tell.

``accounting`` and ``precision`` are those of ``costs.accounting``; ``zero`` and
``sequence_parallel`` as in ``costs.deployment``. ``causal``: the part of the attention's square
that is computed. ``pads``: the vocabulary is filled up to a multiple of 128 on each tensor rank;
without, only where it must be divided. ``reduced`` are bytes of a gradient that a reduce-scatter
moves, ``gathered`` those of what an all-gather moves after it. ``gradients`` are bytes of a
parameter that each replica reads and writes once an iteration for gradients alone: zeroing (4),
scaling before they are reduced (8), a look for numbers that are none (4). ``optimizer`` are those
of a parameter, of a replica's share of them, for the optimizer: its norm (4), clipping (8), Adam
(28) and the copy to 16 bits (6), or 30 where gradients and weights are of 16 bits. ``scatters``:
within a node, too, each card of a tensor group sends its share of a message to the next stage, not
all of it. ``placeholders``: linears that add to their gradient themselves hand back one that nobody
reads, kept once for each shape of weights. ``workspace`` are bytes that its libraries of matrix
products hold. ``fused_loss``: the gradient of the logits takes their place in 16 bits; without, the
loss copies them to 32. ``scopes``: how rows that do not tell their recompute scope may have run;
``assumed``: on one node and on many, where no row is of that kind. ``overlaps``: collectives run
beside computation, as far as the constants ``exposed_...`` tell; ``prefetches``: weights that are
gathered for each pass alone. ``blocks``: each launch waits for the card (CUDA_LAUNCH_BLOCKING).
``hides_experts``: what experts are sent runs beside another microbatch's pass (1F1B with all-to-all
overlap). ``copied`` are bytes of a parameter that a card moves within its memory for each
microbatch under ZeRO 2 and 3, where it copies what it gathers, or joins, casts and scales what it
reduces. ``attention_most``: TFLOP/s of the attention's kernel at most, by card, where it was
written for an earlier one. ``stops_early``: where a whole layer is recomputed, that ends before the
last product, whose output no backward needs. ``constants``: what it takes over the starts of
``times.constants``, by name. ``like``:
the software whose profile it has but for what it tells itself; what is fitted of that holds for it.
``products``: what the products of a layer's linears, forward and both gradients, are computed in:
"bf16", or "fp8" (the attention, the head and all between stay in 16 bits, as in Transformer
Engine).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

PADDED = 128
PRODUCTS = ("bf16", "fp8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """A training framework as it was configured; see the module's text."""

    name: str
    source: str
    accounting: str
    precision: str
    zero: int
    sequence_parallel: bool
    causal: Fraction
    pads: bool
    reduced: int
    gathered: int
    gradients: int
    optimizer: int
    scatters: bool
    placeholders: bool
    workspace: int
    fused_loss: bool
    scopes: tuple[str, ...]
    assumed: tuple[str, str]
    overlaps: bool = False
    prefetches: bool = False
    blocks: bool = False
    hides_experts: bool = False
    copied: int = 0
    stops_early: bool = False
    attention_most: tuple[tuple[str, float], ...] = ()
    constants: tuple[tuple[str, float], ...] = ()
    products: str = "bf16"
    like: str = ""

    @property
    def is_eighth(self) -> bool:
        """Whether a layer's linears are computed in 8 bits."""
        return self.products == "fp8"

    def words(self, vocabulary: int, tensor: int) -> int:
        """Rows of the vocabulary on one tensor rank.

        Parameters
        ----------
        vocabulary
            Rows of the model's embedding.
        tensor
            Devices that share them.

        Returns
        -------
        int
            Rows, padded where the software pads.
        """
        if tensor == 1 and not self.pads:
            return vocabulary
        return PADDED * -(-vocabulary // (PADDED * tensor))

    def computing_in(self, products: str) -> Software:
        """The same with products in these numbers.

        Parameters
        ----------
        products
            The type of numbers, one of ``PRODUCTS``.

        Raises
        ------
        ValueError
            Where it has none.
        """
        if products not in PRODUCTS:
            raise ValueError(
                f"products must be one of {', '.join(PRODUCTS)}, got {products[:40]!r}"
            )
        if products == "fp8" and self.accounting == "megatron":
            raise ValueError(f"products fp8 need Transformer Engine, {self.name} runs without it")
        return replace(self, products=products)

    def moved_at_the_end(self, zero: int) -> int:
        """Bytes of a gradient and of its weight that cross a group of replicas once at the end:
        gradients both ways without ZeRO, under 2 and 3 no gradients, under 3 no weights either.

        Parameters
        ----------
        zero
            The ZeRO level, 0 to 3.
        """
        gathered = {0: self.reduced, 3: 0}.get(zero, self.gathered)
        return gathered + (0 if zero > 1 else self.reduced)
