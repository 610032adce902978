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

A slice of T_k tokens counts with T_k in the place of T, but attends to the slices before it: with
T_0 + ... + T_k = U_k its probabilities are B h T_k U_k. The keys and values of earlier slices are
theirs and are not counted again.
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


def weight_bytes(spec: ModelSpec, stage: int) -> int:
    """The bytes of a stage's parameters, which are those of its gradients too.

    With d = hidden, a layer of the mlp has 8 d^2 + 7 d of them (two GEMMs, two biases, a norm), one
    of the transformer 12 d^2 + 4 d (six GEMMs, two norms).
    """
    d = spec.hidden
    layer = 8 * d**2 + 7 * d if spec.kind == "mlp" else 12 * d**2 + 4 * d
    return spec.layers_of(stage) * layer * spec.element_bytes


def input_bytes(spec: ModelSpec) -> int:
    """The bytes of the input of a stage, which is kept where the stage is recomputed: N d b."""
    return spec.batch * spec.sequence * spec.hidden * spec.element_bytes


def footprint(
    spec: ModelSpec, stage: int, num_stages: int, *, slice_index: int = 0, num_slices: int = 1
) -> Footprint:
    """The footprint of one slice of ``num_slices`` on ``stage`` of ``num_stages``, see above."""
    length = spec.slice_length(slice_index, num_slices)
    attended = spec.slice_start(slice_index, num_slices) + length
    tokens = spec.batch * length
    block = tokens * spec.hidden
    if spec.kind == "mlp":
        saved, operands = 6 * block + 2 * tokens, 10 * block
    else:
        probabilities = spec.batch * spec.heads * length * attended
        saved, operands = 16 * block + 4 * tokens + probabilities, 16 * block
    root = block + 1 if stage == num_stages - 1 else block
    layers, element = spec.layers_of(stage), spec.element_bytes
    return Footprint(
        activation_bytes=(layers * saved + root) * element,
        weight_bytes=layers * operands * element,
    )
