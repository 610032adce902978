"""The floating-point operations of one microbatch on one stage, in closed form.

A product of matrices (a, b) and (b, c) counts as 2 a b c; nothing else counts, as in torch's FLOP
counter (``flop_count``). With N = batch x tokens, d = hidden, and for llama f = inner and
e = kv_width, the GEMMs of a layer and their operations in a forward are, in the order of
``shares``,

    mlp          down, up                                      each 8 N d^2
    transformer  down, up; output, value, key, query           each 8 N d^2; each 2 N d^2
    llama        down, up, gate; output, value, key, query     each 2 N d f; 2 N d (d, e, e, d)

and attention's two products, of T_k tokens to the U_k of all slices so far (``footprint``), 4 B T_k
U_k d. A head over V words is one GEMM more, 2 N d V. I computes as much again for the inputs of the
GEMMs, and twice as much as a forward for attention, both of whose operands take gradients; W as
much as a forward for each weight, and B what both do.

These formulas are read off the shapes; nothing here is measured and torch is not loaded. A user's
own model has no formula: its operations are those of one dry run (``examined``, which loads torch).
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.reference_exec.models.footprint import facts_of
from bubbleproof.reference_exec.models.model_spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFlops:
    """What F, B and I compute, and each GEMM of W, in the order of ``shares``."""

    forward: int
    backward: int
    input_backward: int
    gemms: tuple[int, ...]


def stage_flops(
    spec: ModelSpec, stage: int, *, slice_index: int = 0, num_slices: int = 1
) -> StageFlops:
    """The operations of one slice of ``num_slices`` on ``stage``, see above."""
    if spec.kind == "own":
        facts = facts_of(spec)[stage]
        return StageFlops(
            forward=facts.forward_flops,
            backward=facts.backward_flops,
            input_backward=facts.input_flops,
            gemms=facts.gemm_flops,
        )
    length = spec.slice_length(slice_index, num_slices)
    attended = spec.slice_start(slice_index, num_slices) + length
    layers, per_token = spec.layers_of(stage), 2 * spec.batch * length * spec.hidden
    widths = _gemm_widths(spec) * layers
    if spec.is_head(stage):
        widths = (spec.vocabulary, *widths)
    gemms = tuple(per_token * width for width in widths)
    attention = 0 if spec.kind == "mlp" else 2 * per_token * attended * layers
    return StageFlops(
        forward=sum(gemms) + attention,
        backward=2 * (sum(gemms) + attention),
        input_backward=sum(gemms) + 2 * attention,
        gemms=gemms,
    )


def _gemm_widths(spec: ModelSpec) -> tuple[int, ...]:
    """The operations of a layer's GEMMs, in units of 2 N d."""
    d, e, f = spec.hidden, spec.kv_width, spec.inner
    return {
        "mlp": (f, f),
        "transformer": (f, f, d, d, d, d),
        "llama": (f, f, f, d, e, e, d),
    }[spec.kind]
