"""How large a replay may be, from its numbers alone: asked before torch is loaded.

The bytes are the least that any replay of a reference model holds at once: its weights with their
gradients, and in one stage the activations of one sample of work. With h the hidden size, u the
inner units, b the samples of a microbatch, t its tokens and a the heads:

- a layer has 2 h u weights (``mlp``), 4 h^2 + 2 h u (``transformer``), 2 h^2 + 3 h u (``llama``),
  a vocabulary of V words V h at either end;
- a layer keeps b t (h + u) activations, and where it attends a t x t mask and b a t^2 weights, of
  which a slice has its tokens' rows.
"""

from __future__ import annotations

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.limits import MAX_RANKS, MAX_TASKS

MOST_BYTES = 4 << 30  # on the cpu; a model that a replay checks a schedule with is far smaller
MOST_GLOO = 256  # processes that a command starts on one machine, each of which loads torch


def require_size(problem: Problem, steps: int, replicas: int, *, backend: str = "virtual") -> None:
    """Raise ``ValueError`` for more processes or actions than a replay may have."""
    on, most = (" on gloo", MOST_GLOO) if backend == "gloo" else ("", MAX_RANKS)
    for what, limit, asked in (
        (f"processes{on}", most, problem.num_ranks * replicas),
        ("actions", MAX_TASKS, problem.num_tasks * steps * replicas),
    ):
        if asked > limit:
            raise ValueError(
                f"a replay has at most {limit} {what} in all steps and replicas, got {asked}"
            )


def require_room(
    spec: ModelSpec, *, num_stages: int, num_slices: int, replicas: int = 1, device: str = "cpu"
) -> None:
    """Raise ``ValueError`` for a reference model beyond ``MOST_BYTES`` on the cpu."""
    if spec.kind == "own" or device != "cpu":
        return
    least = least_bytes(spec, num_stages, num_slices, replicas)
    if least > MOST_BYTES:
        raise ValueError(
            f"a model on the cpu takes at most {MOST_BYTES} bytes, got one that needs "
            f"{least} or more (weights, gradients, one microbatch's activations); "
            "make it smaller, or use --device cuda"
        )


def least_bytes(spec: ModelSpec, num_stages: int, num_slices: int = 1, replicas: int = 1) -> int:
    """The bytes that every replay of a reference model needs at once; see the module."""
    layers = spec.layers if isinstance(spec.layers, tuple) else (spec.layers,) * num_stages
    weights = _layer_weights(spec) * sum(layers) + 2 * spec.vocabulary * spec.hidden
    activations = max(layers) * _layer_activations(spec, num_slices)
    return spec.element_bytes * (2 * replicas * weights + activations)


def _layer_weights(spec: ModelSpec) -> int:
    hidden, inner = spec.hidden, spec.inner
    if spec.kind == "mlp":
        return 2 * hidden * inner
    if spec.kind == "transformer":
        return 4 * hidden**2 + 2 * hidden * inner
    return 2 * hidden**2 + 3 * hidden * inner  # keys and values, a matter of kv_heads, left out


def _layer_activations(spec: ModelSpec, num_slices: int) -> int:
    tokens = spec.slice_length(0, num_slices)
    kept = spec.batch * tokens * (spec.hidden + spec.inner)
    if spec.kind == "mlp":
        return kept
    return kept + (spec.batch * spec.heads + 1) * tokens * spec.sequence
