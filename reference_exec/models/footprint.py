"""Footprints: the activation bytes of one microbatch on one stage, in closed form.

With N = batch x sequence tokens, d = hidden, h heads, T = sequence, B = batch, L layers and b bytes
per element, for llama also f = inner and e = kv_width, what autograd saves (each storage once,
parameters and constants not counted) is

    mlp          L (6 N d + 2 N) b              x, norm, tanh (4 N d); norm statistics
    transformer  L (16 N d + 4 N + B h T^2) b   x, norm, q, k, v, attention, x', norm, 4 + 4 N d;
                                                statistics of two norms; attention probabilities
    llama        L (N (8 d + 2 e + 4 f + 2) + B h T^2) b
                                                x, x', each norm's x / rms and output, turned q,
                                                attention (8 d); turned k, v (2 e); gate, silu, up,
                                                product (4 f); two norms' 1 / rms; probabilities
                                                (the first of all layers saves no 1 / rms of its
                                                first norm: its input takes no gradient)

plus the root of the graph: the output, N d b, or on the last stage the error and the scalar loss,
(N d + 1) b. After I the weight-gradient store holds the two operands of every weight GEMM:

    mlp          10 L N d b                     inputs 1 + 4, output gradients 4 + 1
    transformer  16 L N d b                     inputs 1 + 1 + 1 + 4, output gradients 3 + 1 + 4 + 1
    llama        L N (6 d + 2 e + 3 f) b        inputs 3 d + f, output gradients 3 d + 2 e + 2 f

A GEMM lets go of its output gradient, and of its input where no later one reads that. In the order
of ``shares``, in units of N b:

    mlp          down 5 d, up 5 d
    transformer  down 5 d, up 5 d, output 2 d, value d, key d, query 2 d
    llama        down d + f, up f, gate d + f, output 2 d, value e, key e, query 2 d

So transformer and llama give bytes back at I, and the mlp takes more (its tanh saves only its
output).

With a vocabulary of V words (``layers``) the first stage holds its N words, 8 bytes each, in the
place of its input, and its first layer's input takes a gradient. The last holds more: its norm's
input, statistics and output, (2 N d + 2 N) b, for llama (3 N d + N) b; and V in the place of d as
the root's error, (N V + 1) b; after I the operands of one more GEMM, N (d + V) b.

A slice of T_k tokens counts with T_k in the place of T, but attends to the slices before it: with
T_0 + ... + T_k = U_k its probabilities are B h T_k U_k. The keys and values of earlier slices are
theirs and are not counted again.
These formulas are read off the shapes; nothing here is measured and torch is not loaded. A user's
own model has no formula: its bytes are those of one dry run (``examined``, which loads torch).

The floating-point operations of one microbatch on one stage, in closed form.

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

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from bubbleproof.reference_exec.models.model_spec import EMBEDDING, HEAD, ModelSpec

if TYPE_CHECKING:
    from bubbleproof.reference_exec.models.dry_run import StageFacts

WORD_BYTES = 8
Ends = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes one microbatch holds on a stage: from F to B or I, and from I to W.

    ``gemm_bytes`` are what each GEMM of W lets go, in the order of ``shares``; ``prefix_bytes`` the
    keys and values of a slice, which stay for later slices where the rest is dropped or moved.
    """

    activation_bytes: int
    gemm_bytes: tuple[int, ...]
    prefix_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        """What of it can leave the rank."""
        return self.activation_bytes - self.prefix_bytes

    @property
    def weight_bytes(self) -> int:
        return sum(self.gemm_bytes)

    def part_bytes(self, num_parts: int) -> tuple[int, ...]:
        """What each part of a W that is cut lets go."""
        cut = shares(len(self.gemm_bytes), num_parts)
        return tuple(sum(self.gemm_bytes[k] for k in share) for share in cut)

    @property
    def released_at_input_bytes(self) -> int:
        """What I gives back at its end; negative where I acquires more at its start."""
        return self.activation_bytes - self.weight_bytes


def require_stages(spec: ModelSpec, num_stages: int) -> None:
    """Raise ``ValueError`` where the model is not one of so many stages."""
    if spec.kind == "own" and (found := len(facts_of(spec))) != num_stages:
        raise ValueError(f"model {spec.factory} has {found} stages, the schedule {num_stages}")
    spec.require_stages(num_stages)


def weight_bytes(spec: ModelSpec, stage: int) -> int:
    """The bytes of a stage's parameters, and of its gradients where none are frozen.

    With d = hidden, a layer of the mlp has 8 d^2 + 7 d of them (two GEMMs, two biases, a norm), one
    of the transformer 12 d^2 + 4 d (six GEMMs, two norms), one of llama 2 d^2 + 2 d e + 3 d f + 2 d
    (seven GEMMs, two norms without bias). A vocabulary of V words adds V d to the first stage and
    V d and a norm to the last.
    """
    if spec.kind == "own":
        return facts_of(spec)[stage].weight_bytes
    d, e, f = spec.hidden, spec.kv_width, spec.inner
    layer = {
        "mlp": 8 * d**2 + 7 * d,
        "transformer": 12 * d**2 + 4 * d,
        "llama": 2 * d**2 + 2 * d * e + 3 * d * f + 2 * d,
    }
    words = spec.vocabulary * d
    elements = spec.layers_of(stage) * layer[spec.kind]
    if spec.is_embedding(stage):
        elements += words
    if spec.is_head(stage):
        elements += words + (d if spec.kind == "llama" else 2 * d)
    return elements * spec.element_bytes


def gradient_bytes(spec: ModelSpec, stage: int) -> int:
    """The bytes of a stage's gradients: those of its parameters, without frozen ones."""
    return facts_of(spec)[stage].gradient_bytes if spec.kind == "own" else weight_bytes(spec, stage)


def ties_of(spec: ModelSpec, num_stages: int) -> tuple[Ends, ...]:
    """The parameters that several stages have, each by (stage, name) in the order of stages."""
    if spec.kind != "own":
        return (((0, EMBEDDING), (num_stages - 1, HEAD)),) if spec.tied else ()
    from bubbleproof.reference_exec.models.own import own_ties  # loads torch

    return own_ties(spec)


def parameter_tensors(spec: ModelSpec, stage: int) -> int:
    """The number of a stage's parameters that get gradients; of a user's some may be frozen.

    A layer of the mlp has 6 (two GEMMs with bias, a norm of two), one of the transformer 10 (six
    GEMMs, two norms of two), one of llama 9 (seven GEMMs, two norms of one). A vocabulary adds one
    to the first stage, and one and a norm to the last.
    """
    if spec.kind == "own":
        return facts_of(spec)[stage].num_trained
    tensors = spec.layers_of(stage) * {"mlp": 6, "transformer": 10, "llama": 9}[spec.kind]
    tensors += spec.is_embedding(stage)
    if spec.is_head(stage):
        tensors += 2 if spec.kind == "llama" else 3
    return tensors


def constant_bytes(spec: ModelSpec, stage: int) -> int:
    """The bytes of what a stage holds beside its parameters, whatever it has run.

    A layer of the transformer has a mask, T^2 elements for sequence T; one of llama also cosines
    and sines of T positions in a head of width w, 2 T w; the mlp has nothing.
    """
    if spec.kind == "own":
        facts = facts_of(spec)[stage]
        return facts.resident_bytes - facts.weight_bytes
    tokens, width = spec.sequence, spec.hidden // spec.heads
    layer = {"mlp": 0, "transformer": tokens**2, "llama": tokens**2 + 2 * tokens * width}
    return spec.layers_of(stage) * layer[spec.kind] * spec.element_bytes


def target_bytes(spec: ModelSpec, *, slice_index: int = 0, num_slices: int = 1) -> int:
    """The bytes of what a reference model's last stage should put out, or of the words instead."""
    tokens = spec.batch * spec.slice_length(slice_index, num_slices)
    return tokens * (WORD_BYTES if spec.vocabulary else spec.hidden * spec.element_bytes)


def input_bytes(
    spec: ModelSpec, stage: int = 0, *, slice_index: int = 0, num_slices: int = 1
) -> int:
    """The bytes of the input of a stage, which is kept where the stage is recomputed: N d b."""
    if spec.kind == "own":
        return facts_of(spec)[stage].input_bytes
    tokens = spec.batch * spec.slice_length(slice_index, num_slices)
    return tokens * (WORD_BYTES if spec.is_embedding(stage) else spec.hidden * spec.element_bytes)


def footprint(
    spec: ModelSpec, stage: int, num_stages: int, *, slice_index: int = 0, num_slices: int = 1
) -> Footprint:
    """The footprint of one slice of ``num_slices`` on ``stage`` of ``num_stages``, see above."""
    if spec.kind == "own":
        facts = facts_of(spec)[stage]
        return Footprint(activation_bytes=facts.activation_bytes, gemm_bytes=facts.gemm_bytes)
    length = spec.slice_length(slice_index, num_slices)
    attended = spec.slice_start(slice_index, num_slices) + length
    tokens, element = spec.batch * length, spec.element_bytes
    saved = spec.layers_of(stage) * _of_one_layer(spec, length, attended) + tokens * spec.hidden
    gemms = spec.layers_of(stage) * _gemms_of_one_layer(spec)
    words = 0
    if spec.is_embedding(stage):
        words = tokens * WORD_BYTES
    elif spec.kind == "llama" and stage == 0:
        saved -= tokens
    if stage == num_stages - 1:
        saved += 1
    if stage == num_stages - 1 and spec.vocabulary:
        saved += _of_head(spec, tokens)
        gemms = (spec.hidden + spec.vocabulary, *gemms)
    return Footprint(
        activation_bytes=saved * element + words,
        gemm_bytes=tuple(elements * tokens * element for elements in gemms),
        prefix_bytes=_prefix_bytes(spec, stage, tokens) if num_slices > 1 else 0,
    )


def _prefix_bytes(spec: ModelSpec, stage: int, tokens: int) -> int:
    """The bytes of the keys and values of so many tokens."""
    width = {"mlp": 0, "transformer": spec.hidden, "llama": spec.kv_width}[spec.kind]
    return 2 * spec.layers_of(stage) * tokens * width * spec.element_bytes


def _of_head(spec: ModelSpec, tokens: int) -> int:
    """The elements that a head saves, and those of its error beyond the (tokens, hidden) ones."""
    d = spec.hidden
    norm = tokens * (3 * d + 1) if spec.kind == "llama" else tokens * (2 * d + 2)
    return norm + tokens * (spec.vocabulary - d)


def _of_one_layer(spec: ModelSpec, length: int, attended: int) -> int:
    """The elements that a layer saves in F."""
    tokens, d, e, f = spec.batch * length, spec.hidden, spec.kv_width, spec.inner
    probabilities = spec.batch * spec.heads * length * attended
    if spec.kind == "mlp":
        return tokens * (6 * d + 2)
    if spec.kind == "transformer":
        return tokens * (16 * d + 4) + probabilities
    return tokens * (8 * d + 2 * e + 4 * f + 2) + probabilities


def _gemms_of_one_layer(spec: ModelSpec) -> tuple[int, ...]:
    """The elements per token that each GEMM of a layer lets go, see above."""
    d, e, f = spec.hidden, spec.kv_width, spec.inner
    return {
        "mlp": (5 * d, 5 * d),
        "transformer": (5 * d, 5 * d, 2 * d, d, d, 2 * d),
        "llama": (d + f, f, d + f, 2 * d, e, e, 2 * d),
    }[spec.kind]


@lru_cache(maxsize=4096)
def of_size(spec: ModelSpec, sample: int) -> ModelSpec:
    """The specification for the sizes of a microbatch: of a user's model these may differ."""
    if spec.kind != "own" or sample <= 0:
        return spec
    from bubbleproof.reference_exec.models.unequal import first_alike  # loads torch

    return replace(spec, sample=first_alike(spec, sample))


def facts_of(spec: ModelSpec) -> tuple[StageFacts, ...]:
    """The facts of every stage of a user's own model, on the microbatch of ``spec.sample``."""
    from bubbleproof.reference_exec.models.examined import examined  # loads torch

    return examined(spec)


def shares(num_gemms: int, num_parts: int) -> tuple[range, ...]:
    """The numbers of the GEMMs of each part. Precondition: at least one part."""
    length, longer = divmod(num_gemms, num_parts)
    ends = accumulate((length + (part < longer) for part in range(num_parts)), initial=0)
    return tuple(range(begin, end) for begin, end in pairwise(ends))


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
