"""Footprints: the activation bytes of one microbatch on one stage, in closed form.

With N = batch x sequence tokens, d = hidden, h heads, T = sequence, B = batch, L layers and b bytes
per element, what autograd saves (each storage once, parameters not counted) is

    mlp          L (6 N d + 2 N) b              x, norm, tanh (4 N d); norm statistics
    transformer  L (16 N d + 4 N + B h T^2) b   x, norm, q, k, v, attention, x', norm, 4 + 4 N d;
                                                statistics of two norms; attention probabilities

plus the root of the graph: the output, N d b, or on the last stage the error and the scalar loss,
(N d + 1) b. After I the weight-gradient store holds the two operands of every weight GEMM:

    mlp          10 L N d b                     inputs 1 + 4, output gradients 4 + 1
    transformer  16 L N d b                     inputs 1 + 1 + 1 + 4, output gradients 3 + 1 + 4 + 1

So the transformer gives bytes back at I, and the mlp takes more (its tanh saves only its output).
These formulas are read off the shapes; nothing here is measured and torch is not loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.reference_exec.spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes one microbatch holds on a stage: from F to B or I, and from I to W."""

    activation_bytes: int
    weight_bytes: int

    @property
    def released_at_input_bytes(self) -> int:
        """What I gives back at its end; negative where I acquires more at its start."""
        return self.activation_bytes - self.weight_bytes


def footprint(spec: ModelSpec, stage: int, num_stages: int) -> Footprint:
    """The footprint of ``stage`` of ``num_stages``, see the module docstring."""
    tokens = spec.batch * spec.sequence
    block = tokens * spec.hidden
    if spec.kind == "mlp":
        saved, operands = 6 * block + 2 * tokens, 10 * block
    else:
        probabilities = spec.batch * spec.heads * spec.sequence**2
        saved, operands = 16 * block + 4 * tokens + probabilities, 16 * block
    root = block + 1 if stage == num_stages - 1 else block
    layers, element = spec.layers_of(stage), spec.element_bytes
    return Footprint(
        activation_bytes=(layers * saved + root) * element,
        weight_bytes=layers * operands * element,
    )
